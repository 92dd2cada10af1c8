//! A run directory, read back: the only input of the page.

use results::run_directory::FidelityRow;
use results::run_directory::result::RunResult;
use results::saturation::{BinTrees, Output, OutputState, Outputs};
use scenario::measure::value::Value;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

mod error;
mod log;
pub mod tables;

pub use error::ReportError;
pub use log::{EventLog, FirstPause};

/// A node of the fabric.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `nic` or `switch`.
    pub kind: String,
    /// 0 for adapters.
    pub level: u8,
}

impl Node {
    /// True for an adapter.
    pub fn is_adapter(&self) -> bool {
        self.kind == "nic"
    }
}

/// `topology.json`.
#[derive(Deserialize)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    columns: Vec<Vec<String>>,
}

/// A cable of the fabric: its ends as `node:port`, and its rate in bit/s.
#[derive(Deserialize)]
pub(crate) struct Link {
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) rate: u64,
    tech: String,
}

/// Least, mean and greatest values by bin.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// Least values.
    pub min: Vec<f64>,
    /// Means over time.
    pub mean: Vec<f64>,
    /// Greatest values.
    pub max: Vec<f64>,
}

/// The state of one output by bin; NaN where the tables have no row.
#[derive(Clone, Debug, Default)]
pub struct OutputSeries {
    /// Share of time held.
    pub hold: Vec<f64>,
    /// Share of time paused.
    pub pause: Vec<f64>,
    /// Data sent over the line rate.
    pub sent: Vec<f64>,
    /// Octets in the queue.
    pub queue: Envelope,
    /// Octets in the input buffer of the same port, of the fullest lane.
    pub input: Envelope,
    /// Totals of the run: data frames sent, marks, notifications received, drops, picoseconds held.
    pub totals: Totals,
}

/// Totals of a port over the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Data frames sent.
    pub frames: u64,
    /// Data frames received.
    pub received: u64,
    /// Time held, on the lane that was held most in each bin.
    pub hold_ps: u64,
    /// Frames marked.
    pub marks: u64,
    /// Notifications sent.
    pub notes_tx: u64,
    /// Notifications received.
    pub notes_rx: u64,
    /// Frames lost.
    pub drops: u64,
}

/// Signals of all devices of the fabric, by bin.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Frames marked.
    pub marks: Vec<f64>,
    /// Notifications received.
    pub notes: Vec<f64>,
    /// Frames lost.
    pub drops: Vec<f64>,
}

impl Signals {
    /// No signals.
    fn blank(bins: usize) -> Signals {
        let none = vec![0.0; bins];
        Signals { marks: none.clone(), notes: none.clone(), drops: none }
    }
}

/// Limits of the reaction points of one flow, by bin.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    /// Gap after a full frame, τ; zero without a limit.
    pub gap: Vec<f64>,
    /// Rate over the line rate; NaN without a limit.
    pub rate: Vec<f64>,
}

/// One row of `flows.csv`, as far as it is used.
#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    /// `src>dst`.
    pub flow: String,
    /// The sender.
    pub src: String,
    /// The receiver.
    pub dst: String,
}

/// The fabric in `topology.json`.
#[derive(Debug)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Nodes from left to right in the unfolded picture.
    pub columns: Vec<Vec<usize>>,
    /// Both directions of every cable, one after the other.
    pub outputs: Vec<Output>,
    /// Line rate by output, bit/s.
    pub rates: Vec<u64>,
    /// `infiniband` or `ethernet`.
    pub technology: String,
}

impl Graph {
    /// Resolves names to indices.
    ///
    /// # Errors
    /// If a cable or a column names an unknown node.
    pub fn of(topology: Topology) -> Result<Graph, String> {
        let Topology { nodes, links, columns } = topology;
        let places: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        let node = |name: &str| {
            places.get(name).copied().ok_or_else(|| format!("there is no node {name:?}"))
        };
        let of_end = |end: &str| node(end.rsplit_once(':').map_or(end, |(name, _)| name));
        let (mut outputs, mut rates) = (Vec::new(), Vec::new());
        for link in &links {
            for (from, to) in [(&link.a, &link.b), (&link.b, &link.a)] {
                let (sender, receiver) = (of_end(from)?, of_end(to)?);
                outputs.push(Output {
                    name: from.clone(),
                    from: sender,
                    to: receiver,
                    level: nodes[sender].level,
                    far_level: nodes[receiver].level,
                });
                rates.push(link.rate);
            }
        }
        let columns = columns.iter().map(|names| names.iter().map(|n| node(n)).collect());
        let columns = columns.collect::<Result<Vec<Vec<usize>>, String>>()?;
        let technology = links.first().map_or(String::new(), |link| link.tech.clone());
        Ok(Graph { columns, outputs, rates, technology, nodes })
    }
}

