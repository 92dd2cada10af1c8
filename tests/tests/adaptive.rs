//! Adaptive routing on the virtual clock: each file meets its expectations, and applications
//! complete faster with better informed routing. One small application runs in the quick suite; the rest takes minutes.

#[path = "suites/virtual_clock.rs"]
mod virtual_clock;

use virtual_clock::{all_pass, files, folder, passes, passes_as};

/// Two test networks, with contention within and at the end points, without and with adaptive routing;
/// CG placed in two ways with five routings; uniform traffic with two.
const FILES: usize = 8 + 10 + 2;

/// Three sources leave their common path within a few milliseconds of the start.
#[test]
fn frames_avoid_congestion_and_arrive_in_order() {
    let file = folder("ar").join("t1-ar.toml");
    let text = scenario::files::read(&file).expect("the scenario file is readable").text;
    let one = text.split("[[measure]]").next().expect("the file has text before its first measure");
    // The expectations name measures that this test removes.
    let one: String = one.split_inclusive('\n').filter(|line| !line.starts_with("say ")).collect();
    let measure = "[[measure]]\nname = \"flow_min\"\nof = \"share\"\n\
        at = [\"h1>h4\", \"h2>h5\", \"h3>h6\"]\nfrom = \"20 ms\"\nreduce = \"min\"\n\
        [[measure]]\nname = \"gaps\"\nof = \"count\"\nat = \"h*:rx\"\ncounter = \"sequence-gaps\"\nreduce = \"sum\"\n";
    let expect = "[[expect]]\nmeasure = \"flow_min\"\nmin = 0.931\nwhy = \"0.95 ±2 %\"\n\
        [[expect]]\nmeasure = \"gaps\"\nmax = 0\nwhy = \"in order\"\n";
    let text = format!("{one}{measure}{expect}");
    passes_as(&file, &text, &["run.duration=\"40 ms\"".to_owned()]);
}

#[test]
fn every_file_parses() {
    let here = files("ar");
    assert_eq!(here.len(), FILES, "{here:?}");
    for file in here.iter().chain(&files("ar/large")) {
        scenario::files::load(file, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

/// docs/spec/algorithms.md 10.3 requires the order only; docs/findings.md 17 lists the figures.
#[test]
fn an_application_completes_sooner_with_better_informed_routing() {
    let completion = |routing: &str| {
        let result = passes(&folder("ar").join(format!("cg-linear-{routing}.toml")));
        let measured = serde_json::to_value(&result.measures).expect("the measures are numbers");
        measured["completion_over_ideal"].as_f64().expect("the application has completed")
    };
    let order = ["colored", "ar", "random", "dmodk", "cm"].map(completion);
    assert!(order.is_sorted() && order[0] < order[1] && order[1] < order[2], "{order:?}");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_file_meets_its_expectations() {
    all_pass(&files("ar"));
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn ft_meets_the_expectations_of_its_files() {
    let files = files("ar/large");
    assert_eq!(files.len(), 5, "{files:?}");
    all_pass(&files);
}
