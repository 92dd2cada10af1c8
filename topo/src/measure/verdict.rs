//! Expectations against measures.

use crate::measure::Expectation;
use serde::{Deserialize, Serialize};

/// Whether something is as it was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every bound holds.
    Pass,
    /// One does not, or there is no value.
    Fail,
    /// The host did not keep up, so nothing can be said (whole runs only).
    Inconclusive,
}

/// An expectation with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The measure.
    pub measure: String,
    /// At least this was expected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<f64>,
    /// At most this was expected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<f64>,
    /// This was measured.
    pub value: Option<f64>,
    /// Whether it is within.
    pub verdict: Verdict,
    /// Why it was expected, in the scenario's words.
    pub why: String,
    /// Line of the expectation in the scenario file.
    pub line: usize,
}

/// A measure's name with its value, or why there is none.
pub type Measured = (String, Result<f64, String>);

/// Judges each expectation. One whose measure has no value fails.
pub fn judge(expectations: &[Expectation], measures: &[Measured]) -> Vec<Judgement> {
    let judged = expectations.iter().map(|expectation| {
        let found = measures.iter().find(|(name, _)| *name == expectation.measure);
        let value = found.and_then(|(_, value)| value.as_ref().ok()).copied();
        let within = value.is_some_and(|value| {
            expectation.min.is_none_or(|min| value >= min)
                && expectation.max.is_none_or(|max| value <= max)
        });
        Judgement {
            measure: expectation.measure.clone(),
            min: expectation.min,
            max: expectation.max,
            value,
            verdict: if within { Verdict::Pass } else { Verdict::Fail },
            why: expectation.why.clone(),
            line: expectation.line,
        }
    });
    judged.collect()
}
