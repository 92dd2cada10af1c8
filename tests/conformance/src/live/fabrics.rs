//! Whole fabrics through the ordinary launcher: an incast, and a hot spot with and without control.

use super::cached::Cached;
use super::{Star, dilation, stage};
use crate::case::{Failure, Finding, ensure, same};
use capture::reader::{CaptureReader, CapturedFrame, ReadError};
use launch::experiment::{Conditions, Experiment, ExperimentError};
use launch::substrate;
use proto::counters::{DeviceReading, LaneCounters};
use proto::events::Direction;
use scenario::Scenario;
use scenario::run::Backend;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A fabric's run and what was captured of it. Cases share a run for as long as the process lasts, so its folder
/// is gone by then: nobody would remove it later.
#[derive(Debug)]
pub struct Fabric {
    /// The run.
    pub experiment: Experiment,
    /// Its captures, each as the file was.
    captures: Vec<Vec<u8>>,
}

impl Fabric {
    /// Runs the scenario `text` at `profile` times the dilation that the environment asks for.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn run(text: &str, profile: u64) -> Result<Fabric, Failure> {
        Fabric::on(Backend::Udp, text, profile)
    }

    /// The same on another substrate.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn on(backend: Backend, text: &str, profile: u64) -> Result<Fabric, Failure> {
        let scenario = Scenario::parse(text, &[]);
        let scenario = scenario.map_err(|faults| faults.in_file("a live case"))?;
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| Failure::Inconclusive(error.to_string()))?;
        let conditions = Conditions {
            substrate: substrate(backend),
            dilation: dilation(profile),
            threads: 1,
            folder: Some(folder.path()),
            command: "pausebed check".to_owned(),
            injections: Vec::new(),
        };
        let run = Experiment::run(&scenario, conditions, &mut |_| {});
        let experiment = run.map_err(|error| match error {
            ExperimentError::Launch(error) => stage::died(error),
            other => Failure::Inconclusive(other.to_string()),
        })?;
        Ok(Fabric { experiment, captures: captures_in(folder.path())? })
    }

    /// Whether the host kept up.
    pub fn holds(&self) -> bool {
        self.experiment.result.fidelity.ok
    }

    /// The run, if the host kept up.
    ///
    /// # Errors
    /// Why it did not.
    pub fn trusted(&self) -> Result<&Experiment, Failure> {
        if self.holds() {
            return Ok(&self.experiment);
        }
        Err(Failure::Inconclusive(self.experiment.outcome.reasons.join("; ")))
    }

    /// A measure of the run.
    ///
    /// # Errors
    /// If it has no value.
    pub fn measure(&self, name: &str) -> Result<f64, Failure> {
        let value = self.experiment.result.measures.get(name).and_then(Option::as_ref);
        let value = value.and_then(scenario::measure::value::Value::number);
        value.ok_or_else(|| Failure::Failed(format!("{name} has no value")))
    }

    /// The last reading of a node.
    pub fn reading(&self, name: &str) -> Option<&DeviceReading> {
        let nodes = &self.experiment.lab.fabric.wiring.nodes;
        let node = nodes.iter().position(|node| node.name == name)?;
        let recordings = self.experiment.outcome.recordings.iter();
        let mut all = recordings.flat_map(|one| one.nodes.iter().zip(&one.last));
        all.find(|(other, _)| **other == node).map(|(_, reading)| reading)
    }

    /// Totals of one port, over its lanes.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn totals(&self, node: &str, port: usize) -> Result<LaneCounters, Failure> {
        let reading = self.reading(node).and_then(|reading| reading.ports.get(port - 1));
        let reading = reading.ok_or_else(|| format!("no reading of {node}:{port}"))?;
        let mut sum = LaneCounters::default();
        for lane in &reading.lanes {
            sum.tx_frames += lane.counters.tx_frames;
            sum.rx_frames += lane.counters.rx_frames;
            sum.ctl_tx += lane.counters.ctl_tx;
            sum.ctl_rx += lane.counters.ctl_rx;
        }
        Ok(sum)
    }

    /// Every captured frame of one port and way, in the order of its file.
    ///
    /// # Errors
    /// If a capture cannot be read to its end.
    pub fn captured(&self, port: &str, way: Direction) -> Result<Vec<CapturedFrame>, Failure> {
        let mut found = Vec::new();
        let say = |error: ReadError| Failure::Failed(format!("a capture: {error}"));
        for octets in &self.captures {
            for frame in CaptureReader::new(octets.as_slice()).map_err(say)? {
                let frame = frame.map_err(say)?;
                // Link packets have an interface of their own beside the port's.
                let name = frame.interface.as_deref().unwrap_or_default();
                let here =
                    name.strip_prefix(port).is_some_and(|rest| rest.is_empty() || rest == "/link");
                if here && frame.direction == Some(way) {
                    found.push(frame);
                }
            }
        }
        Ok(found)
    }
}

