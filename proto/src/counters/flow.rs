//! What an adapter counts for one flow: what it sends of it, and what it receives.

use crate::congestion::Periods;
use crate::counters::Gauge;
use crate::units::Instant;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Traffic items, as indexes into an adapter's list. Nearly every flow has one, and flows are many: up to eight
/// stand in place.
pub type Items = SmallVec<[u16; 8]>;

/// Names a conversation: who sends, who receives, and which of their queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowId {
    /// The sender: a LID, or a MAC address as a number.
    pub source: u64,
    /// The receiver.
    pub destination: u64,
    /// Connection class, counted from 0: a pair has one flow a class.
    pub class: u8,
}

/// What an adapter counts for one flow it sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReading {
    /// Which flow.
    pub flow: FlowId,
    /// The traffic items that used it, as indexes into the adapter's list, in order of first use.
    pub items: Items,
    /// Octets of data frames sent, retransmissions included.
    pub tx_bytes: u64,
    /// The rate the reaction point allows, in bit/s.
    pub rate: Gauge,
    /// The gap the reaction point asks for after a full frame, in picoseconds.
    pub gap: Gauge,
    /// The scheme's own state (`ccti`, `alpha`, `stage`).
    pub scalar: u64,
    /// Since when the reaction point is neutral; `None` while it holds the flow back.
    pub neutral_since: Option<Instant>,
    /// The reaction point has left its neutral state at least once.
    pub ever_reacted: bool,
    /// First and last departure of a data frame.
    pub first: Option<Instant>,
    /// Last departure of a data frame.
    pub last: Option<Instant>,
    /// Octets of messages posted.
    pub offered_bytes: u64,
    /// Messages posted, completed, withdrawn.
    pub messages: u64,
    /// Messages the far end has confirmed, or that have left on an unreliable service.
    pub completed: u64,
    /// Messages withdrawn when their traffic item stopped.
    pub withdrawn: u64,
    /// Notifications received for the flow.
    pub notes: u64,
}

impl FlowReading {
    /// A flow that has done nothing yet.
    pub fn new(flow: FlowId) -> FlowReading {
        FlowReading {
            flow,
            items: Items::new(),
            tx_bytes: 0,
            rate: Gauge::default(),
            gap: Gauge::default(),
            scalar: 0,
            neutral_since: None,
            ever_reacted: false,
            first: None,
            last: None,
            offered_bytes: 0,
            messages: 0,
            completed: 0,
            withdrawn: 0,
            notes: 0,
        }
    }
}

/// What an adapter counts for one flow it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceptionReading {
    /// Which flow.
    pub flow: FlowId,
    /// Octets of payload delivered to the user, once and in order.
    pub delivered_bytes: u64,
    /// Messages delivered whole.
    pub messages: u64,
    /// When the latest of them was.
    #[serde(default)]
    pub last: Option<Instant>,
    /// Data frames that arrived marked.
    pub marked: u64,
    /// Data frames that arrived out of sequence.
    pub reordered: u64,
    /// What the notification point found, period by period.
    pub periods: Periods,
}
