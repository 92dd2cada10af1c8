//! The numbers of figures as CSV in long format: integers where possible, quoted names, no row for a gap
//! (docs/spec/seeing.md 3.4).

use crate::completion::{self, Class};
use crate::data::Run;
use crate::facts::{Facts, Side};
use crate::figure::{Figure, Series, Shown};
use crate::longest_waits::LongestWaits;
use crate::ports;

/// Quantiles of completion, as `run.json` calls them.
const QUANTILES: [&str; 6] = ["p1", "p25", "p50", "p75", "p99", "max"];
/// Precision of shares.
const PRECISION: f64 = 1e6;

/// A table that is written row by row.
struct Table(csv::Writer<Vec<u8>>);

impl Table {
    fn new<const N: usize>(header: [&str; N]) -> Table {
        let mut table = Table(csv::Writer::from_writer(Vec::new()));
        table.row(header.map(str::to_owned));
        table
    }

    /// # Panics
    /// Never: memory takes all, and a table's rows are of one length.
    fn row<const N: usize>(&mut self, fields: [String; N]) {
        self.0.write_record(fields).expect("memory takes all");
    }

    fn text(self) -> String {
        let octets = self.0.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }
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
fn bin_ps(run: &Run, bin: usize) -> [String; 2] {
    let from = bin as u64 * run.result.grid.dt_ps;
    let length = run.length_ps().saturating_sub(from).min(run.result.grid.dt_ps);
    [from.to_string(), length.to_string()]
}

/// All outputs at the cursor: whether they are held or roots, and the throughput of the adapter behind them.
pub fn fabric(facts: &Facts<'_>) -> String {
    let header =
        ["run", "t_ps", "dt_ps", "port", "feeds", "hold_share", "is_root", "received_share"];
    let mut table = Table::new(header);
    for side in facts.sides() {
        let Some(bin) = side.bin_at(facts.cursor()) else { continue };
        for (place, output) in side.run.outputs.all.iter().enumerate() {
            let [t, dt] = bin_ps(side.run, bin);
            let node = &side.run.nodes[output.to];
            let is_root = side.run.moments[bin].trees.contains_key(&place);
            let received = side.run.received[output.to][bin];
            table.row([
                side.name.clone(),
                t,
                dt,
                output.name.clone(),
                node.name.clone(),
                number(side.run.series[place].hold[bin]),
                u8::from(is_root).to_string(),
                if node.is_adapter() { number(received) } else { String::new() },
            ]);
        }
    }
    table.text()
}

/// All lines and all lanes.
pub fn over_time(figure: &Figure<'_>) -> String {
    let header =
        ["panel", "run", "series", "unit", "t_ps", "dt_ps", "value_min", "value", "value_max"];
    let mut table = Table::new(header);
    for Shown { panel, unit, series, .. } in figure.shown() {
        let Series { name, side, mean, range, .. } = series;
        for (bin, value) in mean.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let [t, dt] = bin_ps(side.run, bin);
            let (least, most) =
                range.as_ref().map_or((f64::NAN, f64::NAN), |(l, m)| (l[bin], m[bin]));
            table.row([
                panel.to_owned(),
                side.name.clone(),
                name.clone(),
                unit.to_owned(),
                t,
                dt,
                number(least),
                number(*value),
                number(most),
            ]);
        }
    }
    table.text()
}

/// The throughput of all ports.
pub fn every_port(facts: &Facts<'_>) -> String {
    let mut table = Table::new(["run", "port", "t_ps", "dt_ps", "received_share"]);
    for side in facts.sides() {
        for node in ports::shown(facts) {
            let values = side.run.received[node].iter().enumerate();
            for (bin, value) in values.filter(|(_, value)| value.is_finite()) {
                let [t, dt] = bin_ps(side.run, bin);
                let name = facts.run.run.nodes[node].name.clone();
                table.row([side.name.clone(), name, t, dt, number(*value)]);
            }
        }
    }
    table.text()
}

/// Completion times by class.
pub fn completion_times(facts: &Facts<'_>) -> String {
    let header = QUANTILES.map(|quantile| format!("completion_ns_{quantile}"));
    let [p1, p25, p50, p75, p99, max] = header.each_ref().map(String::as_str);
    let mut table =
        Table::new(["run", "class", "messages", "unfinished", p1, p25, p50, p75, p99, max]);
    for Class { name, side, completion } in completion::classes(facts) {
        let quantile =
            |key: &str| completion.quantiles_ns.get(key).map_or(String::new(), u64::to_string);
        let [p1, p25, p50, p75, p99, max] = QUANTILES.map(quantile);
        let (messages, unfinished) =
            (completion.messages.to_string(), completion.unfinished.to_string());
        table.row([side.name.clone(), name, messages, unfinished, p1, p25, p50, p75, p99, max]);
    }
    table.text()
}

/// The longest waits in the measured window.
pub fn waited_longest(facts: &Facts<'_>, longest_waits: &LongestWaits<'_>) -> String {
    let mut table = Table::new(["run", "port", "feeds", "from_ps", "to_ps", "hold_share"]);
    for (output, side, share) in longest_waits.rows() {
        let Side { name, run, .. } = side;
        let own = &run.outputs.all[output];
        let (from, to) = (facts.window.0.to_string(), facts.window.1.to_string());
        let feeds = run.nodes[own.to].name.clone();
        table.row([name.clone(), own.name.clone(), feeds, from, to, number(share)]);
    }
    table.text()
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
        let mut table = Table::new(["a", "b"]);
        table.row(["x,\"y\"\n".to_owned(), "ü 1".to_owned()]);
        assert_eq!(table.text(), "a,b\n\"x,\"\"y\"\"\n\",ü 1\n");
    }
}
