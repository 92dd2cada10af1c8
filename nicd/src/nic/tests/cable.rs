//! Two NICs and a cable that can impair frames. `check/testbed` plays the neighbours of one device by script; here both
//! ends are NICs, because retransmission and congestion control need a peer that answers.

use super::*;
use crate::config::*;
use proto::congestion::SchemeConfig;
use proto::counters::{DropReason, FlowReading, ReceptionReading};
use proto::events::EventKind;
use proto::frame::Integrity;
use proto::ids::{Lid, ServiceLevel};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::ethernet::{MacControl, plan};
use proto::wire::infiniband::crc::{refresh_vcrc, verify_icrc, verify_vcrc};
use proto::wire::infiniband::{self, Opcode, Packet};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::{self, checks};
use std::collections::VecDeque;

/// Time of one octet on the line at 8 Gb/s.
pub const OCTET: Duration = Duration::from_ns(1);
/// Octets of LRH, BTH, 2048 octets of payload, ICRC and VCRC.
pub const FULL: u64 = 2074;
/// Propagation delay.
pub const FLIGHT: Duration = Duration::from_ns(100);

pub fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

/// The NIC with LID `lid` in a fabric of LIDs 1 to 4: 8 Gb/s, RC SEND, no congestion control, no traffic.
pub fn config(lid: u16) -> NicConfig {
    NicConfig {
        name: format!("h{lid}"),
        seed: 7,
        lid: Lid::new(lid),
        qp_order: QueuePairOrder::Posting,
        ack_every: 1,
        ack_delay: Duration::from_us(5),
        ack_timeout: Duration::from_us(100),
        retry_count: 7,
        rnr_retry: 7,
        rnr_timer: Duration::from_us(10),
        receive_depth: 0,
        receive_refill: Duration::ZERO,
        send_queue_max: None,
        wire: Encapsulation::Infiniband,
        cnp_body: CnpBody::Reserved16,
        sl2vl: (0..16).map(|sl| sl % 2).collect(),
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        link: LinkConfig {
            rate: BitRate::gbps(8),
            mtu: Bytes::new(2048),
            buffer: Bytes::new(2 * 36 * 33 * 64),
            control: FlowControlConfig::Credit(CreditConfig {
                data_lanes: 2,
                ..CreditConfig::default()
            }),
        },
        adapters: (1..=4).map(Lid::new).collect(),
        classes: vec![class(Transport::Rc, Operation::Send)],
        traffic: Vec::new(),
        host: None,
        management: None,
        groups: Vec::new(),
    }
}

/// The same NIC on Ethernet with RoCEv2 over this IP version. Data has priority 3.
pub fn on_ethernet(config: NicConfig, version: RoceVersion) -> NicConfig {
    let control = PauseConfig { address: plan::mac(config.lid), ..PauseConfig::default() };
    NicConfig {
        wire: Encapsulation::Roce(RoceConfig { version, ..RoceConfig::default() }),
        link: LinkConfig { control: FlowControlConfig::Pause(control), ..config.link },
        ..config
    }
}

/// The same NIC in every wire format.
pub fn in_each_wire_format(config: NicConfig) -> [NicConfig; 3] {
    let ethernet = |version| on_ethernet(config.clone(), version);
    [config.clone(), ethernet(RoceVersion::V2Ipv4), ethernet(RoceVersion::V2Ipv6)]
}

pub fn class(transport: Transport, operation: Operation) -> ClassConfig {
    ClassConfig { transport, operation, service_level: ServiceLevel::default() }
}

/// `messages` of `size` octets to LID `to`, all posted 5 µs after the start.
pub fn burst(to: u16, size: u64, messages: u64) -> TrafficConfig {
    TrafficConfig {
        name: "burst".to_owned(),
        item: 40,
        class: 0,
        to: Target::Lids(vec![Lid::new(to)]),
        arrivals: Arrivals::Paced,
        interval: Duration::from_ps(1),
        slot: Duration::from_ps(1),
        size: Bytes::new(size),
        start: us(5),
        stop: Instant::NEVER,
        messages,
    }
}

/// The scheme ib-cca with a fixed gap of `packet_times` packet times from the first BECN on.
pub fn throttled_by(packet_times: i64) -> SchemeConfig {
    let mut params = toml::Table::new();
    let table = vec![0, packet_times].into_iter().map(toml::Value::Integer).collect();
    params.insert("cct".to_owned(), toml::Value::Array(table));
    params.insert("ccti_increase".to_owned(), toml::Value::Integer(1));
    params.insert("ccti_limit".to_owned(), toml::Value::Integer(1));
    params.insert("ccti_timer".to_owned(), toml::Value::Integer(60_000));
    SchemeConfig { kind: "ib-cca".to_owned(), params }
}