/// A run, from its files.
#[derive(Debug)]
pub struct Run {
    /// `run.json`.
    pub result: RunResult,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Nodes from left to right in the unfolded picture.
    pub columns: Vec<Vec<usize>>,
    /// Both directions of every cable.
    pub outputs: Outputs,
    /// Line rate by output, bit/s.
    pub rates: Vec<u64>,
    /// `infiniband` or `ethernet`.
    pub technology: String,
    /// Bins of the grid.
    pub bins: usize,
    /// State of each output.
    pub series: Vec<OutputSeries>,
    /// By node, data received over the rate of its lines, by bin.
    pub received: Vec<Vec<f64>>,
    /// Marks, notifications and losses of all devices.
    pub signals: Signals,
    /// Flows with a limit at any time, by name; `rest` stands for all others.
    pub throttles: BTreeMap<String, Throttle>,
    /// Every flow.
    pub flows: Vec<Flow>,
    /// Pauses, and the first notification.
    pub log: EventLog,
    /// p99 of lateness in frame times by bin, of the worst worker; empty on the virtual clock.
    pub lateness: Vec<f64>,
    /// Rows of `counters.csv`.
    pub counters: Vec<(String, String, u64)>,
    /// Trees, by bin.
    pub moments: Vec<BinTrees>,
    /// Text of the scenario file.
    pub scenario: String,
}

impl Run {
    /// Reads a run directory.
    ///
    /// # Errors
    /// If a file is missing, or is not what a run writes.
    pub fn load(folder: &Path) -> Result<Run, ReportError> {
        let result: RunResult = json(&folder.join("run.json"))?;
        let topology: Topology = json(&folder.join("topology.json"))?;
        let mut run = Run::frame(result, topology)
            .map_err(|why| content(&folder.join("topology.json"), why))?;
        tables::ports(&mut run, &folder.join("ports.csv"))?;
        tables::queues(&mut run, &folder.join("queues.csv"))?;
        tables::rates(&mut run, &folder.join("rates.csv"))?;
        run.flows = tables::all(&folder.join("flows.csv"))?;
        run.log = log::read(&run, &folder.join("events.jsonl"))?;
        run.counters = tables::all(&folder.join("counters.csv"))?;
        let late: Vec<FidelityRow> = tables::all(&folder.join("fidelity.csv"))?;
        run.lateness = lateness(&run, &late);
        run.scenario = text(&folder.join("scenario.toml"))?;
        run.moments = (0..run.bins).map(|bin| run.outputs.trees(&run.sights(bin))).collect();
        Ok(run)
    }

    /// A run without the content of its tables.
    fn frame(result: RunResult, topology: Topology) -> Result<Run, String> {
        let Graph { nodes, columns, outputs, rates, technology } = Graph::of(topology)?;
        let bins = result.grid.bins as usize;
        let blank = vec![f64::NAN; bins];
        let levels = || Envelope { min: blank.clone(), mean: blank.clone(), max: blank.clone() };
        let series = OutputSeries {
            hold: blank.clone(),
            pause: blank.clone(),
            sent: blank.clone(),
            queue: levels(),
            input: levels(),
            totals: Totals::default(),
        };
        let long_queue = result.saturation.long_queue_bytes;
        Ok(Run {
            series: vec![series; outputs.len()],
            received: vec![blank; nodes.len()],
            technology,
            outputs: Outputs::new(outputs, long_queue),
            result,
            nodes,
            columns,
            rates,
            signals: Signals::blank(bins),
            bins,
            throttles: BTreeMap::new(),
            flows: Vec::new(),
            log: EventLog::default(),
            lateness: Vec::new(),
            counters: Vec::new(),
            moments: Vec::new(),
            scenario: String::new(),
        })
    }

    fn sights(&self, bin: usize) -> Vec<OutputState> {
        let number = |value: f64| if value.is_finite() { value } else { 0.0 };
        let sight = |series: &OutputSeries| OutputState {
            hold: number(series.hold[bin]),
            queue: number(series.queue.mean[bin]),
            sent: number(series.sent[bin]),
        };
        self.series.iter().map(sight).collect()
    }

    /// One τ, the time of a full frame on the default link, in picoseconds.
    pub fn tau_ps(&self) -> f64 {
        self.result.tau_ps.max(1) as f64
    }

    /// Picoseconds in τ.
    pub fn in_tau(&self, ps: u64) -> f64 {
        ps as f64 / self.tau_ps()
    }

