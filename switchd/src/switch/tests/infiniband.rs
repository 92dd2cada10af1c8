//! InfiniBand: relaying, marking, fairness, reading discipline, odd addresses.

use crate::config::{
    MemoryConfig, MulticastRoute, PortConfig, Read, Route, RoutingConfig, SwitchConfig,
};
use crate::switch::{ConfigError, Switch};
use proptest::prelude::*;
use proto::congestion::SchemeConfig;
use proto::counters::{DeviceReading, DropReason};
use proto::device::{Device, Instrumented};
use proto::events::EventKind;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::classify;
use proto::wire::infiniband::crc::{verify_icrc, verify_vcrc};
use proto::wire::infiniband::{Bth, FlowControlOp, FlowControlPacket, Opcode, PacketBuilder};

const PORTS: usize = 4;

fn config(scheme: &str) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(36 * 2112),
        control: FlowControlConfig::Credit(CreditConfig {
            data_lanes: 1,
            ..CreditConfig::default()
        }),
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
        memory: MemoryConfig::default(),
        sl2vl: vec![0; 15].into_iter().chain([15]).collect(),
        scheme: SchemeConfig { kind: scheme.to_owned(), params: toml::Table::new() },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); PORTS],
        routes: (1..=PORTS as u16).map(route).collect(),
        routing: RoutingConfig::default(),
        watchdog: None,
        multicast: vec![MulticastRoute {
            lid: Lid::new(0xc000),
            ports: (0..PORTS - 1).map(PortNumber::from_index).collect(),
        }],
    }
}

/// A switch whose neighbours have unlimited credits unless configured otherwise.
struct Bench {
    switch: Switch,
    now: Instant,
    /// What each port sent, data packets only.
    sent: Vec<Vec<Frame>>,
    events: Vec<EventKind>,
    /// Neighbours that give no more credit.
    mute: Vec<usize>,
    fctbs: [u16; PORTS],
}

impl Bench {
    fn new(config: SwitchConfig) -> Bench {
        let switch = Switch::new(config).unwrap();
        let mut bench = Bench {
            switch,
            now: Instant::ZERO,
            sent: vec![Vec::new(); PORTS],
            events: Vec::new(),
            mute: Vec::new(),
            fctbs: [0; PORTS],
        };
        for _ in 0..3 {
            (0..PORTS).for_each(|port| bench.grant(port, 2048));
            bench.run(Duration::from_ns(100));
        }
        bench
    }

    /// The neighbour at `port` offers `blocks` beyond what it has been sent.
    fn grant(&mut self, port: usize, blocks: u16) {
        let received: usize = self.sent[port].iter().map(|f| f.octets.len().div_ceil(64)).sum();
        let packet = FlowControlPacket {
            op: FlowControlOp::Normal,
            fctbs: self.fctbs[port],
            virtual_lane: VirtualLane::ZERO,
            fccl: ((received + usize::from(blocks)) % 4096) as u16,
        };
        let octets = packet.to_octets()[..].into();
        self.feed(port, Frame::unchecked(FrameKind::InfinibandLink, octets));
    }

    fn feed(&mut self, port: usize, frame: Frame) {
        if frame.kind == FrameKind::Infiniband && frame.octets.first().is_some_and(|o| o >> 4 == 0)
        {
            self.fctbs[port] = (self.fctbs[port] + frame.octets.len().div_ceil(64) as u16) % 4096;
        }
        self.switch.handle_frame(PortNumber::from_index(port), frame, self.now, self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            if departure.frame.kind == FrameKind::Infiniband {
                self.sent[departure.port.index()].push(departure.frame);
            }
        }
        while let Some(event) = self.switch.poll_event() {
            self.events.push(event.kind);
        }
    }

    /// Lets time pass, with credits for whoever is not mute.
    fn run(&mut self, length: Duration) {
        let end = self.now + length;
        let mut credit_at = self.now;
        while self.now < end {
            if credit_at <= self.now {
                credit_at = self.now + Duration::from_us(1);
                for port in (0..PORTS).filter(|port| !self.mute.contains(port)).collect::<Vec<_>>()
                {
                    self.grant(port, 2048);
                }
            }
            let wake = self.switch.poll_timeout().unwrap_or(end).min(credit_at).min(end);
            self.now = self.now.max(wake) + Duration::from_ps(u64::from(wake <= self.now));
            self.switch.handle_timeout(self.now);
            self.drain();
        }
    }

