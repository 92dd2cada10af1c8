//! Management of the switch: packets for its agents, what a Set changes, and the state of its ports.
//!
//! A port that is not Active takes no data: a packet for it is dropped, and what waits there is dropped when it leaves
//! Active. Source: IBTA Vol 1, 7.2.7 (port states), 14.2 (SMA), 18.2.4 (relay).

use super::Switch;
use super::build::points;
use super::packet::Packet;
use super::storm::Flush;
use crate::egress::Egress;
use crate::routing::router::Router;
use management::agent::congestion::Marking;
use management::agent::partitions::Checkpoint;
use management::agent::performance::Totals;
use management::agent::port::PortState;
use management::endpoint::Outgoing;
use management::partitions::BadPartition;
use management::{Change, Verdict, Way, packet};
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::device::ManagementDatagram;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Address, Lid, PortNumber, VirtualLane};
use proto::units::Instant;

impl Switch {
    /// Whether a packet is for the management of this switch.
    pub(super) fn is_for_management(&self, packet: &Packet) -> bool {
        let Some(managed) = &self.managed else { return false };
        let is_own = match packet.headers.destination {
            Address::Lid(lid) => managed.agents.owns(lid),
            Address::Mac(_) => false,
        };
        packet.lane == VirtualLane::MANAGEMENT || is_own
    }

    /// Handles a packet for the management of this switch.
    pub(super) fn manage(&mut self, mut packet: Packet) {
        let Switch { managed, ports, .. } = self;
        let Some(managed) = managed else { return };
        let (input, now) = (packet.input, packet.now);
        packet.frame.materialise();
        let verdict = managed.receive(
            &mut packet.frame.octets,
            input,
            &mut |port| Totals::read(&mut ports[port.index()], now),
            now,
        );
        match verdict {
            Verdict::Taken => self.absorb(packet),
            Verdict::Drop(reason) => self.discard(packet, reason),
            Verdict::Forward(way) => match self.output_of(way) {
                Some(output) => self.enqueue(packet, output, None),
                None => self.discard(packet, DropReason::NoRoute),
            },
        }
        self.after_management(now);
    }

    fn output_of(&self, way: Way) -> Option<PortNumber> {
        match way {
            Way::Port(port) => Some(port),
            Way::ByLid(lid) => self.managed.as_ref()?.agents.output(lid),
        }
    }

    /// Applies what a Set has changed, and sends what the agents have made.
    pub(super) fn after_management(&mut self, now: Instant) {
        while let Some(change) =
            self.managed.as_mut().and_then(|managed| managed.agents.poll_change())
        {
            self.apply(change, now);
        }
        while let Some(outgoing) =
            self.managed.as_mut().and_then(|managed| managed.poll_outgoing(now))
        {
            self.send_management_packet(&outgoing, now);
        }
    }

    fn apply(&mut self, change: Change, now: Instant) {
        let Some(managed) = &self.managed else { return };
        let agents = &managed.agents;
        match change {
            Change::Link(port, ceiling) => {
                self.ports[port.index()].permit(ceiling, now);
                self.dirty.insert(port);
                self.follow_state(port, now);
            }
            Change::Address(lid) => self.lid = lid,
            // A switch asks for no path.
            Change::Reregister => {}
            Change::Arbitration(port) => {
                self.ports[port.index()].arbitrate(&agents.arbitration(port));
                self.dirty.insert(port);
            }
            Change::Lanes { input, output } => {
                if let (Ok(from), Ok(to)) = (PortNumber::new(input), PortNumber::new(output)) {
                    self.sl2vl.set(from, to, agents.lanes(input, output));
                }
            }
            Change::Routes { block } => set_routes(&mut self.routing, agents, block),
            Change::Multicast { block } => {
                for (lid, outputs) in agents.outputs(block) {
                    self.routing.set_multicast(lid, outputs);
                }
            }
            Change::Congestion => self.apply_congestion(),
            Change::Partitions(port) => {
                if let Ok(number) = PortNumber::new(port) {
                    let (table, way) = (agents.partitions(port), agents.enforces(number));
                    self.enforcement.set(number, table, way);
                }
            }
        }
    }

    /// Replaces the congestion points of all ports by those that the manager has set.
    fn apply_congestion(&mut self) {
        let (Some(managed), config) = (&self.managed, &self.blueprint) else { return };
        for (port, egress) in self.ports.iter().zip(&mut self.egress) {
            let marking = managed.agents.congestion().marking(port.number());
            let scheme = scheme(&config.scheme, marking).roles();
            let scheme = scheme.expect("the fields of the attribute fit the parameters");
            egress.set_points(points(config, &*scheme, port));
        }
    }

