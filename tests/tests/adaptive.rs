//! Adaptive routing on the virtual clock: each file meets what it expects, and applications are the faster
//! the more their routes know. One application in little runs with every change; the rest takes minutes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use topo::experiment::{Conditions, Experiment};
use topo::launch::substrate;
use topo::measure::verdict::Verdict;
use topo::run_directory::result::RunResult;
use topo::scenario::Scenario;
use topo::scenario::run::Backend;

/// Two test networks, with contention within and at the end points, without and with adaptive routing;
/// CG placed in two ways with five routings; uniform traffic with two.
const FILES: usize = 8 + 10 + 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios/ar")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).expect("the scenarios are shipped");
    let mut files: Vec<PathBuf> = listing.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

fn run(file: &Path, sets: &[&str]) -> RunResult {
    let text = std::fs::read_to_string(file).expect("it is shipped");
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse(&text, &sets).unwrap_or_else(|faults| panic!("{faults}"));
    let conditions = Conditions {
        substrate: substrate(Backend::Virtual),
        dilation: 0,
        threads: 1,
        folder: None,
        command: "a test".to_owned(),
        injections: Vec::new(),
    };
    Experiment::run(&scenario, conditions, &mut |_| {}).expect("it runs").result
}

fn passes(file: &Path, result: &RunResult) {
    let missed = result.expectations.iter().filter(|e| e.verdict != Verdict::Pass);
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{}: {missed:#?}", file.display());
    assert_eq!(result.verdict, Verdict::Pass, "{}: {:?}", file.display(), result.conservation);
}

/// Two at a time.
fn all_pass(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            passes(file, &run(file, &[]));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
}

/// Three sources turn away from the middle where they meet, within a few milliseconds of the start.
#[test]
fn frames_turn_away_from_congestion_and_arrive_in_order() {
    let file = folder().join("t1-ar.toml");
    let text = std::fs::read_to_string(&file).expect("it is shipped");
    let one = text.split("[[measure]]").next().expect("a file begins before its measures");
    let measure = "[[measure]]\nname = \"flow_min\"\nof = \"share\"\n\
        at = [\"h1>h4\", \"h2>h5\", \"h3>h6\"]\nfrom = \"20 ms\"\nreduce = \"min\"\n\
        [[measure]]\nname = \"gaps\"\nof = \"count\"\nat = \"h*:rx\"\ncounter = \"sequence-gaps\"\nreduce = \"sum\"\n";
    let expect = "[[expect]]\nmeasure = \"flow_min\"\nmin = 0.931\nwhy = \"0.95 ±2 %\"\n\
        [[expect]]\nmeasure = \"gaps\"\nmax = 0\nwhy = \"in order\"\n";
    let scenario =
        Scenario::parse(&format!("{one}{measure}{expect}"), &["run.duration=\"40 ms\"".into()]);
    let scenario = scenario.unwrap_or_else(|faults| panic!("{faults}"));
    let conditions = Conditions {
        substrate: substrate(Backend::Virtual),
        dilation: 0,
        threads: 1,
        folder: None,
        command: "a test".to_owned(),
        injections: Vec::new(),
    };
    let result = Experiment::run(&scenario, conditions, &mut |_| {}).expect("it runs").result;
    passes(&file, &result);
}

#[test]
fn every_file_can_be_read() {
    let here = files(&folder());
    assert_eq!(here.len(), FILES, "{here:?}");
    for file in here.iter().chain(&files(&folder().join("large"))) {
        let text = std::fs::read_to_string(file).expect("it is shipped");
        Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{}: {faults}", file.display()));
    }
}

/// algorithms.md 10.3 owes the order alone; docs/findings.md 17 has the figures.
#[test]
fn an_application_is_the_sooner_done_the_more_its_routes_know() {
    let completion = |routing: &str| {
        let file = folder().join(format!("cg-linear-{routing}.toml"));
        let result = run(&file, &[]);
        passes(&file, &result);
        let measured = serde_json::to_value(&result.measures).expect("numbers");
        measured["completion_over_ideal"].as_f64().expect("it has ended")
    };
    let order = ["colored", "ar", "random", "dmodk", "cm"].map(completion);
    assert!(order.is_sorted() && order[0] < order[1] && order[1] < order[2], "{order:?}");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_file_meets_what_it_expects() {
    all_pass(&files(&folder()));
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn ft_meets_what_its_files_expect() {
    let files = files(&folder().join("large"));
    assert_eq!(files.len(), 5, "{files:?}");
    all_pass(&files);
}
