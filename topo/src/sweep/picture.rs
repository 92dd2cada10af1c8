//! The figure of a sweep: a picture a measure, the first axis from left to right, a line for each
//! combination of the others.

use super::outcome::Row;
use super::{Sweep, Swept};
use crate::plot::{self, Line, Picture};

/// Height of one picture with its title and axis.
const STRIDE: f64 = plot::HEIGHT + plot::ABOVE + plot::BELOW;

/// The document.
pub fn svg(sweep: &Sweep, swept: &Swept) -> String {
    let shown = sweep.shown(&swept.rows);
    let series = series(&swept.rows);
    let legend = if series.len() > 1 { plot::LEGEND * series.len() as f64 } else { 0.0 };
    let height = STRIDE * shown.len() as f64 + legend + 20.0;
    let mut out = plot::open(height, &sweep.name);
    let x_axis = sweep.axes.first().map_or("", |axis| axis.name.as_str());
    let steps = sweep.axes.first().map_or(&[][..], |axis| &axis.steps);
    let labels: Vec<String> = steps.iter().map(|step| step.label.clone()).collect();
    for (index, measure) in shown.iter().enumerate() {
        let lines: Vec<Line> = series
            .iter()
            .map(|(name, rows)| Line { name: name.clone(), points: points(&labels, rows, measure) })
            .collect();
        let picture = Picture {
            title: measure,
            subtitle: &format!("over {x_axis}"),
            top: STRIDE * index as f64 + plot::ABOVE,
            x_max: labels.len().saturating_sub(1).max(1) as f64,
            ticks: labels
                .iter()
                .enumerate()
                .map(|(at, label)| (at as f64, label.clone()))
                .collect(),
            dots: true,
        };
        plot::lines(&mut out, &picture, &lines);
    }
    if series.len() > 1 {
        let names: Vec<&str> = series.iter().map(|(name, _)| name.as_str()).collect();
        plot::legend(&mut out, height - legend, &names);
    }
    out.push_str("</svg>\n");
    out
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
