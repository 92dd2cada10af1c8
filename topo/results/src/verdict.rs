//! Expectations against measures.

use scenario::measure::Expectation;
use scenario::measure::value::Value;
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

impl Verdict {
    /// The worst of some verdicts; pass if there are none.
    pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        let all: Vec<Verdict> = verdicts.into_iter().collect();
        let bad = [Verdict::Inconclusive, Verdict::Fail].into_iter();
        bad.into_iter().find(|bad| all.contains(bad)).unwrap_or(Verdict::Pass)
    }
}

/// An expectation with its result.
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
    /// What theory says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub theory: Option<f64>,
    /// These nodes were expected in this order, those of a group in any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<Vec<Vec<String>>>,
    /// This was measured.
    pub value: Option<Value>,
    /// Whether it is within.
    pub verdict: Verdict,
    /// Why it was expected, in the scenario's words.
    pub why: String,
    /// Line of the expectation in the scenario file.
    pub line: usize,
}

/// A measure's name with its value, or why there is none.
pub type Measured = (String, Result<Value, String>);

/// Judges each expectation. One whose measure has no value fails.
pub fn judge(expectations: &[Expectation], measures: &[Measured]) -> Vec<Judgement> {
    let judged = expectations.iter().map(|expectation| {
        let found = measures.iter().find(|(name, _)| *name == expectation.measure);
        let value = found.and_then(|(_, value)| value.as_ref().ok()).cloned();
        let within = value.as_ref().is_some_and(|value| is_met(expectation, value));
        Judgement {
            measure: expectation.measure.clone(),
            min: expectation.min,
            max: expectation.max,
            theory: expectation.theory,
            order: expectation.order.clone(),
            value,
            verdict: if within { Verdict::Pass } else { Verdict::Fail },
            why: expectation.why.clone(),
            line: expectation.line,
        }
    });
    judged.collect()
}

/// A value of the wrong kind meets nothing.
fn is_met(expectation: &Expectation, value: &Value) -> bool {
    match (value, &expectation.order) {
        (Value::Number(number), None) => {
            expectation.min.is_none_or(|min| *number >= min)
                && expectation.max.is_none_or(|max| *number <= max)
        }
        (Value::Names(names), Some(order)) => follows(names, order),
        _ => false,
    }
}

/// Whether `names` are the groups of `order` one after another, each in whatever order of its own.
fn follows(names: &[String], order: &[Vec<String>]) -> bool {
    let mut rest = names;
    for group in order {
        let Some((these, others)) = rest.split_at_checked(group.len()) else { return false };
        let (mut these, mut group) = (these.to_vec(), group.clone());
        these.sort_unstable();
        group.sort_unstable();
        if these != group {
            return false;
        }
        rest = others;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_met_by_its_groups_in_turn_whatever_the_order_inside() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let order = [names("leaf5"), names("spine1"), names("leaf1 leaf3"), names("h1 h2")];
        assert!(follows(&names("leaf5 spine1 leaf3 leaf1 h1 h2"), &order));
        assert!(!follows(&names("leaf5 leaf1 spine1 leaf3 h1 h2"), &order));
        assert!(!follows(&names("leaf5 spine1 leaf1 leaf3 h1"), &order), "one is missing");
        assert!(!follows(&names("leaf5 spine1 leaf1 leaf3 h1 h2 h3"), &order), "one too many");
    }
}
