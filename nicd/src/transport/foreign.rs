//! Queue pairs to foreign hosts: they ask for a connection, and send when they have one.
//!
//! A queue pair of the plan needs no connection, because both ends know its numbers. To a foreign host the
//! connection manager of the NIC's host agrees on numbers, PSN and path MTU first. Messages posted before that wait.

use crate::transport::adapter::ChannelAdapter;
use proto::ids::{Lid, MacAddress, Psn, QueuePairNumber};
use proto::units::Instant;

/// A queue pair that needs a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Its number.
    pub number: QueuePairNumber,
    /// The foreign host.
    pub peer: Lid,
}

/// What the foreign host has agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its MAC address.
    pub mac: MacAddress,
    /// The number of its queue pair.
    pub remote: QueuePairNumber,
    /// The first PSN to send.
    pub starting_psn: Psn,
    /// Path MTU in octets.
    pub mtu: u32,
    /// Address and R_Key of its memory, from the private data of its answer.
    pub memory: Option<(u64, u32)>,
}

impl ChannelAdapter {
    /// Queues a new queue pair for a connection if its peer is a foreign host.
    pub(super) fn ask_for_connection(&mut self, index: u32) {
        let pair = &mut self.queue_pairs[index as usize];
        if self.config.remotes().any(|lid| lid == pair.peer) {
            pair.requester.hold();
            self.to_connect.push_back(index);
        }
    }

    /// The next queue pair that needs a connection.
    pub fn poll_connect(&mut self) -> Option<ConnectRequest> {
        let pair = &self.queue_pairs[self.to_connect.pop_front()? as usize];
        Some(ConnectRequest { number: pair.number, peer: pair.peer })
    }

    /// The connection of queue pair `number` is set up, or refused, or has ended.
    pub fn on_connection(&mut self, number: QueuePairNumber, terms: Option<&Terms>, now: Instant) {
        let Some((class, peer)) = number.plan() else { return };
        let Some(index) = self.connections.queue_pair(class, peer) else { return };
        let pair = &mut self.queue_pairs[index as usize];
        let writes = pair.config.operation == crate::config::Operation::Write;
        let terms = terms.filter(|terms| !writes || terms.memory.is_some());
        let Some(terms) = terms else {
            self.give_up(index, now);
            return self.reschedule(index, now, now);
        };
        (pair.remote, pair.path_mtu) = (terms.remote, terms.mtu);
        pair.memory = terms.memory.unwrap_or(pair.memory);
        pair.requester.open(terms.starting_psn, terms.mtu);
        self.wire.learn(peer, terms.mac);
        self.reschedule(index, now, now);
    }
}
