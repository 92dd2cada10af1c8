//! What is moved of flows at the end of a bin: those whose reaction point has moved one by one, the
//! others together.
//!
//! ```text
//!   first message ──▶ unmoved: one of its class ──reaction point moves──▶ moved, from that bin on
//!        └───────── of a group that has moved ─────────────────────────────▲
//! ```
//!
//! So a bin costs what congestion control did in it, and not the square of the fabric.

use crate::transport::queue_pair::QueuePair;
use proto::units::Instant;

/// The flows of one adapter, as far as bins are concerned.
#[derive(Debug, Default)]
pub struct FlowReport {
    /// The number of the open bin.
    bin: u64,
    /// By class.
    unmoved: Vec<UnmovedTotals>,
    /// Queue pairs whose flows are moved of one by one, in the order in which they became so.
    moved: Vec<u32>,
}

/// The flows of one class that are moved of together.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnmovedTotals {
    /// How many.
    pub flows: u64,
    /// Octets of data frames they have sent in the open bin.
    pub tx_bytes: u64,
}

impl FlowReport {
    /// A bulletin for so many classes.
    pub fn new(classes: usize) -> FlowReport {
        FlowReport { unmoved: vec![UnmovedTotals::default(); classes], ..FlowReport::default() }
    }

    /// The first message of `pair`, which is at `index`: it has a flow from now on.
    pub fn on_first_post(&mut self, index: u32, pair: &mut QueuePair, has_moved: bool) {
        if has_moved {
            pair.is_reported_alone = true;
            self.moved.push(index);
        } else {
            self.on_pending_connection(pair.class);
        }
    }

    /// The first message of a conversation of `class` that has not begun: it has a flow from now on.
    pub fn on_pending_connection(&mut self, class: u8) {
        self.unmoved[usize::from(class)].flows += 1;
    }

    /// A data frame of `pair` of so many octets leaves, its last bit at `end`.
    pub fn on_transmit(&mut self, pair: &mut QueuePair, octets: u64, end: Instant) {
        pair.sent.on_transmit(octets, end, self.bin);
        if !pair.is_reported_alone {
            self.unmoved[usize::from(pair.class)].tx_bytes += octets;
        }
    }

    /// The reaction point of `pair`, which is at `index`, has moved in the open bin: what the flow did in it
    /// is its own.
    pub fn on_move(&mut self, index: u32, pair: &mut QueuePair) {
        if pair.is_reported_alone || pair.sent.offer.messages == 0 {
            return;
        }
        let class = &mut self.unmoved[usize::from(pair.class)];
        class.flows -= 1;
        class.tx_bytes -= pair.sent.octets_in(self.bin);
        pair.is_reported_alone = true;
        self.moved.push(index);
    }

    /// Who is moved of, each by index and with the octets sent in the open bin.
    pub fn moved<'a>(
        &'a self,
        pairs: &'a [QueuePair],
    ) -> impl Iterator<Item = (&'a QueuePair, u64)> {
        let pairs = self.moved.iter().map(|index| &pairs[*index as usize]);
        pairs.map(|pair| (pair, pair.sent.octets_in(self.bin)))
    }

    /// The others, by class.
    pub fn unmoved(&self) -> &[UnmovedTotals] {
        &self.unmoved
    }

    /// The next bin begins.
    pub fn begin_bin(&mut self) {
        self.bin += 1;
        self.unmoved.iter_mut().for_each(|class| class.tx_bytes = 0);
    }
}
