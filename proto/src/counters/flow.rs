//! Counters of one flow, at its sender and at its receiver.

use crate::counters::Gauge;
use crate::units::Instant;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Traffic items, as indexes into an adapter's list; up to eight without allocation.
pub type Items = SmallVec<[u16; 8]>;

/// Identifies a flow: sender, receiver and connection class.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FlowId {
    /// The sender: a LID, an adapter number, or a foreign MAC address as a number.
    pub source: u64,
    /// The receiver, in the same form.
    pub destination: u64,
    /// Connection class, from 0. A pair of adapters has one flow per class.
    pub class: u8,
}

impl FlowId {
    /// The flow of the same class in the other direction.
    #[must_use]
    pub const fn reversed(self) -> FlowId {
        FlowId { source: self.destination, destination: self.source, class: self.class }
    }
}

/// A level with its time integrals. There are as many as flows, so it has less than a [`Gauge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The present level.
    pub value: u64,
    /// ∫ level dt, in level · picoseconds.
    pub integral: u128,
    /// ∫ level² dt, in level² · picoseconds, for spreads over time.
    pub square_integral: u128,
}

impl From<Gauge> for Level {
    fn from(gauge: Gauge) -> Level {
        let Gauge { value, integral, square_integral, .. } = gauge;
        Level { value, integral, square_integral }
    }
}

/// Counters of one flow at its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReading {
    /// Which flow.
    pub flow: FlowId,
    /// The traffic items of the flow, as indexes into the adapter's list, in order of first use.
    pub items: Items,
    /// Octets of data frames sent, retransmissions included.
    pub tx_bytes: u64,
    /// The rate that the reaction point permits, in bit/s.
    pub rate: Level,
    /// The gap that the reaction point requires after a full frame, in picoseconds.
    pub gap: Level,
    /// The scheme's own state (`ccti`, `alpha`, `stage`).
    pub scalar: u64,
    /// Since when the reaction point is neutral; `None` while it throttles the flow.
    pub neutral_since: Option<Instant>,
    /// The reaction point has left its neutral state at least once.
    pub ever_reacted: bool,
    /// First departure of a data frame.
    pub first: Option<Instant>,
    /// Last departure of a data frame.
    pub last: Option<Instant>,
    /// Octets of messages posted.
    pub offered_bytes: u64,
    /// Messages posted.
    pub messages: u64,
    /// Messages that the peer acknowledged; on an unreliable service, messages that have left.
    pub completed: u64,
    /// Messages withdrawn when their traffic item stopped.
    pub withdrawn: u64,
    /// Notifications received for the flow.
    pub notes: u64,
}

impl FlowReading {
    /// A flow without any traffic.
    pub fn new(flow: FlowId) -> FlowReading {
        FlowReading { flow, ..FlowReading::default() }
    }
}

/// Counters of one flow at its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceptionReading {
    /// Which flow.
    pub flow: FlowId,
    /// Octets of payload delivered, once and in order.
    pub delivered_bytes: u64,
    /// Messages delivered completely.
    pub messages: u64,
    /// When the latest message was delivered.
    #[serde(default)]
    pub last: Option<Instant>,
    /// Data frames that arrived marked.
    pub marked: u64,
    /// Data frames that arrived out of sequence.
    pub reordered: u64,
    /// The notification point's findings by period.
    pub periods: Periods,
}

/// Totals of a notification point that judges a flow period by period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periods {
    /// Periods judged.
    pub judged: u64,
    /// Periods in which the flow was a cause of congestion.
    pub congested: u64,
}
