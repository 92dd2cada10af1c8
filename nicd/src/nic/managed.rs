//! Management of the NIC: packets for its agents and for the program beside it, and what a Set changes.
//!
//! Datagrams of QP0 leave on VL15 ahead of all data and without credits. Those of QP1 leave on the lane of service level
//! 0, in turn with the adapter's data. Source: IBTA Vol 1, 7.6.3 (VL15), 14.2 (SMA).

use super::Nic;
use super::sources::Beside;
use crate::config::NicConfig;
use crate::transport::adapter::ChannelAdapter;
use ::management::agent::congestion::Reaction;
use ::management::agent::partitions::Checkpoint;
use ::management::agent::performance::Totals;
use ::management::agent::port::PortState;
use ::management::endpoint::Outgoing;
use ::management::partitions::BadPartition;
use ::management::resolver::{Answer, Resolver};
use ::management::{Agents, Change, Datagram, Management, NodeKind, Verdict, packet};
use proto::congestion::{Roles, SchemeConfig};
use proto::counters::DropReason;
use proto::device::ManagementDatagram;
use proto::frame::{Frame, FrameClass, FrameHeaders, FrameKind};
use proto::ids::{QueuePairNumber, ServiceLevel, VirtualLane};
use proto::link::port::LinkPort;
use proto::units::{Bytes, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// Datagrams of VL15 that wait at most. VL15 has no credits.
const SUBNET_MAX: usize = 16;
/// Datagrams of QP1 that wait at most.
const GENERAL_MAX: usize = 1024;
/// The queue pair of general services.
const GENERAL_PAIR: u32 = 1;

/// The management of one NIC, with the frames that wait for the line.
pub(super) struct Managed {
    pub endpoint: Management,
    subnet: VecDeque<Frame>,
    general: VecDeque<Frame>,
    /// The lane of service level 0.
    lane: VirtualLane,
    goes_first: bool,
    resolver: Resolver,
    /// Queue pairs whose peers the resolver knows.
    resolved: usize,
    pub delivered: u64,
    pub injected: u64,
}

impl Managed {
    /// The management that `config` asks for.
    pub fn new(config: &NicConfig) -> Option<Box<Managed>> {
        let management = config.management.as_ref()?;
        let mut agents = Agents::new(NodeKind::Adapter, &config.name, management, &[&config.link]);
        let lane =
            |level: usize| VirtualLane::truncate(config.sl2vl.get(level).copied().unwrap_or(0));
        agents.preset_lanes(|_, _, level| lane(level.index()));
        Some(Box::new(Managed {
            endpoint: Management::new(agents),
            subnet: VecDeque::new(),
            general: VecDeque::new(),
            lane: lane(0),
            goes_first: true,
            resolver: Resolver::new(config.lid, management.guid, &config.groups),
            resolved: 0,
            delivered: 0,
            injected: 0,
        }))
    }

    /// Whether a received frame is for the agents or the program beside them.
    pub fn claims(headers: &FrameHeaders) -> bool {
        headers.lane == VirtualLane::MANAGEMENT || headers.queue_pair == GENERAL_PAIR
    }

    /// Whether a frame waits for nothing but the line, or for credit.
    pub fn is_ready(&self) -> bool {
        !self.subnet.is_empty() || !self.general.is_empty()
    }

    /// Frames that wait for the line.
    pub fn buffered(&self) -> u64 {
        (self.subnet.len() + self.general.len()) as u64
    }

    /// When the agents or the resolver have something to do.
    pub fn poll_timeout(&self) -> Instant {
        let agents = self.endpoint.agents.poll_timeout();
        if self.has_manager() { agents.min(self.resolver.poll_timeout()) } else { agents }
    }

    /// Whether requests to the subnet administration have a way.
    fn has_manager(&self) -> bool {
        let agents = &self.endpoint.agents;
        agents.port_state(1) == Some(PortState::Active) && agents.manager().is_unicast()
    }

    /// The next request to the subnet administration, or acknowledgement of an answer; sets the paths of the answers.
    fn poll_resolver(
        &mut self,
        adapter: &mut ChannelAdapter,
        now: Instant,
    ) -> Option<ManagementDatagram> {
        let message = |peer, datagram: &Datagram| ManagementDatagram {
            peer,
            queue_pair: QueuePairNumber::truncate(GENERAL_PAIR),
            octets: Box::new(datagram.0),
        };
        while let Some((peer, answer)) = self.endpoint.poll_own() {
            let (answer, acknowledgement) = self.resolver.receive(&answer);
            match answer {
                Some(Answer::Path(planned, path)) => adapter.set_path(planned, path, now),
                Some(Answer::Joined(planned, membership)) => {
                    adapter.set_membership(planned, membership, now);
                }
                Some(Answer::Refused(planned)) => adapter.lose_membership(planned),
                None => {}
            }
            if let Some(datagram) = acknowledgement {
                return Some(message(peer, &datagram));
            }
        }
        let new = adapter.peers_from(self.resolved);
        self.resolved += new.len();
        // A group is joined whether or not the adapter sends to it.
        new.filter(|peer| peer.is_unicast()).for_each(|peer| self.resolver.want(peer));
        if !self.has_manager() {
            return None;
        }
        let agents = &self.endpoint.agents;
        let request = self.resolver.poll(agents.prefix(), agents.partitions(0).first(), now);
        while let Some(planned) = self.resolver.poll_unknown() {
            adapter.go_without_path(planned, now);
        }
        request.map(|request| message(agents.manager(), &request))
    }

    /// Queues a datagram; the frame comes back if there is no room.
    fn store(&mut self, outgoing: &Outgoing) -> Result<(), Frame> {
        let is_subnet = outgoing.addresses.lane == VirtualLane::MANAGEMENT;
        let mut addresses = outgoing.addresses;
        if !is_subnet {
            addresses.lane = self.lane;
        }
        let mut octets = bytes::BytesMut::new();
        packet::emit(&addresses, &outgoing.datagram, &mut octets);
        let frame = Frame::intact(FrameKind::Infiniband, octets);
        self.injected += 1;
        let (queue, max) = match is_subnet {
            true => (&mut self.subnet, SUBNET_MAX),
            false => (&mut self.general, GENERAL_MAX),
        };
        if queue.len() >= max {
            return Err(frame);
        }
        queue.push_back(frame);
        Ok(())
    }
}

impl Beside for Managed {
    fn lanes(&self) -> u16 {
        u16::from(!self.subnet.is_empty()) << VirtualLane::MANAGEMENT.index()
            | u16::from(!self.general.is_empty()) << self.lane.index()
    }

    fn head(&mut self, lane: VirtualLane, _: Instant) -> Option<(Bytes, FrameClass)> {
        let (queue, class) = match lane {
            VirtualLane::MANAGEMENT => (&self.subnet, FrameClass::Management),
            _ if lane == self.lane => (&self.general, FrameClass::Data),
            _ => return None,
        };
        queue.front().map(|frame| (frame.line_size(), class))
    }

    fn take(&mut self, lane: VirtualLane) -> Option<Frame> {
        match lane {
            VirtualLane::MANAGEMENT => self.subnet.pop_front(),
            _ => self.general.pop_front(),
        }
    }

    fn goes_first(&mut self) -> &mut bool {
        &mut self.goes_first
    }
}

/// The totals of the port, as performance management counts them.
fn totals(port: &mut LinkPort, adapter: &ChannelAdapter, now: Instant) -> Totals {
    Totals::read(port, now).with_congested(adapter.congested(), port.rate())
}

impl Nic {
    /// Handles a frame that [`Managed::claims`].
    pub(super) fn manage(&mut self, mut frame: Frame, headers: &FrameHeaders, now: Instant) {
        let Nic { managed, port, adapter, .. } = self;
        let Some(managed) = managed else { return };
        frame.materialise();
        let number = port.number();
        let read = &mut |_| totals(port, adapter, now);
        let verdict = managed.endpoint.receive(&mut frame.octets, number, read, now);
        let dropped = match verdict {
            Verdict::Taken => {
                managed.delivered += 1;
                None
            }
            // An adapter passes nothing on.
            Verdict::Forward(_) => Some(DropReason::Management),
            Verdict::Drop(reason) => Some(reason),
        };
        if let Some(reason) = dropped {
            self.port.count_drop(reason, headers.size, headers.lane, now, &mut self.events);
        }
        self.adapter.recycle(frame);
        self.after_management(now);
    }

    /// Reports to the agents what the link does, after a link packet or a time-out.
    pub(super) fn observe(&mut self, now: Instant) {
        let (Some(managed), Some(seen)) = (&mut self.managed, self.port.observe()) else { return };
        managed.endpoint.agents.observe(self.port.number(), seen, now);
        managed.endpoint.agents.handle_timeout(now);
        self.after_management(now);
    }

    /// Applies what a Set has changed, and queues what the agents have made.
    pub(super) fn after_management(&mut self, now: Instant) {
        self.resolve(now);
        let Some(managed) = &mut self.managed else { return };
        while let Some(change) = managed.endpoint.agents.poll_change() {
            match change {
                Change::Link(_, ceiling) => self.port.permit(ceiling, now),
                Change::Arbitration(number) => {
                    self.port.arbitrate(&managed.endpoint.agents.arbitration(number));
                }
                Change::Lanes { .. } => {
                    let lanes = managed.endpoint.agents.lanes(0, 0);
                    if lanes[0].get() < self.port.data_lanes() {
                        managed.lane = lanes[0];
                    }
                    self.adapter.set_lanes(lanes, now);
                    self.workload.set_lanes(|level: ServiceLevel| lanes[level.index()]);
                }
                Change::Congestion => {
                    let before = self.adapter.scheme_config().clone();
                    let roles = |level: ServiceLevel| {
                        let set = managed.endpoint.agents.congestion().reaction(level.index())?;
                        Some(roles(&before, &set))
                    };
                    self.adapter.set_schemes(roles, now);
                }
                Change::Address(lid) => {
                    let bits = managed.endpoint.agents.lid_mask_bits();
                    self.adapter.set_address(lid, bits);
                }
                Change::Reregister => managed.resolver.refresh(),
                Change::Partitions(_) => {
                    self.adapter.set_partitions(managed.endpoint.agents.partitions(0));
                    managed.resolver.refresh();
                }
                Change::Routes { .. } | Change::Multicast { .. } => {}
            }
        }
        while let Some(outgoing) = managed.endpoint.poll_outgoing(now) {
            if let Err(frame) = managed.store(&outgoing) {
                let (reason, lane) = (DropReason::ManagementOverrun, outgoing.addresses.lane);
                self.port.count_drop(reason, frame.line_size(), lane, now, &mut self.events);
            }
        }
    }

    /// Counts and reports a frame that was dropped because of its P_Key.
    pub(super) fn note_bad_partition(&mut self, frame: &Frame, now: Instant) {
        let packet = BadPartition::of(&frame.octets);
        if let (Some(managed), Some(packet)) = (&mut self.managed, packet) {
            managed.endpoint.agents.note_bad_partition(Checkpoint::End, &packet, now);
            self.after_management(now);
        }
    }

    /// Asks the subnet administration for the paths to new peers, and takes its answers.
    pub(super) fn resolve(&mut self, now: Instant) {
        let Nic { managed, port, adapter, .. } = self;
        let Some(managed) = managed else { return };
        while let Some(message) = managed.poll_resolver(adapter, now) {
            managed.endpoint.send(message, &mut |_| totals(port, adapter, now), now);
        }
    }

    /// Whether a queue pair has a new peer.
    pub(super) fn has_new_peer(&self) -> bool {
        let resolved = self.managed.as_ref().map(|managed| managed.resolved);
        resolved.is_some_and(|resolved| self.adapter.peers_from(resolved).len() > 0)
    }

    /// Sends a datagram of the program beside this NIC.
    pub(super) fn send_for_client(&mut self, datagram: ManagementDatagram, now: Instant) -> bool {
        self.advance_to(now);
        let Nic { managed, port, adapter, .. } = self;
        let Some(managed) = managed else { return false };
        managed.endpoint.send(datagram, &mut |_| totals(port, adapter, now), now);
        self.after_management(now);
        true
    }
}

/// The scheme of one service level. What the attributes do not have stays as the scenario sets it.
fn roles(before: &SchemeConfig, set: &Reaction) -> Arc<dyn Roles> {
    const KIND: &str = "ib-cca";
    let mut params = toml::Table::new();
    if before.kind == KIND {
        params.clone_from(&before.params);
    }
    params.remove("cct_max_ipd");
    let limit = set.table.len() as i64 - 1;
    let table = set.table.iter().map(|entry| i64::from(*entry).into()).collect();
    let values = [
        ("ccti_timer", i64::from(set.timer).into()),
        ("ccti_increase", i64::from(set.increase).into()),
        ("trigger_threshold", i64::from(set.trigger_threshold).into()),
        ("ccti_min", i64::from(set.min).min(limit).into()),
        ("ccti_limit", limit.into()),
        ("cct", toml::Value::Array(table)),
    ];
    params.extend(values.map(|(key, value)| (key.to_owned(), value)));
    let config = SchemeConfig { kind: KIND.to_owned(), params };
    config.roles().expect("the fields of the attributes fit the parameters")
}
