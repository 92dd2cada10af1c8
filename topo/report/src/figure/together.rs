//! The panel of what all receivers of a small fabric received together, both runs on one axis.

use super::panel::{Group, Label, Panel, Series};
use crate::facts::{Facts, Side};
use chart::scale;
use maud::html;

/// Of more receivers the mean says the same.
const RECEIVERS_MAX: usize = 8;

/// The panel, where few receive.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    let receivers = facts.hot.len() + facts.cold.len();
    if !(2..=RECEIVERS_MAX).contains(&receivers) {
        return None;
    }
    let own = |side| Series::new(format!("{receivers} ports"), side, sum(facts, side));
    let series: Vec<Series<'a>> = facts.sides().map(own).collect();
    let all = series.iter().flat_map(|series| series.mean.iter()).copied();
    let top = scale::round_up(all.filter(|value| value.is_finite()).fold(1.0, f64::max));
    let label = |(place, side): (usize, &Side<'_>)| {
        Label::new(place, format!("{receivers} ports, {}", side.name), side.role, 2)
    };
    let group =
        |(place, side): (usize, &Side<'_>)| Group::lines(format!("thick {}", side.role), [place]);
    Some(Panel {
        name: "aggregate",
        title: "aggregate".to_owned(),
        about: "received by all ports together, in line rates".to_owned(),
        height: 90.0,
        unit: "line_rate",
        scale: 1.0,
        top,
        ticks: vec![0.0, top / 2.0, top],
        under: html! {},
        series: series.into_iter().map(|series| series.carried("sum", top / 2_000.0)).collect(),
        groups: facts.sides().enumerate().map(group).collect(),
        labels: facts.sides().enumerate().map(label).collect(),
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
