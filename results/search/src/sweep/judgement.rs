//! Expectations of a sweep: an order of values, or bounds of some values.

use super::outcome::Row;
use results::verdict::Verdict;
use serde::Serialize;

/// The expectation of one measure along the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The measure.
    pub measure: String,
    /// At these values of the axis, in this order; at all values if empty.
    pub at: Vec<String>,
    /// The rule.
    pub rule: Rule,
}

/// A rule for values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Each is above the one before it.
    Rising,
    /// Each is below the one before it.
    Falling,
    /// Each is within these bounds, both included.
    Within {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
}

/// An expectation with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The expectation in words.
    pub expectation: String,
    /// The values, in their order.
    pub values: Vec<Option<f64>>,
    /// Whether the values satisfy it.
    pub verdict: Verdict,
}

impl Expected {
    /// Judges the expectation.
    pub fn judge(&self, rows: &[Row]) -> Judged {
        let value = |row: &Row| row.mean(&self.measure);
        let at = |label: &String| rows.iter().find(|row| row.point.labels.first() == Some(label));
        let values: Vec<Option<f64>> = match self.at.as_slice() {
            [] => rows.iter().map(value).collect(),
            labels => labels.iter().map(|label| at(label).and_then(value)).collect(),
        };
        let numbers: Option<Vec<f64>> = values.iter().copied().collect();
        let holds = numbers.is_some_and(|numbers| self.rule.holds(&numbers));
        let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        Judged { expectation: self.words(), values, verdict }
    }

    fn words(&self) -> String {
        let rule = match self.rule {
            Rule::Rising => "rises".to_owned(),
            Rule::Falling => "falls".to_owned(),
            Rule::Within { min, max: f64::INFINITY } => format!("is at least {min}"),
            Rule::Within { min: f64::NEG_INFINITY, max } => format!("is at most {max}"),
            Rule::Within { min, max } => format!("is {min} to {max}"),
        };
        match self.at.as_slice() {
            [] => format!("{} {rule}", self.measure),
            labels => format!("{} {rule} at {}", self.measure, labels.join(", ")),
        }
    }
}

impl Rule {
    fn holds(self, values: &[f64]) -> bool {
        match self {
            Rule::Rising => values.windows(2).all(|pair| pair[0] < pair[1]),
            Rule::Falling => values.windows(2).all(|pair| pair[0] > pair[1]),
            Rule::Within { min, max } => values.iter().all(|value| (min..=max).contains(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Point;
    use crate::sweep::outcome::Cell;

    fn rows(values: [f64; 3]) -> Vec<Row> {
        let labels = ["low", "base", "high"];
        let row = |(label, value): (&str, f64)| Row {
            point: Point { labels: vec![label.to_owned()], sets: Vec::new() },
            verdict: Verdict::Pass,
            lossless_drops: None,
            cells: [("mean".to_owned(), Cell { mean: Some(value), deviation: None })].into(),
        };
        labels.into_iter().zip(values).map(row).collect()
    }

    fn judge(rule: Rule, at: &[&str], values: [f64; 3]) -> Verdict {
        let at = at.iter().map(|label| (*label).to_owned()).collect();
        Expected { measure: "mean".to_owned(), at, rule }.judge(&rows(values)).verdict
    }

    #[test]
    fn an_order_is_strict_and_may_leave_values_out() {
        assert_eq!(judge(Rule::Rising, &[], [1.0, 2.0, 3.0]), Verdict::Pass);
        assert_eq!(judge(Rule::Rising, &[], [1.0, 2.0, 2.0]), Verdict::Fail);
        assert_eq!(judge(Rule::Rising, &["low", "base"], [1.0, 2.0, 0.0]), Verdict::Pass);
        assert_eq!(judge(Rule::Falling, &["base", "high"], [1.0, 2.0, 0.0]), Verdict::Pass);
        assert_eq!(judge(Rule::Falling, &["high", "base"], [1.0, 2.0, 0.0]), Verdict::Fail);
    }

    #[test]
    fn bounds_include_their_ends_and_hold_at_every_value_named() {
        let within = Rule::Within { min: 1.0, max: 2.0 };
        assert_eq!(judge(within, &["low", "base"], [1.0, 2.0, 3.0]), Verdict::Pass);
        assert_eq!(judge(within, &[], [1.0, 2.0, 3.0]), Verdict::Fail);
        assert_eq!(judge(within, &["nowhere"], [1.0, 2.0, 3.0]), Verdict::Fail);
    }

    #[test]
    fn what_was_not_measured_is_no_order() {
        let expected = Expected { measure: "other".to_owned(), at: Vec::new(), rule: Rule::Rising };
        let judged = expected.judge(&rows([1.0, 2.0, 3.0]));
        assert_eq!((judged.verdict, judged.values), (Verdict::Fail, vec![None; 3]));
        assert_eq!(judged.expectation, "other rises");
    }
}
