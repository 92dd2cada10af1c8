//! What a device tells of a bin: the interval since the extremes of its gauges were started anew.
//!
//! A fabric has the square of its adapters of flows, and most of them are never held back. What is
//! kept of those is only what all of them did together, so an adapter counts them together as they
//! send, and tells of a single flow only once its reaction point has moved.

use crate::counters::{FlowId, Gauge, LaneReading, PortReading};
use serde::{Deserialize, Serialize};

/// A level over one bin: extremes and ∫ level dt, in level · picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u128)", into = "(u64, u64, u128)")]
pub struct Span {
    /// The least.
    pub min: u64,
    /// The greatest.
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
    /// What `gauge`, closed at the bin's end, has done since its integral was `before` and its
    /// watermarks restarted.
    pub fn since(gauge: &Gauge, before: u128) -> Span {
        let integral = gauge.integral.saturating_sub(before);
        Span { min: gauge.min, max: gauge.max, integral }
    }

    /// A level that stood still for `weight` picoseconds.
    pub fn steady(level: u64, weight: u64) -> Span {
        Span { min: level, max: level, integral: u128::from(level) * u128::from(weight) }
    }

    /// The mean over `weight` picoseconds, rounded to the nearest, never outside the extremes.
    pub fn mean(&self, weight: u64) -> u64 {
        let weight = u128::from(weight.max(1));
        let mean = u64::try_from((self.integral + weight / 2) / weight).unwrap_or(u64::MAX);
        mean.clamp(self.min, self.max.max(self.min))
    }

    /// Becomes the span of both intervals, or of both levels.
    pub fn absorb(&mut self, later: &Span) {
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.integral += later.integral;
    }
}

/// What a device tells of a bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinReading {
    /// By port, index 0 is port 1.
    pub ports: Vec<PortTotals>,
    /// Flows sent whose reaction point has moved, in the order in which they are first told of: a flow
    /// told of once stays at its place.
    pub moved: Vec<MovedFlow>,
    /// The other flows sent, by class.
    pub unmoved: Vec<UnmovedFlows>,
}

/// What a port has counted up to the end of a bin: totals, not growth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// As in [`PortReading::lanes`].
    pub lanes: Vec<LaneReading>,
    /// All losses. Which they were nobody asks of a bin, and a table of reasons a port is much to copy.
    pub drops: u64,
}

impl From<PortReading> for PortTotals {
    fn from(reading: PortReading) -> PortTotals {
        PortTotals { drops: reading.drops.total(), lanes: reading.lanes }
    }
}

/// One flow over a bin, at whose end or before its reaction point has left the state all begin in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedFlow {
    /// Which flow.
    pub flow: FlowId,
    /// The reaction point has held it back at least once.
    pub ever_reacted: bool,
    /// Octets of data frames sent in the bin.
    pub tx_bytes: u64,
    /// The rate allowed, in bit/s.
    pub rate: Span,
    /// The gap asked for after a full frame, in picoseconds.
    pub gap: Span,
    /// The scheme's own state at the bin's end.
    pub scalar: u64,
}

/// All flows of one class whose reaction points are still in the state they began in, the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmovedFlows {
    /// The connection class.
    pub class: u8,
    /// How many have posted a message since the run began.
    pub flows: u64,
    /// Octets of data frames they sent in the bin.
    pub tx_bytes: u64,
    /// The rate allowed to each, in bit/s.
    pub rate: u64,
    /// The gap asked of each after a full frame, in picoseconds.
    pub gap: u64,
    /// The scheme's own state of each.
    pub scalar: u64,
}
