//! The Zurich hotspot benchmark on the virtual clock: each file meets what it expects, loses nothing, and
//! has a sum that closes. Case 2 has all in little and runs with every change; the rest takes minutes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use topo::experiment::{Conditions, Experiment};
use topo::launch::substrate;
use topo::measure::verdict::Verdict;
use topo::run_directory::result::RunResult;
use topo::scenario::Scenario;
use topo::scenario::run::Backend;

/// Case 1 with two memories and three schemes and the trap of one limiter; six of input-generated hot
/// spots; cases 2, 3, 5, 6 and 7 with three schemes each.
const FILES: usize = 7 + 6 + 5 * 3;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios").join(folder);
    let listing = std::fs::read_dir(folder).expect("the scenarios are shipped");
    let mut files: Vec<PathBuf> = listing.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

fn run(file: &Path) -> RunResult {
    let text = std::fs::read_to_string(file).expect("it is shipped");
    let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
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

/// Two at a time.
fn all_pass(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = run(file);
            let missed = result.expectations.iter().filter(|e| e.verdict != Verdict::Pass);
            let missed: Vec<_> = missed.collect();
            let sums = &result.conservation;
            assert!(missed.is_empty(), "{}: {missed:#?}", file.display());
            assert_eq!(result.verdict, Verdict::Pass, "{}: {sums:?}", file.display());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
}

#[test]
fn culprits_are_held_and_victims_go_free() {
    let files = files("zhb");
    assert_eq!(files.len(), FILES, "{files:?}");
    let is_case_2 = |file: &&PathBuf| file.to_string_lossy().contains("/case2-");
    let case_2: Vec<PathBuf> = files.iter().filter(is_case_2).cloned().collect();
    assert_eq!(case_2.len(), 3);
    all_pass(&case_2);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_case_meets_what_its_file_expects() {
    all_pass(&files("zhb"));
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_hundred_and_twenty_eight_stations_meet_what_their_files_expect() {
    let files = files("zhb/large");
    assert_eq!(files.len(), 3, "{files:?}");
    all_pass(&files);
}
