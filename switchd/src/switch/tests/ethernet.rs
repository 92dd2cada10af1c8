//! Ethernet: frames through a switch unchanged, marked, flooded, refused; what cannot be configured.

use crate::config::{
    MemoryConfig, PoolConfig, PortConfig, Route, RoutingConfig, SwitchConfig, Threshold,
};
use crate::memory::headroom::MemoryError;
use crate::switch::{ConfigError, Switch};
use bytes::BytesMut;
use proptest::prelude::*;
use proto::congestion::{CongestionPoint, Marking, QueueSample, SchemeConfig};
use proto::counters::{DeviceReading, DropReason};
use proto::device::Device;
use proto::events::{EventKind, MarkKind};
use proto::frame::{Frame, FrameHeaders, FrameKind};
use proto::ids::{Dscp, Ecn, Lid, PortNumber, Priority, Psn, QueuePairNumber, VirtualLane};
use proto::link::{CreditConfig, LinkConfig, LinkControl, PauseConfig, PauseMode};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pfc, ethertype, plan};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::checks::{carried_icrc, verify_checksums, verify_icrc};
use proto::wire::roce::{Layout, NetworkHeaders, PacketBuilder};

pub const PORTS: usize = 4;

/// Payload of a frame of [`FRAME`] octets, DA to FCS.
pub const PAYLOAD: usize = 940;
pub const FRAME: u64 = 14 + 20 + 8 + 12 + PAYLOAD as u64 + 4 + 4;

/// The lossless priority, and the DSCP that means it.
pub const P3: u8 = 3;
pub const DSCP3: u8 = 24;

/// Four ports of 10 Gb/s, adapter n behind port n; priority 3 is lossless, all obey PFC. A pool in
/// whose reserves two frames fit, twenty more below the threshold, and ten in each headroom.
pub fn config() -> SwitchConfig {
    let control = LinkControl::Pause(PauseConfig::default());
    let link = LinkConfig {
        rate: BitRate::gbps(10),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(100 * FRAME),
        control,
    };
    let route = |lid: u16| Route {
        first: Lid::new(lid),
        last: Lid::new(lid),
        port: PortNumber::from_index(usize::from(lid) - 1),
    };
    SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig {
            kind: "shared-pool".to_owned(),
            headroom: Bytes::new(10 * FRAME),
            jitter: Duration::from_ns(100),
            pool: PoolConfig {
                size: Bytes::new(1000 * FRAME),
                reserve: Bytes::new(2 * FRAME),
                threshold: Threshold::Octets(Bytes::new(20 * FRAME)),
                hysteresis: Bytes::new(3 * FRAME),
                headroom_pool: None,
                lossy_queue: Some(Bytes::new(10 * FRAME)),
            },
            ..MemoryConfig::default()
        },
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        ports: vec![PortConfig { faces_adapter: true, link, delay: Duration::from_ns(100) }; PORTS],
        routes: (1..=PORTS as u16).map(route).collect(),
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
    }
}

/// A switch whose neighbours do what the test makes them do.
pub struct Bench {
    pub switch: Switch,
    pub now: Instant,
    /// What each port sent, MAC control left out.
    pub sent: Vec<Vec<Frame>>,
    /// The MAC control that each port sent, and when its last bit left.
    pub control: Vec<Vec<(Instant, MacControl)>>,
    pub events: Vec<EventKind>,
}

impl Bench {
    pub fn new(config: SwitchConfig) -> Bench {
        let switch = Switch::new(config).unwrap();
        let (sent, control) = (vec![Vec::new(); PORTS], vec![Vec::new(); PORTS]);
        Bench { switch, now: Instant::ZERO, sent, control, events: Vec::new() }
    }

    pub fn feed(&mut self, port: usize, frame: Frame) {
        self.switch.handle_frame(PortNumber::from_index(port), frame, self.now, self.now);
        self.drain();
    }

    /// The neighbour at `port` asks for silence on some priorities, or with no time ends it.
    pub fn pause(&mut self, port: usize, priorities: &[u8], time: u16) {
        let mut pfc = Pfc::default();
        for priority in priorities {
            pfc = pfc.with(Priority::truncate(*priority), time);
        }
        let octets = MacControl::Pfc(pfc).to_octets(plan::mac(Lid::new(9)));
        self.feed(port, Frame::intact(FrameKind::Ethernet, octets[..].into()));
    }

