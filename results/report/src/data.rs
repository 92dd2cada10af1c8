//! A run directory, read back: the only input of the page.

use emulation::wiring::NodeKind;
use proto::technology::Technology;
use results::run_directory::result::RunResult;
use results::saturation::{BinTrees, Output, OutputState, Outputs};
use scenario::measure::value::Value;
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
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
    /// What it is; a host behind an attached interface is drawn as an adapter.
    #[serde(deserialize_with = "kind")]
    pub kind: NodeKind,
    /// 0 for adapters.
    pub level: u8,
}

impl Node {
    /// True for an adapter.
    pub fn is_adapter(&self) -> bool {
        self.kind == NodeKind::Nic
    }
}

/// Reads "nic", "switch" or "host".
fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<NodeKind, D::Error> {
    match String::deserialize(from)?.as_str() {
        "host" => Ok(NodeKind::Nic),
        word => NodeKind::deserialize(word.into_deserializer()),
    }
}

/// `topology.json`, with nodes by name.
#[derive(Deserialize)]
struct Topology {
    nodes: Vec<Node>,
    links: Vec<Link>,
    columns: Vec<Vec<String>>,
}

/// A cable of the fabric: its ends as `node:port`, and its rate in bit/s.
#[derive(Deserialize)]
struct Link {
    a: String,
    b: String,
    rate: u64,
    tech: Technology,
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

impl Envelope {
    /// No number in any bin.
    pub fn blank(bins: usize) -> Envelope {
        let none = vec![f64::NAN; bins];
        Envelope { min: none.clone(), mean: none.clone(), max: none }
    }
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
    /// Totals of the run.
    pub totals: Totals,
}

impl OutputSeries {
    /// No rows in any table.
    fn blank(bins: usize) -> OutputSeries {
        let none = || vec![f64::NAN; bins];
        let (queue, input) = (Envelope::blank(bins), Envelope::blank(bins));
        let totals = Totals::default();
        OutputSeries { hold: none(), pause: none(), sent: none(), queue, input, totals }
    }
}

/// Totals of a port over the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Data frames sent.
    pub frames: u64,
    /// Time held, on the lane that was held most in each bin.
    pub hold_ps: u64,
    /// Frames marked.
    pub marks: u64,
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
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Topology")]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Nodes from left to right in the unfolded picture.
    pub columns: Vec<Vec<usize>>,
    /// Both directions of every cable, one after the other.
    pub outputs: Vec<Output>,
    /// Line rate by output, bit/s.
    pub rates: Vec<u64>,
    /// The technology of all cables.
    pub technology: Technology,
}

impl TryFrom<Topology> for Graph {
    type Error = String;

    /// Resolves names to indices.
    fn try_from(topology: Topology) -> Result<Graph, String> {
        let Topology { nodes, links, columns } = topology;
        let places: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        let node = |name: &str| {
            places.get(name).copied().ok_or_else(|| format!("there is no node {name:?}"))
        };
        let of_end = |end: &str| node(end.rsplit_once(':').map_or(end, |(name, _)| name));
        let (mut outputs, mut rates) = (Vec::new(), Vec::new());
        for link in &links {
            for (name, far) in [(&link.a, &link.b), (&link.b, &link.a)] {
                let (from, to) = (of_end(name)?, of_end(far)?);
                let (level, far_level) = (nodes[from].level, nodes[to].level);
                outputs.push(Output { name: name.clone(), from, to, level, far_level });
                rates.push(link.rate);
            }
        }
        let columns = columns.iter().map(|names| names.iter().map(|n| node(n)).collect());
        let columns = columns.collect::<Result<Vec<Vec<usize>>, String>>()?;
        let technology = links.first().map_or(Technology::Infiniband, |link| link.tech);
        Ok(Graph { columns, outputs, rates, technology, nodes })
    }
}

impl Graph {
    /// The index of each output by its name, `node:port`.
    pub fn ports(&self) -> BTreeMap<String, usize> {
        let named = self.outputs.iter().enumerate();
        named.map(|(place, output)| (output.name.clone(), place)).collect()
    }

    /// The first output of a node; an adapter or a row of adapters has only one.
    pub fn output_of(&self, node: usize) -> Option<usize> {
        self.outputs.iter().position(|output| output.from == node)
    }
}

