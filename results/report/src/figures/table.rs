//! The numbers of figures as CSV in long format: integers where possible, quoted names, no row for a gap
//! (docs/spec/seeing.md 3.4).

use crate::completion::{self, Class};
use crate::data::{Graph, Run};
use crate::facts::{Facts, Side};
use crate::figure::{Figure, Series, Shown};
use crate::longest_waits::LongestWaits;
use crate::ports;
use results::saturation::Output;
use serde::Serialize;

/// Quantiles of completion, as `run.json` calls them.
const QUANTILES: [&str; 6] = ["p1", "p25", "p50", "p75", "p99", "max"];
/// Precision of shares.
const PRECISION: f64 = 1e6;

/// A table of these rows.
///
/// # Panics
/// Never: memory takes all, and a table's rows are of one length.
fn table<R: Serialize>(header: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    table.write_record(header).expect("memory takes all");
    for row in rows {
        table.serialize(row).expect("memory takes all");
    }
    String::from_utf8(table.into_inner().expect("memory takes all")).expect("names are UTF-8")
}

/// A number as short as possible; empty for NaN.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    // Adding zero removes the sign of -0.
    format!("{}", (value * PRECISION).round() / PRECISION + 0.0)
}

/// Begin and length of a bin, picoseconds: the last may be shorter.
fn bin_ps(run: &Run, bin: usize) -> (u64, u64) {
    let from = bin as u64 * run.result.grid.dt_ps;
    (from, run.length_ps().saturating_sub(from).min(run.result.grid.dt_ps))
}

/// The values of a series that are numbers, with begin and length of their bins.
fn known<'s>(run: &'s Run, values: &'s [f64]) -> impl Iterator<Item = (usize, (u64, u64), String)> {
    let known = values.iter().enumerate().filter(|(_, value)| value.is_finite());
    known.map(|(bin, value)| (bin, bin_ps(run, bin), number(*value)))
}

/// All outputs at the cursor: whether they are held or roots, and the throughput of the adapter behind them.
pub fn fabric(facts: &Facts<'_>) -> String {
    let header =
        ["run", "t_ps", "dt_ps", "port", "feeds", "hold_share", "is_root", "received_share"];
    let of_side = |side: &Side<'_>| {
        let Side { run, name, .. } = side;
        let bin = side.bin_at(facts.cursor())?;
        let row = |(place, output): (usize, &Output)| {
            let feeds = &run.graph.nodes[output.to];
            let received = if feeds.is_adapter() { run.received[output.to][bin] } else { f64::NAN };
            let held = number(run.series[place].hold[bin]);
            let is_root = u8::from(run.moments[bin].trees.contains_key(&place));
            let (port, feeds) = (output.name.clone(), feeds.name.clone());
            (name.clone(), bin_ps(run, bin), port, feeds, held, is_root, number(received))
        };
        Some(run.graph.outputs.iter().enumerate().map(row).collect::<Vec<_>>())
    };
    table(&header, facts.sides().filter_map(of_side).flatten())
}

/// All lines and all lanes.
pub fn over_time(figure: &Figure<'_>) -> String {
    let header =
        ["panel", "run", "series", "unit", "t_ps", "dt_ps", "value_min", "value", "value_max"];
    let of_series = |Shown { panel, unit, series, .. }| {
        let Series { name, side, mean, range, .. }: &Series<'_> = series;
        known(side.run, mean).map(move |(bin, times, value)| {
            let (least, most) =
                range.as_ref().map_or((f64::NAN, f64::NAN), |(l, m)| (l[bin], m[bin]));
            (panel, &side.name, name, unit, times, number(least), value, number(most))
        })
    };
    table(&header, figure.shown().flat_map(of_series))
}

/// The throughput of all ports.
pub fn every_port(facts: &Facts<'_>) -> String {
    let shown = ports::shown(facts);
    let ports = facts.sides().flat_map(|side| shown.iter().map(move |node| (side, *node)));
    let rows = ports.flat_map(|(side, node)| {
        let name = &facts.run.run.graph.nodes[node].name;
        let values = known(side.run, &side.run.received[node]);
        values.map(move |(_, times, value)| (&side.name, name, times, value))
    });
    table(&["run", "port", "t_ps", "dt_ps", "received_share"], rows)
}

/// Completion times by class.
pub fn completion_times(facts: &Facts<'_>) -> String {
    let quantiles = QUANTILES.map(|quantile| format!("completion_ns_{quantile}"));
    let header = ["run", "class", "messages", "unfinished"].into_iter();
    let header: Vec<&str> = header.chain(quantiles.iter().map(String::as_str)).collect();
    let rows = completion::classes(facts).into_iter().map(|Class { name, side, completion }| {
        let quantiles = QUANTILES.map(|key| completion.quantiles_ns.get(key).copied());
        (&side.name, name, completion.messages, completion.unfinished, quantiles)
    });
    table(&header, rows)
}

/// The longest waits in the measured window.
pub fn waited_longest(facts: &Facts<'_>, longest_waits: &LongestWaits<'_>) -> String {
    let rows = longest_waits.rows().map(|(output, side, share)| {
        let Graph { outputs, nodes, .. } = &side.run.graph;
        let own = &outputs[output];
        (&side.name, &own.name, &nodes[own.to].name, facts.window, number(share))
    });
    table(&["run", "port", "feeds", "from_ps", "to_ps", "hold_share"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_enough() {
        let written = [3.0, 0.1 + 0.2, 1.0 / 3.0, -0.0, 12_345_678.0, f64::NAN].map(number);
        assert_eq!(written, ["3", "0.3", "0.333333", "0", "12345678", ""]);
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        let text = table(&["a", "b"], [("x,\"y\"\n", "ü 1")]);
        assert_eq!(text, "a,b\n\"x,\"\"y\"\"\n\",ü 1\n");
    }
}
