//! The connections of a host stack, found by identifier or by queue pair.

use crate::host::connection::{Connection, State};
use proto::ids::QueuePairNumber;
use proto::units::Instant;
use std::net::IpAddr;

/// Connections at most, those in Timewait included.
pub const CONNECTIONS_MAX: usize = 256;

/// The table of connections.
#[derive(Debug, Default)]
pub struct Connections {
    all: Vec<Connection>,
}

impl Connections {
    /// Adds a connection. False if the table is full.
    pub fn add(&mut self, connection: Connection) -> bool {
        if self.all.len() == CONNECTIONS_MAX {
            // Timewait protects late packets; a new connection is worth more.
            let Some(at) = self.all.iter().position(|old| old.state == State::Timewait) else {
                return false;
            };
            self.all.remove(at);
        }
        self.all.push(connection);
        true
    }

    /// The connection with this own identifier and this peer.
    pub fn find(&mut self, local_id: u32, peer: IpAddr) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| known.local_id == local_id && known.peer == peer)
    }

    /// The connection with this identifier of the peer.
    pub fn find_remote(&mut self, remote_id: u32, peer: IpAddr) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| known.remote_id == remote_id && known.peer == peer)
    }

    /// The connection of the own queue pair `number` that is not in Timewait.
    pub fn of_queue_pair(&mut self, number: QueuePairNumber) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| known.number == number && known.state != State::Timewait)
    }

    /// The connection that the peer's queue pair `remote` has, apart from Timewait.
    pub fn of_remote(&mut self, remote: QueuePairNumber, peer: IpAddr) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| {
            (known.remote, known.peer) == (remote, peer) && known.state != State::Timewait
        })
    }

    /// A connection whose deadline has passed.
    pub fn expired(&mut self, now: Instant) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| known.due <= now)
    }

    /// Forgets the connection with this own identifier.
    pub fn remove(&mut self, local_id: u32) {
        self.all.retain(|known| known.local_id != local_id);
    }

    /// When [`Connections::expired`] finds one next.
    pub fn poll_timeout(&self) -> Instant {
        self.all.iter().map(|known| known.due).min().unwrap_or(Instant::NEVER)
    }
}
