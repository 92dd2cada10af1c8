//! The recorder: reads devices at bin edges and at measuring edges, within bounded memory.
//!
//! Bins and edge readings come from the same counters but serve different purposes. Bins are for pictures: sums
//! and envelopes on one grid that coarsens as the run grows ([`bins`]). Edge readings are for measures: taken
//! exactly at the instants and to the depth that the plan states. They do not reset watermarks, so bins
//! do not depend on what is measured.
//!
//! Each worker has one recorder. The record of a fabric is a slice of [`Recording`]s, which readers combine by
//! node.

use crate::frame_tap::{CaptureStatistics, FrameTap};
use crate::observer::{Observer, Passage};
use crate::recorder::bins::{Closed, FlowBin, Grid, PortBin, Series};
use crate::recorder::event_log::{EventLogger, RecordedEvents};
use crate::recorder::holds::{HoldTracker, Holds};
use crate::recorder::snapshot::{BinSnapshot, WAITING_MAX};
use crate::recorder::tracks::Tracks;
use crate::wiring::{End, Wiring};
use proto::counters::{BinReading, DeviceReading, FlowId};
use proto::device::{Depth, Device};
use proto::events::DeviceEvent;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

pub mod bins;
pub mod event_log;
pub mod holds;
mod ledger;
mod merge;
pub mod snapshot;
mod tracks;

pub use tracks::FLOWS_MAX;

/// What to record, fixed before a run starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingPlan {
    /// The serialization time of one MTU at the rate of the default link.
    pub tau: Duration,
    /// When the run ends.
    pub stop: Instant,
    /// Width of a bin at the start. Bins merge when a series is full.
    pub bin: Duration,
    /// Edges of measuring windows, ascending; a reading is kept for each.
    pub edges: Vec<Edge>,
    /// Windows whose departures count for fidelity, ascending and disjoint.
    pub measured: Vec<(Instant, Instant)>,
    /// Keep every event in full, without bounds.
    pub all_events: bool,
    /// Suffixes of the names of those `named` counters that are kept at edges.
    #[serde(default)]
    pub named: Vec<String>,
    /// Send a snapshot of each bin while the run lasts.
    #[serde(default)]
    pub watched: bool,
}

/// An edge of a measuring window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edge {
    /// When.
    pub at: Instant,
    /// How deep devices are read then.
    pub depth: Depth,
}

/// A reading at a measuring edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeReading {
    /// The planned instant.
    pub edge: Instant,
    /// When it was really taken; later than planned only if a live worker was late.
    pub taken: Instant,
    /// By node of this worker, in the order of its nodes. Without what the plan does not ask for at this edge,
    /// `named` counters that no measure needs, and the items of flows.
    pub devices: Vec<DeviceReading>,
}

/// Everything one worker recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The worker's nodes, as indexes into [`Wiring::nodes`].
    pub nodes: Vec<usize>,
    /// When the run ended.
    pub stopped: Instant,
    /// Readings at measuring edges, ascending.
    pub edges: Vec<EdgeReading>,
    /// Complete readings at the stop, in the order of `nodes`.
    pub last: Vec<DeviceReading>,
    /// The times of all bins.
    pub grid: Grid,
    /// Ports and queues, by node, port and lane.
    pub ports: Vec<PortSeries>,
    /// Flows whose reaction point has left its neutral state, at most [`FLOWS_MAX`].
    pub flows: Vec<FlowSeries>,
    /// All other flows, by class.
    pub pools: Vec<PoolSeries>,
    /// Events of the worker's devices.
    pub events: RecordedEvents,
    /// Outputs that were held for several bins.
    pub holds: Holds,
    /// The account of the capture, if there was one.
    pub capture: Option<CaptureStatistics>,
}

/// The bins of one lane of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSeries {
    /// The port.
    pub at: End,
    /// Virtual lane or priority.
    pub tc: u8,
    /// The bins.
    pub bins: Series<PortBin>,
}

/// The bins of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSeries {
    /// The flow.
    pub flow: FlowId,
    /// Its bins, from the one in which the reaction point first left its neutral state.
    pub bins: Series<FlowBin>,
}

