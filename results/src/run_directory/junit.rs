//! `junit.xml`: each expectation as a test case, and one each for lost lossless frames and violations of physics, for
//! continuous integration.

use crate::run_directory::WriteError;
use crate::run_directory::result::RunResult;
use crate::verdict::Verdict;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::path::Path;

/// Writes the file into `folder`. An inconclusive run skips every case, because its measures are not reliable.
///
/// # Errors
/// If the file cannot be written.
pub fn write(folder: &Path, result: &RunResult) -> Result<(), WriteError> {
    let file = folder.join("junit.xml");
    std::fs::write(&file, text(result)).map_err(|source| WriteError { file, source })
}

fn text(result: &RunResult) -> String {
    let cases = result.expectations.iter().map(|case| {
        let value = match &case.value {
            Some(value) => format!("{} is {value}{}", case.measure, bounds(case.min, case.max)),
            None => format!("{} has no value", case.measure),
        };
        let mut status = match case.verdict {
            _ if result.verdict == Verdict::Inconclusive => skipped("the host did not keep up"),
            Verdict::Fail => failed(value),
            Verdict::Pass | Verdict::Inconclusive => TestCaseStatus::success(),
        };
        if let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } = status {
            status.set_description(format!("line {}: {}", case.line, case.why));
        }
        let mut case = TestCase::new(case.measure.as_str(), status);
        case.set_classname(result.scenario.as_str());
        case
    });
    let lost = result.lossless_drops.iter().map(|drops| {
        let status = match drops.verdict(result.fidelity.ok) {
            Verdict::Pass => TestCaseStatus::success(),
            Verdict::Fail => failed(drops.to_string()),
            Verdict::Inconclusive => skipped("the host did not keep up"),
        };
        let mut case = TestCase::new("lossless_drops", status);
        case.set_classname(result.scenario.as_str());
        case
    });
    let broken = result.violations.iter().map(|broken| {
        let mut case = TestCase::new("physics", failed(broken.to_string()));
        case.set_classname(result.scenario.as_str());
        case
    });
    document(&result.scenario, cases.chain(lost).chain(broken))
}

/// The status of a case that did not run, or that is not reliable.
pub fn skipped(message: impl Into<String>) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message.into());
    status
}

/// The status of a case that failed.
pub fn failed(message: impl Into<String>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(message.into());
    status
}

/// A document with one suite. It holds no times and no host names, so the same run gives the same text.
pub fn document(name: &str, cases: impl IntoIterator<Item = TestCase>) -> String {
    let mut suite = TestSuite::new(name);
    suite.add_test_cases(cases);
    // The library counts skipped cases as "disabled"; most readers of the format look for "skipped".
    suite.extra.insert("skipped".into(), suite.disabled.to_string().into());
    let mut report = Report::new(name);
    report.add_test_suite(suite);
    report.to_string().expect("memory takes all")
}

fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    let least = min.map(|min| format!(", at least {min} expected"));
    let most = max.map(|max| format!(", at most {max} expected"));
    [least, most].into_iter().flatten().collect()
}