    fn drain(&mut self) {
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            let port = departure.port.index();
            if MacControl::is_announced(&departure.frame.octets) {
                let control = MacControl::parse(&departure.frame.octets).unwrap();
                self.control[port].push((departure.at, control));
            } else {
                self.sent[port].push(departure.frame);
            }
        }
        while let Some(event) = self.switch.poll_event() {
            self.events.push(event.kind);
        }
    }

    pub fn run(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let wake = self.switch.poll_timeout().unwrap_or(end).min(end);
            self.now = self.now.max(wake) + Duration::from_ps(u64::from(wake <= self.now));
            self.switch.handle_timeout(self.now);
            self.drain();
        }
    }

    pub fn reading(&mut self) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.switch.read(self.now, &mut reading);
        reading
    }

    pub fn drops(&mut self, port: usize, reason: DropReason) -> u64 {
        self.reading().ports[port].drops.get(reason)
    }

    /// All drops, at all ports and for all reasons.
    pub fn lost(&mut self) -> u64 {
        self.reading().ports.iter().map(|port| port.drops.total()).sum()
    }

    pub fn named(&mut self, port: usize, name: &str) -> u64 {
        let reading = self.reading();
        let named = &reading.ports[port].named;
        named.iter().find(|(key, _)| key == name).map_or(0, |(_, value)| *value)
    }

    /// Whether all that the switch holds is gone, and nobody is asked to be silent.
    pub fn is_empty(&self) -> bool {
        let ports = (0..PORTS).map(PortNumber::from_index);
        self.switch.queues.frames() == 0
            && ports.into_iter().all(|port| {
                let lanes = || (0..8).map(VirtualLane::truncate);
                let held = lanes().filter_map(|lane| self.switch.memory.held(port, lane));
                let none = held.into_iter().all(|octets| octets == Bytes::ZERO);
                let queued =
                    lanes().any(|lane| self.switch.queues.standing(port, lane) > Bytes::ZERO);
                none && !queued && self.switch.memory.demands(port) == 0
            })
    }
}

/// What the neighbour on the other side hears of priority 3, frame by frame.
pub fn times(control: &[(Instant, MacControl)]) -> Vec<u16> {
    let of = |control: &MacControl| match control {
        MacControl::Pfc(pfc) => pfc.time(Priority::truncate(P3)),
        MacControl::Pause(pause) => Some(pause.time),
        MacControl::Unknown(_) => None,
    };
    control.iter().filter_map(|(_, control)| of(control)).collect()
}

/// A RoCEv2 frame of one adapter to another.
pub fn packet(from: u16, to: u16, dscp: u8, ecn: Ecn, psn: u32, payload: usize) -> Frame {
    let [from, to] = [from, to].map(Lid::new);
    let dscp = Dscp::truncate(dscp);
    let (source, destination) = (plan::ipv4(from), plan::ipv4(to));
    let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
    let queue_pair = QueuePairNumber::planned(0, from);
    let builder = PacketBuilder {
        destination: plan::mac(to),
        source: plan::mac(from),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc000)),
        bth: Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(psn)),
        extended: ExtendedHeaders::default(),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |place| place.fill(0x5a)).unwrap();
    Frame::intact(FrameKind::Ethernet, octets)
}

/// A lossless frame of [`FRAME`] octets.
pub fn data(from: u16, to: u16, psn: u32) -> Frame {
    packet(from, to, DSCP3, Ecn::Capable0, psn, PAYLOAD)
}

/// A lossy one.
pub fn lossy(from: u16, to: u16, psn: u32) -> Frame {
    packet(from, to, 0, Ecn::NotCapable, psn, PAYLOAD)
}

/// Marks whatever is judged at a queue above so many octets.
struct Above(Bytes);

impl CongestionPoint for Above {
    fn on_dequeue(&mut self, _: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if sample.queue > self.0 { Marking::Ce { limit: self.0 } } else { Marking::Pass }
    }
}

impl Bench {
    /// Every output marks what leaves a queue of more than so many frames.
    pub fn marking_above(config: SwitchConfig, frames: u64) -> Bench {
        let mut bench = Bench::new(config);
        for egress in &mut bench.switch.egress {
            let points = (0..8).map(|_| Box::new(Above(Bytes::new(frames * FRAME))) as Box<_>);
            *egress = crate::egress::Egress::new(
                points.collect(),
                PORTS,
                crate::egress::marking::Dialect::Ethernet,
            );
        }
        bench
    }
}

