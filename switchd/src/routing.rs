//! Routing: a table lists the ports that lead to a destination, and a policy chooses among them.
//!
//! There is one table for each technology. A policy is one file in `routing/` and one row in [`policies`].
//! [`router`] combines a table and a policy; the switch uses nothing else.

use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::frame::FrameHeaders;
use proto::ids::{Lid, PortNumber};
use proto::units::{Bytes, Instant};

pub mod adaptive;
pub mod flow_hash;
pub mod forwarding_table;
pub mod mac_table;
pub mod oblivious;
pub mod policies;
pub mod router;

/// A packet that needs a route.
#[derive(Clone, Copy, Debug)]
pub struct RoutedPacket<'a> {
    /// The port that received it.
    pub input: PortNumber,
    /// Its parsed headers.
    pub headers: &'a FrameHeaders,
    /// All octets of the frame.
    pub octets: &'a [u8],
    /// The present time.
    pub now: Instant,
}

/// The result of a table lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The ports that lead to the destination, the preferred one first; at least one.
    Unicast(&'a [PortNumber]),
    /// The ports that each get a copy, except the port that received the packet.
    Multicast(&'a [PortNumber]),
    /// No route; the packet is dropped for this reason.
    NoRoute(DropReason),
}

/// A forwarding table.
pub trait Table: Send {
    /// Looks up the destination of a packet.
    fn find(&mut self, packet: RoutedPacket<'_>) -> Lookup<'_>;

    /// The ports that lead to an adapter, the preferred one first; empty without a route.
    fn ports_to(&self, adapter: Lid) -> &[PortNumber];

    /// Routes an adapter by `output` alone, or not at all. Only tables of InfiniBand change while they run.
    fn set_route(&mut self, _adapter: Lid, _output: Option<PortNumber>) {}

    /// Routes a group by these outputs. Only tables of InfiniBand change while they run.
    fn set_multicast(&mut self, _group: Lid, _outputs: Vec<PortNumber>) {}

    /// Adds the totals of the port, under operators' names.
    fn read(&self, _port: PortNumber, _named: &mut Vec<(String, u64)>) {}
}

/// Congestion behind a port, as a notification reports it.
#[derive(Clone, Copy, Debug)]
pub struct CongestionReport<'a> {
    /// The port that received the notification; for a notification of this switch, the congested output.
    pub port: PortNumber,
    /// The destination of the sampled frame.
    pub destination: Lid,
    /// The ports that lead to it.
    pub legal: &'a [PortNumber],
    /// The quantized feedback, 1 to 63.
    pub severity: u32,
    /// The present time.
    pub now: Instant,
}

/// What the switch does with a received notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationAction {
    /// Forward it to the source.
    Forward,
    /// Consume it.
    Absorb,
    /// Drop it: no station behind that port may send it.
    Refuse,
}

/// Chooses one of several ports that lead to a destination. A policy may use notifications, queue levels and
/// timers.
pub trait RoutingPolicy: Send {
    /// The port by which a packet leaves: one of `legal`, which has at least two ports.
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber;

    /// Whether the policy uses notifications; constant.
    fn uses_notifications(&self) -> bool {
        false
    }

    /// A notification arrived.
    fn on_notification(&mut self, _heard: CongestionReport<'_>) -> NotificationAction {
        NotificationAction::Forward
    }

    /// A congestion point of this switch sends a notification.
    fn on_local_notification(&mut self, _made: CongestionReport<'_>) {}

    /// Whether a notification of this switch leaves by the port that received the sampled frame. Otherwise it
    /// is routed like any other frame.
    fn returns_to_input(&self) -> bool {
        false
    }

    /// The outputs whose departures the policy needs.
    fn watched(&self) -> PortSet {
        PortSet::EMPTY
    }

    /// A frame left a watched output, whose queue still holds `standing` octets.
    fn on_departure(&mut self, _output: PortNumber, _standing: Bytes) {}

    /// When [`RoutingPolicy::handle_timeout`] is needed.
    fn poll_timeout(&self) -> Instant {
        Instant::NEVER
    }

    /// Applies the timers that expired by `now`.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Adds the totals of the port, under operators' names.
    fn read(&self, _port: PortNumber, _named: &mut Vec<(String, u64)>) {}
}
