//! Equal seeds give run directories that are equal octet for octet, independent of the machine's load.

use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use scenario::Scenario;
use scenario::run::Backend;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// 32 nodes for a short time, with faults, so that every user of random numbers draws some.
const SHORT_32: &str = r#"
schema = 1
name   = "determinism"

[run]
seed     = 7
duration = "400 mtu"
capture  = ["leaf7:*", "h31:1"]

[fabric]
shape      = "xgft"
m          = [4, 8]
w          = [1, 4]
technology = "infiniband"
routing    = "d-mod-k"
link   = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
switch = { memory = "per-input", buffer = "36 mtu" }

[scheme]
kind         = "ib-cca"
threshold    = 15
marking_rate = 3

[[traffic]]
name     = "cold"
from     = "h*"
to       = "uniform"
load     = 0.6
arrivals = "poisson"

[[traffic]]
name     = "hot"
from     = "h[0-30]"
to       = "h31"
load     = 0.2
arrivals = "bernoulli"

[[impairment]]
from   = "h[0-3]:1"
frames = "data"
action = "duplicate"
chance = 0.01

[[impairment]]
from   = "leaf7:1"
action = "delay"
chance = 0.05
by     = "3 mtu"

[[measure]]
name   = "hot"
of     = "throughput"
at     = "h31:rx"
from   = "100 mtu"
to     = "400 mtu"
reduce = "mean"
per    = "line"
"#;

fn shipped(name: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios/pfister").join(name);
    parse(&scenario::files::read(&path).expect("the scenario file is readable").text, sets)
}

fn parse(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse(text, &sets).unwrap_or_else(|problems| panic!("{problems}"))
}

fn run_into(folder: &Path, scenario: &Scenario, command: &str) {
    let conditions = Conditions {
        folder: Some(folder),
        ..Conditions::new(substrate(Backend::Virtual), command)
    };
    Experiment::run(scenario, conditions, &mut |_| {}).expect("the run is not interrupted");
}

/// Every file of a run directory; `run.json` without the fields about the host.
type RunFiles = BTreeMap<String, Vec<u8>>;

fn read(folder: &Path) -> RunFiles {
    let entries = std::fs::read_dir(folder).expect("the run directory exists");
    let mut files: RunFiles = entries
        .map(|entry| {
            let entry = entry.expect("a run directory entry is readable");
            let octets = std::fs::read(entry.path()).expect("a run directory contains files only");
            (entry.file_name().to_string_lossy().into_owned(), octets)
        })
        .collect();
    let run = files.get_mut("run.json").expect("the run wrote run.json");
    let mut value: Value = serde_json::from_slice(run).expect("run.json is JSON");
    let host = value.as_object_mut().and_then(|run| run.remove("host"));
    assert!(
        host.is_some_and(|host| host["wall_seconds"].is_number()),
        "run.json keeps host figures in one object"
    );
    *run = value.to_string().into_bytes();
    files
}

fn files_of(scenario: &Scenario, command: &str) -> RunFiles {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run_into(folder.path(), scenario, command);
    read(folder.path())
}

/// The names of the files that differ, without their contents, which can be megabytes.
fn differing(one: &RunFiles, other: &RunFiles) -> Vec<String> {
    assert!(one.keys().eq(other.keys()), "{:?} and {:?}", one.keys(), other.keys());
    one.keys().filter(|name| one[*name] != other[*name]).cloned().collect()
}

/// The scenarios of this file by name.
fn scenarios() -> Vec<(&'static str, Scenario)> {
    let captured = ["run.capture=[\"h7:1\"]", "run.snaplen=64 B"];
    vec![
        ("short 32", parse(SHORT_32, &[])),
        ("eight-ib-cca", shipped("eight-ib-cca.toml", &captured)),
        ("eight-none", shipped("eight-none.toml", &[])),
    ]
}

#[test]
fn equal_seeds_give_equal_run_directories_alone_or_in_parallel() {
    let alone: Vec<_> =
        scenarios().iter().map(|(_, scenario)| files_of(scenario, "alone")).collect();
    for (files, (name, _)) in alone.iter().zip(scenarios()) {
        for table in ["ports.csv", "queues.csv", "flows.csv", "events.jsonl", "topology.json"] {
            assert!(files[table].len() > 500, "{name}: {table} is almost empty");
        }
    }
    assert!(
        alone[0]["capture.pcapng"].len() > 100_000 && alone[1]["capture.pcapng"].len() > 100_000
    );

    let beside: Vec<_> = thread::scope(|scope| {
        let start = |(_, scenario)| scope.spawn(move || files_of(&scenario, "side by side"));
        let workers: Vec<_> = scenarios().into_iter().map(start).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("the thread does not panic"))
            .collect()
    });
    for ((alone, beside), (name, _)) in alone.iter().zip(&beside).zip(scenarios()) {
        assert_eq!(differing(alone, beside), [""; 0], "{name}");
    }
}

#[test]
fn different_seeds_give_different_runs() {
    let (one, other) = (parse(SHORT_32, &[]), parse(SHORT_32, &["run.seed=8"]));
    let (one, other) = (files_of(&one, ""), files_of(&other, ""));
    let differing = differing(&one, &other);
    for table in ["ports.csv", "queues.csv", "flows.csv", "events.jsonl", "capture.pcapng"] {
        assert!(differing.iter().any(|name| name == table), "{table} does not depend on the seed");
    }
    assert!(
        !differing.iter().any(|name| name == "topology.json"),
        "the fabric does not depend on the seed"
    );
}

#[test]
fn capturing_changes_only_the_capture_file() {
    let with = files_of(&parse(SHORT_32, &[]), "");
    let mut without = files_of(&parse(SHORT_32, &["run.capture=[]"]), "");
    assert!(!without.contains_key("capture.pcapng"));
    without.insert("capture.pcapng".to_owned(), with["capture.pcapng"].clone());
    let [with, without] = [with, without].map(|mut files| {
        // The list of settings contains the capture, like every other setting, and `captures` its totals.
        let run = files.get_mut("run.json").expect("the run wrote run.json");
        let mut value: Value = serde_json::from_slice(run).expect("run.json is JSON");
        let settings = value["parameters"].as_array_mut().expect("a list of settings");
        let before = settings.len();
        settings.retain(|setting| setting["name"] != "run.capture");
        assert_eq!(settings.len() + 1, before, "the capture is a setting");
        value.as_object_mut().expect("an object").remove("captures");
        *run = value.to_string().into_bytes();
        files
    });
    assert_eq!(differing(&with, &without), [""; 0]);
}

#[test]
fn a_reused_run_directory_equals_a_new_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run_into(folder.path(), &parse(SHORT_32, &["run.seed=8", "run.duration=500 mtu"]), "");
    run_into(folder.path(), &parse(SHORT_32, &[]), "");
    assert_eq!(differing(&read(folder.path()), &files_of(&parse(SHORT_32, &[]), "")), [""; 0]);
}
