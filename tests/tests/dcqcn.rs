//! The scenarios of lossless Ethernet on the virtual clock: each file meets its
//! expectations, no protected frame is lost, and the frame balance closes.

use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use proto::counters::DropReason;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::run::Backend;
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios/dcqcn");
    let listing = std::fs::read_dir(folder).expect("the folder of scenarios is readable");
    let mut files: Vec<PathBuf> = listing.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

fn run(file: &Path, threads: usize) -> Experiment {
    let loaded = scenario::files::load(file, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    run_of(&loaded.scenario, threads)
}

fn run_of(scenario: &Scenario, threads: usize) -> Experiment {
    let conditions =
        Conditions { threads, ..Conditions::new(substrate(Backend::Virtual), "a test") };
    Experiment::run(scenario, conditions, &mut |_| {}).expect("the run succeeds")
}

#[test]
fn every_file_meets_its_own_expectations() {
    let files = files();
    assert_eq!(files.len(), 8, "{files:?}");
    for file in files {
        let result = run(&file, 1).result;
        let missed = result.expectations.iter().filter(|judged| judged.verdict != Verdict::Pass);
        let missed: Vec<_> = missed.collect();
        assert!(missed.is_empty(), "{}: {missed:#?}", file.display());
        assert_eq!(result.verdict, Verdict::Pass, "{}: {:?}", file.display(), result.conservation);
    }
}

/// The FCS detects a frame that a cable corrupts, so the next port drops it: as a data frame or as a
/// MAC control frame.
#[test]
fn a_corrupted_frame_is_dropped_at_the_next_port_for_one_reason() {
    let file =
        files().into_iter().find(|file| file.ends_with("incast3-pfc.toml")).expect("shipped");
    let faults =
        "\n[[impairment]]\nfrom = [\"h*:1\", \"s1:*\"]\naction = \"corrupt\"\nchance = 0.01\n";
    let text = scenario::files::read(&file).expect("the scenario file is readable").text + faults;
    let sets = ["run.duration=\"12 ms\"".to_owned()];
    let scenario = Scenario::parse(&text, &sets).unwrap_or_else(|faults| panic!("{faults}"));
    let run = run_of(&scenario, 1);
    let conservation = &run.result.conservation;
    assert!(conservation.closes(), "{conservation:?}");
    let hit = conservation.dropped["aborted"];
    // Data and some acknowledgements cross two links.
    let passed = conservation.injected * 2;
    assert!((passed / 150..passed / 60).contains(&hit), "{hit} of {passed}");
    for reason in
        ["malformed", "icrc", "checksum", "pktlen", "not_roce", "not_for_us", "queue_pair"]
    {
        assert_eq!(conservation.dropped[reason], 0, "{reason}: a corrupted frame passed a port");
    }
    let readings = run.outcome.recordings.iter().flat_map(|recording| &recording.last);
    let ports = readings.flat_map(|reading| &reading.ports);
    let control: u64 = ports.map(|port| port.drops.get(DropReason::MacControlAborted)).sum();
    assert!(control > 0, "one in a hundred of hundreds of PFC frames is corrupted");
}

#[test]
fn two_threads_measure_the_same_as_one() {
    let files = files();
    let file = files.iter().find(|file| file.ends_with("incast3-dcqcn.toml")).expect("shipped");
    let [one, two] = [1, 2].map(|threads| run(file, threads).result);
    assert_eq!(one.measures, two.measures);
    assert_eq!(one.conservation, two.conservation);
}