    /// Reports to the agents what the link of `port` does, after a link packet or a time-out.
    pub(super) fn observe(&mut self, port: PortNumber, now: Instant) {
        let Some(managed) = &mut self.managed else { return };
        let Some(seen) = self.ports[port.index()].observe() else { return };
        managed.agents.observe(port, seen, now);
        self.follow_state(port, now);
        self.after_management(now);
    }

    /// Opens or shuts a port for data, as its state says.
    fn follow_state(&mut self, port: PortNumber, now: Instant) {
        let Some(managed) = &self.managed else { return };
        let state = managed.agents.port_state(port.get());
        if state == Some(PortState::Active) {
            self.shut.remove(port);
        } else if !self.shut.contains(port) {
            self.shut.insert(port);
            for lane in 0..self.ports[port.index()].data_lanes() {
                let queue = Flush { output: port, lane: VirtualLane::truncate(lane) };
                self.flush(queue, DropReason::LinkState, now);
            }
        }
    }

    /// Reports a packet that is dropped because of its P_Key.
    pub(super) fn note_bad_partition(&mut self, at: Checkpoint, octets: &[u8], now: Instant) {
        if let (Some(managed), Some(packet)) = (&mut self.managed, BadPartition::of(octets)) {
            managed.agents.note_bad_partition(at, &packet, now);
            self.after_management(now);
        }
    }

    /// Queues a packet that this switch has made.
    fn send_management_packet(&mut self, outgoing: &Outgoing, now: Instant) {
        let mut octets = self.pool.take();
        packet::emit(&outgoing.addresses, &outgoing.datagram, &mut octets);
        let frame = Frame::intact(FrameKind::Infiniband, octets);
        self.balance.injected += 1;
        let output = self.output_of(outgoing.way);
        let lane = outgoing.addresses.lane;
        let is_subnet = lane == VirtualLane::MANAGEMENT;
        let refused = match output {
            None => Err((frame, DropReason::NoRoute)),
            Some(output) if !is_subnet && self.shut.contains(output) => {
                Err((frame, DropReason::LinkState))
            }
            Some(output) => {
                self.dirty.insert(output);
                let egress: &mut Egress = &mut self.egress[output.index()];
                let stored = match is_subnet {
                    true => egress.store_management(frame),
                    false => egress.store_notification(frame, now),
                };
                stored.map_err(|frame| (frame, DropReason::ManagementOverrun))
            }
        };
        if let Err((frame, reason)) = refused {
            let port = &mut self.ports[output.map_or(0, PortNumber::index)];
            port.count_drop(reason, frame.line_size(), lane, now, &mut self.log);
            self.pool.recycle(frame);
        }
    }

    /// Sends a datagram of a program beside this switch.
    pub(super) fn send_for_client(&mut self, datagram: ManagementDatagram, now: Instant) -> bool {
        let Switch { managed, ports, .. } = self;
        let Some(managed) = managed else { return false };
        let read = &mut |port: PortNumber| Totals::read(&mut ports[port.index()], now);
        managed.send(datagram, read, now);
        self.after_management(now);
        true
    }
}

/// The scheme of a port with this marking. What the attribute does not have stays as the scenario sets it.
fn scheme(before: &SchemeConfig, marking: Marking) -> SchemeConfig {
    const KIND: &str = "ib-cca";
    let mut params = toml::Table::new();
    if before.kind == KIND {
        params.clone_from(&before.params);
    }
    // With a threshold of its own a port has none of the scenario's; with threshold 0 it has no other either.
    for key in ["threshold", "sw_th_frac", "packet_size", "marking_rate", "victim_mask"] {
        params.remove(key);
    }
    let mut set = |key: &str, value: toml::Value| params.insert(key.to_owned(), value);
    set("threshold", i64::from(marking.threshold).into());
    if marking.threshold > 0 {
        set("packet_size", i64::from(marking.packet_size).into());
        set("marking_rate", i64::from(marking.rate).into());
        set("victim_mask", if marking.victims { "all" } else { "none" }.into());
    } else {
        params.remove("root_test");
    }
    SchemeConfig { kind: KIND.to_owned(), params }
}

fn set_routes(routing: &mut Router, agents: &management::Agents, block: u16) {
    for lid in management::Agents::routed_lids(block) {
        let output = agents.output(lid);
        if Lid::is_unicast(lid) {
            routing.set_route(lid, output);
        }
    }
}
