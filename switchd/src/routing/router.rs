//! The router of a switch: a forwarding table with a routing policy.

use super::forwarding_table::ForwardingTable;
use super::mac_table::MacTable;
use super::{CongestionReport, Lookup, NotificationAction, RoutedPacket, RoutingPolicy, Table};
use crate::config::SwitchConfig;
use crate::port_set::PortSet;
use proto::Technology;
use proto::congestion::Notification;
use proto::counters::DropReason;
use proto::frame::{FrameClass, FrameHeaders};
use proto::ids::{Address, Lid, PortNumber};
use proto::units::{Bytes, Instant};
use proto::wire::ethernet::{Cnm, Preface, ethertype, plan};
use proto::wire::project::ProjectTypes;

/// The outputs of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// One port.
    Unicast(PortNumber),
    /// The ports that each get a copy, except the port that received the packet.
    Multicast(&'a [PortNumber]),
    /// None; the packet is dropped for this reason.
    Drop(DropReason),
}

/// The router of one switch.
pub struct Router {
    table: Box<dyn Table>,
    policy: Box<dyn RoutingPolicy>,
    uses_notifications: bool,
    /// The latest result of [`RoutingPolicy::watched`].
    watched: PortSet,
}

impl Router {
    /// The router of a checked configuration.
    pub fn new(
        config: &SwitchConfig,
        policy: Box<dyn RoutingPolicy>,
        technology: Technology,
    ) -> Router {
        let table: Box<dyn Table> = match technology {
            Technology::Infiniband => {
                Box::new(ForwardingTable::new(&config.routes, &config.multicast))
            }
            Technology::Ethernet => {
                Box::new(MacTable::new(&config.routes, config.ports.len(), &config.routing.table))
            }
        };
        Router {
            uses_notifications: policy.uses_notifications(),
            watched: policy.watched(),
            table,
            policy,
        }
    }

    /// Routes a packet.
    #[inline]
    pub fn route(&mut self, packet: RoutedPacket<'_>) -> Decision<'_> {
        match self.table.find(packet) {
            Lookup::Unicast(&[port]) => Decision::Unicast(port),
            Lookup::Unicast(legal) => Decision::Unicast(self.policy.choose(packet, legal)),
            Lookup::Multicast(ports) => Decision::Multicast(ports),
            Lookup::NoRoute(reason) => Decision::Drop(reason),
        }
    }

    /// Routes an adapter by `output` alone, or not at all, from the next packet on.
    pub fn set_route(&mut self, adapter: Lid, output: Option<PortNumber>) {
        self.table.set_route(adapter, output);
    }

    /// Routes a group by these outputs, from the next packet on.
    pub fn set_multicast(&mut self, group: Lid, outputs: Vec<PortNumber>) {
        self.table.set_multicast(group, outputs);
    }

    /// Whether a packet with these headers must pass through [`Router::on_notification`].
    #[inline]
    pub fn inspects(&self, headers: &FrameHeaders) -> bool {
        self.uses_notifications && headers.class == FrameClass::Notification
    }

    /// Passes a notification that arrived at `port` to the policy. Messages without a congested destination
    /// are forwarded.
    pub fn on_notification(
        &mut self,
        port: PortNumber,
        octets: &[u8],
        now: Instant,
    ) -> NotificationAction {
        let Some((destination, severity)) = congested_destination(octets) else {
            return NotificationAction::Forward;
        };
        let legal = self.table.ports_to(destination);
        let heard = CongestionReport { port, destination, legal, severity, now };
        let passage = self.policy.on_notification(heard);
        self.watched = self.policy.watched();
        passage
    }

    /// Passes a notification of this switch to the policy. The sampled frame goes from `input` to `output`
    /// and on to `destination`. Returns the port by which the message must leave; `None` if it is routed like
    /// any other frame.
    pub fn on_local_notification(
        &mut self,
        notification: &Notification,
        destination: Address,
        (input, output): (PortNumber, PortNumber),
        now: Instant,
    ) -> Option<PortNumber> {
        if !self.uses_notifications {
            return None;
        }
        let adapter = plan::adapter_of(destination);
        if let (Notification::Cnm(body), Some(destination)) = (notification, adapter) {
            let legal = self.table.ports_to(destination);
            let severity = u32::from(body.quantized_feedback);
            self.policy.on_local_notification(CongestionReport {
                port: output,
                destination,
                legal,
                severity,
                now,
            });
            self.watched = self.policy.watched();
        }
        self.policy.returns_to_input().then_some(input)
    }

    /// Whether `output` needs [`Router::on_departure`].
    #[inline]
    pub fn watches(&self, output: PortNumber) -> bool {
        self.watched.contains(output)
    }

    /// A frame left a watched output, whose queue still holds `standing` octets.
    pub fn on_departure(&mut self, output: PortNumber, standing: Bytes) {
        self.policy.on_departure(output, standing);
        self.watched = self.policy.watched();
    }

    /// When [`Router::handle_timeout`] is needed.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        if self.uses_notifications { self.policy.poll_timeout() } else { Instant::NEVER }
    }

    /// Applies the timers that expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout() <= now {
            self.policy.handle_timeout(now);
            self.watched = self.policy.watched();
        }
    }

    /// Adds the totals of the port, under operators' names.
    pub fn read(&self, port: PortNumber, named: &mut Vec<(String, u64)>) {
        self.table.read(port, named);
        self.policy.read(port, named);
    }
}

/// The congested destination and the quantized feedback of a CNM; `None` for other frames and for zero
/// feedback. Source: IEEE 802.1Q, 33.4.
fn congested_destination(octets: &[u8]) -> Option<(Lid, u32)> {
    let preface = Preface::parse(octets, &ProjectTypes::DEFAULT).ok()?;
    if preface.ethertype() != ethertype::CNM {
        return None;
    }
    let (cnm, _) = Cnm::parse_message(&octets[preface.octets_len()..]).ok()?;
    let destination = plan::adapter_of_mac(cnm.encapsulated_destination)?;
    (cnm.quantized_feedback > 0).then_some((destination, cnm.quantized_feedback.into()))
}