/// A run, from its files.
#[derive(Debug)]
pub struct Run {
    /// `run.json`.
    pub result: RunResult,
    /// The fabric.
    pub graph: Graph,
    /// Bins of the grid, at least one.
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
    /// p99 of lateness in frame times by bin, of the worst worker; empty on the virtual clock and where no port has
    /// a rate.
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
        let graph: Graph = json(&folder.join("topology.json"))?;
        let bins = result.grid.bins.max(1) as usize;
        let none = || vec![0.0; bins];
        let mut run = Run {
            series: vec![OutputSeries::blank(bins); graph.outputs.len()],
            received: vec![vec![f64::NAN; bins]; graph.nodes.len()],
            signals: Signals { marks: none(), notes: none(), drops: none() },
            flows: tables::all(&folder.join("flows.csv"))?,
            counters: tables::all(&folder.join("counters.csv"))?,
            scenario: text(&folder.join("scenario.toml"))?,
            throttles: BTreeMap::new(),
            log: EventLog::default(),
            lateness: Vec::new(),
            moments: Vec::new(),
            result,
            graph,
            bins,
        };
        tables::ports(&mut run, &folder.join("ports.csv"))?;
        tables::queues(&mut run, &folder.join("queues.csv"))?;
        tables::rates(&mut run, &folder.join("rates.csv"))?;
        if run.result.fidelity.lateness_p99_frames.is_some() {
            tables::lateness(&mut run, &folder.join("fidelity.csv"))?;
        }
        run.log = log::read(&run, &folder.join("events.jsonl"))?;
        let long_queue = run.result.saturation.long_queue_bytes;
        let outputs = Outputs::new(run.graph.outputs.clone(), long_queue);
        run.moments = (0..bins).map(|bin| outputs.trees(&run.states(bin))).collect();
        Ok(run)
    }

    fn states(&self, bin: usize) -> Vec<OutputState> {
        let number = |value: f64| if value.is_finite() { value } else { 0.0 };
        let state = |series: &OutputSeries| OutputState {
            hold: number(series.hold[bin]),
            queue: number(series.queue.mean[bin]),
            sent: number(series.sent[bin]),
        };
        self.series.iter().map(state).collect()
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
        ((ps / self.result.grid.dt_ps.max(1)) as usize).min(self.bins - 1)
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
        let first = self.graph.columns.iter().take(1).flatten().copied();
        first.filter(|node| self.graph.nodes[*node].is_adapter()).collect()
    }

    /// The mean of a series from one time to another, in picoseconds, over the bins whose middle lies
    /// between.
    pub fn mean_over(&self, series: &[f64], from_ps: u64, to_ps: u64) -> Option<f64> {
        let inside = |bin: &usize| {
            let ps = self.middle(*bin) * self.tau_ps();
            ps >= from_ps as f64 && ps < to_ps as f64
        };
        mean((0..series.len()).filter(inside).map(|bin| series[bin]), 0)
    }
}

/// The mean of the values that are numbers; of less than `among` the others count as zero.
pub fn mean(values: impl Iterator<Item = f64>, among: usize) -> Option<f64> {
    let known = values.filter(|value| value.is_finite());
    let (sum, n) = known.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    let among = among.max(n);
    (among > 0).then(|| sum / among as f64)
}

/// The greatest of the values that are numbers, at least 0.
pub fn most<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().copied().fold(0.0, f64::max)
}

/// The text of a file.
fn text(file: &Path) -> Result<String, ReportError> {
    io::read_to_string(open(file)?).map_err(|source| unread(file, source))
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
    for (place, line) in BufReader::new(open(file)?).lines().enumerate() {
        let line = line.map_err(|source| unread(file, source))?;
        each(&line).map_err(|error| content(file, format_args!("line {}: {error}", place + 1)))?;
    }
    Ok(())
}

fn open(file: &Path) -> Result<File, ReportError> {
    File::open(file).map_err(|source| unread(file, source))
}

fn unread(file: &Path, source: io::Error) -> ReportError {
    ReportError::Read { file: file.to_owned(), source }
}

/// The error of a file that has no valid content.
fn content(file: &Path, why: impl Display) -> ReportError {
    ReportError::Content { file: file.to_owned(), why: why.to_string() }
}
