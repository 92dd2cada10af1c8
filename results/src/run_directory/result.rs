//! `run.json`: the verdict and everything that leads to it (docs/spec/design.md 5).

use crate::latencies::Latencies;
use crate::lossless::LosslessDrops;
pub use crate::run_directory::clock::{ClockPiece, ClockPieces};
pub use crate::run_directory::conservation::{Conservation, OnCables};
use crate::run_directory::hosts::HostLine;
use crate::run_directory::{FileSummary, WriteError};
use crate::saturation::Saturation;
use crate::verdict::{Judgement, Measured, Verdict};
use crate::violations::Violations;
use emulation::fidelity::verdict::LATENESS_LIMIT;
use emulation::frame_tap::CaptureStatistics;
use emulation::recorder::Recording;
use emulation::recorder::event_log::LoggedEvent;
use emulation::wiring::End;
use proto::events::{DeviceEvent, EventKind};
use scenario::figures::Likeness;
use scenario::inventory::Fabric;
use scenario::measure::Measure;
use scenario::measure::value::Value;
use scenario::say::Said;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the format.
pub const SCHEMA: u32 = 1;

/// One run, as scripts outside the repository read it; the order of the fields is the file's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Source of its expectations.
    pub source: String,
    /// Its seed.
    pub seed: u64,
    /// `virtual`, `udp`, `netns` or `compose`.
    pub backend: String,
    /// Wall time over fabric time, at the start if it changed; null on the virtual clock and with exact pace.
    pub dilation: Option<u64>,
    /// The pieces of the clock, if a run with `dilate = "auto"` fell behind and stretched it; left out otherwise.
    #[serde(default, skip_serializing_if = "ClockPieces::is_empty")]
    pub pieces: ClockPieces,
    /// What a live run followed: `wall`, or `exact` if it equals a run of the virtual clock; left out on that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<String>,
    /// With exact pace: datagrams sent again because one was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<u64>,
    /// The congestion-control scheme.
    pub scheme: String,
    /// The verdict of the run.
    pub verdict: Verdict,
    /// All measures: a number, names in an order, or null with the reason in `events.jsonl`.
    pub measures: BTreeMap<String, Option<Value>>,
    /// Definition of each measure: quantity, place and window.
    #[serde(default)]
    pub definitions: BTreeMap<String, Definition>,
    /// The sentence of the scenario about the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<Said>,
    /// Published figures to compare the figures of its report with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Likeness>,
    /// All expectations with their results.
    pub expectations: Vec<Judgement>,
    /// Whether the host kept up.
    pub fidelity: Fidelity,
    /// The balance of frames.
    pub conservation: Conservation,
    /// Links by kind of cable.
    pub cables: BTreeMap<String, u64>,
    /// Fabric time of the run, seconds.
    pub fabric_seconds: f64,
    /// Facts that differ from host to host; everything else of a virtual run does not.
    pub host: Host,
    /// The other files of the run directory.
    pub files: BTreeMap<String, FileSummary>,
    /// The grid of the bins.
    pub grid: GridSummary,
    /// One MTU time of the default link, picoseconds.
    pub tau_ps: u64,
    /// The scenario's phases.
    pub phases: Vec<Phase>,
    /// The scheme's parameters and where they come from.
    pub parameters: Vec<Parameter>,
    /// The roots of congestion and the outputs that waited behind them.
    #[serde(default)]
    pub saturation: Saturation,
    /// Size of a switch's input buffer for each lane, octets, where links use credits; 0 where they do not.
    #[serde(default)]
    pub input_buffer_bytes: u64,
    /// Message latencies by class.
    pub completion: BTreeMap<String, Completion>,
    /// Datagrams and records from outside that the sockets refused, by reason; empty on the virtual
    /// clock, which has no sockets.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
    /// The captures, with the frames that they hold and those that they lost; left out if the scenario asks for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureStatistics>,
    /// Cycles of outputs that waited for each other; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlocks: Vec<DeadlockLine>,
    /// Alarms of headroom that was nearly used up; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headroom_alarms: Vec<HeadroomLine>,
    /// Frames of lossless lanes that congestion dropped; left out if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless_drops: Option<LosslessDrops>,
    /// Frames that broke a law of physics; left out if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations: Option<Violations>,
    /// Commands of hosts; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostLine>,
    /// What a reader may expect of the run and does not find, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The captures with at least one port, by file name: run directories of one run are alike wherever they stand.
pub fn captures(recordings: &[Recording]) -> Vec<CaptureStatistics> {
    let all = recordings.iter().filter_map(|recording| recording.capture.as_ref());
    let used = all.filter(|capture| !capture.interfaces.is_empty());
    let local = |capture: &CaptureStatistics| CaptureStatistics {
        file: capture.file.file_name().unwrap_or_default().into(),
        ..capture.clone()
    };
    used.map(local).collect()
}

/// An alarm: the first time that more than four fifths of a headroom were in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadroomLine {
    /// When, fabric picoseconds.
    pub at_ps: u64,
    /// Ingress port.
    pub port: String,
    /// The priority.
    pub tc: u8,
    /// Headroom in use, octets.
    pub used: u64,
    /// Size of the headroom, octets.
    pub headroom: u64,
}

