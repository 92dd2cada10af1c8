//! Verdicts and measured values as text, the same in summaries, reports and tables.

use crate::verdict::{Judgement, Verdict};
use scenario::measure::value::Value;
use std::collections::BTreeMap;

/// The verdict in capitals, as reports print it.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
    }
}

/// The bounds of an expectation.
pub fn accepted(judged: &Judgement) -> String {
    if let Some(order) = &judged.order {
        let groups = order.iter().map(|group| group.join(" "));
        return groups.collect::<Vec<_>>().join(" → ");
    }
    match (judged.min, judged.max) {
        (Some(min), Some(max)) => format!("{} – {}", number(Some(min)), number(Some(max))),
        (Some(min), None) => format!("≥ {}", number(Some(min))),
        (None, Some(max)) => format!("≤ {}", number(Some(max))),
        (None, None) => "any".to_owned(),
    }
}

/// A measured value: a number as [`number`] writes it, or names in their order.
pub fn written(value: Option<&Value>) -> String {
    match value {
        Some(names @ Value::Names(_)) => names.to_string(),
        number_or_none => number(number_or_none.and_then(Value::number)),
    }
}

/// A measured number; three decimals for ratios, fewer for large numbers.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 1_000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

/// The counts that are not zero, with their reasons; empty without any.
pub fn reasons(counts: &BTreeMap<String, u64>) -> String {
    let known = counts.iter().filter(|(_, count)| **count > 0);
    known.map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

/// A time with three digits, in the unit that fits.
pub fn time(ps: u64) -> String {
    let (unit, size) = match ps {
        1_000_000_000_000.. => ("s", 1e12),
        1_000_000_000.. => ("ms", 1e9),
        1_000_000.. => ("us", 1e6),
        _ => ("ns", 1e3),
    };
    let value = ps as f64 / size;
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$} {unit}")
}
