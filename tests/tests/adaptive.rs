//! Adaptive routing on the virtual clock: each file meets what it expects, and applications are the faster
//! the more their routes know. One application in little runs with every change; the rest takes minutes.

#[path = "suites/virtual_clock.rs"]
mod virtual_clock;

use scenario::Scenario;
use virtual_clock::{all_pass, files, folder, passes, passes_as};

/// Two test networks, with contention within and at the end points, without and with adaptive routing;
/// CG placed in two ways with five routings; uniform traffic with two.
const FILES: usize = 8 + 10 + 2;

/// Three sources turn away from the middle where they meet, within a few milliseconds of the start.
#[test]
fn frames_turn_away_from_congestion_and_arrive_in_order() {
    let file = folder("ar").join("t1-ar.toml");
    let text = std::fs::read_to_string(&file).expect("it is shipped");
    let one = text.split("[[measure]]").next().expect("a file begins before its measures");
    // It speaks of measures that are left out here.
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
fn every_file_can_be_read() {
    let here = files("ar");
    assert_eq!(here.len(), FILES, "{here:?}");
    for file in here.iter().chain(&files("ar/large")) {
        let text = std::fs::read_to_string(file).expect("it is shipped");
        Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{}: {faults}", file.display()));
    }
}

/// algorithms.md 10.3 owes the order alone; docs/findings.md 17 has the figures.
#[test]
fn an_application_is_the_sooner_done_the_more_its_routes_know() {
    let completion = |routing: &str| {
        let result = passes(&folder("ar").join(format!("cg-linear-{routing}.toml")));
        let measured = serde_json::to_value(&result.measures).expect("numbers");
        measured["completion_over_ideal"].as_f64().expect("it has ended")
    };
    let order = ["colored", "ar", "random", "dmodk", "cm"].map(completion);
    assert!(order.is_sorted() && order[0] < order[1] && order[1] < order[2], "{order:?}");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_file_meets_what_it_expects() {
    all_pass(&files("ar"));
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn ft_meets_what_its_files_expect() {
    let files = files("ar/large");
    assert_eq!(files.len(), 5, "{files:?}");
    all_pass(&files);
}
