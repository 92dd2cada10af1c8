//! Which ports a packet leaves by: tables first, and a place for policies that choose among ports.

use proto::ids::{Lid, PortNumber};

pub mod forwarding_table;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// Out by one port.
    Unicast(PortNumber),
    /// A copy out by each of these, but not by the one it came in on.
    Multicast(&'a [PortNumber]),
    /// Nobody told us.
    Unknown,
}

/// Chooses the ports for a destination.
pub trait RoutingPolicy: Send {
    /// Where a packet to `destination` goes.
    fn route(&self, destination: Lid) -> Decision<'_>;
}
