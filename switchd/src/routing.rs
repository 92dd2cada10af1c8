//! Which ports a packet leaves by: tables first, and a place for policies that choose among ports.
//!
//! A policy is one file in `routing/` and one row in [`policies`].

use proto::counters::DropReason;
use proto::frame::FrameHeaders;
use proto::ids::PortNumber;
use proto::units::Instant;

pub mod flow_hash;
pub mod forwarding_table;
pub mod mac_table;
pub mod policies;

/// A packet on its way through the switch.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// The port it came in by.
    pub input: PortNumber,
    /// What its headers say.
    pub headers: &'a FrameHeaders,
    /// All of it, for what the headers do not say.
    pub octets: &'a [u8],
    /// The time.
    pub now: Instant,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// Out by one port.
    Unicast(PortNumber),
    /// A copy out by each of these, but not by the one it came in on.
    Multicast(&'a [PortNumber]),
    /// Nowhere.
    Drop(DropReason),
}

/// Chooses the ports for a packet.
pub trait RoutingPolicy: Send {
    /// Where a packet goes.
    fn route(&mut self, packet: Passing<'_>) -> Decision<'_>;

    /// Adds totals of the port, under operators' names.
    fn read(&self, _port: PortNumber, _named: &mut Vec<(String, u64)>) {}
}
