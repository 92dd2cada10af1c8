//! The figure of a sweep: one picture for each measure, the first axis from left to right. With two axes it is a table
//! of numbers, the second axis downwards; otherwise a line for each combination of the other axes.

use super::grid::Axis;
use super::outcome::Row;
use super::{Sweep, Swept};
use chart::curves::{self, Curve, Picture};
use chart::heat::{self, Cell, Heat};
use maud::{Markup, html};
use results::verdict::Verdict;

/// Height of one picture with its title and axis.
const STRIDE: f64 = curves::ABOVE + curves::HEIGHT + curves::BELOW;

/// The document.
pub fn svg(sweep: &Sweep, swept: &Swept) -> String {
    match &sweep.axes[..] {
        [across, down] => tables(sweep, swept, across, down),
        _ => lines(sweep, swept),
    }
}

fn tables(sweep: &Sweep, swept: &Swept, across: &Axis, down: &Axis) -> String {
    let shown = sweep.shown(&swept.rows);
    let stride = curves::ABOVE + heat::height(down.steps.len());
    let body = html! {
        @for (index, measure) in shown.iter().enumerate() {
            (heat::picture(&table(&swept.rows, measure, across, down), stride * index as f64 + curves::ABOVE))
        }
    };
    curves::document(&sweep.name, stride * shown.len() as f64, heat::STYLE, &body)
}

/// The values of a measure at all points.
fn table<'a>(rows: &[Row], measure: &'a str, across: &'a Axis, down: &'a Axis) -> Heat<'a> {
    let labels = |axis: &Axis| axis.steps.iter().map(|step| step.label.clone()).collect::<Vec<_>>();
    // The last axis varies fastest.
    let cell = |row: usize, column: usize| {
        let point = rows.get(column * down.steps.len() + row);
        Cell {
            value: point.and_then(|point| point.mean(measure)),
            is_unsure: point.is_some_and(|point| point.verdict != Verdict::Pass),
        }
    };
    let row = |row| (0..across.steps.len()).map(|column| cell(row, column)).collect();
    Heat {
        title: measure,
        across: (&across.name, labels(across)),
        down: (&down.name, labels(down)),
        cells: (0..down.steps.len()).map(row).collect(),
    }
}

fn lines(sweep: &Sweep, swept: &Swept) -> String {
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

/// Rows by the values of the axes other than the first, in the order of the grid.
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
