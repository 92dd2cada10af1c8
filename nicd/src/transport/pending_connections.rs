//! Pending connections: messages for peers without a queue pair.
//!
//! ```text
//!   post ──▶ waiting ──its turn, or a frame from the peer──▶ queue pair
//!               │                                               ▲
//!               └──all messages withdrawn──▶ counts only ──post─┘
//! ```
//!
//! A queue pair with its reaction point takes several times the memory. Behind a congestion tree most posted
//! messages never leave, and in a fabric of a thousand nodes every adapter has many peers.

use crate::counters::OfferedLoad;
use crate::transport::message::Message;
use crate::transport::requester::Withdrawn;
use proto::ids::{Lid, VirtualLane};
use proto::units::Instant;
use slab::Slab;
use std::collections::VecDeque;

/// A connection before its first frame.
#[derive(Clone, Debug)]
pub struct PendingConnection {
    /// Connection class.
    pub class: u8,
    /// The peer's LID.
    pub peer: Lid,
    /// The lane of its data.
    pub lane: VirtualLane,
    /// Its scheduler key: lower keys send first.
    pub key: u64,
    /// When its first message was posted.
    pub since: Instant,
    /// The messages posted so far.
    pub offered: OfferedLoad,
    /// The waiting messages, oldest first.
    pub messages: VecDeque<Message>,
}

impl PendingConnection {
    /// A connection with its first message. It reserves room for one message, since few get a second one in
    /// time.
    pub fn new(class: u8, peer: Lid, lane: VirtualLane, key: u64, first: Message) -> Self {
        let (since, offered) = (first.posted, OfferedLoad::default());
        let messages = VecDeque::with_capacity(1);
        let mut connection = PendingConnection { class, peer, lane, key, since, offered, messages };
        connection.post(first);
        connection
    }

    /// Adds a message.
    pub fn post(&mut self, message: Message) {
        self.offered.on_post(message.item, message.size);
        self.messages.push_back(message);
    }

    fn is_waiting(&self) -> bool {
        !self.messages.is_empty()
    }
}

/// The pending connections of one lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Key and index in ascending order of keys. An entry is stale if the connection has another key.
    order: VecDeque<(u64, u32)>,
    waiting: usize,
}

/// The pending connections of an adapter.
#[derive(Clone, Debug, Default)]
pub struct PendingConnections {
    pending: Slab<PendingConnection>,
    lanes: Vec<Lane>,
}

impl PendingConnections {
    /// No pending connections on `lanes` data lanes.
    pub fn new(lanes: usize) -> PendingConnections {
        PendingConnections { pending: Slab::new(), lanes: vec![Lane::default(); lanes] }
    }

    /// Adds a connection that has a message and the highest key so far. Returns its index.
    pub fn add(&mut self, connection: PendingConnection) -> u32 {
        let (lane, key) = (&mut self.lanes[connection.lane.index()], connection.key);
        debug_assert!(
            lane.order.back().is_none_or(|(last, _)| *last < key) && connection.is_waiting()
        );
        let index = self.pending.insert(connection) as u32;
        lane.order.push_back((key, index));
        lane.waiting += 1;
        index
    }

    /// The number of pending connections.
    pub fn count(&self) -> usize {
        self.pending.len()
    }

    /// The connection at `index`.
    pub fn get(&self, index: u32) -> &PendingConnection {
        &self.pending[index as usize]
    }

    /// The connection at `index`, if messages wait.
    pub fn waiting(&mut self, index: u32) -> Option<&mut PendingConnection> {
        Some(&mut self.pending[index as usize]).filter(|connection| connection.is_waiting())
    }

    /// Whether messages wait on `lane`.
    pub fn has_waiting(&self, lane: VirtualLane) -> bool {
        self.lanes[lane.index()].waiting > 0
    }

    /// Key and index of the connection with waiting messages and the lowest key on `lane`.
    pub fn first(&mut self, lane: VirtualLane) -> Option<(u64, u32)> {
        let order = &mut self.lanes[lane.index()].order;
        loop {
            let (key, index) = *order.front()?;
            let connection = self.pending.get(index as usize);
            if connection.is_some_and(|connection| connection.key == key && connection.is_waiting())
            {
                return Some((key, index));
            }
            order.pop_front();
        }
    }

    /// Removes and returns the connection at `index`.
    pub fn take(&mut self, index: u32) -> PendingConnection {
        let connection = self.pending.remove(index as usize);
        self.lanes[connection.lane.index()].waiting -= usize::from(connection.is_waiting());
        connection
    }

