//! The figure of a sweep: a picture a measure, the first axis from left to right, a line for each
//! combination of the others.

use super::outcome::Row;
use super::{Sweep, Swept};
use crate::chart::curves::{self, Curve, Picture};
use maud::{Markup, html};

/// Height of one picture with its title and axis.
const STRIDE: f64 = curves::ABOVE + curves::HEIGHT + curves::BELOW;

/// The document.
pub fn svg(sweep: &Sweep, swept: &Swept) -> String {
    let shown = sweep.shown(&swept.rows);
    let series = series(&swept.rows);
    let pictures = STRIDE * shown.len() as f64;
    let named = if series.len() > 1 { series.len() } else { 0 };
    let height = pictures + curves::LEGEND * named as f64 + 20.0;
    let body = html! {
        @for (index, measure) in shown.iter().enumerate() {
            (one(sweep, &series, measure, STRIDE * index as f64 + curves::ABOVE))
        }
        (curves::legend(series.iter().take(named).map(|(name, _)| name.as_str()), pictures))
    };
    curves::document(&sweep.name, height, "", &body)
}

/// One measure's picture, which begins at `top`.
fn one(sweep: &Sweep, series: &[(String, Vec<&Row>)], measure: &str, top: f64) -> Markup {
    let (x_axis, steps) =
        sweep.axes.first().map_or(("", &[][..]), |axis| (axis.name.as_str(), &axis.steps[..]));
    let labels: Vec<String> = steps.iter().map(|step| step.label.clone()).collect();
    let curve = |(name, rows): &(String, Vec<&Row>)| Curve {
        name: name.clone(),
        points: points(&labels, rows, measure),
    };
    let picture = Picture {
        title: measure,
        subtitle: &format!("over {x_axis}"),
        top,
        x_max: labels.len().saturating_sub(1).max(1) as f64,
        ticks: (0u32..).map(f64::from).zip(labels.iter().cloned()).collect(),
        dots: true,
    };
    curves::picture(&picture, &series.iter().map(curve).collect::<Vec<_>>())
}

/// Rows by what the axes other than the first say, in the order of the grid.
fn series(rows: &[Row]) -> Vec<(String, Vec<&Row>)> {
    let mut series: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let name = row.point.labels.get(1..).unwrap_or_default().join(", ");
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(row),
            None => series.push((name, vec![row])),
        }
    }
    series
}

fn points(labels: &[String], rows: &[&Row], measure: &str) -> Vec<(f64, f64)> {
    let place = |row: &Row| labels.iter().position(|label| row.point.labels.first() == Some(label));
    rows.iter().filter_map(|row| Some((place(row)? as f64, row.mean(measure)?))).collect()
}
