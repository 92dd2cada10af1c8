//! The golden bad file, overrides, units and the published schema.

use super::*;
use crate::traffic::Offer;
use proto::params::Kind;
use proto::units::Duration;
use std::path::{Path, PathBuf};

mod bad_files;
mod hot_spots;

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let folders = std::fs::read_dir(root).expect("scenarios are shipped");
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| std::fs::read_dir(folder.expect("a folder").path()).expect("readable"))
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_shipped_scenario_is_valid_and_renders() {
    let files = shipped();
    assert!(files.len() >= 17, "{files:?}");
    for path in files {
        let loaded = files::load(&path, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        let scenario = loaded.scenario;
        assert!(scenario.warnings.is_empty(), "{path:?}: {:?}", scenario.warnings);
        let lab = crate::render::render(&scenario);
        assert_eq!(lab.fabric.wiring.nodes.len(), lab.nics.len() + lab.switches.len());
        for item in lab.nics.iter().flat_map(|nic| &nic.traffic) {
            let is_paced = item.interval > Duration::ZERO;
            let is_backlog = item.arrivals == nicd::config::Arrivals::Backlog;
            let is_scripted = matches!(item.to, nicd::config::Target::Script(_));
            assert!(is_scripted || is_paced != is_backlog, "{path:?}: {}", item.name);
        }
    }
}

fn shipped_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    files::read(&path).expect("it is shipped").text
}

fn parse(name: &str, sets: &[&str]) -> Result<Scenario, Problems> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse(&shipped_text(name), &sets)
}

#[test]
fn each_pfister_file_measures_the_eight_things() {
    let names = [
        "hot_port",
        "cold_ports_mean",
        "pre_ports_mean",
        "recovery_mtu_times",
        "hot_release_mtu_times",
        "hot_ipd_mean",
        "cold_ipd_mean",
        "hot_ipd_sd",
    ];
    for path in shipped().iter().filter(|path| path.to_string_lossy().contains("pfister")) {
        let scenario = files::load(path, &[]).expect("it is valid").scenario;
        let measured: Vec<_> = scenario.measures.iter().map(|measure| &measure.name).collect();
        assert_eq!(measured, names, "{path:?}");
        for expectation in &scenario.expectations {
            assert_eq!(
                scenario.text.lines().nth(expectation.line - 1),
                Some("[[expect]]"),
                "{path:?}"
            );
        }
        let stem = path.file_stem().expect("a name").to_string_lossy();
        assert_eq!(scenario.name, format!("pfister-{stem}"));
    }
}

/// Severity: what the hot port is offered during the hot period, from the files alone.
#[test]
fn each_hot_spot_is_offered_three_times_its_rate() {
    for (name, hosts) in [
        ("case1-none", 32),
        ("case2-none", 32),
        ("case3-none", 32),
        ("case4-none", 32),
        ("demo-ib-cca", 32),
        ("eight-none", 8),
    ] {
        let scenario = parse(&format!("pfister/{name}.toml"), &[]).expect("it is valid");
        let hot = scenario.phases[1].start;
        let active = scenario.traffic.items.iter().filter(|i| i.start <= hot && hot < i.stop);
        let offered: f64 = active
            .map(|item| {
                let Offer::Load(load) = item.offer else { panic!("{}: a load", item.name) };
                let sources = item.from.iter().filter(|from| **from != hosts - 1).count() as f64;
                match &item.to {
                    traffic::Receivers::Nodes(_) => sources * load,
                    _ => sources * load / (hosts - 1) as f64,
                }
            })
            .sum();
        assert!((offered - 3.0).abs() < 1e-4, "{name}: {offered}");
    }
}

#[test]
fn any_key_can_be_overridden_also_inside_arrays() {
    let scenario = parse(
        "pfister/case4-ib-cca.toml",
        &[
            "fabric.switch.buffer=300 KB",
            "scheme.ccti_increase=20",
            "traffic.cold.load=0.5",
            "traffic.3.load=0.25",
            "run.backend=\"udp\"",
            "run.dilate=1500",
            "fabric.nic.ack_every=4",
            "expect.hot_port.min=0.5",
        ],
    )
    .expect("it is valid");
    assert_eq!(scenario.fabric.switch.buffer, Bytes::new(300_000));
    assert_eq!(scenario.scheme.params["ccti_increase"].as_integer(), Some(20));
    assert_eq!(scenario.traffic.items[1].offer, Offer::Load(0.5));
    assert_eq!(scenario.traffic.items[3].offer, Offer::Load(0.25));
    assert_eq!(scenario.run.backend, run::Backend::Udp);
    assert_eq!(scenario.run.dilate, run::Dilate::By(1500.0));
    assert_eq!(scenario.fabric.nic.params.ack_every, 4);
    let hot = scenario.expectations.iter().find(|e| e.measure == "hot_port").expect("there is one");
    assert_eq!(hot.min, Some(0.5));
}

