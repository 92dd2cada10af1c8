//! Expectations against measures.

use scenario::measure::Expectation;
use scenario::measure::value::Value;
use serde::{Deserialize, Serialize};

/// The verdict on an expectation or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All bounds hold.
    Pass,
    /// A bound does not hold, or there is no value.
    Fail,
    /// The host did not keep up, so the run has no result (whole runs only).
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
    /// Least accepted value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<f64>,
    /// Greatest accepted value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<f64>,
    /// Value that theory predicts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub theory: Option<f64>,
    /// Expected order of nodes; the nodes of a group may come in any order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<Vec<Vec<String>>>,
    /// Measured value.
    pub value: Option<Value>,
    /// Whether the value is accepted.
    pub verdict: Verdict,
    /// Reason for the expectation, from the scenario.
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
        let verdict = if within { Verdict::Pass } else { Verdict::Fail };
        let Expectation { measure, min, max, theory, order, why, line } = expectation.clone();
        Judgement { measure, min, max, theory, order, value, verdict, why, line }
    });
    judged.collect()
}

/// True if the value satisfies the expectation; a value of the wrong kind never does.
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

/// True if `names` are the groups of `order` one after another, each group in any order.
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
