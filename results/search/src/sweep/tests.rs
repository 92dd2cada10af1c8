//! Sweep files and their faults; a whole sweep over a small star.

use super::*;
use chart::number;

pub(crate) const STAR: &str = r#"
schema = 1
name = "star"
source = "a test"

[run]
seed = 3
duration = "400 mtu"

[fabric]
shape = "star"
hosts = 3
technology = "infiniband"
routing = "d-mod-k"
link = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
switch = { memory = "per-input", buffer = "36 mtu" }

[[traffic]]
name = "all"
from = "h0"
to = "h1"
load = 0.5
arrivals = "poisson"

[[measure]]
name = "received"
of = "throughput"
per = "line"
at = "h1:rx"
from = "100 mtu"
to = "400 mtu"

[[expect]]
measure = "received"
min = 0.99
"#;

const SWEEP: &str = r#"
schema = 1
name = "load"
base = "star.toml"
measures = ["received"]
seeds = 2

[[axis]]
name = "load"
labels = ["low", "middle", "high"]
[axis.set]
"traffic.all.load" = [0.1, 0.4, 0.8]
"say" = ["a", "b", "c"]

[[expect]]
measure = "received"
order = "rising"

[[expect]]
measure = "received"
at = ["low"]
max = 0.2
"#;

fn folder(sweep: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sweep.toml");
    std::fs::write(folder.path().join("star.toml"), STAR).expect("room on the disk");
    std::fs::write(&file, sweep).expect("room on the disk");
    (folder, file)
}

fn faults(text: &str) -> String {
    file::parse(text, Path::new("sweep.toml")).expect_err("it has faults").in_file("sweep.toml")
}

#[test]
fn a_sweep_comes_out_the_same_on_one_thread_and_on_two() {
    let (_folder, file) = folder(SWEEP);
    let sweep = Sweep::load(&file, &[]).expect("a sweep");
    assert_eq!(sweep.runs(), 6);
    let [one, two] = [1, 2].map(|threads| sweep.run(threads, "", &|| {}).expect("it runs"));
    assert_eq!(report::json(&sweep, &one), report::json(&sweep, &two));
    assert_eq!(one.verdict(), Verdict::Pass, "{}", report::text(&sweep, &one));
    let means: Vec<f64> = one.rows.iter().filter_map(|row| row.mean("received")).collect();
    // σ of 200 frames is 7 %, of the mean of two seeds 5 %.
    for (mean, load) in means.iter().zip([0.1, 0.4, 0.8]) {
        assert!((mean / load - 1.0).abs() < 0.3, "{mean} of {load}");
    }
    assert_eq!(means.len(), 3);
    let mut csv = Vec::new();
    report::csv(&sweep, &one, &mut csv).expect("memory takes it");
    let csv = String::from_utf8(csv).expect("text");
    let first = format!("load,measure,mean,deviation,verdict\nlow,received,{},", means[0]);
    assert!(csv.starts_with(&first), "{csv}");
    assert_eq!(csv.lines().count(), 4);
    let svg = picture::svg(&sweep, &one);
    for part in ["<title>load</title>", ">middle</text>", ">received</text>", "<circle", "</svg>"] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
}

#[test]
fn two_axes_become_a_table_with_its_numbers_in_its_cells() {
    let (folder, _) = folder(SWEEP);
    let sets = ["traffic.all.load=0.1,0.8", "run.seed=8,9,10", "run.duration=500 mtu"];
    let star = folder.path().join("star.toml");
    let sweep = Sweep::load(&star, &sets.map(str::to_owned)).expect("a sweep");
    let swept = sweep.run(2, "", &|| {}).expect("it runs");
    let svg = picture::svg(&sweep, &swept);
    assert!(svg.contains("run.seed down, traffic.all.load across"), "{svg}");
    let numbers: Vec<&str> = svg
        .split("<text class=\"number\"")
        .skip(1)
        .filter_map(|cell| cell.split(['>', '<']).nth(1))
        .collect();
    // Down the rows: each seed with both loads, the greater load right of the smaller.
    let expected: Vec<String> = [0, 3, 1, 4, 2, 5]
        .map(|point| number::measured_or_dash(swept.rows[point].mean("received")))
        .to_vec();
    assert_eq!(numbers, expected);
}

