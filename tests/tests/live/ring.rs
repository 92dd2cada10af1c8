//! A ring of three switches with a circular buffer dependency: a live run reports the same deadlock as its twin.

use crate::laboratory::{Running, alone};
use crate::repeated;
use conformance::cases::pfcwd::ring::{CIRCLE, ring};
use serde_json::json;
use std::fs;

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_live_run_reports_the_same_deadlock_as_its_twin() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ring.toml");
    fs::write(&file, ring("pfc", "")).expect("a file");
    let twin = Running::start(&file, &["--backend", "virtual"]).end(60.0);
    let live = repeated(|| Running::start(&file, &["--dilate", "4000"]).end(60.0));
    for run in [&twin, &live] {
        let found = run.json()["deadlocks"].as_array().expect("a list").clone();
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&one["circle"], &one["tc"]), (&json!(CIRCLE), &json!(3)), "{one}");
        assert_eq!(one["over_ps"], json!(null), "the deadlock is permanent");
    }
}
