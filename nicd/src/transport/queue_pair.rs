//! A queue pair: both halves of a conversation with one peer in one class, and the table of them.
//!
//! A queue pair is made when it is first used, so memory grows with conversations and not with the
//! square of the nodes. The table finds one by class and peer without hashing, and knows the order of their flows.

use crate::config::ClassConfig;
use crate::counters::SentFlow;
use crate::timers::Alarm;
use crate::transport::in_order::InTurn;
use crate::transport::requester::Requester;
use crate::transport::resequencer::Resequencer;
use crate::transport::responder::Responder;
use proto::congestion::NotificationPoint;
use proto::counters::{FlowId, ReceptionReading};
use proto::ids::{Lid, QueuePairNumber, VirtualLane};
use proto::units::Instant;

/// One queue pair.
pub struct QueuePair {
    /// Connection class.
    pub class: u8,
    /// What its class says.
    pub config: ClassConfig,
    /// The other end's port.
    pub peer: Lid,
    /// Our number for it.
    pub number: QueuePairNumber,
    /// The other end's number for it.
    pub remote: QueuePairNumber,
    /// The lane it sends on.
    pub lane: VirtualLane,
    /// The lane of notifications to its peer.
    pub notification_lane: VirtualLane,
    /// The group that paces it.
    pub group: u32,
    /// Sends.
    pub requester: Requester,
    /// Receives.
    pub responder: Responder,
    /// Judges what it receives.
    pub notification_point: Box<dyn NotificationPoint>,
    /// The next acknowledgement carries BECN.
    pub becn_owed: bool,
    /// Since when something could be sent, pacing aside.
    pub ready_since: Instant,
    /// Wait for an acknowledgement.
    pub retransmit: Alarm,
    /// Wait for the peer's receive buffers.
    pub receiver_ready: Alarm,
    /// Delay of a coalesced acknowledgement.
    pub acknowledge: Alarm,
    /// The notification point's own timer.
    pub notify: Alarm,
    /// Its flow is told of by itself at the end of bins.
    pub is_told: bool,
    /// The flow we send.
    pub sending: FlowId,
    /// What is counted of it.
    pub sent: SentFlow,
    /// What is counted of the flow we receive.
    pub received: ReceptionReading,
    /// At least one data frame has come in.
    pub has_received: bool,
    /// The sequence number that the next test frame received should have.
    pub test_sequence: u32,
    /// Test frames that came ahead of it, if they are put into order here.
    pub tests_ahead: Option<Box<Resequencer<u64>>>,
    /// Requests that came ahead of what the responder expects, if they are put into order here.
    pub requests_ahead: Option<Box<Resequencer<InTurn>>>,
    /// Wait for what is missing before those.
    pub missing: Alarm,
}

/// Finds queue pairs by class and peer.
#[derive(Clone, Debug)]
pub struct PeerTable {
    own: Lid,
    /// By LID: the adapter with that LID, counted from 0.
    adapters: Vec<u16>,
    count: usize,
    /// By class, then adapter; a class's row is made with its first queue pair.
    rows: Vec<Vec<u32>>,
}

impl PeerTable {
    const NO_ADAPTER: u16 = u16::MAX;
    const NONE: u32 = u32::MAX;

    /// A table for connections of adapter `own` with `adapters` in `classes` classes.
    pub fn new(own: Lid, adapters: &[Lid], classes: usize) -> PeerTable {
        let highest = adapters.iter().map(|lid| usize::from(lid.get())).max().unwrap_or(0);
        let mut by_lid = vec![Self::NO_ADAPTER; highest + 1];
        for (index, lid) in adapters.iter().enumerate() {
            by_lid[usize::from(lid.get())] = index as u16;
        }
        PeerTable { own, adapters: by_lid, count: adapters.len(), rows: vec![Vec::new(); classes] }
    }

    /// Whether a connection of `class` with `peer` is possible at all.
    pub fn admits(&self, class: u8, peer: Lid) -> bool {
        usize::from(class) < self.rows.len() && peer != self.own && self.adapter(peer).is_some()
    }

    /// The queue pair for `class` and `peer`, if there is one.
    pub fn find(&self, class: u8, peer: Lid) -> Option<u32> {
        let row = self.rows.get(usize::from(class))?;
        row.get(self.adapter(peer)?).copied().filter(|index| *index != Self::NONE)
    }

    /// The queue pairs with `peer`, by class.
    pub fn with(&self, peer: Lid) -> impl Iterator<Item = u32> + '_ {
        self.of_adapter(self.adapter(peer))
    }

    /// All queue pairs in the order of their flows: by peer, then by class.
    pub fn in_flow_order(&self) -> impl Iterator<Item = u32> + '_ {
        let by_lid = self.adapters.iter().filter(|adapter| **adapter != Self::NO_ADAPTER);
        by_lid.flat_map(|adapter| self.of_adapter(Some(usize::from(*adapter))))
    }

    fn of_adapter(&self, adapter: Option<usize>) -> impl Iterator<Item = u32> + '_ {
        let in_row = move |row: &Vec<u32>| row.get(adapter?).copied();
        self.rows.iter().filter_map(in_row).filter(|index| *index != Self::NONE)
    }

    /// Notes the queue pair for `class` and `peer`.
    ///
    /// # Panics
    /// If [`PeerTable::admits`] does not admit the pair.
    pub fn insert(&mut self, class: u8, peer: Lid, queue_pair: u32) {
        let adapter = self.adapter(peer).expect("only adapters of the fabric have queue pairs");
        let row = &mut self.rows[usize::from(class)];
        if row.is_empty() {
            row.resize(self.count, Self::NONE);
        }
        row[adapter] = queue_pair;
    }

    fn adapter(&self, lid: Lid) -> Option<usize> {
        let index = *self.adapters.get(usize::from(lid.get()))?;
        (index != Self::NO_ADAPTER).then_some(usize::from(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_pairs_come_in_the_order_of_their_flows_whenever_they_were_made() {
        let lids = [1, 2, 5, 9].map(Lid::new);
        let mut table = PeerTable::new(lids[0], &lids, 2);
        for (index, (class, peer)) in [(1, 9), (0, 5), (0, 2), (0, 9)].into_iter().enumerate() {
            table.insert(class, Lid::new(peer), index as u32);
        }
        assert_eq!(table.in_flow_order().collect::<Vec<_>>(), [2, 1, 3, 0]);
        assert_eq!(table.with(Lid::new(9)).collect::<Vec<_>>(), [3, 0], "by class");
        assert_eq!(table.with(Lid::new(7)).count(), 0, "no adapter has that LID");
    }
}
