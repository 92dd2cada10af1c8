//! What a switch does for one frame outside the kernel: from the socket's octets to the next line's.
//!
//! A frame is copied out of a socket buffer, classified, its VCRC verified, queued, judged, taken
//! by the output, put on another lane (the VCRC follows) and handed over. The credits that a frame
//! costs are in the figure too: one flow-control packet comes in for it at the output, and one goes
//! out at the input.

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use proto::congestion::SchemeConfig;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::classify;
use proto::wire::infiniband::crc::{refresh_both, verify_icrc, verify_vcrc};
use proto::wire::infiniband::{Bth, FlowControlOp, FlowControlPacket, Opcode, PacketBuilder};
use std::hint::black_box;
use switchd::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use switchd::switch::Switch;

/// Line time of a full frame, and a little more.
const PERIOD: Duration = Duration::from_ns(2_200);
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const LANES: u8 = 2;
const DESTINATION: Lid = Lid::new(2);

/// A switch of eight ports, as in case 4, with the far ends of two of its cables.
struct Hop {
    switch: Switch,
    now: Instant,
    /// Buffers to make frames in.
    spare: Vec<BytesMut>,
    /// Blocks sent to the input and taken from the output so far.
    given: u16,
    taken: u16,
}

impl Hop {
    /// With `marks`, every frame gets FECN.
    fn new(marks: bool) -> Hop {
        let mut params = toml::Table::new();
        params.insert("sw_th_frac".to_owned(), toml::Value::Float(1e-9));
        let scheme = match marks {
            true => SchemeConfig { kind: "ib-cca".to_owned(), params },
            false => SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        };
        let switch = Switch::new(config(scheme)).expect("a good configuration");
        let mut hop = Hop { switch, now: Instant::ZERO, spare: Vec::new(), given: 0, taken: 0 };
        // Init to Arm, and Arm to Active.
        for _ in 0..2 {
            for port in [INPUT, OUTPUT] {
                (0..LANES).for_each(|lane| hop.credit(port, lane));
            }
        }
        hop
    }

    /// Copies `octets` as from a socket into the switch and lets it through; what came out.
    fn pass(&mut self, octets: &[u8]) -> Frame {
        self.now = self.now + PERIOD;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(octets);
        let blocks = octets.len().div_ceil(64) as u16;
        self.given = (self.given + blocks) % 4096;
        let frame = Frame::unchecked(FrameKind::Infiniband, copy);
        let passed = self.feed(INPUT, frame).expect("there is credit, so it passes");
        self.taken = (self.taken + blocks) % 4096;
        self.now = self.now + PERIOD;
        self.credit(OUTPUT, 0);
        passed
    }

    /// Flow control for `lane` from the far end at `port`, with room for 2000 blocks.
    fn credit(&mut self, port: usize, lane: u8) {
        let packet = FlowControlPacket {
            op: FlowControlOp::Normal,
            fctbs: if port == INPUT && lane == 1 { self.given } else { 0 },
            virtual_lane: VirtualLane::truncate(lane),
            fccl: (if port == OUTPUT && lane == 0 { self.taken } else { 0 } + 2000) % 4096,
        };
        let mut octets = self.spare.pop().unwrap_or_default();
        octets.extend_from_slice(&packet.to_octets());
        let nothing = self.feed(port, Frame::unchecked(FrameKind::InfinibandLink, octets));
        assert!(nothing.is_none(), "no packet waits for credit here");
    }

    /// One call and all that comes of it, as a driver does it; the packet among it.
    fn feed(&mut self, port: usize, frame: Frame) -> Option<Frame> {
        let mut passed = None;
        self.switch.handle_frame(PortNumber::from_index(port), frame, self.now, self.now);
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            match departure.frame.kind {
                FrameKind::InfinibandLink => self.recycle(departure.frame),
                _ => passed = Some(departure.frame),
            }
        }
        while self.switch.poll_event().is_some() {}
        black_box(self.switch.poll_timeout());
        passed
    }

    fn recycle(&mut self, frame: Frame) {
        let mut octets = frame.octets;
        octets.clear();
        self.spare.push(octets);
    }
}

fn config(scheme: SchemeConfig) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(u64::from(LANES) * 36 * 2112),
        control: FlowControlConfig::Credit(CreditConfig {
            data_lanes: LANES,
            ..CreditConfig::default()
        }),
    };
    let output = PortNumber::from_index(OUTPUT);
    SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig::default(),
        // All levels leave on lane 0; what comes in on lane 1 must be relabelled.
        sl2vl: vec![0; 16],
        scheme,
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); 8],
        routes: vec![Route { first: DESTINATION, last: DESTINATION, port: output }],
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
    }
}

/// A SEND on lane 1.
fn send(payload: usize) -> BytesMut {
    let queue_pair = QueuePairNumber::planned(0, Lid::new(1));
    let bth = Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(77));
    let builder = PacketBuilder {
        slid: Lid::new(1),
        dlid: DESTINATION,
        virtual_lane: VirtualLane::truncate(1),
        service_level: ServiceLevel::default(),
        ..PacketBuilder::new(bth)
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |place| place.fill(0xa5)).expect("short enough");
    octets
}

/// That what is timed is what is claimed.
fn check(passed: &Frame, sent: &[u8], marks: bool) {
    let headers = classify(FrameKind::Infiniband, &passed.octets).expect("a good packet");
    assert_eq!((headers.lane.get(), headers.fecn), (0, marks));
    assert!(verify_vcrc(&passed.octets).is_ok() && verify_icrc(&passed.octets).is_ok());
    assert_eq!(passed.octets.len(), sent.len());
}

fn forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("forward");
    group.throughput(Throughput::Elements(1));
    for payload in [64, 2048] {
        let octets = send(payload);
        for marks in [false, true] {
            let mut hop = Hop::new(marks);
            let passed = hop.pass(&octets);
            check(&passed, &octets, marks);
            hop.recycle(passed);
            let what = if marks { ", marked" } else { "" };
            group.bench_function(format!("{payload} B{what}"), |b| {
                b.iter(|| {
                    let passed = hop.pass(black_box(&octets));
                    hop.recycle(passed);
                });
            });
        }
        // What no switch does, as the upper bound: the ICRC too is verified, and both made anew.
        let mut hop = Hop::new(true);
        group.bench_function(
            format!("{payload} B, marked, both CRCs verified and made anew"),
            |b| {
                b.iter(|| {
                    verify_icrc(black_box(&octets)).expect("a good packet");
                    let mut passed = hop.pass(black_box(&octets));
                    refresh_both(&mut passed.octets);
                    hop.recycle(passed);
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
