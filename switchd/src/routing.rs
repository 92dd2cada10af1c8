//! Which ports a packet leaves by: a table names those that lead to its destination, a policy chooses
//! among them.
//!
//! There is one table for each technology. A policy is one file in `routing/` and one row in [`policies`]. Tables and
//! policies meet in [`router`], which is all that the switch knows of them.

use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::frame::FrameHeaders;
use proto::ids::{Lid, PortNumber};
use proto::units::{Bytes, Instant};

pub mod adaptive;
pub mod colored;
pub mod ecmp;
pub mod flow_hash;
pub mod forwarding_table;
pub mod mac_table;
pub mod policies;
pub mod preferred;
pub mod random;
pub mod router;
pub mod s_mod_k;

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

/// What a table says of a packet's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// Any one of these leads there; the first is preferred. There is at least one.
    Legal(&'a [PortNumber]),
    /// A copy goes out by each of these, but not by the one it came in on.
    Multicast(&'a [PortNumber]),
    /// Nothing leads there.
    Nowhere(DropReason),
}

/// Knows which ports lead to a destination.
pub trait Table: Send {
    /// Where a packet may go.
    fn find(&mut self, packet: Passing<'_>) -> Found<'_>;

    /// The ports that lead to an adapter, by preference; none if no route does.
    fn ports_to(&self, adapter: Lid) -> &[PortNumber];

    /// Adds totals of the port, under operators' names.
    fn read(&self, _port: PortNumber, _named: &mut Vec<(String, u64)>) {}
}

/// A notification of congestion.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The port it came in by; of a notification of this switch's own, the output where the congestion is.
    pub port: PortNumber,
    /// To whom the sampled frame was going.
    pub destination: Lid,
    /// The ports that lead there.
    pub legal: &'a [PortNumber],
    /// How strong the congestion is, at least 1.
    pub severity: u32,
    /// The time.
    pub now: Instant,
}

/// What becomes of a notification that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes on to the source.
    Forward,
    /// It ends here.
    Absorb,
    /// Nobody who sends by that port may say that.
    Refuse,
}

/// Chooses a port among the legal ones. It may watch congestion; then it hears of notifications and of
/// queues, and keeps timers.
pub trait RoutingPolicy: Send {
    /// The port that a packet leaves by, one of `legal`, of which there are several.
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber;

    /// Whether it wants to hear of notifications. It does not change its mind.
    fn listens(&self) -> bool {
        false
    }

    /// A notification came in.
    fn on_notification(&mut self, _heard: Heard<'_>) -> Passage {
        Passage::Forward
    }

    /// A congestion point of this switch has something to say.
    fn on_own_notification(&mut self, _made: Heard<'_>) {}

    /// Whether a notification of this switch's own goes back by the port where the sampled frame came in;
    /// else it is routed like any other frame.
    fn answers_backwards(&self) -> bool {
        false
    }

    /// Outputs of which it wants to hear when something has left.
    fn watched(&self) -> PortSet {
        PortSet::EMPTY
    }

    /// A frame has left a watched output, and so much still stands there.
    fn on_departure(&mut self, _output: PortNumber, _standing: Bytes) {}

    /// When [`RoutingPolicy::handle_timeout`] is needed.
    fn poll_timeout(&self) -> Instant {
        Instant::NEVER
    }

    /// Lets time pass.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Adds totals of the port, under operators' names.
    fn read(&self, _port: PortNumber, _named: &mut Vec<(String, u64)>) {}
}
