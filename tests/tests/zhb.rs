//! The Zurich hotspot benchmark on the virtual clock: each file meets its expectations, loses
//! no frame, and its frame balance closes. Case 2 is small and runs in the quick suite; the rest takes minutes.

#[path = "suites/virtual_clock.rs"]
mod virtual_clock;

use std::path::PathBuf;
use virtual_clock::{all_pass, files};

/// Case 1 with two memory models and three schemes and with a single limiter; six files of input-generated
/// hot spots; cases 2, 3, 5, 6 and 7 with three schemes each.
const FILES: usize = 7 + 6 + 5 * 3;

#[test]
fn causes_of_congestion_are_limited_and_victims_are_not() {
    let files = files("zhb");
    assert_eq!(files.len(), FILES, "{files:?}");
    let is_case_2 = |file: &&PathBuf| file.to_string_lossy().contains("/case2-");
    let case_2: Vec<PathBuf> = files.iter().filter(is_case_2).cloned().collect();
    assert_eq!(case_2.len(), 3);
    all_pass(&case_2);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_case_meets_its_expectations() {
    all_pass(&files("zhb"));
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_hundred_and_twenty_eight_stations_meet_their_expectations() {
    let files = files("zhb/large");
    assert_eq!(files.len(), 3, "{files:?}");
    all_pass(&files);
}