    fn drops(&mut self, port: usize, reason: DropReason) -> u64 {
        let mut reading = DeviceReading::default();
        self.switch.read(self.now, &mut reading);
        reading.ports[port].drops.get(reason)
    }
}

fn packet(from: u16, to: u16, lane: u8, level: u8, psn: u32, payload: usize) -> Frame {
    let bth = Bth::new(
        Opcode::RC_SEND_ONLY,
        QueuePairNumber::planned(0, Lid::new(from)),
        Psn::truncate(psn),
    );
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(lane),
        service_level: ServiceLevel::truncate(level),
        dlid: Lid::new(to),
        slid: Lid::new(from),
        ..PacketBuilder::new(bth)
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, payload, |_| {}).unwrap();
    Frame::unchecked(FrameKind::Infiniband, octets)
}

fn data(from: u16, to: u16, psn: u32) -> Frame {
    packet(from, to, 0, 0, psn, 2048)
}

#[test]
fn a_packet_leaves_by_its_route_unchanged_one_frame_time_later() {
    let mut bench = Bench::new(config("none"));
    bench.feed(0, data(1, 3, 7));
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent[2], [data(1, 3, 7)]);
    assert!(bench.sent[0].is_empty() && bench.sent[1].is_empty());
}

#[test]
fn outputs_serve_backlogged_inputs_in_turn_and_keep_each_inputs_order() {
    let mut bench = Bench::new(config("none"));
    for psn in 0..20 {
        bench.feed(0, data(1, 4, psn));
        bench.feed(1, data(2, 4, psn));
        bench.feed(2, data(3, 4, psn));
    }
    bench.run(Duration::from_us(62));
    let sources: Vec<u64> = bench.sent[3]
        .iter()
        .map(|frame| classify(frame.kind, &frame.octets).unwrap().source.number())
        .collect();
    assert_eq!(sources.len(), 30);
    for source in 1..=3 {
        assert_eq!(sources.iter().filter(|s| **s == source).count(), 10);
        let psns: Vec<u32> = bench.sent[3]
            .iter()
            .map(|frame| classify(frame.kind, &frame.octets).unwrap())
            .filter(|headers| headers.source.number() == source)
            .map(|headers| headers.psn)
            .collect();
        assert!(psns.is_sorted());
    }
}

#[test]
fn a_root_marks_when_its_queue_passes_90_percent_of_a_buffer_and_only_fecn_and_vcrc_change() {
    let mut bench = Bench::new(config("ib-cca"));
    for psn in 0..30 {
        bench.feed(0, data(1, 4, psn));
        bench.feed(1, data(2, 4, psn));
    }
    bench.run(Duration::from_us(140));
    let marked: Vec<&Frame> = bench.sent[3].iter().filter(|f| f.octets[12] & 0x80 != 0).collect();
    assert!(!marked.is_empty() && marked.len() < 30, "{} marked", marked.len());
    for frame in marked {
        verify_vcrc(&frame.octets).unwrap();
        verify_icrc(&frame.octets).unwrap();
        let headers = classify(frame.kind, &frame.octets).unwrap();
        let plain = data(headers.source.number() as u16, 4, headers.psn);
        let differing = (0..plain.octets.len()).filter(|i| plain.octets[*i] != frame.octets[*i]);
        assert!(differing.into_iter().all(|i| i == 12 || i >= plain.octets.len() - 2));
    }
    assert!(bench.events.iter().any(|event| matches!(event, EventKind::Mark { .. })));
}

#[test]
fn a_port_starved_of_credit_is_a_victim_and_marks_nothing() {
    let mut bench = Bench::new(config("ib-cca"));
    bench.mute.push(3);
    bench.run(Duration::from_us(2));
    for psn in 0..36 {
        bench.feed(0, data(1, 4, psn));
        bench.feed(1, data(2, 4, psn));
    }
    // Credit for one frame at a time: the port waits before each.
    bench.grant(3, 0);
    for _ in 0..40 {
        bench.run(Duration::from_us(3));
        bench.grant(3, 33);
    }
    assert!(bench.sent[3].len() > 20);
    let marked = bench.sent[3].iter().filter(|f| f.octets[12] & 0x80 != 0).count();
    // The very first heads are judged before anybody has waited.
    assert!(marked <= 2, "{marked} victims marked");
}

