//! Runs side by side: one table of measures, one figure, from run directories alone.

use crate::data::tables::{self, PortRow};
use crate::data::{self, Graph, ReportError};
use comfy_table::{CellAlignment, Table, presets};
use results::run_directory::result::{Completion, RunResult};
use results::verdict::Verdict;
use results::wording::{word, written};
use scenario::measure::value::Value;
use std::collections::BTreeMap;
use std::path::Path;

pub mod exact;
pub mod figure;

/// A run in a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name in table and figure.
    pub name: String,
    /// `run.json`.
    pub result: RunResult,
    /// Throughput of all adapters together by bin: its middle, τ, and the octets of data frames as a share of what the
    /// adapters' lines could carry.
    pub received: Vec<(f64, f64)>,
}

impl Side {
    /// Reads the run directory `folder`.
    ///
    /// # Errors
    /// If a file is missing or not what a run writes.
    pub fn load(folder: &Path) -> Result<Side, ReportError> {
        let result: RunResult = data::json(&folder.join("run.json"))?;
        let graph: Graph = data::json(&folder.join("topology.json"))?;
        let ends = graph.outputs.iter().zip(&graph.rates);
        let ends = ends.filter(|(output, _)| graph.nodes[output.from].is_adapter());
        let lines: BTreeMap<&str, u64> =
            ends.map(|(output, rate)| (output.name.as_str(), *rate)).collect();
        let received = received(&folder.join("ports.csv"), &lines, result.tau_ps.max(1) as f64)?;
        Ok(Side { name: result.scenario.clone(), result, received })
    }
}

/// Numbers sides of the same name, so that they differ.
pub fn distinguish(sides: &mut [Side]) {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    for (index, side) in sides.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == side.name).count() > 1 {
            side.name = format!("{} ({})", side.name, index + 1);
        }
    }
}

/// What adapters received by bin; `lines` are the rates of their ports, bit/s.
fn received(
    file: &Path,
    lines: &BTreeMap<&str, u64>,
    tau_ps: f64,
) -> Result<Vec<(f64, f64)>, ReportError> {
    let rate: f64 = lines.values().map(|rate| *rate as f64).sum();
    let mut bins: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    tables::each(file, |row: PortRow| {
        if lines.contains_key(row.port.as_str()) {
            let (length, sum) = bins.entry(row.t_ps).or_default();
            (*length, *sum) = ((*length).max(row.dt_ps), *sum + row.rx_bytes);
        }
        Ok(())
    })?;
    let of_bin = |(t, (dt, octets)): (u64, (u64, u64))| {
        let share = octets as f64 * 8e12 / dt.max(1) as f64 / rate.max(1.0);
        ((t as f64 + dt as f64 / 2.0) / tau_ps, share)
    };
    Ok(bins.into_iter().map(of_bin).collect())
}

/// All measures of any side, with the value of each side.
fn measures(sides: &[Side]) -> BTreeMap<&str, Vec<Option<&Value>>> {
    let names = sides.iter().flat_map(|side| side.result.measures.keys());
    let of =
        |name: &String| sides.iter().map(|side| side.result.measures.get(name)?.as_ref()).collect();
    names.map(|name| (name.as_str(), of(name))).collect()
}

/// Completion times by traffic item, with an entry for each side.
fn completions(sides: &[Side]) -> BTreeMap<String, Vec<Option<Completion>>> {
    let mut items: BTreeMap<String, Vec<Option<Completion>>> = BTreeMap::new();
    for (place, side) in sides.iter().enumerate() {
        for (item, completion) in side.result.completions() {
            items.entry(item).or_insert_with(|| vec![None; sides.len()])[place] = Some(completion);
        }
    }
    items
}

/// A table with a column for each side and a row for each measure, then completion times.
pub fn table(sides: &[Side]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(std::iter::once("").chain(sides.iter().map(|side| side.name.as_str())));
    let mut row = |title: String, cells: Vec<String>| {
        table.add_row(std::iter::once(title).chain(cells).collect::<Vec<_>>());
    };
    type Text = fn(&RunResult) -> String;
    let facts: [(&str, Text); 4] = [
        ("verdict", |result| word(result.verdict).to_owned()),
        ("scheme", |result| result.scheme.clone()),
        ("substrate", |result| result.backend.clone()),
        ("seed", |result| result.seed.to_string()),
    ];
    for (title, text) in facts {
        row(title.to_owned(), sides.iter().map(|side| text(&side.result)).collect());
    }
    for (name, values) in measures(sides) {
        row(name.to_owned(), values.into_iter().map(written).collect());
    }
    for (item, completions) in completions(sides) {
        for quantile in ["p50", "p99"] {
            let cell = |completion: &Option<Completion>| {
                let ns = completion.as_ref()?.quantiles_ns.get(quantile)?;
                Some(format!("{:.1} µs", *ns as f64 / 1_000.0))
            };
            let cells = completions.iter().map(|c| cell(c).unwrap_or_else(|| "–".to_owned()));
            row(format!("{item} took, {quantile}"), cells.collect());
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The document of `--json`.
pub fn json(sides: &[Side]) -> serde_json::Value {
    let run = |side: &Side| {
        serde_json::json!({
            "name": side.name,
            "scenario": side.result.scenario,
            "scheme": side.result.scheme,
            "backend": side.result.backend,
            "seed": side.result.seed,
            "verdict": side.result.verdict,
            "measures": side.result.measures,
            "completion": side.result.completions(),
        })
    };
    serde_json::json!({ "runs": sides.iter().map(run).collect::<Vec<_>>() })
}

/// True if no side is inconclusive.
pub fn is_conclusive(sides: &[Side]) -> bool {
    sides.iter().all(|side| side.result.verdict != Verdict::Inconclusive)
}

#[cfg(test)]
mod tests;
