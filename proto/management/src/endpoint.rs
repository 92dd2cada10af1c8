//! The management of one device: its agents, the program beside it, and the datagrams on their way.
//!
//! ```text
//!   packet of VL15, or of QP1 ──▶ receive ──▶ an agent answers ──▶ poll_outgoing ──▶ the device sends it
//!                                    │  └───▶ the program beside gets it (poll_client)
//!                                    └──────▶ it goes on along its route (Verdict)
//! ```
//!
//! Requests that nothing asked for never reach the program, except those of a subnet manager's own classes.
//! Source: IBTA Vol 1, 13.5 (GSI and SMI), 14.2.2 (directed routes).

use crate::agent::partitions::Checkpoint;
use crate::agent::performance::Totals;
use crate::agent::port::PortState;
use crate::agent::{Agents, Outcome};
use crate::attribute::subnet::{notice, sm_info};
use crate::datagram::{self, Datagram, method};
use crate::directed_route::{self, Step};
use crate::packet::{self, Addresses};
use crate::partitions::BadPartition;
use crate::resolver;
use bytes::BytesMut;
use proto::counters::DropReason;
use proto::device::ManagementDatagram;
use proto::ids::{Lid, PortNumber, VirtualLane};
use proto::units::Instant;
use std::collections::VecDeque;

/// Datagrams for the program beside the device that wait at most; further ones are dropped.
const CLIENT_MAX: usize = 1024;

/// How a datagram leaves the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By this port.
    Port(PortNumber),
    /// As the forwarding table leads to this LID.
    ByLid(Lid),
}

/// A datagram that the device must send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// How it leaves.
    pub way: Way,
    /// Its addresses.
    pub addresses: Addresses,
    /// The datagram.
    pub datagram: Datagram,
}

/// What happens to a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ends here.
    Taken,
    /// It goes on: its octets are those to send.
    Forward(Way),
    /// It is dropped and counted.
    Drop(DropReason),
}

/// The management of one device.
#[derive(Debug)]
pub struct Management {
    /// The agents.
    pub agents: Agents,
    client: VecDeque<ManagementDatagram>,
    /// Answers to requests of the device itself.
    own: VecDeque<(Lid, Datagram)>,
    outgoing: VecDeque<Outgoing>,
}

impl Management {
    /// The management of a device with these agents.
    pub fn new(agents: Agents) -> Management {
        Management {
            agents,
            client: VecDeque::new(),
            own: VecDeque::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// Handles a packet of VL15, or one for QP1 of this node, whose link checks hold. `totals` reads the counters of
    /// a port.
    pub fn receive(
        &mut self,
        octets: &mut BytesMut,
        arrival: PortNumber,
        totals: &mut dyn FnMut(PortNumber) -> Totals,
        now: Instant,
    ) -> Verdict {
        let (addresses, mut datagram) = match packet::parse(octets) {
            Ok(parsed) => parsed,
            Err(reason) => return Verdict::Drop(reason),
        };
        let destination = addresses.destination;
        let is_here = destination == Lid::PERMISSIVE || self.agents.owns(destination);
        let is_subnet = addresses.lane == VirtualLane::MANAGEMENT;
        if is_subnet != datagram.is_subnet_management() {
            return Verdict::Drop(DropReason::QueuePair);
        }
        if !is_here {
            return match self.agents.is_switch() {
                true => Verdict::Forward(Way::ByLid(destination)),
                false => Verdict::Drop(DropReason::NotForUs),
            };
        }
        if !is_subnet && self.agents.partitions(0).find(addresses.partition).is_none() {
            if let Some(packet) = BadPartition::of(octets) {
                self.agents.note_bad_partition(Checkpoint::End, &packet, now);
            }
            return Verdict::Drop(DropReason::PartitionKey);
        }
        if !datagram.is_directed() {
            return self.deliver(addresses, datagram, Some(arrival), totals, now);
        }
        let place = self.agents.place(arrival.get());
        match directed_route::receive(&mut datagram, place) {
            Step::Agent => self.deliver(addresses, datagram, Some(arrival), totals, now),
            Step::Client => self.hand_over(&addresses, datagram),
            Step::Discard => Verdict::Drop(DropReason::Management),
            Step::Port(port) => match self.open_port(port) {
                None => Verdict::Drop(DropReason::LinkState),
                Some(port) => {
                    // Only the part along the directed route is left: the LIDs do not count on it.
                    let addresses = Addresses::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE);
                    packet::emit(&addresses, &datagram, octets);
                    Verdict::Forward(Way::Port(port))
                }
            },
            Step::ByLid(lid) => {
                packet::emit(&Addresses::subnet(self.agents.lid(), lid), &datagram, octets);
                Verdict::Forward(Way::ByLid(lid))
            }
        }
    }

    /// Sends a datagram of the program beside the device.
    pub fn send(
        &mut self,
        message: ManagementDatagram,
        totals: &mut dyn FnMut(PortNumber) -> Totals,
        now: Instant,
    ) {
        let mut datagram = Datagram(*message.octets);
        let own = self.agents.lid();
        let peer = message.peer;
        let addresses = match datagram.is_subnet_management() {
            true => Addresses::subnet(own, peer),
            false => Addresses {
                partition: self.agents.partitions(0).first(),
                ..Addresses::general(own, peer, message.queue_pair.get(), VirtualLane::ZERO)
            },
        };
        if datagram.is_directed() && datagram.is_response() {
            // A manager answers another: its answer returns along the path of the request.
            let is_local = datagram.get(&datagram::HOP_COUNT) == 0;
            return self.answer(Addresses::subnet(peer, own), datagram, is_local);
        }
        let starts_here = datagram.is_directed()
            && datagram.get(&datagram::DR_SLID) == u64::from(Lid::PERMISSIVE.get());
        if starts_here {
            let addresses = Addresses::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE);
            match directed_route::send(&mut datagram) {
                Step::Agent => {
                    self.deliver(addresses, datagram, None, totals, now);
                }
                Step::Port(port) => {
                    if let Some(port) = self.open_port(port) {
                        self.outgoing.push_back(Outgoing {
                            way: Way::Port(port),
                            addresses,
                            datagram,
                        });
                    }
                }
                Step::Client | Step::ByLid(_) | Step::Discard => {}
            }
        } else if peer == Lid::PERMISSIVE || self.agents.owns(peer) {
            self.deliver(addresses, datagram, None, totals, now);
        } else {
            self.outgoing.push_back(Outgoing { way: Way::ByLid(peer), addresses, datagram });
        }
    }

