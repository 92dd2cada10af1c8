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