/// The bins of all flows of one class that have no series of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSeries {
    /// The connection class.
    pub class: u8,
    /// The bins; `weight_ps` sums over the flows.
    pub bins: Series<FlowBin>,
}

/// Records the devices of one worker.
pub struct Recorder {
    plan: RecordingPlan,
    nodes: Vec<usize>,
    /// Number of threads that read devices.
    readers: usize,
    grid: Grid,
    bin_due: Instant,
    edges: Vec<EdgeReading>,
    tracks: Tracks,
    events: EventLogger,
    holds: HoldTracker,
    /// Buffer for reading one device's bin after the other.
    reading: BinReading,
    pub(crate) tap: Option<Box<dyn FrameTap>>,
    listener: Option<SyncSender<BinSnapshot>>,
}

impl Recorder {
    /// A recorder for the devices that are `nodes` of `wiring`, in the order of the slice of devices passed to
    /// its methods.
    pub fn new(plan: RecordingPlan, wiring: &Wiring, nodes: Vec<usize>) -> Recorder {
        let sizes = || nodes.iter().map(|node| (*node, usize::from(wiring.nodes[*node].ports)));
        let grid = Grid::new(plan.bin);
        Recorder {
            bin_due: grid.next_edge(),
            grid,
            edges: Vec::with_capacity(plan.edges.len()),
            tracks: Tracks::new(sizes()),
            events: EventLogger::new(sizes(), plan.all_events),
            holds: HoldTracker::new(sizes()),
            reading: BinReading::default(),
            tap: None,
            listener: None,
            plan,
            nodes,
            readers: 1,
        }
    }

    /// Uses `threads` threads to read devices. The recording does not depend on it.
    pub fn on_threads(self, threads: usize) -> Recorder {
        Recorder { readers: threads, ..self }
    }

    /// Also shows frames to `tap`, which was made for the same nodes.
    pub fn with_tap(self, tap: impl FrameTap + 'static) -> Recorder {
        Recorder { tap: Some(Box::new(tap)), ..self }
    }

    /// Makes the tap write out what it has buffered. Called a few times a second of wall time.
    pub(crate) fn flush_tap(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.flush();
        }
    }

    /// Sends a snapshot of every bin from now on. `None` if the plan does not ask for that.
    pub fn listen(&mut self) -> Option<Receiver<BinSnapshot>> {
        if !self.plan.watched {
            return None;
        }
        let (teller, listener) = sync_channel(WAITING_MAX);
        self.listener = Some(teller);
        Some(listener)
    }

    /// Ends the recording at `now`: last edges, last bin, and the end of the tap. Takes the devices out of `devices`: some
    /// are read and dropped, then the next, since readings take about as much memory as devices.
    pub fn finish(mut self, now: Instant, devices: &mut Vec<Box<dyn Device>>) -> Recording {
        self.sample_edges(now, devices);
        let bin = self.begin_closing(now);
        let mut last = Vec::with_capacity(devices.len());
        while !devices.is_empty() {
            let count = devices.len().min(READ_AT_ONCE * self.readers.max(1));
            let mut some: Vec<Box<dyn Device>> = devices.drain(..count).collect();
            let first = last.len();
            // Before their last bin closes: its watermarks begin anew then.
            let read = |device: &mut dyn Device, reading: &mut DeviceReading| {
                device.read(now, reading);
            };
            last.append(&mut read_all(&mut some, self.readers, &read));
            if let Some((_, length)) = &bin {
                self.take_bin(now, first, &mut some, *length);
            }
        }
        if let Some((closed, _)) = bin {
            self.end_closing(now, &closed);
        }
        let (ports, flows, pools) = self.tracks.finish();
        Recording {
            nodes: self.nodes,
            stopped: now,
            edges: self.edges,
            last,
            grid: self.grid,
            ports,
            flows,
            pools,
            events: self.events.finish(),
            holds: self.holds.finish(),
            capture: self.tap.map(|tap| tap.finish(now)),
        }
    }

    fn next_edge(&self) -> Option<Edge> {
        self.plan.edges.get(self.edges.len()).copied()
    }

    /// Reads devices at all measuring edges that have been reached.
    fn sample_edges(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) {
        while let Some(edge) = self.next_edge().filter(|edge| edge.at <= now) {
            let read = |device: &mut dyn Device, reading: &mut DeviceReading| {
                device.read_to(edge.depth, now, reading);
                trim(reading, &self.plan.named);
            };
            let devices = read_all(devices, self.readers, &read);
            self.edges.push(EdgeReading { edge: edge.at, taken: now, devices });
        }
    }

    fn close_bin(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) {
        let Some((closed, length)) = self.begin_closing(now) else { return };
        self.take_bin(now, 0, devices, length);
        self.end_closing(now, &closed);
    }

    /// Closes the bin of the grid, if time has passed since its start: what became of it, and its length.
    fn begin_closing(&mut self, now: Instant) -> Option<(Closed, Duration)> {
        let length = now.since(self.grid.begin());
        let closed = self.grid.close(now)?;
        self.tracks.begin(&closed);
        Some((closed, length))
    }

    /// Takes that bin from `devices`, the first of which has the index `first` among all.
    fn take_bin(
        &mut self,
        now: Instant,
        first: usize,
        devices: &mut [Box<dyn Device>],
        length: Duration,
    ) {
        for (index, device) in (first..).zip(devices) {
            device.read_bin(now, &mut self.reading);
            self.tracks.take(index, &self.reading, length);
            device.begin_bin(now);
        }
    }

    /// That bin has been taken from all devices.
    fn end_closing(&mut self, now: Instant, closed: &Closed) {
        self.tracks.end();
        if let Some(listener) = &self.listener {
            let slot = self.grid.slots[closed.place as usize];
            let ports = self.tracks.snapshot(slot.length().as_ps());
            // A full channel means that its reader is slow; this bin is left out there.
            let _ = listener.try_send(BinSnapshot { slot, ports });
        }
        self.events.close_bin(closed);
        self.holds.edge(now);
        self.bin_due = self.grid.next_edge();
    }
}

