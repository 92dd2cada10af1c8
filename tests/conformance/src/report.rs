//! What came out of a check: lines for people, one JSON document, `junit.xml`.

use super::suite::{Outcome, Verdict};
use std::fmt::Write;

/// How many came out each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// As they must be.
    pub pass: usize,
    /// Otherwise.
    pub fail: usize,
    /// Said nothing.
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
    let Totals { fail, inconclusive, skip, .. } = Totals::of(outcomes);
    let counts = format!(
        "tests=\"{}\" failures=\"{fail}\" skipped=\"{}\"",
        outcomes.len(),
        skip + inconclusive
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite name=\"conformance\" {counts}>\n"
    );
    for Outcome { case, level, verdict, reason } in outcomes {
        let name = format!("{} {} {}", case.id, level.letter(), escape(case.title));
        let class = case.id.split('-').next().unwrap_or(case.id);
        let reason = escape(reason);
        let inner = match verdict {
            Verdict::Pass => String::new(),
            Verdict::Fail => format!("<failure message=\"{reason}\"/>"),
            Verdict::Skip => format!("<skipped message=\"{reason}\"/>"),
            Verdict::Inconclusive => format!("<skipped message=\"inconclusive: {reason}\"/>"),
        };
        let _ = writeln!(
            text,
            "    <testcase classname=\"{class}\" name=\"{name}\">{inner}</testcase>"
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\n', "&#10;")
}
