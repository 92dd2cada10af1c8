//! The report of flows per bin: flows whose reaction point has moved individually, all others as one sum per
//! class.
//!
//! A reaction point has moved once its state has differed from the initial one.
//!
//! ```text
//!   first message ──▶ unmoved (one sum per class) ──reaction point moves──▶ moved, from that bin on
//!        └─────── pacing group has moved already ─────────────────────────────▲
//! ```
//!
//! So the cost of a bin grows with the activity of congestion control, not with the square of the nodes.

use crate::transport::queue_pair::QueuePair;
use proto::congestion::ReactionState;
use proto::counters::UnmovedFlows;
use proto::units::Instant;

/// The flows of one adapter, for reports per bin.
#[derive(Debug, Default)]
pub struct FlowReport {
    /// The number of the current bin.
    bin: u64,
    /// The sums, by class.
    unmoved: Vec<UnmovedFlows>,
    /// Queue pairs whose flows are reported individually, in the order in which they moved.
    moved: Vec<u32>,
}

impl FlowReport {
    /// A report for `classes` connection classes, whose reaction points begin in state `initial`.
    pub fn new(classes: usize, initial: ReactionState) -> FlowReport {
        let ReactionState { gap, rate, scalar } = initial;
        let (rate, gap) = (rate.get(), gap.as_ps());
        let of_class = |class| UnmovedFlows { class, flows: 0, tx_bytes: 0, rate, gap, scalar };
        let unmoved = (0..classes as u8).map(of_class).collect();
        FlowReport { unmoved, ..FlowReport::default() }
    }

    /// Counts the first message of the queue pair at `index`, whose group has moved or not.
    pub fn on_first_post(&mut self, index: u32, pair: &mut QueuePair, has_moved: bool) {
        if has_moved {
            pair.is_reported_alone = true;
            self.moved.push(index);
        } else {
            self.on_pending_connection(pair.class);
        }
    }

    /// Counts the first message of a pending connection of `class`.
    pub fn on_pending_connection(&mut self, class: u8) {
        self.unmoved[usize::from(class)].flows += 1;
    }

    /// Counts a data frame of `octets`; its last bit leaves at `end`.
    pub fn on_transmit(&mut self, pair: &mut QueuePair, octets: u64, end: Instant) {
        pair.sent.on_transmit(octets, end, self.bin);
        if !pair.is_reported_alone {
            self.unmoved[usize::from(pair.class)].tx_bytes += octets;
        }
    }

    /// The reaction point of the queue pair at `index` has moved in the current bin. The flow leaves its
    /// class's sum.
    pub fn on_move(&mut self, index: u32, pair: &mut QueuePair) {
        if pair.is_reported_alone || pair.sent.offered.messages == 0 {
            return;
        }
        let class = &mut self.unmoved[usize::from(pair.class)];
        class.flows -= 1;
        class.tx_bytes -= pair.sent.octets_in(self.bin);
        pair.is_reported_alone = true;
        self.moved.push(index);
    }

    /// The moved flows with the octets that each has sent in the current bin.
    pub fn moved<'a>(
        &'a self,
        pairs: &'a [QueuePair],
    ) -> impl Iterator<Item = (&'a QueuePair, u64)> {
        let pairs = self.moved.iter().map(|index| &pairs[*index as usize]);
        pairs.map(|pair| (pair, pair.sent.octets_in(self.bin)))
    }

    /// The sums of the unmoved flows, by class.
    pub fn unmoved(&self) -> &[UnmovedFlows] {
        &self.unmoved
    }

    /// The next bin begins.
    pub fn begin_bin(&mut self) {
        self.bin += 1;
        self.unmoved.iter_mut().for_each(|class| class.tx_bytes = 0);
    }
}