#[test]
fn a_frame_leaves_by_its_route_unchanged_and_nothing_stays_behind() {
    let mut bench = Bench::new(config());
    bench.feed(0, data(1, 3, 7));
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent[2], [data(1, 3, 7)]);
    assert!([0, 1, 3].iter().all(|port| bench.sent[*port].is_empty()));
    assert!(bench.is_empty());
    assert_eq!(bench.reading().ports[2].lanes[3].counters.tx_bytes, FRAME);
}

/// ROCE-05.
#[test]
fn ce_is_set_where_it_is_understood_and_checksum_and_icrc_hold() {
    let mut bench = Bench::marking_above(config(), 5);
    bench.pause(3, &[0, P3], u16::MAX);
    for psn in 0..10 {
        bench.feed(0, data(1, 4, psn));
        if psn < 9 {
            bench.feed(1, lossy(2, 4, psn));
        }
    }
    bench.pause(3, &[0, P3], 0);
    bench.run(Duration::from_us(100));
    let (mut marked, mut plain) = (0, 0);
    for frame in &bench.sent[3] {
        verify_checksums(&frame.octets).unwrap();
        verify_icrc(&frame.octets).unwrap();
        let layout = Layout::find(&frame.octets).unwrap().unwrap();
        let headers = proto::wire::classify::classify(frame.kind, &frame.octets).unwrap();
        let sent = match headers.ecn {
            Ecn::NotCapable => lossy(2, 4, headers.psn),
            _ => data(1, 4, headers.psn),
        };
        assert_eq!(carried_icrc(&frame.octets, &layout), carried_icrc(&sent.octets, &layout));
        let differs: Vec<usize> =
            (0..sent.octets.len()).filter(|at| sent.octets[*at] != frame.octets[*at]).collect();
        match headers.ecn {
            // Traffic class, and the checksum of the IPv4 header.
            Ecn::CongestionExperienced => {
                marked += 1;
                assert!(differs.iter().all(|at| [15, 24, 25].contains(at)), "{differs:?}");
            }
            _ => {
                plain += 1;
                assert_eq!(differs, [0; 0]);
            }
        }
    }
    // The queue of ten is above five until five have left, the one that leaves included.
    assert_eq!((marked, plain), (5, 14));
    assert_eq!(bench.named(3, "queue3_ecn_marked_packets"), 5);
    let marks = bench.events.iter().filter_map(|event| match event {
        EventKind::Mark { flow, mark: MarkKind::Ce, .. } => Some((flow.source, flow.destination)),
        _ => None,
    });
    assert_eq!(marks.collect::<Vec<_>>(), [(1, 4); 5], "adapters go by their numbers");
}

#[test]
fn a_mark_of_an_earlier_switch_stays_and_is_not_counted_again() {
    let mut bench = Bench::marking_above(config(), 0);
    let frame = packet(1, 4, DSCP3, Ecn::CongestionExperienced, 0, PAYLOAD);
    bench.feed(0, frame.clone());
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent[3], [frame]);
    assert_eq!(bench.named(3, "queue3_ecn_marked_packets"), 0);
}

fn raw(destination: MacAddress, source: MacAddress) -> Frame {
    let mut octets = BytesMut::zeroed(60);
    Envelope::untagged(destination, source, ethertype::CABLE_SHIM).emit(&mut octets);
    Frame::intact(FrameKind::Ethernet, octets)
}

#[test]
fn unknown_and_broadcast_go_everywhere_but_back_and_share_one_place() {
    let mut bench = Bench::new(config());
    let stranger = MacAddress::from_number(0x7cfe_9064_3b32);
    let source = plan::mac(Lid::new(1));
    for destination in [MacAddress::BROADCAST, stranger] {
        bench.feed(0, raw(destination, source));
    }
    let lane = VirtualLane::ZERO;
    let held = bench.switch.memory.held(PortNumber::from_index(0), lane);
    assert_eq!(held, Some(Bytes::new(128)));
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2, 2, 2]);
    assert!(bench.is_empty());
    assert_eq!(bench.named(0, "flooded_packets"), 2);
    assert_eq!(bench.reading().balance.injected, 4);
    bench.feed(2, raw(source, stranger));
    bench.feed(0, raw(stranger, source));
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 3, 2]);
}

