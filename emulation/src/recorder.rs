//! The recorder: reads devices at bin edges and at measuring edges, and keeps both within bounds.

use proto::counters::DeviceReading;
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What a run wants to know, fixed before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingPlan {
    /// One MTU time of the default link.
    pub tau: Duration,
    /// When the run ends.
    pub stop: Instant,
    /// Width of a bin at the start; bins merge when a series is full.
    pub bin: Duration,
    /// Instants at which a whole reading is kept, ascending: edges of measuring windows.
    pub edges: Vec<Instant>,
    /// Windows whose departures enter the fidelity figures, ascending and disjoint.
    pub measured: Vec<(Instant, Instant)>,
    /// Keep every event, however many.
    pub all_events: bool,
}

/// A reading kept for measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeReading {
    /// The planned instant.
    pub edge: Instant,
    /// When it was really taken (later only where a live worker was late).
    pub taken: Instant,
    /// By node hosted here, in the order of the worker's nodes.
    pub devices: Vec<DeviceReading>,
}

// ---- THROW AWAY from here: stands in for the recorder of branch `record`. ----

use crate::capture::Capture;
use crate::wiring::Wiring;
use crate::witness::Witness;
use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;

/// Stand-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Stand-in.
    pub stopped: Instant,
}

/// Stand-in.
pub struct Recorder;

impl Recorder {
    /// Stand-in.
    pub fn new(_: RecordingPlan, _: &Wiring, _: Vec<usize>) -> Recorder {
        Recorder
    }

    /// Stand-in.
    pub fn with_capture(self, _: Capture) -> Recorder {
        self
    }
}

impl Witness for Recorder {
    fn next_due(&self) -> Option<Instant> {
        None
    }
    fn sample(&mut self, _: Instant, _: &mut [Box<dyn Device>]) {}
    fn event(&mut self, _: usize, _: DeviceEvent) {}
    fn wants_frames(&self, _: usize, _: PortNumber) -> bool {
        false
    }
    fn frame(&mut self, _: usize, _: PortNumber, _: Direction, _: &Frame, _: Instant) {}
    fn finish(self: Box<Self>, now: Instant, _: &mut [Box<dyn Device>]) -> Recording {
        Recording { stopped: now }
    }
}