/// All headroom alarms in the recordings, by time.
pub fn headroom_alarms(fabric: &Fabric, recordings: &[Recording]) -> Vec<HeadroomLine> {
    let events = recordings.iter().flat_map(|recording| &recording.events.events);
    let alarm = |logged: &LoggedEvent| {
        let DeviceEvent { at, port, tc, kind } = logged.event;
        let EventKind::HeadroomAlarm { used, headroom } = kind else { return None };
        let port = fabric.wiring.end_name(End { node: logged.node as usize, port });
        let (used, headroom) = (used.get(), headroom.get());
        Some(HeadroomLine { at_ps: at.as_ps(), port, tc, used, headroom })
    };
    let mut alarms: Vec<HeadroomLine> = events.filter_map(alarm).collect();
    alarms.sort_by_cached_key(|alarm| (alarm.at_ps, alarm.port.clone(), alarm.tc));
    alarms
}

/// The definition of a measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The quantity, or the name of a counter.
    pub of: String,
    /// The places, as the scenario names them.
    pub at: Vec<String>,
    /// Begin of the (first) window, picoseconds.
    pub from_ps: u64,
    /// Its end.
    pub to_ps: u64,
    /// The reduction of several values to one.
    pub reduce: String,
    /// The unit: `base`, `line` or `mtu`.
    pub per: String,
}

impl Definition {
    /// Of a measure.
    pub fn of(measure: &Measure) -> Definition {
        Definition {
            of: measure.of.word().to_owned(),
            at: measure.named.clone(),
            from_ps: measure.from.as_ps(),
            to_ps: measure.to.as_ps(),
            reduce: measure.reduce.word().to_owned(),
            per: measure.per.word().to_owned(),
        }
    }
}

/// A deadlock with names of outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlockLine {
    /// Instant of detection, fabric picoseconds.
    pub at_ps: u64,
    /// Instant at which one of the outputs moved again, if any.
    pub over_ps: Option<u64>,
    /// The lane or priority.
    pub tc: u8,
    /// The outputs, each waiting for the next and the last for the first.
    pub circle: Vec<String>,
}

/// Whether the host kept up (docs/spec/design.md 4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// True if it did.
    pub ok: bool,
    /// 99th percentile of lateness inside the measured windows, in frame times; null if only attached ports
    /// without a rate have sent.
    pub lateness_p99_frames: Option<f64>,
    /// Frames that the sockets lost.
    pub transport_lost: u64,
    /// The dilation with which the host should keep up; null on the virtual clock.
    pub suggested_dilation: Option<u64>,
}

impl Fidelity {
    /// The value for the virtual clock, where nothing is late.
    pub const VIRTUAL: Fidelity = Fidelity {
        ok: true,
        lateness_p99_frames: Some(0.0),
        transport_lost: 0,
        suggested_dilation: None,
    };

    /// Whether lateness decided about the run. Beside hosts and interfaces, whose clock nothing slows, it is only shown.
    pub fn judges_lateness(&self) -> bool {
        let limit = LATENESS_LIMIT as f64 / 1_000.0;
        !self.ok || self.lateness_p99_frames.is_some_and(|late| late <= limit)
    }
}

/// The host and the programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Duration of the run, wall seconds.
    pub wall_seconds: f64,
    /// Frames of any kind over links for each wall second.
    pub frame_hops_per_s: u64,
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from.
    pub commit: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Versions of the other programs involved.
    pub versions: BTreeMap<String, String>,
    /// Command line of the run.
    pub command: String,
}

/// The grid of bins that all tables share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridSummary {
    /// Where it begins, picoseconds.
    pub t0_ps: u64,
    /// Nominal width of a bin, picoseconds.
    pub dt_ps: u64,
    /// Number of bins.
    pub bins: u64,
}

impl GridSummary {
    /// The grid of the recording with the most bins; all workers of a run share the width.
    pub fn of(recordings: &[Recording]) -> GridSummary {
        let longest = recordings.iter().max_by_key(|recording| recording.grid.slots.len());
        GridSummary {
            t0_ps: 0,
            dt_ps: longest.map_or(0, |recording| recording.grid.width.as_ps()),
            bins: longest.map_or(0, |recording| recording.grid.slots.len() as u64),
        }
    }
}

/// A phase of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it begins, picoseconds.
    pub from_ps: u64,
    /// When it ends, picoseconds.
    pub to_ps: u64,
}

/// One parameter, its source, and how it follows from the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name in the standard's words.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// Source of the value.
    pub source: String,
    /// How it follows from there.
    pub standing: Standing,
    /// The source's value, where ours differs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_value: Option<String>,
}

/// How a value follows from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The source states the value.
    Stated,
    /// The value follows from the source.
    Derived,
    /// The value is an interpretation of the source.
    Reading,
    /// The value differs from the source on purpose.
    Differs,
    /// The scenario does not set it: the default of the program.
    Default,
}