/// What the cable does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    Pass,
    Lose,
    Duplicate,
    /// The frame arrives 5 µs late, behind frames that left after it.
    Late,
    Mark,
    CorruptPayload,
    MarkAndCorrupt,
    CorruptLink,
}

/// A packet on the cable: the NIC that sent it, and when its last bit left.
#[derive(Clone, Debug)]
pub struct Seen {
    pub from: usize,
    pub at: Instant,
    pub kind: FrameKind,
    pub octets: Vec<u8>,
}

impl Seen {
    pub fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.octets).expect("NICs send valid packets")
    }

    pub fn roce(&self) -> roce::Packet<'_> {
        roce::Packet::parse(&self.octets)
            .expect("NICs send valid packets")
            .expect("a RoCEv2 packet")
    }

    /// BTH to pad, in either wire format.
    pub fn transport(&self) -> infiniband::Transport<'_> {
        if self.kind == FrameKind::Ethernet {
            return self.roce().transport;
        }
        let Packet { extended, payload, pad, bth, .. } = self.packet();
        let bth = bth.expect("every packet of a NIC has a BTH");
        infiniband::Transport { bth, extended, payload, pad }
    }

    pub fn opcode(&self) -> Opcode {
        self.transport().bth.opcode
    }

    pub fn is_data(&self) -> bool {
        !matches!(self.opcode(), Opcode::RC_ACKNOWLEDGE | Opcode::CNP | Opcode::ROCEV2_CNP)
    }
}

type Impair = Box<dyn FnMut(&Seen) -> Impairment>;

pub struct Pair {
    pub nics: [Nic; 2],
    pub now: Instant,
    pub seen: Vec<Seen>,
    /// MAC control frames: the NIC that sent each, and when its last bit left.
    pub controls: Vec<(usize, Instant, MacControl)>,
    pub events: Vec<(usize, DeviceEvent)>,
    pub impair: Impair,
    /// Frames in flight to each NIC, by arrival.
    in_flight: [VecDeque<(Instant, Frame)>; 2],
}

