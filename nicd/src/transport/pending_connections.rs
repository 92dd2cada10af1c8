//! Conversations that have not begun: messages for peers with whom there is no queue pair yet.
//!
//! ```text
//!   post ──▶ waits for its turn ──its turn, or a frame from the peer──▶ queue pair
//!                    │                                                      ▲
//!                    └──every message taken back──▶ only an account ──post──┘
//! ```
//!
//! A queue pair with its reaction point takes several times the memory. Where trees of congestion stand, most
//! of what is posted waits for good, and a fabric of a thousand nodes has no end of peers.

use crate::counters::OfferedLoad;
use crate::transport::message::Message;
use crate::transport::requester::Withdrawn;
use proto::ids::{Lid, VirtualLane};
use proto::units::Instant;
use slab::Slab;
use std::collections::VecDeque;

/// What there is of a conversation before its first frame.
#[derive(Clone, Debug)]
pub struct PendingConnection {
    /// Connection class.
    pub class: u8,
    /// The other end's port.
    pub peer: Lid,
    /// The lane it will send on.
    pub lane: VirtualLane,
    /// Its place in the service order of the adapter.
    pub key: u64,
    /// When its first message was posted.
    pub since: Instant,
    /// What it has been asked to carry.
    pub offer: OfferedLoad,
    /// What waits, oldest first.
    pub messages: VecDeque<Message>,
}

impl PendingConnection {
    /// One with its first message. Room is for that alone: hardly any gets a second before it begins.
    pub fn new(
        class: u8,
        peer: Lid,
        lane: VirtualLane,
        key: u64,
        first: Message,
    ) -> PendingConnection {
        let (since, offer, messages) =
            (first.posted, OfferedLoad::default(), VecDeque::with_capacity(1));
        let mut connection = PendingConnection { class, peer, lane, key, since, offer, messages };
        connection.post(first);
        connection
    }

    /// Takes a message over.
    pub fn post(&mut self, message: Message) {
        self.offer.on_post(message.item, message.size);
        self.messages.push_back(message);
    }

    fn is_waiting(&self) -> bool {
        !self.messages.is_empty()
    }
}

/// Those of one lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Keys and indexes in the order of service. Who has left since is told by the key.
    order: VecDeque<(u64, u32)>,
    waiting: usize,
}

/// All pending of an adapter.
#[derive(Clone, Debug)]
pub struct PendingConnections {
    pending: Slab<PendingConnection>,
    lanes: Vec<Lane>,
}

impl PendingConnections {
    /// For so many data lanes, with none.
    pub fn new(lanes: usize) -> PendingConnections {
        PendingConnections { pending: Slab::new(), lanes: vec![Lane::default(); lanes] }
    }

    /// A new one, whose first message has been posted; its index. Its key is above all there have been.
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

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pending.len()
    }

    /// The connection at `index`.
    pub fn get(&self, index: u32) -> &PendingConnection {
        &self.pending[index as usize]
    }

    /// The connection at `index` if messages of it wait.
    pub fn waiting(&mut self, index: u32) -> Option<&mut PendingConnection> {
        Some(&mut self.pending[index as usize]).filter(|connection| connection.is_waiting())
    }

    /// Whether any waits for its turn on `lane`.
    pub fn has_waiting(&self, lane: VirtualLane) -> bool {
        self.lanes[lane.index()].waiting > 0
    }

    /// Key and index of the one that is served first on `lane`.
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

    /// Takes the one at `index` out: its conversation begins.
    pub fn take(&mut self, index: u32) -> PendingConnection {
        let connection = self.pending.remove(index as usize);
        self.lanes[connection.lane.index()].waiting -= usize::from(connection.is_waiting());
        connection
    }

    /// Those for which messages of traffic item `item` wait, and of others.
    pub fn shared_by(&self, item: u16) -> Vec<u32> {
        let is_shared = |connection: &PendingConnection| {
            let of_item = connection.messages.iter().filter(|message| message.item == item);
            (1..connection.messages.len()).contains(&of_item.count())
        };
        let shared = self.pending.iter().filter(|(_, connection)| is_shared(connection));
        shared.map(|(index, _)| index as u32).collect()
    }

    /// Takes back the messages of traffic item `item`, which shares no connection with others; how many, by lane.
    pub fn withdraw(&mut self, item: u16) -> Vec<Withdrawn> {
        let mut withdrawn = vec![Withdrawn::default(); self.lanes.len()];
        for (_, connection) in &mut self.pending {
            if connection.messages.front().is_some_and(|message| message.item == item) {
                let lane = connection.lane.index();
                self.lanes[lane].waiting -= 1;
                let messages = connection.messages.len() as u64;
                connection.offer.withdrawn += messages;
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

    /// PendingConnections with these keys, each with a message of item 0.
    fn with_keys<const N: usize>(keys: [u64; N]) -> (PendingConnections, [u32; N]) {
        let mut pending = PendingConnections::new(1);
        let indexes = keys.map(|key| {
            let peer = Lid::new(key as u16);
            pending.add(PendingConnection::new(0, peer, LANE, key, message(key, 0)))
        });
        (pending, indexes)
    }

    #[test]
    fn they_are_served_in_the_order_of_their_keys() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        assert_eq!(pending.first(LANE), Some((3, first)));
        assert_eq!(pending.take(first).peer, Lid::new(3));
        assert_eq!(pending.first(LANE), Some((8, second)));
        pending.take(second);
        assert_eq!(pending.first(LANE), None);
        assert!(!pending.has_waiting(LANE));
    }

    #[test]
    fn a_place_that_is_taken_again_has_no_turn_before_its_own() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        let mut again = pending.take(first);
        again.key = 9;
        assert_eq!(pending.add(again), first, "the free place");
        assert_eq!(pending.first(LANE), Some((8, second)));
        pending.take(second);
        assert_eq!(pending.first(LANE), Some((9, first)));
    }

    #[test]
    fn whose_messages_are_taken_back_keeps_its_account_and_loses_its_turn() {
        let (mut pending, [first, second]) = with_keys([3, 8]);
        pending.waiting(second).expect("it waits").post(message(9, 1));
        assert_eq!(pending.shared_by(0), [second]);
        pending.take(second);
        assert_eq!(pending.withdraw(0), [Withdrawn { messages: 1, octets: 100 }]);
        assert!(pending.waiting(first).is_none() && !pending.has_waiting(LANE));
        assert_eq!(pending.first(LANE), None);
        let OfferedLoad { bytes, messages, withdrawn, .. } = pending.get(first).offer;
        assert_eq!((bytes, messages, withdrawn), (100, 1, 1));
        assert_eq!(pending.withdraw(0), [Withdrawn::default()], "once");
    }
}
