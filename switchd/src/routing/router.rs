//! A table and a policy put together: where each packet goes, and what is overheard on the way.

use super::forwarding_table::ForwardingTable;
use super::mac_table::MacTable;
use super::{Found, Heard, Passage, Passing, RoutingPolicy, Table};
use crate::config::SwitchConfig;
use crate::port_set::PortSet;
use proto::congestion::Notification;
use proto::counters::DropReason;
use proto::frame::{FrameClass, FrameHeaders};
use proto::ids::{Lid, PortNumber};
use proto::units::{Bytes, Instant};
use proto::wire::ethernet::{Cnm, MacAddress, Preface, ethertype, plan};
use proto::wire::project::ProjectTypes;

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

/// The routing of one switch.
pub struct Router {
    table: Box<dyn Table>,
    policy: Box<dyn RoutingPolicy>,
    listens: bool,
    /// As the policy said last.
    watched: PortSet,
}

impl Router {
    /// The routing of a configuration that has been checked.
    pub fn new(config: &SwitchConfig, policy: Box<dyn RoutingPolicy>, ethernet: bool) -> Router {
        let table: Box<dyn Table> = if ethernet {
            Box::new(MacTable::new(&config.routes, config.ports.len(), &config.routing.table))
        } else {
            Box::new(ForwardingTable::new(&config.routes, &config.multicast))
        };
        Router::of(table, policy)
    }

    /// A table with a policy.
    pub fn of(table: Box<dyn Table>, policy: Box<dyn RoutingPolicy>) -> Router {
        Router { listens: policy.listens(), watched: policy.watched(), table, policy }
    }

    /// Where a packet goes.
    #[inline]
    pub fn route(&mut self, packet: Passing<'_>) -> Decision<'_> {
        match self.table.find(packet) {
            Found::Legal(&[port]) => Decision::Unicast(port),
            Found::Legal(legal) => Decision::Unicast(self.policy.choose(packet, legal)),
            Found::Multicast(ports) => Decision::Multicast(ports),
            Found::Nowhere(reason) => Decision::Drop(reason),
        }
    }

    /// Whether a packet with these headers should be shown to [`Router::hear`].
    #[inline]
    pub fn listens_to(&self, headers: &FrameHeaders) -> bool {
        self.listens && headers.class == FrameClass::Notification
    }

    /// Overhears a notification that came in by `port`. What is none that says where there is congestion
    /// just passes.
    pub fn hear(&mut self, port: PortNumber, octets: &[u8], now: Instant) -> Passage {
        let Some((destination, severity)) = said(octets) else { return Passage::Forward };
        let legal = self.table.ports_to(destination);
        let heard = Heard { port, destination, legal, severity, now };
        let passage = self.policy.on_notification(heard);
        self.watched = self.policy.watched();
        passage
    }

    /// A congestion point of this switch said `notification` of a frame to `destination` that waits for
    /// `output`, having come in by `input`. The port by which the message leaves, where its route is not
    /// that of any other frame.
    pub fn on_own(
        &mut self,
        notification: &Notification,
        destination: u64,
        (input, output): (PortNumber, PortNumber),
        now: Instant,
    ) -> Option<PortNumber> {
        if !self.listens {
            return None;
        }
        let adapter = plan::adapter_of_mac(MacAddress::from_number(destination));
        if let (Notification::Cnm(body), Some(destination)) = (notification, adapter) {
            let legal = self.table.ports_to(destination);
            let severity = u32::from(body.quantized_feedback);
            self.policy.on_own_notification(Heard {
                port: output,
                destination,
                legal,
                severity,
                now,
            });
            self.watched = self.policy.watched();
        }
        self.policy.answers_backwards().then_some(input)
    }

    /// Whether [`Router::on_departure`] is wanted for `output`.
    #[inline]
    pub fn watches(&self, output: PortNumber) -> bool {
        self.watched.contains(output)
    }

    /// A frame has left a watched output, and so much still stands there.
    pub fn on_departure(&mut self, output: PortNumber, standing: Bytes) {
        self.policy.on_departure(output, standing);
        self.watched = self.policy.watched();
    }

    /// When [`Router::handle_timeout`] is needed.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        if self.listens { self.policy.poll_timeout() } else { Instant::NEVER }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout() <= now {
            self.policy.handle_timeout(now);
            self.watched = self.policy.watched();
        }
    }

    /// Adds totals of the port, under operators' names.
    pub fn read(&self, port: PortNumber, named: &mut Vec<(String, u64)>) {
        self.table.read(port, named);
        self.policy.read(port, named);
    }
}

/// To whom frames meet congestion and how bad it is, by a message of 802.1Q. One without severity
/// says nothing. Source: IEEE 802.1Q, 33.4.
fn said(octets: &[u8]) -> Option<(Lid, u32)> {
    let preface = Preface::parse(octets, &ProjectTypes::DEFAULT).ok()?;
    if preface.ethertype() != ethertype::CNM {
        return None;
    }
    let (cnm, _) = Cnm::parse_message(&octets[preface.octets_len()..]).ok()?;
    let destination = plan::adapter_of_mac(cnm.encapsulated_destination)?;
    (cnm.quantized_feedback > 0).then_some((destination, cnm.quantized_feedback.into()))
}