/// PFC-16, and what other groups of the link are for.
#[test]
fn what_belongs_to_the_link_is_never_forwarded() {
    let mut bench = Bench::new(config());
    let source = plan::mac(Lid::new(1));
    for port in 0..PORTS {
        bench.pause(port, &[P3], 1);
        bench.feed(port, raw(MacAddress::from_number(0x0180_c200_000e), source));
        let pfc = MacControl::Pfc(Pfc::default().with(Priority::truncate(P3), 1));
        let mut octets = pfc.to_octets(source);
        octets[..6].copy_from_slice(&plan::mac(Lid::new(2)).octets());
        bench.feed(port, Frame::intact(FrameKind::Ethernet, octets[..].into()));
    }
    bench.run(Duration::from_us(5));
    assert!(bench.sent.iter().all(Vec::is_empty));
    assert_eq!((0..PORTS).map(|p| bench.drops(p, DropReason::ReservedAddress)).sum::<u64>(), 4);
}

#[test]
fn a_switch_that_cannot_keep_its_word_is_refused() {
    let with = |change: fn(&mut SwitchConfig)| {
        let mut config = config();
        change(&mut config);
        Switch::new(config).err()
    };
    // 300 ns at 10 Gb/s, and two frames of 1500 octets with all headers there are.
    let needed = Bytes::new(375 + 2 * (1500 + 14 + 20 + 8 + 12 + 4 + 4 + 56) + 64);
    let (port, given) = (PortNumber::from_index(0), Bytes::ZERO);
    let expected = ConfigError::Room(MemoryError::Headroom { port, given, needed });
    assert_eq!(with(|c| c.memory.headroom = Bytes::ZERO), Some(expected));
    let longer = with(|c| c.ports[2].delay = Duration::from_us(10));
    assert!(matches!(longer, Some(ConfigError::Room(MemoryError::Headroom { port, .. }))
        if port.index() == 2));
    let unpaused = with(|c| {
        c.memory.headroom = Bytes::ZERO;
        for port in &mut c.ports {
            let mode = PauseMode::None;
            port.link.control = LinkControl::Pause(PauseConfig { mode, ..PauseConfig::default() });
        }
    });
    assert_eq!(unpaused, None, "what is lossy needs no headroom");
    let mixed = with(|c| c.ports[1].link.control = LinkControl::Credits(CreditConfig::default()));
    assert_eq!(mixed, Some(ConfigError::Technology(PortNumber::from_index(1))));
    let routing = with(|c| c.routing.kind = Some("forwarding-table".to_owned()));
    assert!(matches!(routing, Some(ConfigError::Routing(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in, every frame is sent, kept or counted, and in the end nothing is held.
    #[test]
    fn every_frame_is_sent_kept_or_counted_and_the_account_returns_to_zero(
        model in 0usize..3,
        read in any::<bool>(),
        frames in proptest::collection::vec(
            (0..PORTS, 0u8..12, 0u16..7, 0u8..64, 0usize..1500, 0u64..3_000),
            1..300,
        ),
    ) {
        let mut config = config();
        config.memory.kind = ["shared-pool", "per-input", "global-watermark"][model].to_owned();
        config.memory.read = if read { crate::config::Read::Multi } else { crate::config::Read::Single };
        let mut bench = Bench::marking_above(config, 2);
        let mut fed = 0u64;
        for (psn, (port, kind, to, dscp, payload, ns)) in (0..).zip(frames) {
            let frame = match kind {
                0 => raw(MacAddress::BROADCAST, plan::mac(Lid::new(1))),
                1 => raw(MacAddress::from_number(u64::from(dscp) + 1), plan::mac(Lid::new(1))),
                2 => Frame::unchecked(FrameKind::Ethernet, vec![dscp; payload][..].into()),
                3 => {
                    bench.pause(port, &[dscp & 7], if dscp & 8 == 0 { 0 } else { 3_000 });
                    continue;
                }
                _ => packet(1, to, dscp, Ecn::from_bits(kind), psn, payload),
            };
            fed += 1;
            bench.feed(port, frame);
            bench.run(Duration::from_ns(ns));
            let balance = bench.reading().balance;
            let sent: usize = bench.sent.iter().map(Vec::len).sum();
            prop_assert_eq!(fed + balance.injected, sent as u64 + bench.lost() + balance.buffered);
        }
        bench.run(Duration::from_us(2_000));
        prop_assert!(bench.is_empty());
    }
}
