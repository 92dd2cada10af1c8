//! The panel of what all receivers of a small fabric received together, both runs on one axis.

use super::panels::at_cursor;
use super::{Label, Panel, grain, trace};
use crate::chart::scale;
use crate::report::columns::Columns;
use crate::report::facts::{Facts, Side};
use maud::html;

/// Of more receivers the mean says the same.
const RECEIVERS_MAX: usize = 8;

/// The panel, where few receive.
pub fn panel(facts: &Facts<'_>, columns: &mut Columns) -> Option<Panel> {
    let receivers = facts.hot.len() + facts.cold.len();
    if !(2..=RECEIVERS_MAX).contains(&receivers) {
        return None;
    }
    let sums: Vec<(&Side<'_>, Vec<f64>)> =
        facts.sides().map(|side| (side, sum(facts, side))).collect();
    let all = sums.iter().flat_map(|(_, sum)| sum).copied();
    let top = scale::round_up(all.filter(|value| value.is_finite()).fold(1.0, f64::max));
    let grain = grain(facts);
    let mut labels = Vec::new();
    for (side, sum) in &sums {
        let key = format!("{}.sum", side.number);
        columns.add(key.clone(), sum, top / 2_000.0);
        let value = at_cursor(facts, side, sum);
        let text = format!("{receivers} ports, {}", side.name);
        labels.push(Label::at(value, text, side.role, (key, 2)));
    }
    Some(Panel {
        title: "aggregate".to_owned(),
        about: "received by all ports together, in line rates".to_owned(),
        height: 90.0,
        top,
        body: html! { @for (side, sum) in &sums {
            g class=(format!("thick {}", side.role)) { path class="l" d=(trace(side, sum, top, grain)) {} }
        } },
        labels,
        ticks: vec![0.0, top / 2.0, top],
    })
}

fn sum(facts: &Facts<'_>, side: &Side<'_>) -> Vec<f64> {
    let of = |bin: usize| {
        let receivers = facts.hot.iter().chain(&facts.cold);
        let known = receivers.filter_map(|node| side.run.received.get(*node)).map(|s| s[bin]);
        known
            .filter(|value| value.is_finite())
            .fold(f64::NAN, |sum, value| if sum.is_finite() { sum + value } else { value })
    };
    (0..side.run.bins).map(of).collect()
}