#[test]
fn a_packet_is_judged_once_when_its_predecessor_has_left() {
    let mut config = config("ib-cca");
    config.scheme.params = "threshold = 15".parse().unwrap();
    let mut bench = Bench::new(config);
    for psn in 0..2 {
        bench.feed(0, data(1, 4, psn));
        bench.feed(1, data(2, 4, psn));
        bench.run(Duration::from_ns(2074));
    }
    // The last came to a queue of three frames, above 2.16, but its predecessor was on the line.
    bench.run(Duration::from_us(10));
    assert!(bench.sent[3].iter().all(|frame| frame.octets[12] & 0x80 == 0));
}

#[test]
fn judged_at_departure_every_victim_passes_for_a_root() {
    let mut config = config("ib-cca");
    config.scheme.params = "root_test = \"dequeue\"".parse().unwrap();
    let mut bench = Bench::new(config);
    bench.mute.push(3);
    bench.run(Duration::from_us(2));
    for psn in 0..36 {
        bench.feed(0, data(1, 4, psn));
        bench.feed(1, data(2, 4, psn));
    }
    for _ in 0..20 {
        bench.grant(3, 33);
        bench.run(Duration::from_us(3));
    }
    let marked = bench.sent[3].iter().filter(|f| f.octets[12] & 0x80 != 0).count();
    assert!(marked >= 19, "{marked} marked");
}

#[test]
fn fecn_from_an_earlier_switch_is_never_cleared() {
    let mut bench = Bench::new(config("none"));
    let mut frame = data(1, 3, 0);
    proto::wire::infiniband::relabel::relabel(&mut frame.octets, VirtualLane::ZERO, true);
    bench.feed(0, frame.clone());
    bench.run(Duration::from_us(5));
    assert_eq!(bench.sent[2], [frame]);
}

#[test]
fn read_singly_an_input_feeds_one_output_at_a_time() {
    let reach = |read| {
        let mut config = config("none");
        config.memory.read = read;
        let mut bench = Bench::new(config);
        for psn in 0..10 {
            bench.feed(0, data(1, 3, psn));
            bench.feed(0, data(1, 4, psn));
        }
        bench.run(Duration::from_ns(2074 * 10 + 500));
        bench.sent[2].len() + bench.sent[3].len()
    };
    assert_eq!(reach(Read::Multi), 20);
    assert!((10..=11).contains(&reach(Read::Single)));
}

#[test]
fn odd_addresses_end_here_each_under_its_own_reason() {
    let mut bench = Bench::new(config("none"));
    bench.feed(0, data(1, 77, 0));
    bench.feed(0, data(1, 0, 0));
    bench.feed(0, data(1, 0xffff, 0));
    bench.feed(0, data(1, 0xc005, 0));
    bench.feed(0, data(1, 1, 0));
    bench.feed(0, packet(1, 0xffff, 15, 0, 0, 256));
    bench.feed(0, packet(1, 3, 0, 15, 0, 256));
    bench.run(Duration::from_us(20));
    assert_eq!(bench.drops(0, DropReason::NoRoute), 3);
    assert_eq!(bench.drops(0, DropReason::NoMulticastRoute), 1);
    assert_eq!(bench.drops(0, DropReason::Hairpin), 1);
    assert_eq!(bench.drops(0, DropReason::Management), 1);
    assert_eq!(bench.drops(0, DropReason::Lane), 1);
    assert!(bench.sent.iter().all(Vec::is_empty));
    assert_eq!(bench.switch.ports[0].in_use(VirtualLane::ZERO), Bytes::ZERO, "all buffer is back");
}