    /// The next datagram that the device must send.
    pub fn poll_outgoing(&mut self, now: Instant) -> Option<Outgoing> {
        while let Some(datagram) = self.agents.poll_trap(now) {
            let (own, manager) = (self.agents.lid(), self.agents.manager());
            let addresses = Addresses::subnet(own, manager);
            if self.agents.owns(manager) {
                self.hand_over(&addresses, datagram);
            } else {
                self.outgoing.push_back(Outgoing { way: Way::ByLid(manager), addresses, datagram });
            }
        }
        self.outgoing.pop_front()
    }

    /// The next datagram for the program beside the device.
    pub fn poll_client(&mut self) -> Option<ManagementDatagram> {
        self.client.pop_front()
    }

    /// The next answer to a request of the device itself, and the LID it came from.
    pub fn poll_own(&mut self) -> Option<(Lid, Datagram)> {
        self.own.pop_front()
    }

    /// Has an agent handle a datagram for this node. `arrival` is `None` for one of the program beside it.
    fn deliver(
        &mut self,
        addresses: Addresses,
        mut datagram: Datagram,
        arrival: Option<PortNumber>,
        totals: &mut dyn FnMut(PortNumber) -> Totals,
        now: Instant,
    ) -> Verdict {
        let is_local = arrival.is_none();
        let own_port = u8::from(!self.agents.is_switch());
        let arrival = arrival.map_or(own_port, PortNumber::get);
        match self.agents.receive(&mut datagram, arrival, is_local, totals, now) {
            Outcome::Taken => Verdict::Taken,
            Outcome::Refused(reason) => Verdict::Drop(reason),
            Outcome::Client => self.hand_over(&addresses, datagram),
            Outcome::Answer => {
                self.answer(addresses, datagram, is_local);
                Verdict::Taken
            }
        }
    }

