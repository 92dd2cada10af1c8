//! A sweep of six runs in three shares, and what spoils a merge.

use super::*;
use crate::sweep::tests::STAR;
use crate::sweep::{Sweep, perform, report};
use tempfile::TempDir;

fn sweep(place: &Path) -> Sweep {
    let file = place.join("star.toml");
    fs::write(&file, STAR).expect("a file");
    let sets = ["traffic.all.load=0.1,0.4,0.8".to_owned()];
    let mut sweep = Sweep::load(&file, &sets).expect("a sweep");
    sweep.seeds = 2;
    sweep
}

fn shard(text: &str) -> Shard {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Makes the runs of a share; the number that were not there before.
fn make(plan: &Plan, share: &str, folder: &Path) -> usize {
    let made = plan.share(shard(share)).into_iter().map(|index| {
        let run = |planned: &Planned, folder: &Path| perform(planned, "", Some(folder)).map(drop);
        plan.make(index, shard(share), folder, run).expect("a folder")
    });
    made.filter(|made| matches!(made, Made::Now)).count()
}

/// A sweep, its plan, and two folders in which three shares made all runs.
fn made() -> (TempDir, Sweep, Plan, [PathBuf; 2]) {
    let place = tempfile::tempdir().expect("a folder");
    let sweep = sweep(place.path());
    let plan = sweep.plan().expect("a plan");
    let folders = ["one", "two"].map(|name| place.path().join(name));
    assert_eq!(make(&plan, "1/3", &folders[0]), 2);
    assert_eq!(make(&plan, "2/3", &folders[1]), 2);
    assert_eq!(make(&plan, "0/3", &folders[1]), 2, "engines that count from 0");
    (place, sweep, plan, folders)
}

fn message(merged: Result<Vec<(PathBuf, RunResult)>, ShardError>) -> String {
    merged.map(|_| ()).expect_err("it must not be merged").to_string()
}

#[test]
fn shares_are_disjoint_and_complete_however_the_engine_counts() {
    for of in [1, 2, 3, 7] {
        for first in [0, 1] {
            let shares = (first..first + of).map(|part| shard(&format!("{part}/{of}")));
            let shares: Vec<Shard> = shares.collect();
            for run in 0..20 {
                assert_eq!(shares.iter().filter(|share| share.has(run)).count(), 1);
            }
        }
    }
    for bad in ["", "3", "4/3", "-1/3", "1/0", "a/3", "1/9999999"] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
}

#[test]
fn what_shares_made_merges_into_the_table_of_one_machine() {
    let (_place, sweep, plan, folders) = made();
    let merged = plan.merge(&folders).expect("all are there");
    let results: Vec<RunResult> = merged.into_iter().map(|(_, result)| result).collect();
    let (whole, shared) = (sweep.run(2, "", &|| {}).expect("it runs"), sweep.gather(&results));
    assert_eq!(report::text(&sweep, &shared), report::text(&sweep, &whole));
    assert_eq!(report::json(&sweep, &shared).to_string(), report::json(&sweep, &whole).to_string());
    assert_eq!(make(&plan, "2/3", &folders[1]), 0, "a run that is there is not repeated");
    let lines: Vec<String> = plan.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(
        lines[3].contains("\"folder\":\"point-00002-seed-4\",") && lines[3].contains("\"run\":4"),
        "{}",
        lines[3]
    );
}

#[test]
fn missing_runs_are_named() {
    let (_place, _, plan, folders) = made();
    let lost = folders[1].join("point-00003-seed-4");
    fs::remove_dir_all(&lost).expect("it is there");
    assert_eq!(message(plan.merge(&folders)), "1 of 6 runs are missing: point-00003-seed-4");
    assert_eq!(make(&plan, "3/3", &folders[1]), 1);
    plan.merge(&folders).expect("it was made again");
}

#[test]
fn torn_runs_are_refused_and_made_again() {
    let (_place, _, plan, folders) = made();
    for (file, is_short) in [("run.json", true), ("ports.csv", true), (SEAL, false)] {
        let folder = folders[0].join("point-00001-seed-3");
        let path = folder.join(file);
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, if is_short { &text[..text.len() / 2] } else { "" }).expect("room");
        let told = message(plan.merge(&folders));
        assert!(told.contains("is torn") && told.contains(file), "{told}");
        assert_eq!(make(&plan, "1/3", &folders[0]), 1);
        plan.merge(&folders).expect("it was made again");
    }
}

#[test]
fn other_plans_programs_and_results_are_refused() {
    let (place, mut sweep, plan, folders) = made();
    sweep.seeds = 3;
    let other = sweep.plan().expect("a plan");
    assert!(message(other.merge(&folders)).contains("another plan"));
    fs::write(place.path().join("star.toml"), STAR.replace("poisson", "paced")).expect("room");
    sweep.seeds = 2;
    let edited = sweep.plan().expect("a plan");
    assert!(message(edited.merge(&folders)).contains("another scenario"));

    let folder = folders[0].join("point-00001-seed-3");
    let seal = fs::read_to_string(folder.join(SEAL)).expect("it is there");
    let older = seal.replace(&program(), "0.0.1 an older one");
    fs::write(folder.join(SEAL), older).expect("room");
    assert!(message(plan.merge(&folders)).contains("another program: 0.0.1 an older one"));
    fs::write(folder.join(SEAL), seal).expect("room");

    // The same run in both folders, with another result in one of them.
    make(&plan, "1/3", &folders[1]);
    plan.merge(&folders).expect("equal duplicates are not harm");
    let result = folder.join("run.json");
    let text = fs::read_to_string(&result).expect("it is there");
    let changed = text.replacen("\"received\": 0.", "\"received\": 1.", 1);
    assert_ne!(changed, text);
    fs::write(&result, changed).expect("room");
    assert!(message(plan.merge(&folders)).contains("the same run with different results"));
}

#[test]
fn what_a_killed_or_failed_run_left_is_no_run() {
    let place = tempfile::tempdir().expect("a folder");
    let plan = sweep(place.path()).plan().expect("a plan");
    let all = place.path().join("all");
    let hidden = all.join(".point-00001-seed-3.1-of-1");
    fs::create_dir_all(&hidden).expect("a folder");
    fs::write(hidden.join("ports.csv"), "half a").expect("a file");
    let fails = |_: &Planned, folder: &Path| {
        assert!(!folder.join("ports.csv").exists(), "the rest of the killed run is gone");
        Err(LaunchError::interrupted())
    };
    let made = plan.make(0, shard("1/1"), &all, fails).expect("a folder");
    assert!(matches!(made, Made::Failed(_)), "{made:?}");
    assert_eq!(fs::read_dir(&all).expect("it is there").count(), 0);
}