#[test]
fn a_scenario_is_swept_over_what_the_command_line_says() {
    let (folder, _) = folder(SWEEP);
    let sets = ["traffic.all.load=0.1,0.8", "run.seed=8,9", "run.duration=200 mtu"];
    let star = folder.path().join("star.toml");
    let sweep = Sweep::load(&star, &sets.map(str::to_owned)).expect("a sweep");
    let labels: Vec<String> = sweep.points().iter().map(|point| point.labels.join(" ")).collect();
    assert_eq!(labels, ["0.1 8", "0.1 9", "0.8 8", "0.8 9"]);
    assert_eq!(sweep.sets, ["run.duration=200 mtu"]);
    let alone = Sweep::load(&star, &[]).expect_err("nothing varies");
    assert!(alone.to_string().contains("nothing varies"), "{alone}");
}

#[test]
fn values_that_the_base_refuses_and_measures_it_has_not_are_told() {
    let (folder, file) = folder(&SWEEP.replace("0.8]", "-0.8]"));
    let error = Sweep::load(&file, &[]).and_then(|sweep| sweep.run(1, "", &|| {}).map(|_| ()));
    let error = error.expect_err("no load is below zero").to_string();
    assert!(error.contains("--set traffic.all.load=-0.8"), "{error}");
    let file = folder.path().join("sweep.toml");
    std::fs::write(&file, SWEEP.replace("[\"received\"]", "[\"recieved\"]")).expect("room");
    let error = Sweep::load(&file, &[]).and_then(|sweep| sweep.run(1, "", &|| {}).map(|_| ()));
    let error = error.expect_err("it is spelt otherwise").to_string();
    assert!(error.contains("no \"recieved\": it has received"), "{error}");
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    let text = SWEEP
        .replace("seeds = 2", "seeds = 0")
        .replace("order = \"rising\"", "order = \"rising\"\nmin = 1")
        .replace("at = [\"low\"]", "at = [\"lwo\"]");
    let faults = faults(&text);
    for part in ["seeds", "either an order or bounds", "load has no value \"lwo\"", "low"] {
        assert!(faults.contains(part), "{part} in {faults}");
    }
}

#[test]
fn keys_of_an_axis_have_as_many_values_each() {
    let short = faults(&SWEEP.replace("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\"]"));
    assert!(short.contains("2 values beside 3 of traffic.all.load"), "{short}");
    let one = faults(&SWEEP.replace("[0.1, 0.4, 0.8]", "0.1"));
    assert!(one.contains("no list of values"), "{one}");
    let labels = faults(&SWEEP.replace("\"middle\", ", ""));
    assert!(labels.contains("2 labels for 3 values"), "{labels}");
}

#[test]
fn without_labels_values_name_themselves() {
    let text = SWEEP.replace("labels = [\"low\", \"middle\", \"high\"]\n", "");
    let text = text.replace("at = [\"low\"]", "at = [\"0.1\"]");
    let sweep = file::parse(&text, Path::new("a/sweep.toml")).expect("a sweep");
    let labels: Vec<&str> = sweep.axes[0].steps.iter().map(|step| step.label.as_str()).collect();
    assert_eq!(labels, ["0.1", "0.4", "0.8"]);
    assert_eq!(sweep.base, Path::new("a/star.toml"));
    assert_eq!(sweep.axes[0].steps[0].sets, ["traffic.all.load=0.1", "say=\"a\""]);
}

#[test]
fn a_variant_of_a_scenario_is_swept_like_any_other() {
    let (folder, _) = folder(SWEEP);
    let variant = folder.path().join("variant.toml");
    std::fs::write(&variant, "base = \"star.toml\"\nname = \"variant\"\n")
        .expect("room on the disk");
    let sets = ["traffic.all.load=0.1,0.4".to_owned()];
    let sweep = Sweep::load(&variant, &sets).expect("a sweep");
    assert_eq!(sweep.name, "variant");
    assert_eq!(sweep.plan().expect("its base is there").runs.len(), 2);
}

#[test]
fn the_sweeps_that_are_shipped_fit_their_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topo/scenarios/zhb/sweeps");
    let listed = std::fs::read_dir(&folder).expect("they are shipped");
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert_eq!(files.len(), 5);
    for file in files {
        let sweep = Sweep::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let plan = sweep.plan().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(plan.runs.len() >= 3 && !sweep.expectations.is_empty(), "{}", file.display());
    }
}

#[test]
fn the_schema_knows_every_key() {
    let schema = file::schema().to_string();
    for key in ["base", "axis", "labels", "measures", "order"] {
        assert!(schema.contains(&format!("\"{key}\"")), "{key}");
    }
}