    /// Sends an answer back the way its request came.
    fn answer(&mut self, request: Addresses, mut datagram: Datagram, is_local: bool) {
        let own = self.agents.lid();
        let mut addresses = Addresses { source: own, ..request.reversed() };
        if !datagram.is_subnet_management() {
            // The answer has the key of the entry that the request matched.
            let entry = self.agents.partitions(0).find(request.partition);
            addresses.partition = entry.unwrap_or(request.partition);
        }
        let way = match datagram.is_directed() {
            false => Step::ByLid(request.source),
            true => directed_route::respond(&mut datagram, request.source),
        };
        match way {
            _ if is_local => {
                self.hand_over(&Addresses { source: request.destination, ..addresses }, datagram);
            }
            Step::Port(port) => {
                let Some(port) = self.open_port(port) else { return };
                addresses = Addresses::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE);
                self.outgoing.push_back(Outgoing { way: Way::Port(port), addresses, datagram });
            }
            Step::ByLid(lid) => {
                addresses.destination = lid;
                self.outgoing.push_back(Outgoing { way: Way::ByLid(lid), addresses, datagram });
            }
            Step::Client | Step::Agent | Step::Discard => {}
        }
    }

    /// Hands a datagram to the program beside the device, if it may get it.
    fn hand_over(&mut self, addresses: &Addresses, datagram: Datagram) -> Verdict {
        if !datagram.is_response() && !self.is_for_manager(&datagram) {
            return Verdict::Drop(DropReason::Management);
        }
        if self.client.len().max(self.own.len()) >= CLIENT_MAX {
            return Verdict::Drop(DropReason::ManagementOverrun);
        }
        let (peer, queue_pair) = (addresses.source, addresses.source_pair);
        if resolver::is_own(&datagram) {
            self.own.push_back((peer, datagram));
            return Verdict::Taken;
        }
        let octets = Box::new(datagram.0);
        self.client.push_back(ManagementDatagram { peer, queue_pair, octets });
        Verdict::Taken
    }

    /// Whether a request is for the subnet manager, and there is one.
    fn is_for_manager(&self, datagram: &Datagram) -> bool {
        let is_its_own = match datagram.class() {
            datagram::ADMINISTRATION => true,
            _ if !datagram.is_subnet_management() => false,
            _ => match datagram.method() {
                method::TRAP => datagram.attribute() == notice::ATTRIBUTE.id,
                _ => datagram.attribute() == sm_info::ATTRIBUTE.id,
            },
        };
        is_its_own && self.agents.has_manager()
    }

    /// The port, if it exists and its link is there.
    fn open_port(&self, port: u8) -> Option<PortNumber> {
        let number = PortNumber::new(port).ok()?;
        let state = self.agents.port_state(port)?;
        (state > PortState::Down).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{ManagementConfig, NodeKind};
    use crate::datagram::{BASE_VERSION, HOP_COUNT, HOP_POINTER, PERFORMANCE, SUBNET_DIRECTED};
    use proto::ids::QueuePairNumber;
    use proto::link::credit::{LinkState, Observation};
    use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
    use proto::units::{BitRate, Bytes};
    use proto::wire::infiniband::{ExtendedHeaders, Grh, Opcode, Packet, PacketBuilder};

    fn node(kind: NodeKind) -> Management {
        let link = LinkConfig {
            rate: BitRate::gbps(8),
            mtu: Bytes::new(2048),
            buffer: Bytes::new(1 << 16),
            control: FlowControlConfig::Credit(CreditConfig::default()),
        };
        let links = [&link, &link];
        let ports = if kind == NodeKind::Switch { 2 } else { 1 };
        let config = ManagementConfig { guid: 0x100 };
        Management::new(Agents::new(kind, "n1", &config, &links[..ports]))
    }

    fn hand_in(management: &mut Management, octets: &mut BytesMut) -> Verdict {
        let none = &mut |_| Totals::default();
        management.receive(octets, PortNumber::from_index(0), none, Instant::ZERO)
    }

    fn emitted(addresses: &Addresses, datagram: &Datagram) -> BytesMut {
        let mut octets = BytesMut::new();
        packet::emit(addresses, datagram, &mut octets);
        octets
    }

    #[test]
    fn each_fault_of_a_packet_has_its_own_reason() {
        const HERE: Lid = Lid::PERMISSIVE;
        let subnet = Addresses::subnet(HERE, HERE);
        let general = Addresses::general(HERE, HERE, 1, VirtualLane::ZERO);
        let get = |class| Datagram::request(class, method::GET, 0x11, 0, 7);
        let (own, performance) = (get(SUBNET_DIRECTED), get(PERFORMANCE));
        let amended = |addresses, datagram, size, amend: &dyn Fn(&mut PacketBuilder)| {
            let octets = emitted(addresses, datagram);
            let packet = Packet::parse(&octets).expect("a good packet");
            let mut builder = PacketBuilder::of(&packet).expect("it is not raw");
            amend(&mut builder);
            let mut amended = BytesMut::new();
            let fill = |payload: &mut [u8]| payload.copy_from_slice(&packet.payload[..size]);
            builder.emit(&mut amended, size, fill).expect("it is short");
            amended
        };
        let size = Datagram::LEN;
        let send_only = |builder: &mut PacketBuilder| {
            builder.bth.opcode = Opcode::RC_SEND_ONLY;
            builder.extended = ExtendedHeaders::NONE;
        };
        let global = |builder: &mut PacketBuilder| builder.grh = Some(Grh::default());
        let with_key = |builder: &mut PacketBuilder| {
            builder.extended.deth.as_mut().expect("a datagram").queue_key = 5;
        };
        let other_version = {
            let mut datagram = own.clone();
            datagram.set(&BASE_VERSION, 2);
            datagram
        };
        let trap = Datagram::request(SUBNET_DIRECTED, method::TRAP, notice::ATTRIBUTE.id, 0, 7);
        let from = |addresses: Addresses| {
            move |change: fn(&mut Addresses)| {
                let mut addresses = addresses;
                change(&mut addresses);
                addresses
            }
        };
        let (subnet_but, general_but) = (from(subnet), from(general));
        let cases = [
            (amended(&subnet, &own, size, &send_only), DropReason::Opcode),
            (amended(&subnet, &own, size - 4, &|_| {}), DropReason::PacketLength),
            (amended(&subnet, &own, size, &global), DropReason::GlobalHeader),
            (
                emitted(&subnet_but(|to| to.pair = QueuePairNumber::truncate(1)), &own),
                DropReason::QueuePair,
            ),
            (amended(&general, &performance, size, &with_key), DropReason::Key),
            (emitted(&general, &own), DropReason::QueuePair),
            (emitted(&subnet_but(|to| to.destination = Lid::new(9)), &own), DropReason::NotForUs),
            (
                emitted(&general_but(|to| to.partition = 0x8001), &performance),
                DropReason::PartitionKey,
            ),
            (emitted(&subnet, &own.clone().along(&[1, 1])), DropReason::Management),
            (emitted(&subnet, &other_version), DropReason::Management),
            (emitted(&subnet, &trap), DropReason::Management),
        ];
        for (mut octets, reason) in cases {
            let verdict = hand_in(&mut node(NodeKind::Adapter), &mut octets);
            assert_eq!(verdict, Verdict::Drop(reason));
        }
        // Port 2 of a switch has no peer.
        let mut on = own.along(&[1, 2]);
        on.set(&HOP_POINTER, 1);
        let verdict = hand_in(&mut node(NodeKind::Switch), &mut emitted(&subnet, &on));
        assert_eq!(verdict, Verdict::Drop(DropReason::LinkState));
    }

    #[test]
    fn a_program_that_reads_nothing_gets_so_many_datagrams_and_the_others_are_dropped() {
        let mut adapter = node(NodeKind::Adapter);
        let addresses = Addresses::general(Lid::PERMISSIVE, Lid::PERMISSIVE, 1, VirtualLane::ZERO);
        let answer = Datagram::request(PERFORMANCE, method::GET_RESPONSE, 0x12, 0, 7);
        for _ in 0..CLIENT_MAX {
            assert_eq!(hand_in(&mut adapter, &mut emitted(&addresses, &answer)), Verdict::Taken);
        }
        let verdict = hand_in(&mut adapter, &mut emitted(&addresses, &answer));
        assert_eq!(verdict, Verdict::Drop(DropReason::ManagementOverrun));
    }

    #[test]
    fn the_answer_of_a_manager_to_another_returns_along_the_path_of_the_request() {
        let mut management = node(NodeKind::Adapter);
        let (port, now) = (PortNumber::from_index(0), Instant::ZERO);
        let seen = Observation { is_up: true, state: LinkState::Initialize, restarts: 0 };
        management.agents.observe(port, seen, now);
        management.agents.set_manager(true, now);
        let id = sm_info::ATTRIBUTE.id;
        let mut request = Datagram::request(SUBNET_DIRECTED, method::GET, id, 0, 7).along(&[1, 3]);
        request.set(&HOP_POINTER, 2);
        let mut octets = BytesMut::new();
        packet::emit(&Addresses::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE), &request, &mut octets);
        let none = &mut |_| Totals::default();
        assert_eq!(management.receive(&mut octets, port, none, now), Verdict::Taken);
        let mut message = management.poll_client().expect("it is for the manager");
        let mut answer = Datagram(*message.octets);
        answer.answer(0);
        *message.octets = answer.0;
        management.send(message, none, now);
        let outgoing = management.poll_outgoing(now).expect("an answer");
        assert_eq!(outgoing.way, Way::Port(port));
        let pointers = [HOP_POINTER, HOP_COUNT].map(|field| outgoing.datagram.get(&field));
        assert_eq!(pointers, [2, 2]);
        assert_eq!(management.poll_client(), None);
    }
}
