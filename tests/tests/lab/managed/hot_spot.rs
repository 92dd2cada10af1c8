//! The hot spot cured by ibccconfig, while the fabric runs under OpenSM: the script of the documents, and its report.

use super::has_packages;
use crate::laboratory::{in_repository, pausebed};
use crate::place::Place;

const SCENARIO: &str = "tests/tests/lab/managed/hot_spot.toml";

/// Both phases of a row of the report.
fn row(report: &str, name: &str) -> [f64; 2] {
    let mut lines = report.lines().filter_map(|line| line.strip_prefix("| ")?.strip_prefix(name));
    let line = lines.next().unwrap_or_else(|| panic!("no {name} in {report}"));
    let mut cells = line.split('|').filter_map(|cell| cell.trim().parse().ok());
    std::array::from_fn(|_| cells.next().expect("two numbers"))
}

/// Case 4 live without control, and then with what ibccconfig sets while it runs.
#[test]
#[ignore = "slow"]
fn a_hot_spot_is_cured_by_ibccconfig() {
    if !has_packages() {
        return;
    }
    let place = Place::new();
    if place.program("python3", &["--version"]).output().is_err() {
        skip::because!("no python3");
        return;
    }
    let [script, scenario] =
        ["docs/tasks/cure.py", SCENARIO].map(|file| in_repository(file).display().to_string());
    let report = place.folder.path().join("report");
    let words = [&script, &scenario, "h31", &report.display().to_string()];
    let mut command = place.program("python3", &words);
    let output = command.env("PAUSEBED", pausebed()).output().expect("python3 starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report = std::fs::read_to_string(report).expect("a report");
    eprintln!("{report}");
    let [before, after] = row(&report, "cold ports, mean share of the line");
    assert!((0.25..0.40).contains(&before), "{before}");
    assert!(after >= 0.80, "{after}");
    let [before, after] = row(&report, "PortXmitWait, ticks a frame time and NIC");
    assert!(after < before / 4.0, "ports still wait for credits: {before} and {after}");
    place.assert_empty();
}
