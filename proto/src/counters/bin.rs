//! The reading of a bin: the interval since the last [`begin_bin`](crate::device::Instrumented::begin_bin).
//!
//! The number of flows grows with the square of the adapters, and most flows are never throttled. So an
//! adapter reports one sum for all flows whose reaction point is still in its initial state, and single
//! flows only after their reaction point has changed.

use crate::counters::{FlowId, Gauge, LaneReading, PortReading};
use serde::{Deserialize, Serialize};

/// A level over one bin: minimum, maximum and ∫ level dt in level · picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u128)", into = "(u64, u64, u128)")]
pub struct Span {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
    /// The integral.
    pub integral: u128,
}

impl From<(u64, u64, u128)> for Span {
    fn from((min, max, integral): (u64, u64, u128)) -> Span {
        Span { min, max, integral }
    }
}

impl From<Span> for (u64, u64, u128) {
    fn from(span: Span) -> (u64, u64, u128) {
        (span.min, span.max, span.integral)
    }
}

impl Span {
    /// The span of `gauge`, closed at the end of the bin. `before` is its integral at the start of the bin,
    /// when its watermarks restarted.
    pub fn since(gauge: &Gauge, before: u128) -> Span {
        let integral = gauge.integral.saturating_sub(before);
        Span { min: gauge.min, max: gauge.max, integral }
    }

    /// A constant level over `weight` picoseconds.
    pub fn steady(level: u64, weight: u64) -> Span {
        Span { min: level, max: level, integral: u128::from(level) * u128::from(weight) }
    }

    /// The mean over `weight` picoseconds, rounded to nearest, within minimum and maximum.
    pub fn mean(&self, weight: u64) -> u64 {
        let weight = u128::from(weight.max(1));
        let mean = u64::try_from((self.integral + weight / 2) / weight).unwrap_or(u64::MAX);
        mean.clamp(self.min, self.max.max(self.min))
    }

    /// Merges another interval, or another level.
    pub fn absorb(&mut self, later: &Span) {
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.integral += later.integral;
    }
}

/// The reading of a bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinReading {
    /// By port, index 0 is port 1.
    pub ports: Vec<PortTotals>,
    /// Sent flows whose reaction point has left its initial state, in the order of their first report. A flow
    /// keeps its position.
    pub moved: Vec<MovedFlow>,
    /// The other sent flows, by class.
    pub unmoved: Vec<UnmovedFlows>,
}

/// Totals of a port at the end of a bin, counted from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// As in [`PortReading::lanes`].
    pub lanes: Vec<LaneReading>,
    /// All dropped frames. Total only: bins do not need per-reason counts.
    pub drops: u64,
}

impl From<PortReading> for PortTotals {
    fn from(reading: PortReading) -> PortTotals {
        PortTotals { drops: reading.drops.total(), lanes: reading.lanes }
    }
}

/// One flow over a bin. Its reaction point has left its initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedFlow {
    /// Which flow.
    pub flow: FlowId,
    /// The reaction point has throttled the flow at least once.
    pub ever_reacted: bool,
    /// Octets of data frames sent in the bin.
    pub tx_bytes: u64,
    /// The permitted rate in bit/s.
    pub rate: Span,
    /// The gap after a full frame in picoseconds.
    pub gap: Span,
    /// The scheme's own state at the end of the bin.
    pub scalar: u64,
}

/// All flows of one class whose reaction points are still in their initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmovedFlows {
    /// The connection class.
    pub class: u8,
    /// The number of flows that have posted a message since the run began.
    pub flows: u64,
    /// Octets of data frames that they sent in the bin.
    pub tx_bytes: u64,
    /// The permitted rate of each in bit/s.
    pub rate: u64,
    /// The gap of each after a full frame in picoseconds.
    pub gap: u64,
    /// The scheme's own state of each.
    pub scalar: u64,
}
