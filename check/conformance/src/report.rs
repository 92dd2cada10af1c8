//! What came out of a check: lines for people, one JSON document, `junit.xml`.

use super::suite::{Outcome, Verdict};
use quick_junit::{TestCase, TestCaseStatus};
use results::run_directory::junit::{document, failed, skipped};
use std::fmt::Write;

/// How many came out each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// As they must be.
    pub pass: usize,
    /// Otherwise.
    pub fail: usize,
    /// Inconclusive.
    pub inconclusive: usize,
    /// Not run.
    pub skip: usize,
}

impl Totals {
    /// Counts `outcomes`.
    pub fn of(outcomes: &[Outcome]) -> Totals {
        let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
        Totals {
            pass: count(Verdict::Pass),
            fail: count(Verdict::Fail),
            inconclusive: count(Verdict::Inconclusive),
            skip: count(Verdict::Skip),
        }
    }
}

/// The word for a verdict, as wide as all others.
pub const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Skip => "SKIP",
        Verdict::Inconclusive => "INCONCLUSIVE",
    }
}

/// One outcome on one line; what to know beyond that on further ones.
pub fn line(outcome: &Outcome) -> String {
    let Outcome { case, level, verdict, reason } = outcome;
    let letter = level.letter();
    let mut text = format!("{:<12}  {:<8} {letter}  {}", word(*verdict), case.id, case.title);
    if !reason.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {reason}");
    }
    if *verdict == Verdict::Fail {
        let _ = write!(text, "\n{:>27}source: {}", "", case.source);
        if !case.note.is_empty() {
            let _ = write!(text, "\n{:>27}note: {}", "", case.note);
        }
    }
    text
}

/// The document of `--json`.
pub fn json(outcomes: &[Outcome]) -> serde_json::Value {
    let case = |outcome: &Outcome| {
        serde_json::json!({
            "id": outcome.case.id,
            "title": outcome.case.title,
            "level": outcome.level,
            "source": outcome.case.source,
            "note": outcome.case.note,
            "verdict": outcome.verdict,
            "reason": outcome.reason,
        })
    };
    let cases: Vec<_> = outcomes.iter().map(case).collect();
    serde_json::json!({ "totals": Totals::of(outcomes), "cases": cases })
}

/// The document of `--junit`.
pub fn junit(outcomes: &[Outcome]) -> String {
    let cases = outcomes.iter().map(|Outcome { case, level, verdict, reason }| {
        let status = match verdict {
            Verdict::Pass => TestCaseStatus::success(),
            Verdict::Fail => failed(reason),
            Verdict::Skip => skipped(reason),
            Verdict::Inconclusive => skipped(format!("inconclusive: {reason}")),
        };
        let name = format!("{} {} {}", case.id, level.letter(), case.title);
        let mut row = TestCase::new(name, status);
        row.set_classname(case.id.split('-').next().unwrap_or(&case.id));
        row
    });
    document("conformance", cases)
}
