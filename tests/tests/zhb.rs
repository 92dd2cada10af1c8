//! The Zurich hotspot benchmark on the virtual clock: each file meets what it expects, loses nothing, and
//! has a sum that closes. Case 2 has all in little and runs with every change; the rest takes minutes.

#[path = "suites/virtual_clock.rs"]
mod virtual_clock;

use std::path::PathBuf;
use virtual_clock::{all_pass, files};

/// Case 1 with two memories and three schemes and the trap of one limiter; six of input-generated hot
/// spots; cases 2, 3, 5, 6 and 7 with three schemes each.
const FILES: usize = 7 + 6 + 5 * 3;

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
