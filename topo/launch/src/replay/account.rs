//! The fate of the frames of a replay.
//!
//! The capture of the node's ports shows where frames left: octet for octet as injected, except for what a switch
//! may change (lane, FECN, VCRC; CE and the IPv4 checksum). The counters of the devices show where frames were
//! lost; they include losses of other traffic.

use super::Feed;
use crate::experiment::Experiment;
use capture::reader::{CaptureReader, ReadError};
use emulation::frame_tap::CaptureStatistics;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::VirtualLane;
use proto::wire::infiniband::{set_fecn, set_virtual_lane};
use proto::wire::internet::mark_congestion;
use results::run_directory::result::Conservation;
use results::verdict::Verdict;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The result of a replay, as `--json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// Number of this format.
    pub schema: u32,
    /// The capture that was fed.
    pub file: PathBuf,
    /// The port it was fed to.
    pub at: String,
    /// The scenario's name.
    pub scenario: String,
    /// The name of the substrate.
    pub backend: String,
    /// Wall time over fabric time; null on the virtual clock.
    pub dilation: Option<u64>,
    /// Whether the scenario's expectations were met, frames add up, and the host kept up.
    pub verdict: Verdict,
    /// Frames fed.
    pub fed: u64,
    /// Packets of the file that were not, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Frames of which at least one copy left the node.
    pub left: u64,
    /// Copies that left, by port.
    pub left_by: BTreeMap<String, u64>,
    /// Frames lost at the port of the injection, by reason.
    pub ended: BTreeMap<String, u64>,
    /// Frames lost elsewhere, by port and reason.
    pub ended_beyond: BTreeMap<String, BTreeMap<String, u64>>,
    /// Frames delivered, by node; with those of other traffic.
    pub delivered: BTreeMap<String, u64>,
    /// Injected frames that neither left nor were lost. More than are buffered is an error.
    pub inside: u64,
    /// All frames of the run.
    pub conservation: Conservation,
    /// Whether every frame is accounted for.
    pub accounted: bool,
    /// Why the host did not keep up, one sentence each.
    pub reasons: Vec<String>,
    /// The dilation that should hold on this host; null on the virtual clock.
    pub suggested_dilation: Option<u64>,
    /// Frames that the capture dropped: then the other figures are too small.
    pub capture_dropped: u64,
    /// The capture of the node's ports, if it was kept.
    pub capture: Option<PathBuf>,
}

/// The ports where frames left, found in a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Exits {
    /// Frames of which at least one copy left.
    frames: u64,
    /// Copies by port.
    by_port: BTreeMap<String, u64>,
}

impl Account {
    /// The result of `experiment`, in which `feed` from `file` was injected.
    ///
    /// # Errors
    /// If the capture of the run cannot be read.
    pub fn of(feed: &Feed, file: &Path, experiment: &Experiment) -> Result<Account, ReadError> {
        let (result, lab) = (&experiment.result, &experiment.lab);
        let wiring = &lab.fabric.wiring;
        let node = &wiring.nodes[feed.at.node].name;
        let mut exits = Exits::default();
        let mut capture_dropped = 0;
        for capture in captures(experiment) {
            exits.trace(feed, node, &capture.file)?;
            capture_dropped += capture.dropped();
        }
        let mut losses = losses(experiment);
        let at = wiring.end_name(feed.at);
        let ended = losses.remove(&at).unwrap_or_default();
        let fed = feed.frames.len() as u64;
        let delivered = delivered(experiment);
        // A NIC receives frames; a switch forwards them.
        let taken = delivered.get(node).copied().unwrap_or(0);
        let found = exits.frames + taken + ended.values().sum::<u64>();
        let inside = fed.saturating_sub(found);
        let closes = result.conservation.closes();
        Ok(Account {
            schema: 1,
            file: file.to_owned(),
            at,
            scenario: result.scenario.clone(),
            backend: result.backend.clone(),
            dilation: result.dilation,
            verdict: result.verdict,
            fed,
            skipped: feed.skipped.clone(),
            left: exits.frames,
            left_by: exits.by_port,
            delivered,
            ended,
            ended_beyond: losses,
            inside,
            accounted: closes && (capture_dropped > 0 || inside <= result.conservation.buffered),
            conservation: result.conservation.clone(),
            reasons: experiment.outcome.reasons.clone(),
            suggested_dilation: result.fidelity.suggested_dilation,
            capture_dropped,
            capture: None,
        })
    }
}

/// The captures with at least one port, by process.
pub fn captures(experiment: &Experiment) -> impl Iterator<Item = &CaptureStatistics> {
    let recordings = experiment.outcome.recordings.iter();
    recordings
        .filter_map(|recording| recording.capture.as_ref())
        .filter(|capture| !capture.interfaces.is_empty())
}

/// End-to-end losses by port and reason.
fn losses(experiment: &Experiment) -> BTreeMap<String, BTreeMap<String, u64>> {
    let wiring = &experiment.lab.fabric.wiring;
    let mut losses: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for recording in &experiment.outcome.recordings {
        for (node, reading) in recording.nodes.iter().zip(&recording.last) {
            for (index, port) in reading.ports.iter().enumerate() {
                let name = || wiring.end_name(scenario::topology::end(*node, index));
                let lost = port.drops.iter().filter(|(why, n)| why.is_end_to_end() && *n > 0);
                for (reason, n) in lost {
                    losses.entry(name()).or_default().insert(reason.name().to_owned(), n);
                }
            }
        }
    }
    losses
}

/// Frames delivered, by node.
fn delivered(experiment: &Experiment) -> BTreeMap<String, u64> {
    let recordings = experiment.outcome.recordings.iter();
    let readings = recordings.flat_map(|one| one.nodes.iter().zip(&one.last));
    readings
        .filter(|(_, last)| last.balance.delivered > 0)
        .map(|(node, last)| {
            let name = experiment.lab.fabric.node_name(*node);
            (name.to_owned(), last.balance.delivered)
        })
        .collect()
}

/// The part of a packet that no switch changes.
fn invariant_part(frame: &Frame) -> Vec<u8> {
    const VCRC: usize = 2;
    let mut octets = frame.octets.to_vec();
    if frame.kind == FrameKind::Ethernet {
        // With the mark set, marked and unmarked copies are equal.
        mark_congestion(&mut octets);
        return octets;
    }
    set_virtual_lane(&mut octets, VirtualLane::truncate(0));
    set_fecn(&mut octets);
    octets.truncate(octets.len().saturating_sub(VCRC));
    octets
}

impl Exits {
    /// Finds the frames of `feed` among those that left `node` in the capture `file`.
    fn trace(&mut self, feed: &Feed, node: &str, file: &Path) -> Result<(), ReadError> {
        // The capture may contain the same frame several times, and each leaves once for each port.
        let mut fed: HashMap<Vec<u8>, u64> = HashMap::new();
        feed.frames
            .iter()
            .for_each(|(_, frame)| *fed.entry(invariant_part(frame)).or_default() += 1);
        let mut seen: HashMap<Vec<u8>, BTreeMap<String, u64>> = HashMap::new();
        for captured in CaptureReader::new(BufReader::new(File::open(file)?))? {
            let captured = captured?;
            let port = captured.interface.as_deref().unwrap_or_default();
            let here = port.rsplit_once(':').is_some_and(|(name, _)| name == node);
            let sent = captured.direction == Some(Direction::Tx);
            if !here || !sent || captured.frame.kind == FrameKind::InfinibandLink {
                continue;
            }
            let part = invariant_part(&captured.frame);
            if fed.contains_key(&part) {
                *seen.entry(part).or_default().entry(port.to_owned()).or_default() += 1;
            }
        }
        for (part, ports) in seen {
            self.frames += ports.values().copied().max().unwrap_or(0).min(fed[&part]);
            for (port, copies) in ports {
                *self.by_port.entry(port).or_default() += copies;
            }
        }
        Ok(())
    }
}