    /// Phases: begin and end in τ, and name.
    pub fn phases(&self) -> impl Iterator<Item = (f64, f64, &str)> {
        let phases = self.result.phases.iter();
        phases.map(|phase| (self.in_tau(phase.from_ps), self.in_tau(phase.to_ps), &*phase.name))
    }

    /// The value of a measure, if it has one.
    pub fn measured(&self, measure: &str) -> Option<&Value> {
        self.result.measures.get(measure)?.as_ref()
    }

    /// Width of a bin in τ.
    pub fn bin_tau(&self) -> f64 {
        self.in_tau(self.result.grid.dt_ps)
    }

    /// Duration of the run in picoseconds.
    pub fn length_ps(&self) -> u64 {
        let phases = self.result.phases.last().map(|phase| phase.to_ps);
        let seconds = (self.result.fabric_seconds * 1e12).round() as u64;
        phases.unwrap_or(seconds).max(1)
    }

    /// Duration of the run in τ.
    pub fn length_tau(&self) -> f64 {
        self.in_tau(self.length_ps())
    }

    /// The middle of a bin in τ; the last one may be shorter than the others.
    pub fn middle(&self, bin: usize) -> f64 {
        let (from, to) = (bin as f64 * self.bin_tau(), (bin + 1) as f64 * self.bin_tau());
        (from + to.min(self.length_tau()).max(from)) / 2.0
    }

    /// The bin at a time in picoseconds.
    pub fn bin_at(&self, ps: u64) -> usize {
        let place = (ps / self.result.grid.dt_ps.max(1)) as usize;
        place.min(self.bins.saturating_sub(1))
    }

    /// The first output of a node; an adapter has only one.
    pub fn output_of(&self, node: usize) -> Option<usize> {
        self.outputs.all.iter().position(|output| output.from == node)
    }

    /// The other direction of the same cable, whose port `output` leads to.
    pub const fn facing(output: usize) -> usize {
        output ^ 1
    }

    /// The value of a scenario's key.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.result.parameters.iter().find(|parameter| parameter.name == name);
        found.map(|parameter| parameter.value.as_str())
    }

    /// Adapters in the order of the fabric's picture.
    pub fn adapters(&self) -> Vec<usize> {
        let first = self.columns.first().cloned().unwrap_or_default();
        first.into_iter().filter(|node| self.nodes[*node].is_adapter()).collect()
    }

    /// The mean of a series from one time to another, in picoseconds, over the bins whose middle lies
    /// between.
    pub fn mean_over(&self, series: &[f64], from_ps: u64, to_ps: u64) -> Option<f64> {
        let inside = |bin: &usize| {
            let ps = self.middle(*bin) * self.tau_ps();
            ps >= from_ps as f64 && ps < to_ps as f64
        };
        mean((0..series.len()).filter(inside).map(|bin| series[bin]))
    }
}

/// The mean of the values that are numbers.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let known = values.filter(|value| value.is_finite());
    let (sum, n) = known.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// The greatest of the values that are numbers, at least 0.
pub fn most<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().copied().fold(0.0, f64::max)
}

fn lateness(run: &Run, rows: &[FidelityRow]) -> Vec<f64> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut worst = vec![f64::NAN; run.bins];
    for row in rows {
        let bin = run.bin_at(row.t_ps + row.dt_ps / 2);
        let late = run.in_tau(row.late_ps_p99);
        if let Some(value) = worst.get_mut(bin) {
            *value = value.max(late);
        }
    }
    worst
}

/// The text of a file.
fn text(file: &Path) -> Result<String, ReportError> {
    std::fs::read_to_string(file)
        .map_err(|source| ReportError::Read { file: file.to_owned(), source })
}

/// A JSON file of a run directory.
pub(crate) fn json<T: DeserializeOwned>(file: &Path) -> Result<T, ReportError> {
    serde_json::from_str(&text(file)?).map_err(|error| content(file, error))
}

/// Calls `each` with every line of `events.jsonl`.
pub(crate) fn each_event(
    file: &Path,
    mut each: impl FnMut(&str) -> Result<(), serde_json::Error>,
) -> Result<(), ReportError> {
    let unread = |source| ReportError::Read { file: file.to_owned(), source };
    let log = BufReader::new(File::open(file).map_err(unread)?);
    for (place, line) in log.lines().enumerate() {
        let wrong = |error| content(file, format_args!("line {}: {error}", place + 1));
        each(&line.map_err(unread)?).map_err(wrong)?;
    }
    Ok(())
}

/// The error of a file that is not what a run writes.
fn content(file: &Path, why: impl Display) -> ReportError {
    ReportError::Content { file: file.to_owned(), why: why.to_string() }
}