/// How long the incast lasts, and how long it may take to drain. Units: seconds.
const INCAST: (u64, u64) = (30, 1);
const SOURCES: usize = 3;

/// Three adapters at full rate to one port, two captures of the frames there.
pub static RUN: Cached<Fabric> = Cached::new(incast, Fabric::holds);

fn incast() -> Result<Fabric, Failure> {
    let (length, drain) = INCAST;
    let rest = format!(
        "[[traffic]]\nname = \"incast\"\nfrom = \"h[1-3]\"\nto = \"h4\"\narrivals = \"backlog\"\n\
         size = \"2048 B\"\ntransport = \"rc\"\nstop = \"{length} s\"\n\
         [[measure]]\nname = \"egress\"\nof = \"throughput\"\nat = \"h4:rx\"\nfrom = \"1 s\"\n\
         to = \"{length} s\"\nreduce = \"mean\"\nper = \"line\"\n"
    );
    let text = Star {
        nics: 4,
        duration: &format!("{} s", length + drain),
        run: "capture = [\"s0:4\", \"h4:1\"]\nsnaplen = \"64 B\"",
        rest: &rest,
        ..Star::PROFILE
    }
    .text();
    Fabric::run(&text, 1)
}

/// The captures of a run directory.
fn captures_in(folder: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let say = |error: std::io::Error| Failure::Failed(format!("a capture: {error}"));
    let entries = std::fs::read_dir(folder).map_err(say)?.flatten().map(|entry| entry.path());
    let is_capture = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "pcapng");
    entries.filter(is_capture).map(|file| std::fs::read(file).map_err(say)).collect()
}

/// Sequence numbers of the incast's data as they reached h4, by source; cut frames have their headers.
fn arrivals(fabric: &Fabric) -> Result<BTreeMap<u16, Vec<u32>>, Failure> {
    let mut by_source: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for frame in fabric.captured("h4:1", Direction::Rx)? {
        let octets = &frame.frame.octets;
        // A link packet is shorter; an acknowledgement never goes this way.
        if octets.len() < 20 {
            continue;
        }
        let source = u16::from_be_bytes([octets[6], octets[7]]);
        let psn = u32::from_be_bytes([0, octets[17], octets[18], octets[19]]);
        by_source.entry(source).or_default().push(psn);
    }
    Ok(by_source)
}

/// IBFC-13.
pub fn incast_without_loss() -> Finding {
    let fabric = RUN.get()?;
    let experiment = fabric.trusted()?;
    let lost: u64 = experiment.result.conservation.dropped.values().sum();
    same("frames dropped", lost, 0)?;
    same("sources heard", arrivals(&fabric)?.len(), SOURCES)?;
    let frames = in_order(&fabric)?;
    let busy = fabric.measure("egress")?;
    ensure(busy >= 0.97, || format!("the port was busy for {busy:.3} of the time"))?;
    Ok(format!(
        "{} s: {frames} frames, each once and in order, 0 dropped, port {busy:.3} busy",
        INCAST.0
    ))
}

/// Every frame of every source once and in order; how many.
fn in_order(fabric: &Fabric) -> Result<usize, Failure> {
    let mut frames = 0;
    for (source, numbers) in arrivals(fabric)? {
        let first = numbers.first().copied().unwrap_or(0);
        let step = numbers.iter().zip(first..).find(|(psn, due)| *psn != due);
        if let Some((psn, due)) = step {
            return Err(Failure::Failed(format!(
                "LID {source}: {psn} arrived where {due} was due"
            )));
        }
        frames += numbers.len();
    }
    Ok(frames)
}

/// FID-04.
pub fn order() -> Finding {
    let fabric = RUN.get()?;
    fabric.trusted()?;
    let frames = in_order(&fabric)?;
    let reading = fabric.reading("h4").ok_or_else(|| "no reading of h4".to_owned())?;
    let reordered: u64 = reading.receptions.iter().map(|flow| flow.reordered).sum();
    same("frames counted as reordered", reordered, 0)?;
    Ok(format!("{frames} frames of 3 flows in {} s, none twice, none out of order", INCAST.0))
}

/// FID-01.
pub fn conservation() -> Finding {
    let fabric = RUN.get()?;
    let experiment = fabric.trusted()?;
    let sum = &experiment.result.conservation;
    ensure(sum.closes(), || format!("{sum:?} does not close"))?;
    same("frames standing anywhere at the end", sum.buffered, 0)?;
    let switch = |of: fn(&LaneCounters) -> u64| {
        (1..=4).map(|port| fabric.totals("s0", port).map(|sum| of(&sum))).sum::<Result<u64, _>>()
    };
    let (came, left) = (switch(|sum| sum.rx_frames)?, switch(|sum| sum.tx_frames)?);
    same("data frames that left s0", left, came)?;
    for port in 1..=4 {
        let (near, far) = (fabric.totals("s0", port)?, fabric.totals(&format!("h{port}"), 1)?);
        same(format!("data received from s0:{port}"), far.rx_frames, near.tx_frames)?;
        same(format!("data received at s0:{port}"), near.rx_frames, far.tx_frames)?;
    }
    same("frames lost by the cables", experiment.result.fidelity.transport_lost, 0)?;
    Ok(format!(
        "injected {} = delivered {} + buffered 0 + dropped 0; s0: {came} in, {left} out; 4 links agree",
        sum.injected, sum.delivered
    ))
}

