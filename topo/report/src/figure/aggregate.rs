//! The panel of what all receivers of a small fabric received together, both runs on one axis.

use super::panel::{Group, Label, Panel, Series};
use crate::data;
use crate::facts::{Facts, Side};
use chart::scale;

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
    let most = data::most(series.iter().flat_map(|series| series.mean.iter()));
    let top = scale::round_up(most.max(1.0));
    let label = |(place, side): (usize, &Side<'_>)| {
        Label::new(place, format!("{receivers} ports, {}", side.name), side.role, 2)
    };
    let group =
        |(place, side): (usize, &Side<'_>)| Group::lines(format!("thick {}", side.role), [place]);
    let about = "received by all ports together, in line rates".to_owned();
    let panel = Panel::new("aggregate", "aggregate".to_owned(), about, "line_rate", top);
    let series = series.into_iter().map(|series| series.carried("sum", top / 2_000.0)).collect();
    let groups = facts.sides().enumerate().map(group).collect();
    let labels = facts.sides().enumerate().map(label).collect();
    Some(Panel { series, groups, labels, ..panel })
}

fn sum(facts: &Facts<'_>, side: &Side<'_>) -> Vec<f64> {
    let of = |bin: usize| {
        let receivers = facts.hot.iter().chain(&facts.cold);
        let values = receivers.filter_map(|node| side.run.received.get(*node)).map(|s| s[bin]);
        values
            .filter(|value| value.is_finite())
            .reduce(|sum, value| sum + value)
            .unwrap_or(f64::NAN)
    };
    (0..side.run.bins).map(of).collect()
}