    /// Files every connection under the lane that `lane` gives for its class and peer. Reports octets that change their
    /// lane: from, to and how many.
    pub fn refile(
        &mut self,
        lane: impl Fn(u8, Lid) -> VirtualLane,
        mut moved: impl FnMut(VirtualLane, VirtualLane, u64),
    ) {
        self.lanes.iter_mut().for_each(|lane| *lane = Lane::default());
        let mut waiting = Vec::new();
        for (index, connection) in &mut self.pending {
            let to = lane(connection.class, connection.peer);
            let from = std::mem::replace(&mut connection.lane, to);
            if connection.is_waiting() {
                let octets = connection.messages.iter().map(|message| u64::from(message.size));
                moved(from, to, octets.sum());
                waiting.push((connection.key, index as u32, to));
            }
        }
        waiting.sort_unstable();
        for (key, index, to) in waiting {
            self.lanes[to.index()].order.push_back((key, index));
            self.lanes[to.index()].waiting += 1;
        }
    }

    /// Connections with waiting messages of traffic item `item` and of another item.
    pub fn shared_by(&self, item: u16) -> Vec<u32> {
        let is_shared = |connection: &PendingConnection| {
            let of_item = connection.messages.iter().filter(|message| message.item == item);
            (1..connection.messages.len()).contains(&of_item.count())
        };
        let shared = self.pending.iter().filter(|(_, connection)| is_shared(connection));
        shared.map(|(index, _)| index as u32).collect()
    }

    /// Withdraws the messages of traffic item `item`, which must not share a connection with another item.
    /// Returns counts per lane.
    pub fn withdraw(&mut self, item: u16) -> Vec<Withdrawn> {
        let mut withdrawn = vec![Withdrawn::default(); self.lanes.len()];
        for (_, connection) in &mut self.pending {
            if connection.messages.front().is_some_and(|message| message.item == item) {
                let lane = connection.lane.index();
                self.lanes[lane].waiting -= 1;
                let messages = connection.messages.len() as u64;
                connection.offered.withdrawn += messages;
                withdrawn[lane].messages += messages;
                let octets = connection.messages.drain(..).map(|message| u64::from(message.size));
                withdrawn[lane].octets += octets.sum::<u64>();
            }
        }
        withdrawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: VirtualLane = VirtualLane::ZERO;

    fn message(sequence: u64, item: u16) -> Message {
        Message { posted: Instant::ZERO, sequence, number: 0, size: 100, item }
    }

    /// Connections with these keys, each with a message of item 0.
    fn with_keys<const N: usize>(keys: [u64; N]) -> (PendingConnections, [u32; N]) {
        let mut pending = PendingConnections::new(1);
        let indexes = keys.map(|key| {
            let peer = Lid::new(key as u16);
            pending.add(PendingConnection::new(0, peer, LANE, key, message(key, 0)))
        });
        (pending, indexes)
    }

    #[test]
    fn connections_are_served_in_the_order_of_their_keys() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        assert_eq!(pending.first(LANE), Some((3, first)));
        assert_eq!(pending.take(first).peer, Lid::new(3));
        assert_eq!(pending.first(LANE), Some((8, second)));
        pending.take(second);
        assert_eq!(pending.first(LANE), None);
        assert!(!pending.has_waiting(LANE));
    }

    #[test]
    fn a_reused_index_keeps_to_its_new_key() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        let mut readded = pending.take(first);
        readded.key = 9;
        assert_eq!(pending.add(readded), first, "the free index");
        assert_eq!(pending.first(LANE), Some((8, second)));
        pending.take(second);
        assert_eq!(pending.first(LANE), Some((9, first)));
    }

    #[test]
    fn connections_that_change_their_lane_keep_their_order_and_their_octets() {
        let mut pending = PendingConnections::new(2);
        for key in [3, 8, 9] {
            let peer = Lid::new(key as u16);
            pending.add(PendingConnection::new(0, peer, LANE, key, message(key, 0)));
        }
        let other = VirtualLane::truncate(1);
        let mut moved = Vec::new();
        let lane = |_, peer: Lid| if peer == Lid::new(8) { LANE } else { other };
        pending.refile(lane, |from, to, octets| moved.push((from, to, octets)));
        assert_eq!(moved, [(LANE, other, 100), (LANE, LANE, 100), (LANE, other, 100)]);
        let mut peers = |lane| {
            let next = || pending.first(lane).map(|(_, index)| pending.take(index).peer.get());
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        assert_eq!((peers(other), peers(LANE)), (vec![3, 9], vec![8]));
    }

    #[test]
    fn a_connection_without_messages_keeps_its_counts_and_loses_its_turn() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        pending.waiting(second).expect("a message waits").post(message(9, 1));
        assert_eq!(pending.shared_by(0), [second]);
        pending.take(second);
        assert_eq!(pending.withdraw(0), [Withdrawn { messages: 1, octets: 100 }]);
        assert!(pending.waiting(first).is_none() && !pending.has_waiting(LANE));
        assert_eq!(pending.first(LANE), None);
        let OfferedLoad { bytes, messages, withdrawn, .. } = pending.get(first).offered;
        assert_eq!((bytes, messages, withdrawn), (100, 1, 1));
        assert_eq!(pending.withdraw(0), [Withdrawn::default()], "once");
    }
}