/// FID-13, the faithful half: at full load every frame of a port is in the capture, once.
///
/// # Errors
/// If a count, a length or a time stamp is not as it must be.
pub fn capture_of_everything() -> Finding {
    let fabric = RUN.get()?;
    let experiment = fabric.trusted()?;
    let statistics = experiment.outcome.recordings.iter().filter_map(|one| one.capture.as_ref());
    let dropped: u64 = statistics.flat_map(|one| &one.interfaces).map(|port| port.dropped).sum();
    same("frames that the capture dropped", dropped, 0)?;
    let mut frames = 0;
    for (node, port, way) in [("s0", 4, Direction::Tx), ("h4", 1, Direction::Rx)] {
        let all = fabric.captured(&format!("{node}:{port}"), way)?;
        let counted = fabric.totals(node, port)?;
        let (data, other) = match way {
            Direction::Tx => (counted.tx_frames, counted.ctl_tx),
            Direction::Rx => (counted.rx_frames, counted.ctl_rx),
        };
        same(format!("frames captured at {node}:{port}"), all.len() as u64, data + other)?;
        let whole = all.iter().filter(|frame| frame.wire_size == 2074).count() as u64;
        same(format!("of which full frames at {node}:{port}"), whole, data)?;
        let ascending = all.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
        ensure(ascending, || format!("time stamps of {node}:{port} run back"))?;
        frames += all.len();
    }
    Ok(format!("{frames} frames at full load: as many as counted, original lengths, in time order"))
}

/// Half of the network's load to one node; of algorithms.md 10.1, case 4, with 8 nodes.
const HOT_SPOT: &str = r#"
schema = 1
name = "hot-spot"
source = "Pfister et al., section VI.A, 8 nodes, case 4"
[run]
seed = 7
duration = "4000 mtu"
backend = "udp"
[fabric]
shape = "xgft"
m = [2, 4]
w = [1, 2]
link = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
[[traffic]]
name = "cold"
from = "h[0-6]"
to = "uniform"
load = 0.55
[[traffic]]
name = "hot"
from = "h[0-6]"
to = "h7"
load = 0.35
[[traffic]]
name = "hot-node"
from = "h7"
to = "uniform"
load = 0.9
[[measure]]
name = "hot"
of = "throughput"
at = "h7:rx"
from = "2500 mtu"
to = "4000 mtu"
reduce = "mean"
per = "line"
[[measure]]
name = "cold"
of = "throughput"
at = "h[0-6]:rx"
from = "2500 mtu"
to = "4000 mtu"
reduce = "mean"
per = "line"
"#;

/// As in topo/scenarios/pfister/eight-ib-cca.toml.
const CONTROLLED: &str = "[scheme]\nkind = \"ib-cca\"\nthreshold = 1\nmarking_rate = 0\n\
    scope = \"queue-pair\"\nbecn = \"ack\"\nccti_increase = 5\nccti_limit = 127\nccti_timer = 7\n\
    cct = \"linear\"\ncct_max_ipd = 7\n";

/// At 8 Gb/s a full frame lasts 2.07 µs; slowed down so, 1.66 ms.
const EIGHT_GIGABITS: u64 = 800;

static WITHOUT: Cached<Fabric> =
    Cached::new(|| Fabric::run(HOT_SPOT, EIGHT_GIGABITS), Fabric::holds);
static WITH: Cached<Fabric> =
    Cached::new(|| Fabric::run(&format!("{HOT_SPOT}{CONTROLLED}"), EIGHT_GIGABITS), Fabric::holds);

/// IBCC-16.
pub fn hot_spot() -> Finding {
    const POINTS: f64 = 0.05;
    let (without, with) = (WITHOUT.get()?, WITH.get()?);
    without.trusted()?;
    with.trusted()?;
    let (hot, cold) = (with.measure("hot")?, with.measure("cold")?);
    let saturated = without.measure("cold")?;
    ensure(cold >= 0.9 * 0.6 - POINTS, || format!("with control cold ports carry {cold:.3}"))?;
    ensure(hot >= 0.9 - POINTS, || format!("with control the hot port carries {hot:.3}"))?;
    ensure(saturated < 0.75 * cold + POINTS, || {
        format!("without control cold ports carry {saturated:.3}, with it {cold:.3}: no tree")
    })?;
    Ok(format!(
        "with control hot {hot:.3}, cold {cold:.3} (owed 0.600); without cold {saturated:.3}"
    ))
}