impl Pair {
    /// LIDs 1 and 2, connected to each other. Frames to LIDs 3 and 4 reach LID 2 as well.
    pub fn new(a: NicConfig, b: NicConfig) -> Pair {
        Pair {
            nics: [Nic::new(a).unwrap(), Nic::new(b).unwrap()],
            now: Instant::ZERO,
            seen: Vec::new(),
            controls: Vec::new(),
            events: Vec::new(),
            impair: Box::new(|_| Impairment::Pass),
            in_flight: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Both NICs have the same configuration except name, LID and traffic.
    pub fn alike(a: NicConfig) -> Pair {
        let mut b =
            NicConfig { name: "h2".to_owned(), lid: Lid::new(2), traffic: Vec::new(), ..a.clone() };
        if let FlowControlConfig::Pause(pause) = &mut b.link.control {
            pause.address = plan::mac(b.lid);
        }
        Pair::new(a, b)
    }

    pub fn with_impairment(mut self, impair: impl FnMut(&Seen) -> Impairment + 'static) -> Pair {
        self.impair = Box::new(impair);
        self
    }

    pub fn run_until(mut self, stop: Instant) -> Pair {
        self.advance(stop);
        self
    }

    /// Runs from one timeout to the next until `stop`.
    pub fn advance(&mut self, stop: Instant) {
        self.drain();
        loop {
            let arrival = |end: usize| self.in_flight[end].front().map(|(at, _)| *at);
            let timeout = |end: usize| self.nics[end].poll_timeout();
            let next = [arrival(0), arrival(1), timeout(0), timeout(1)];
            let next = next.into_iter().flatten().min().unwrap_or(Instant::NEVER);
            if next > stop {
                break;
            }
            assert!(next >= self.now, "a timeout is in the past");
            self.now = next;
            for end in 0..2 {
                while self.in_flight[end].front().is_some_and(|(at, _)| *at <= next) {
                    let (at, frame) = self.in_flight[end].pop_front().unwrap();
                    self.nics[end].handle_frame(PortNumber::from_index(0), frame, at, next);
                }
                if self.nics[end].poll_timeout().is_some_and(|at| at <= next) {
                    self.nics[end].handle_timeout(next);
                }
            }
            self.drain();
            for nic in &self.nics {
                let again = nic.poll_timeout();
                assert!(
                    again.is_none_or(|at| at > next),
                    "a timeout in the past would repeat without end"
                );
            }
        }
        self.now = stop;
    }

    fn drain(&mut self) {
        for from in 0..2 {
            while let Some(departure) = self.nics[from].poll_transmit(self.now) {
                self.send(from, departure);
            }
            while let Some(event) = self.nics[from].poll_event() {
                self.events.push((from, event));
            }
        }
    }

    fn send(&mut self, from: usize, departure: Departure) {
        let Departure { mut frame, at, .. } = departure;
        let mut arrives = at + FLIGHT;
        let to = 1 - from;
        if frame.kind == FrameKind::InfinibandLink {
            self.in_flight[to].push_back((arrives, frame));
            return;
        }
        let on_ethernet = frame.kind == FrameKind::Ethernet;
        if on_ethernet && MacControl::is_announced(&frame.octets) {
            let control = MacControl::parse(&frame.octets).expect("NICs send valid frames");
            self.controls.push((from, at, control));
            self.in_flight[to].push_back((arrives, frame));
            return;
        }
        let mut room = bytes::BytesMut::new();
        let octets = frame.whole(&mut room);
        let verified = match on_ethernet {
            true => checks::verify_checksums(octets).and_then(|()| checks::verify_icrc(octets)),
            false => verify_icrc(octets).and_then(|()| verify_vcrc(octets)),
        };
        assert_eq!(verified, Ok(()));
        let seen = Seen { from, at, kind: frame.kind, octets: octets.to_vec() };
        let impairment = (self.impair)(&seen);
        self.seen.push(seen);
        match impairment {
            Impairment::Pass => {}
            Impairment::Lose => return,
            Impairment::Late => arrives = arrives + Duration::from_us(5),
            Impairment::Duplicate => self.in_flight[to].push_back((arrives, frame.clone())),
            Impairment::Mark if on_ethernet => assert!(mark_congestion(&mut frame.octets)),
            Impairment::Mark => assert!(infiniband::set_fecn(&mut frame.octets)),
            Impairment::MarkAndCorrupt => {
                frame.materialise();
                assert!(mark_congestion(&mut frame.octets));
                let middle = frame.octets.len() / 2;
                frame.octets[middle] ^= 0x10;
                frame.integrity = Integrity::Unchecked;
            }
            Impairment::CorruptPayload => {
                frame.materialise();
                let middle = frame.octets.len() / 2;
                frame.octets[middle] ^= 0x10;
                if !on_ethernet {
                    refresh_vcrc(&mut frame.octets);
                }
                frame.integrity = Integrity::Unchecked;
            }
            Impairment::CorruptLink => {
                frame.materialise();
                frame.octets[3] ^= 0x10;
                frame.integrity = Integrity::Unchecked;
            }
        }
        let place = self.in_flight[to].partition_point(|(at, _)| *at <= arrives);
        self.in_flight[to].insert(place, (arrives, frame));
    }

    pub fn reading(&mut self, end: usize) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.nics[end].read(self.now, &mut reading);
        reading
    }

    /// The only flow that NIC `end` sends.
    pub fn flow(&mut self, end: usize) -> FlowReading {
        let mut flows = self.reading(end).flows;
        assert_eq!(flows.len(), 1);
        flows.remove(0)
    }

    /// The only flow that NIC `end` receives.
    pub fn reception(&mut self, end: usize) -> ReceptionReading {
        let mut receptions = self.reading(end).receptions;
        assert_eq!(receptions.len(), 1);
        receptions.remove(0)
    }

    pub fn drops(&mut self, end: usize, reason: DropReason) -> u64 {
        self.reading(end).ports[0].drops.get(reason)
    }

    pub fn total(&mut self, end: usize, name: &str) -> u64 {
        let reading = self.reading(end);
        let named = &reading.ports[0].named;
        named.iter().find(|(other, _)| other == name).expect("a known total").1
    }

    /// Data frames that NIC `end` sent.
    pub fn data_from(&self, end: usize) -> Vec<&Seen> {
        self.seen.iter().filter(|seen| seen.from == end && seen.is_data()).collect()
    }

    /// Packets with this opcode that NIC `end` sent.
    pub fn sent(&self, end: usize, opcode: Opcode) -> Vec<&Seen> {
        let wanted = |seen: &&Seen| seen.from == end && seen.opcode() == opcode;
        self.seen.iter().filter(wanted).collect()
    }

    pub fn happened(&self, end: usize, wanted: fn(&EventKind) -> bool) -> usize {
        self.events.iter().filter(|(from, event)| *from == end && wanted(&event.kind)).count()
    }

    /// Every frame is delivered, lost in the cable, or counted as a drop; none is in flight.
    pub fn assert_conserved(&mut self, lost: u64, duplicated: u64) {
        let readings = [self.reading(0), self.reading(1)];
        let sum = |part: fn(&DeviceReading) -> u64| readings.iter().map(part).sum::<u64>();
        let dropped = sum(|r| r.ports[0].drops.total());
        let made = sum(|r| r.balance.injected) + duplicated;
        assert_eq!(made, sum(|r| r.balance.delivered) + dropped + lost);
        assert_eq!(made - duplicated, self.seen.len() as u64);
    }
}