#[test]
fn a_wrong_override_is_told_like_a_wrong_line() {
    let problems = parse(
        "pfister/case4-none.toml",
        &["fabric.switch.bufer=1 MB", "traffic.cool.load=0.5", "run.seed", "run.duration=8 Gbps"],
    )
    .expect_err("four faults");
    let expected = "\
--set fabric.switch.bufer=1 MB: fabric.switch.bufer: unknown key \"bufer\"
    hint: did you mean \"buffer\"?
--set run.duration=8 Gbps: run.duration: \"8 Gbps\" is not a time
    hint: \"Gbps\" is not a unit of time: s, ms, us, ns, ps, mtu (one frame time), tau
--set run.seed: run.seed: no equals sign
    hint: --set run.seed=8
--set traffic.cool.load=0.5: traffic.cool.load: \"traffic\" has no element \"cool\"
    hint: did you mean \"cold\"?";
    assert_eq!(problems.to_string(), expected);
}

#[test]
fn lost_lossless_frames_are_expected_with_a_reason_only() {
    let expected = |sets: &[&str]| {
        let parsed = parse("pfister/case4-none.toml", sets).map_err(|faults| faults.to_string());
        parsed.map(|scenario| scenario.run.expected_drops().map(str::to_owned))
    };
    let (expects, why) = ("run.lossless_drops=expected", "run.lossless_drops_why=no headroom");
    assert_eq!(expected(&[]), Ok(None));
    assert_eq!(expected(&[why]), Ok(None), "a reason alone expects nothing");
    assert_eq!(expected(&[expects, why]), Ok(Some("no headroom".to_owned())));
    for sets in [&[expects][..], &[expects, "run.lossless_drops_why= "]] {
        let fault = expected(sets).expect_err("there is no reason");
        assert!(fault.contains("lossless drops are expected without a reason"), "{fault}");
        assert!(fault.contains("hint: lossless_drops_why = "), "{fault}");
    }
}

#[test]
fn a_frame_of_the_default_link_is_the_unit_of_time_and_room() {
    let scenario = parse("pfister/case4-none.toml", &[]).expect("it is valid");
    assert_eq!(scenario.fabric.scale.tau, Duration::from_ns(2074));
    assert_eq!(scenario.fabric.switch.buffer, Bytes::new(1188 * 64));
    assert_eq!(scenario.run.duration, Duration::from_ns(2074) * 14_000);
    assert_eq!(scenario.fabric.link.delay, Duration::from_ps(259_250));
    let small = parse(
        "pfister/case4-none.toml",
        &["fabric.mtu=256 B", "fabric.link.rate=4 Gbps", "traffic.hot.size=4 KiB"],
    )
    .expect("it is valid");
    assert_eq!(small.fabric.scale.tau, Duration::from_ns(564), "282 octets at half the rate");
    assert_eq!(small.fabric.switch.buffer, Bytes::new(36 * 5 * 64));
}

#[test]
fn the_schema_names_every_key_of_every_table() {
    let schema = schema();
    let text = serde_json::to_string(&schema).expect("it is JSON");
    let back: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(back["else"]["required"], serde_json::json!(["schema", "name", "run", "fabric"]));
    names_every_key(&KEYS, &back, "scenario");
    names_every_key(&KEYS, &back["else"], "scenario");
    let shape = &back["properties"]["fabric"]["properties"]["shape"];
    assert_eq!(
        shape["enum"],
        serde_json::json!(["star", "xgft", "leaf-spine", "ar-t1", "ar-t3", "listed"])
    );
    assert_eq!(back["properties"]["fabric"]["properties"]["mtu"]["default"], "2048 B");
}

fn names_every_key(keys: &KeyTable, schema: &serde_json::Value, path: &str) {
    for key in keys.every_key() {
        let property = &schema["properties"][key.name];
        assert!(property["description"].is_string(), "{path}.{}", key.name);
        match key.kind {
            Kind::Table(inner) => names_every_key(inner, property, key.name),
            Kind::Tables(inner) => names_every_key(inner, &property["items"], key.name),
            _ => {}
        }
    }
}

#[test]
fn a_figure_of_the_report_is_like_one_other() {
    let figures = |more: &str| {
        let text = format!("{}\n{more}", shipped_text("pfister/case4-none.toml"));
        Scenario::parse(&text, &[]).map(|scenario| scenario.figures)
    };
    let read = figures("[[figure]]\nof = \"fabric\"\nlike = \"Fig. 1\"\n").expect("it is another");
    let words: Vec<_> = read.iter().map(|f| (f.of.word(), f.like.as_str())).collect();
    assert_eq!(words, [("over-time", "Pfister et al., Fig. 3, case 4"), ("fabric", "Fig. 1")]);
    let told = |more: &str| figures(more).expect_err("it is wrong").in_file("x.toml");
    let twice = told("[[figure]]\nlike = \"Fig. 5\"\n");
    assert!(
        twice.contains("over-time is already like \"Pfister et al., Fig. 3, case 4\""),
        "{twice}"
    );
    let unknown = told("[[figure]]\nof = \"overtime\"\nlike = \"Fig. 5\"\n");
    assert!(unknown.contains("over-time"), "{unknown}");
    assert!(told("[[figure]]\nof = \"fabric\"\n").contains("like"));
}
