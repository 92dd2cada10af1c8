//! The panel of what all receivers of a small fabric received together, both runs on one axis.

use super::panel::{Panel, Series, Stroke};
use crate::data;
use crate::facts::{Facts, Side};
use chart::scale;

/// Greatest number of receivers; of more, their mean shows the same.
const RECEIVERS_MAX: usize = 8;

/// The panel, where few receive.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    let receivers = facts.hot.len() + facts.cold.len();
    if !(2..=RECEIVERS_MAX).contains(&receivers) {
        return None;
    }
    let sums: Vec<Vec<f64>> = facts.sides().map(|side| sum(facts, side)).collect();
    let top = scale::round_up(data::most(sums.iter().flatten()).max(1.0));
    let about = "received by all ports together, in line rates".to_owned();
    let mut panel = Panel::new("aggregate", "aggregate".to_owned(), about, "line_rate", top);
    for (side, sum) in facts.sides().zip(sums) {
        let all =
            Series::new(format!("{receivers} ports"), side, sum).carried("sum", top / 2_000.0);
        let place = panel.draws(all, Stroke::Lines, format!("thick {}", side.role));
        panel.label(place, format!("{receivers} ports, {}", side.name), side.role, 2);
    }
    Some(panel)
}

fn sum(facts: &Facts<'_>, side: &Side<'_>) -> Vec<f64> {
    let of = |bin: usize| {
        let values = facts.hot.iter().chain(&facts.cold).filter_map(|n| side.run.received.get(*n));
        let known = values.map(|values| values[bin]).filter(|value| value.is_finite());
        known.reduce(|sum, value| sum + value).unwrap_or(f64::NAN)
    };
    (0..side.run.bins).map(of).collect()
}