#[test]
fn multicast_goes_out_by_every_port_but_its_own_and_frees_its_buffer_once() {
    let mut bench = Bench::new(config("none"));
    bench.feed(0, data(1, 0xc000, 5));
    assert_eq!(bench.switch.ports[0].in_use(VirtualLane::ZERO), Bytes::new(2112));
    bench.run(Duration::from_us(10));
    assert_eq!(bench.sent[1], [data(1, 0xc000, 5)]);
    assert_eq!(bench.sent[2], [data(1, 0xc000, 5)]);
    assert!(bench.sent[0].is_empty() && bench.sent[3].is_empty());
    assert_eq!(bench.switch.ports[0].in_use(VirtualLane::ZERO), Bytes::ZERO);
    assert_eq!(bench.switch.balance.injected, 1, "one copy more than came in");
}

#[test]
fn management_needs_no_credit_and_overflows_into_its_own_counter() {
    let mut bench = Bench::new(config("none"));
    bench.mute = vec![0, 1, 2, 3];
    bench.run(Duration::from_us(1));
    for psn in 0..40 {
        bench.feed(0, packet(1, 3, 15, 0, psn, 256));
    }
    bench.run(Duration::from_us(50));
    assert_eq!(bench.sent[2].len() as u64 + bench.drops(0, DropReason::ManagementOverrun), 40);
    assert!(bench.sent[2].len() >= 17);
}

#[test]
fn a_bad_icrc_is_not_the_switchs_business_but_a_bad_vcrc_is() {
    let mut bench = Bench::new(config("none"));
    let mut frame = data(1, 3, 0);
    frame.octets[100] ^= 1;
    bench.feed(0, frame.clone());
    proto::wire::infiniband::crc::refresh_vcrc(&mut frame.octets);
    bench.feed(0, frame.clone());
    bench.run(Duration::from_us(10));
    assert_eq!(bench.drops(0, DropReason::Vcrc), 1);
    assert_eq!(bench.sent[2], [frame]);
}

#[test]
fn faulty_configurations_are_refused() {
    let with = |change: fn(&mut SwitchConfig)| {
        let mut config = config("none");
        change(&mut config);
        Switch::new(config).err()
    };
    assert!(matches!(with(|c| c.scheme.kind = "magic".into()), Some(ConfigError::Scheme(_))));
    assert!(matches!(with(|c| c.memory.kind = "none".into()), Some(ConfigError::Memory(_))));
    assert!(matches!(with(|c| c.sl2vl = vec![0; 3]), Some(ConfigError::ServiceLevels)));
    assert!(matches!(with(|c| c.sl2vl[3] = 16), Some(ConfigError::ServiceLevels)));
    assert!(matches!(with(|c| c.ports.truncate(2)), Some(ConfigError::Port(_))));
    assert!(matches!(with(|c| c.ports.clear()), Some(ConfigError::Ports(0))));
    let pool = with(|c| c.memory.kind = "shared-pool".into());
    assert!(matches!(pool, Some(ConfigError::Memory(_))), "credits know no pool");
    let routing = with(|c| c.routing.kind = Some("adaptive".into()));
    assert!(matches!(routing, Some(ConfigError::Routing(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in, nothing panics, and every frame is sent, kept or counted.
    #[test]
    fn every_frame_is_sent_kept_or_counted(
        frames in proptest::collection::vec(
            (0usize..PORTS, any::<bool>(), 0u16..8, 0u8..16, proptest::collection::vec(any::<u8>(), 0..300)),
            1..60,
        ),
    ) {
        let mut bench = Bench::new(config("ib-cca"));
        let mut fed = 0u64;
        for (port, sound, to, level, octets) in frames {
            let frame = if sound {
                packet(1, to, 0, level, 0, octets.len())
            } else {
                Frame::unchecked(FrameKind::Infiniband, octets[..].into())
            };
            fed += 1;
            bench.feed(port, frame);
        }
        bench.run(Duration::from_us(3));
        let mut reading = DeviceReading::default();
        bench.switch.read(bench.now, &mut reading);
        let dropped: u64 = reading.ports.iter().map(|port| port.drops.total()).sum();
        let sent: usize = bench.sent.iter().map(Vec::len).sum();
        prop_assert_eq!(
            fed + reading.balance.injected,
            sent as u64 + dropped + reading.balance.buffered
        );
    }
}
