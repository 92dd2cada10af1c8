//! The host beside the channel adapter, by which a NIC is a neighbour that foreign hosts accept.
//!
//! ```text
//!              frames that no planned queue pair gets
//!                               │
//!    ┌────────────┬─────────────┼───────────────────────┬──────────────────┐
//!    ▼            ▼             ▼                       ▼                  ▼
//!   ARP, ND      ping      QP1: connection         QP 2 … 65535        (the adapter counts
//!   `neighbour`  `echo`    `communication`         `queue_pair`         the rest as before)
//!                               │ accepts               │ messages, completions
//!                               └──────▶ `service` ◀────┘
//! ```
//!
//! Numbers below 2^16 are outside the plan of queue pair numbers ([`QueuePairNumber::planned`]), so one comparison
//! tells the host's frames from the data path's. A NIC without a host does not even compare. Frames of the
//! host leave by one lane, in turn with the adapter's data.

mod active;
mod agent;
mod communication;
mod connection;
mod counters;
mod datagram;
mod echo;
mod endpoint;
mod frames;
mod internet;
mod memory;
mod neighbour;
mod queue_pair;
mod receives;
mod requester;
mod responder;
pub mod service;
mod work;

use crate::config::{NicConfig, RemoteConfig, RoceVersion, ServeConfig};
use crate::transport::foreign::Terms;
use crate::transport::receive::Outcome;
use crate::wire::roce::RoceFormat;
use agent::Agent;
use connection::table::Connections;
use counters::HostCounters;
use datagram::DatagramPair;
use endpoint::{Endpoint, Program};
use frames::{Local, Packet, Peer, TrafficClass};
use memory::Memory;
use neighbour::{Neighbours, Resolution};
use proto::counters::DropReason;
use proto::frame::{Frame, FrameClass, FrameHeaders, FramePool, Integrity};
use proto::ids::{Address, Ecn, MacAddress, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::random::Random;
use proto::units::{Bytes, Instant};
use proto::wire::ethernet::{Preface, ethertype, plan};
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::{Bth, Deth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Arp, Udp};
use proto::wire::roce::{Layout, NetworkHeaders, Packet as RocePacket};
use service::Exposed;
use slab::Slab;
use std::collections::VecDeque;
use std::net::IpAddr;
use verbs::attributes::Access;
use work::Work;

/// Queue pair numbers below this one are the host's.
const NUMBERS: u32 = 1 << 16;
/// Control frames that wait to leave at most; further ones are dropped.
const OUT_MAX: usize = 256;
/// Management datagrams that wait for a MAC address at most.
const UNRESOLVED_MAX: usize = 64;

/// A service with its memory.
#[derive(Debug)]
struct Service {
    config: ServeConfig,
    /// Index of its memory.
    domain: usize,
    exposed: Exposed,
}

/// The host of one NIC.
#[derive(Debug)]
pub struct HostStack {
    local: Local,
    format: RoceFormat,
    lane: VirtualLane,
    mtu: u32,
    random: Random,
    neighbours: Neighbours,
    connections: Connections,
    services: Vec<Service>,
    endpoints: Vec<Endpoint>,
    /// Datagram queue pairs of the agent.
    datagrams: Vec<DatagramPair>,
    /// Memory of services and of protection domains of the agent.
    domains: Slab<Memory>,
    agent: Agent,
    /// Frames to send, in order.
    out: VecDeque<(Frame, FrameClass)>,
    unresolved: VecDeque<(IpAddr, Box<[u8; Mad::DATAGRAM]>)>,
    pool: FramePool,
    done: Vec<Work>,
    turn: usize,
    next_number: u32,
    next_id: u32,
    management_psn: Psn,
    counters: HostCounters,
    /// Foreign hosts that the adapter's queue pairs may send to.
    remotes: Vec<RemoteConfig>,
    version: RoceVersion,
    limits: (u8, u8),
    /// Connections of the adapter's queue pairs that are set up, or lost.
    outcomes: VecDeque<(QueuePairNumber, Option<Terms>)>,
    /// Frames that ended here, and frames that began here.
    pub delivered: u64,
    /// Frames that began here.
    pub injected: u64,
    /// The next frame of the common lane is the host's, if it has one.
    pub goes_first: bool,
}

impl HostStack {
    /// The host that the validated `config` describes, if it has one.
    pub fn new(config: &NicConfig) -> Option<Box<HostStack>> {
        let (host, roce) = (config.host.as_ref()?, config.wire.roce()?);
        let format = RoceFormat::new(roce, config);
        let level = ServiceLevel::truncate(0);
        let mut random = Random::stream(config.seed, &config.name, "host");
        let number = format.own;
        let mut domains = Slab::new();
        let services = host.serve.iter().map(|service| {
            let (key, start) = (random.next_u64() as u32 | 1, MEMORY_START);
            let mut memory = Memory::default();
            memory.register(key, start, MEMORY, Access::ALL);
            let exposed = Exposed { number: QueuePairNumber::default(), key, start };
            Service { config: *service, domain: domains.insert(memory), exposed }
        });
        let services = services.collect();
        Some(Box::new(HostStack {
            local: Local {
                mac: plan::mac(number),
                ipv4: plan::ipv4(number),
                ipv6: plan::ipv6(number),
                dscp: format.dscp(level),
                tag: format.data_tag(level),
            },
            lane: format.lane(level),
            format,
            mtu: config.link.mtu.get() as u32,
            neighbours: Neighbours::default(),
            connections: Connections::default(),
            services,
            endpoints: Vec::new(),
            datagrams: Vec::new(),
            domains,
            agent: Agent::new(random.next_u64() as u32),
            out: VecDeque::new(),
            unresolved: VecDeque::new(),
            pool: FramePool::default(),
            done: Vec::new(),
            turn: 0,
            next_number: FIRST_NUMBER,
            next_id: random.next_u64() as u32,
            management_psn: Psn::default(),
            counters: HostCounters::default(),
            remotes: host.remotes.clone(),
            version: roce.version,
            limits: (config.retry_count, config.rnr_retry),
            outcomes: VecDeque::new(),
            delivered: 0,
            injected: 0,
            goes_first: true,
            random,
        }))
    }

    /// Whether a frame with these header fields may be for the host.
    #[inline]
    pub fn claims(headers: &FrameHeaders) -> bool {
        headers.queue_pair < NUMBERS && headers.class != FrameClass::Notification
    }

    /// Handles a frame that [`HostStack::claims`] names; `None` if it is not for the host.
    pub fn receive(
        &mut self,
        frame: &Frame,
        headers: &FrameHeaders,
        now: Instant,
    ) -> Option<Outcome> {
        if !headers.multicast && headers.destination != Address::Mac(self.local.mac) {
            return None;
        }
        let octets = &frame.octets[..];
        let preface = Preface::parse(octets, &self.format.types).ok()?;
        let source = preface.envelope.header.source;
        let body = &octets[preface.octets_len()..];
        let outcome = match preface.ethertype() {
            Arp::ETHERTYPE => self.on_arp(body),
            kind @ (ethertype::IPV4 | ethertype::IPV6) => {
                match Layout::behind(octets, octets.len(), preface).ok()? {
                    Some(layout) => Some(self.on_roce(frame, &layout, source, now)),
                    None if kind == ethertype::IPV4 => self.on_ipv4(body, source),
                    None => self.on_ipv6(body, source),
                }
            }
            _ => None,
        };
        self.delivered += u64::from(matches!(outcome, Some(Ok(_))));
        self.flush_unresolved(now);
        outcome
    }

    fn extend(&mut self, frame: Option<Frame>) {
        let Some(frame) = frame else { return };
        if self.out.len() < OUT_MAX {
            self.out.push_back((frame, FrameClass::Data));
        } else {
            self.counters.overruns += 1;
            self.pool.recycle(frame);
        }
    }

    fn on_roce(
        &mut self,
        frame: &Frame,
        layout: &Layout,
        mac: MacAddress,
        now: Instant,
    ) -> Outcome {
        if frame.integrity == Integrity::Unchecked {
            self.format.verify(&frame.octets)?;
        }
        let packet = RocePacket::parse_at(&frame.octets, layout);
        let packet = packet.map_err(|error| error.drop_reason())?;
        let (ip, to): (IpAddr, IpAddr) = match packet.network {
            NetworkHeaders::Ipv4(ip, ..) => (ip.source.into(), ip.destination.into()),
            NetworkHeaders::Ipv6(ip, _) => (ip.source.into(), ip.destination.into()),
            NetworkHeaders::Global(_) => return Err(DropReason::NotRoce),
        };
        if !self.local.has(to) || !neighbour::is_unicast(ip) {
            return Err(DropReason::NotForUs);
        }
        let (peer, transport) = (Peer { mac, ip }, &packet.transport);
        let number = transport.bth.destination;
        if number.get() == 1 {
            return self.on_management(&peer, transport, now);
        }
        if let Some(at) = self.datagrams.iter().position(|pair| pair.number == number) {
            let headers = &frame.octets[layout.network_at..layout.bth_at - Udp::LEN];
            return self.on_datagram(at, transport, headers);
        }
        let found = self.endpoints.iter().position(|endpoint| {
            let agreement = &endpoint.pair.agreement;
            agreement.number == number && agreement.peer.ip == ip
        });
        let at = found.ok_or(DropReason::QueuePair)?;
        let outcome = self.on_packet(at, transport, now);
        // Data on a connection that waits for its RTU replaces the RTU. Source: IBTA Vol 1, 12.9.7.2.
        if let Some(connection) = self.connections.of_queue_pair(number)
            && connection.state == connection::State::RepSent
        {
            connection.establish();
        }
        outcome
    }

    /// Sends a management datagram to QP1 of `to`, as soon as its MAC address is known.
    fn send_datagram(&mut self, to: IpAddr, datagram: &[u8; Mad::DATAGRAM], now: Instant) {
        match self.neighbours.resolve(to, now) {
            Resolution::Known(mac) => {
                let qp1 = QueuePairNumber::truncate(1);
                self.management_psn = self.management_psn.next();
                let deth = Deth { queue_key: Mad::QUEUE_KEY, reserved8: 0, source: qp1 };
                let packet = Packet {
                    from: qp1,
                    bth: Bth::new(Opcode::UD_SEND_ONLY, qp1, self.management_psn),
                    extended: ExtendedHeaders { deth: Some(deth), ..ExtendedHeaders::NONE },
                    traffic_class: TrafficClass {
                        ecn: Ecn::NotCapable,
                        ..self.local.traffic_class()
                    },
                };
                let peer = Peer { mac, ip: to };
                let frame = self.local.roce(&mut self.pool, &peer, &packet, datagram);
                self.counters.datagrams_sent += 1;
                self.extend(Some(frame));
            }
            Resolution::Asked if self.unresolved.len() < UNRESOLVED_MAX => {
                self.unresolved.push_back((to, Box::new(*datagram)));
            }
            Resolution::Asked => self.counters.overruns += 1,
        }
    }

    /// Sends what has waited for a MAC address, and the questions that are due.
    fn flush_unresolved(&mut self, now: Instant) {
        for _ in 0..self.unresolved.len() {
            if let Some((to, datagram)) = self.unresolved.pop_front() {
                self.send_datagram(to, &datagram, now);
            }
        }
        while let Some(polled) = self.neighbours.poll(now) {
            match polled {
                Ok(ip) => {
                    let question = neighbour::question(&self.local, &mut self.pool, ip);
                    self.extend(Some(question));
                }
                Err(ip) => {
                    self.unresolved.retain(|(to, _)| *to != ip);
                    self.counters.unreachable += 1;
                    self.give_up_address(ip);
                }
            }
        }
        self.settle_addresses();
    }

    /// The lane of the host's frames.
    pub fn lane(&self) -> VirtualLane {
        self.lane
    }

    /// Whether a frame waits for nothing but the line.
    pub fn is_ready(&self) -> bool {
        !self.out.is_empty()
            || self.endpoints.iter().any(Endpoint::has_work)
            || self.datagrams.iter().any(DatagramPair::has_work)
    }

    /// Size and class of the next frame; makes it if needed.
    pub fn next_frame(&mut self, now: Instant) -> Option<(Bytes, FrameClass)> {
        if self.out.is_empty() {
            self.make_frame(now);
        }
        self.out.front().map(|(frame, class)| (frame.line_size(), *class))
    }

    /// Takes the frame of [`HostStack::next_frame`].
    pub fn take_frame(&mut self) -> Option<Frame> {
        let (frame, _) = self.out.pop_front()?;
        self.injected += 1;
        Some(frame)
    }

    /// Returns the buffer of a frame that has reached its end.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// When [`HostStack::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Instant {
        let pairs = self.endpoints.iter().map(|endpoint| endpoint.pair.requester.poll_timeout());
        let pairs = pairs.min().unwrap_or(Instant::NEVER);
        pairs.min(self.neighbours.poll_timeout()).min(self.connections.poll_timeout())
    }

    /// Handles every deadline up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.endpoints.len() {
            let Endpoint { pair, program, .. } = &mut self.endpoints[at];
            let failed = pair.has_failed();
            pair.requester.on_timeout(now);
            if failed || !pair.has_failed() {
                continue;
            }
            match program {
                Program::Agent(handle) => self.agent.on_failed(*handle, pair),
                Program::Service { .. } => {
                    let number = pair.agreement.number;
                    self.close(number, now);
                }
            }
        }
        self.expire_connections(now);
        self.flush_unresolved(now);
    }

    /// Appends the counters with their names.
    pub fn read_named(&self, named: &mut Vec<(String, u64)>) {
        let repeated = self.endpoints.iter().map(|endpoint| endpoint.pair.requester.repeated).sum();
        self.counters.read(self.endpoints.len() as u64, repeated, named);
    }
}

/// The first number of a queue pair. 0 and 1 belong to management.
const FIRST_NUMBER: u32 = 0x11;
/// The first virtual address of each service's memory.
const MEMORY_START: u64 = 0x1_0000_0000;
/// Octets of a service's memory: twice the largest message of perftest (`-a`), as perftest itself has.
const MEMORY: usize = 1 << 24;

#[cfg(test)]
mod tests;
