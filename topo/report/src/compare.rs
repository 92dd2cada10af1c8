//! Runs side by side: one table of measures, one figure, from run directories alone.

use comfy_table::{CellAlignment, Table, presets};
use results::run_directory::result::{Completion, RunResult};
use results::verdict::Verdict;
use results::wording::{word, written};
use scenario::measure::value::Value;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

pub mod figure;

/// What a run directory says that a comparison wants to know.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called in table and figure.
    pub name: String,
    /// `run.json`.
    pub result: RunResult,
    /// What all adapters received together, bin by bin.
    pub received: Vec<Rate>,
}

/// A bin of what all adapters received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Its middle, in τ.
    pub at: f64,
    /// Octets of data frames, as a share of what the adapters' lines could carry.
    pub share: f64,
}

/// Why a run directory cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file of it cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A file of it is not what it should be.
    #[error("{} is no file of a run directory: {}", .0.display(), .1)]
    Content(PathBuf, String),
}

impl Side {
    /// Reads the run directory `folder`.
    ///
    /// # Errors
    /// If a file is missing or makes no sense.
    pub fn load(folder: &Path) -> Result<Side, CompareError> {
        let result: RunResult = read_json(&folder.join("run.json"))?;
        let topology: Topology = read_json(&folder.join("topology.json"))?;
        let is_adapter = |node: &&Node| node.kind == "nic";
        let adapters: BTreeSet<&str> =
            topology.nodes.iter().filter(is_adapter).map(|node| node.name.as_str()).collect();
        let is_adapters = |end: &String| adapters.contains(node_of(end));
        let lines = topology.links.iter().map(|link| {
            let ends = [&link.a, &link.b].into_iter().filter(|end| is_adapters(end)).count();
            link.rate as f64 * ends as f64
        });
        let sum = Lines { rate: lines.sum(), tau_ps: result.tau_ps };
        let received = received(&folder.join("ports.csv"), &adapters, sum)?;
        Ok(Side { name: result.scenario.clone(), result, received })
    }
}

/// Gives sides of one name the number of their place, so that they can be told apart.
pub fn distinguish(sides: &mut [Side]) {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    for (index, side) in sides.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == side.name).count() > 1 {
            side.name = format!("{} ({})", side.name, index + 1);
        }
    }
}

#[derive(Deserialize)]
struct Topology {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    a: String,
    b: String,
    rate: u64,
}

/// All adapters' lines together, in bit/s, and one MTU time of the default link.
#[derive(Clone, Copy)]
struct Lines {
    rate: f64,
    tau_ps: u64,
}

/// `h0` of `h0:1`.
fn node_of(end: &str) -> &str {
    end.split(':').next().unwrap_or(end)
}

#[derive(Deserialize)]
struct Node {
    name: String,
    kind: String,
}

/// The columns of `ports.csv` that are summed.
#[derive(Deserialize)]
struct PortRow {
    t_ps: u64,
    dt_ps: u64,
    port: String,
    rx_bytes: u64,
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, CompareError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| CompareError::Read(file.to_owned(), error))?;
    serde_json::from_str(&text)
        .map_err(|error| CompareError::Content(file.to_owned(), error.to_string()))
}

fn received(
    file: &Path,
    adapters: &BTreeSet<&str>,
    lines: Lines,
) -> Result<Vec<Rate>, CompareError> {
    let content = |error: csv::Error| CompareError::Content(file.to_owned(), error.to_string());
    let mut rows = csv::Reader::from_path(file).map_err(content)?;
    let mut bins: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows.deserialize::<PortRow>() {
        let row = row.map_err(content)?;
        if adapters.contains(node_of(&row.port)) {
            let bin = bins.entry(row.t_ps).or_default();
            *bin = (bin.0.max(row.dt_ps), bin.1 + row.rx_bytes);
        }
    }
    let rate = |(t_ps, (dt_ps, octets)): (u64, (u64, u64))| Rate {
        at: (t_ps as f64 + dt_ps as f64 / 2.0) / lines.tau_ps.max(1) as f64,
        share: octets as f64 * 8e12 / dt_ps.max(1) as f64 / lines.rate.max(1.0),
    };
    Ok(bins.into_iter().map(rate).collect())
}

/// Every measure any side has, with a value or none for each side.
pub fn measures(sides: &[Side]) -> BTreeMap<&str, Vec<Option<&Value>>> {
    let names: BTreeSet<&str> =
        sides.iter().flat_map(|side| side.result.measures.keys()).map(String::as_str).collect();
    let mut all = BTreeMap::new();
    for name in names {
        let of = sides.iter().map(|side| side.result.measures.get(name).and_then(Option::as_ref));
        all.insert(name, of.collect());
    }
    all
}

/// The table: a column a side, a row a measure, then how long messages took.
pub fn table(sides: &[Side]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(std::iter::once("").chain(sides.iter().map(|side| side.name.as_str())));
    let mut row = |title: String, cells: Vec<String>| {
        table.add_row(std::iter::once(title).chain(cells).collect::<Vec<_>>());
    };
    let of = |text: &dyn Fn(&Side) -> String| sides.iter().map(text).collect::<Vec<_>>();
    row("verdict".into(), of(&|side| word(side.result.verdict).to_owned()));
    row("scheme".into(), of(&|side| side.result.scheme.clone()));
    row("substrate".into(), of(&|side| side.result.backend.clone()));
    row("seed".into(), of(&|side| side.result.seed.to_string()));
    for (name, values) in measures(sides) {
        row(name.to_owned(), values.into_iter().map(written).collect());
    }
    let completions: Vec<BTreeMap<String, Completion>> =
        sides.iter().map(|side| side.result.completions()).collect();
    let items: BTreeSet<&String> = completions.iter().flat_map(BTreeMap::keys).collect();
    for item in items {
        for quantile in ["p50", "p99"] {
            let cell = |completions: &BTreeMap<String, Completion>| {
                let ns = completions.get(item)?.quantiles_ns.get(quantile)?;
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
    let runs: Vec<_> = sides
        .iter()
        .map(|side| {
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
        })
        .collect();
    serde_json::json!({ "runs": runs })
}

/// The worst verdict of all sides: a comparison is no better than what it compares.
pub fn is_conclusive(sides: &[Side]) -> bool {
    sides.iter().all(|side| side.result.verdict != Verdict::Inconclusive)
}

#[cfg(test)]
mod tests;