/// Devices that a thread takes at a time: few against the total, many against the cost of the lock.
const READ_AT_ONCE: usize = 16;

/// Reads all `devices` with `read` on `threads` threads.
fn read_all(
    devices: &mut [Box<dyn Device>],
    threads: usize,
    read: &(impl Fn(&mut dyn Device, &mut DeviceReading) + Sync),
) -> Vec<DeviceReading> {
    let mut readings = vec![DeviceReading::default(); devices.len()];
    let bundles = devices.chunks_mut(READ_AT_ONCE).zip(readings.chunks_mut(READ_AT_ONCE));
    let others = threads.min(bundles.len()).saturating_sub(1);
    // A lock, because the threads take bundles from one list.
    let bundles = Mutex::new(bundles);
    // A panic while reading ends the run anyway, so a poisoned lock does not matter.
    let next = || bundles.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((devices, readings)) = next() {
            devices
                .iter_mut()
                .zip(readings)
                .for_each(|(device, reading)| read(&mut **device, reading));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(work);
        }
        work();
    });
    readings
}

/// Removes what no measure asks for, and room that is not used: the reading is kept to the end of the run.
fn trim(reading: &mut DeviceReading, endings: &[String]) {
    reading.receptions.shrink_to_fit();
    let is_wanted = |name: &str| endings.iter().any(|ending| name.ends_with(ending.as_str()));
    for port in &mut reading.ports {
        port.named.retain(|(name, _)| is_wanted(name));
    }
    for flow in &mut reading.flows {
        flow.items.clear();
    }
}

impl Observer for Recorder {
    fn next_due(&self) -> Option<Instant> {
        let bin = Some(self.bin_due).filter(|due| *due <= self.plan.stop);
        [bin, self.next_edge().map(|edge| edge.at)].into_iter().flatten().min()
    }

    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) {
        self.sample_edges(now, devices);
        if self.bin_due <= now && self.bin_due <= self.plan.stop {
            self.close_bin(now, devices);
        }
    }

    fn event(&mut self, device: usize, event: DeviceEvent, handled: Instant) {
        self.holds.note(device, &event);
        self.events.push(device, event, handled);
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        if let Some(tap) = &mut self.tap {
            tap.frame(frame, passage);
        }
    }

    fn wants_frames(&self, device: usize, port: PortNumber) -> bool {
        self.tap.as_ref().is_some_and(|tap| tap.wants(device, port))
    }
}

#[cfg(test)]
mod tests;