/// Completion times of one class of messages, from posting to delivery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Messages delivered.
    pub messages: u64,
    /// Messages not delivered at the end: without them the distribution would mislead.
    pub unfinished: u64,
    /// Quantiles in nanoseconds (`p1 p25 p50 p75 p99 max`); none without messages.
    pub quantiles_ns: BTreeMap<String, u64>,
}

impl RunResult {
    /// Whether the captures that the scenario asks for hold every frame that passed.
    pub fn is_captured(&self) -> bool {
        self.captures.iter().all(CaptureStatistics::is_whole)
    }

    /// What drove the devices, for people: the virtual clock, or a backend with exact pace. `None` on the wall clock.
    pub fn exact_clock(&self) -> Option<String> {
        match (&self.pace, self.dilation) {
            (_, Some(_)) => None,
            (Some(pace), None) => Some(format!("{}, {pace} pace", self.backend)),
            (None, None) => Some("virtual clock".to_owned()),
        }
    }

    /// The completion of the traffic items, `burst.1`, `burst.2`, … as one `burst`: messages add,
    /// quantiles are the worst of them. Items without messages are left out.
    pub fn completions(&self) -> BTreeMap<String, Completion> {
        let mut merged: BTreeMap<String, Completion> = BTreeMap::new();
        let used = self.completion.iter().filter(|(_, c)| c.messages > 0 || c.unfinished > 0);
        for (item, completion) in used {
            let (stem, number) = item.rsplit_once('.').unwrap_or((item, ""));
            let is_repeated = number.parse::<u32>().is_ok();
            let into = merged.entry(if is_repeated { stem } else { item }.to_owned()).or_default();
            into.messages += completion.messages;
            into.unfinished += completion.unfinished;
            for (quantile, ns) in &completion.quantiles_ns {
                let worst = into.quantiles_ns.entry(quantile.clone()).or_default();
                *worst = (*worst).max(*ns);
            }
        }
        merged
    }
}

/// The completion of every traffic item at the stop. A flow that several items share counts its
/// unfinished messages under the first.
pub fn completion(fabric: &Fabric, recordings: &[Recording]) -> BTreeMap<String, Completion> {
    let mut latencies: BTreeMap<u16, Latencies> = BTreeMap::new();
    let mut unfinished: BTreeMap<u16, u64> = BTreeMap::new();
    for recording in recordings {
        for (node, reading) in recording.nodes.iter().zip(&recording.last) {
            for latency in &reading.latencies {
                latencies.entry(latency.item).or_default().add(latency, 1);
            }
            for flow in &reading.flows {
                let own = flow.items.first().map(|item| usize::from(*item));
                let item = own.and_then(|own| fabric.items.get(*node)?.get(own)).copied();
                let open = flow.messages.saturating_sub(flow.completed + flow.withdrawn);
                *unfinished.entry(item.unwrap_or(u16::MAX)).or_default() += open;
            }
        }
    }
    let items: std::collections::BTreeSet<u16> =
        latencies.keys().chain(unfinished.keys()).copied().collect();
    let mut classes: BTreeMap<String, Completion> = BTreeMap::new();
    for item in items.into_iter().filter(|item| *item != u16::MAX) {
        let latencies = latencies.remove(&item).unwrap_or_default();
        let quantile = |n, of| latencies.quantile_ns(n, of).map(|ns| ns.round() as u64);
        let named = [
            ("p1", quantile(1, 100)),
            ("p25", quantile(25, 100)),
            ("p50", quantile(50, 100)),
            ("p75", quantile(75, 100)),
            ("p99", quantile(99, 100)),
            ("max", latencies.max_ns().map(|ns| ns as u64)),
        ];
        let known = named.into_iter().filter_map(|(name, ns)| Some((name.to_owned(), ns?)));
        let completion = Completion {
            messages: latencies.messages(),
            unfinished: unfinished.get(&item).copied().unwrap_or(0),
            quantiles_ns: known.collect(),
        };
        classes.insert(fabric.traffic_name(item), completion);
    }
    classes
}

/// The measures as the file has them; a value that is not a number is null.
pub fn flat(measures: &[Measured]) -> BTreeMap<String, Option<Value>> {
    let value =
        |value: &Result<Value, String>| value.as_ref().ok().cloned().filter(Value::is_finite);
    measures.iter().map(|(name, result)| (name.clone(), value(result))).collect()
}

/// The verdict of a run: inconclusive if the host did not keep up, whatever the measures are.
pub fn verdict(
    fidelity: &Fidelity,
    expectations: &[Judgement],
    lost: Option<&LosslessDrops>,
) -> Verdict {
    let judged = expectations.iter().map(|judged| judged.verdict);
    match fidelity.ok {
        true => Verdict::worst(judged.chain(lost.map(|drops| drops.verdict(true)))),
        false => Verdict::Inconclusive,
    }
}

/// Writes `run.json` into `folder`.
///
/// # Errors
/// If it cannot be written.
pub fn write(folder: &Path, result: &RunResult) -> Result<(), WriteError> {
    let file = folder.join("run.json");
    let text = serde_json::to_string_pretty(result).map_err(std::io::Error::from);
    let written = text.and_then(|text| std::fs::write(&file, text + "\n"));
    written.map_err(|source| WriteError { file, source })
}
