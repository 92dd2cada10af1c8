//! The scenarios of lossless Ethernet on the virtual clock: each meets what its file expects, loses
//! nothing that it must not, and has a sum that closes.

use std::path::{Path, PathBuf};
use topo::experiment::{Conditions, Experiment};
use topo::launch::substrate;
use topo::measure::verdict::Verdict;
use topo::scenario::Scenario;
use topo::scenario::run::Backend;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios/dcqcn");
    let listing = std::fs::read_dir(folder).expect("the scenarios are shipped");
    let mut files: Vec<PathBuf> = listing.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

fn run(file: &Path, threads: usize) -> Experiment {
    let text = std::fs::read_to_string(file).expect("it is shipped");
    let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let conditions = Conditions {
        substrate: substrate(Backend::Virtual),
        dilation: 0,
        threads,
        folder: None,
        command: "a test".to_owned(),
        injections: Vec::new(),
    };
    Experiment::run(&scenario, conditions, &mut |_| {}).expect("it runs")
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

#[test]
fn two_threads_measure_what_one_does() {
    let files = files();
    let file = files.iter().find(|file| file.ends_with("incast3-dcqcn.toml")).expect("shipped");
    let [one, two] = [1, 2].map(|threads| run(file, threads).result);
    assert_eq!(one.measures, two.measures);
    assert_eq!(one.conservation, two.conservation);
}
