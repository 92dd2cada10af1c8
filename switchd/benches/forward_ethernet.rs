//! What a switch of Ethernet does for one RoCEv2 frame outside the kernel: from the socket's octets to
//! the next line's.
//!
//! A frame is copied out of a socket buffer, classified, its priority and output found, taken into the
//! shared pool, queued, judged, taken by the output, marked (the IPv4 checksum follows) and handed
//! over; then its room is given back. A switch has no business with the ICRC.
//!
//! Beside it the same hop where queues are sampled and each sample is answered, as with BCN and QCN.

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use proto::congestion::SchemeConfig;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Dscp, Ecn, Lid, PortNumber, Psn, QueuePairNumber};
use proto::link::{LinkConfig, LinkControl, PauseConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::classify;
use proto::wire::ethernet::plan;
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use std::hint::black_box;
use switchd::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use switchd::switch::{Switch, headroom_needed};

/// Line time of a full frame at 40 Gb/s, and a little more.
const PERIOD: Duration = Duration::from_ns(400);
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const SOURCE: Lid = Lid::new(1);
const DESTINATION: Lid = Lid::new(2);

/// A scheme, its parameters, and what is written behind the size of the frame.
#[derive(Clone, Copy)]
struct Control {
    scheme: &'static str,
    params: &'static str,
    what: &'static str,
}

const NONE: Control = Control { scheme: "none", params: "", what: "" };

/// The queue is the frame itself. One frame in 50 is sampled by chance, and each sample is bad news;
/// or 150 KB pass between two of them, and QntzFb is 1 or 2.
const CONTROLS: [Control; 4] = [
    NONE,
    Control { scheme: "dcqcn", params: "kmin = \"0 B\"\nkmax = \"0 B\"", what: ", marked" },
    Control { scheme: "bcn", params: "q_eq = \"64 B\"", what: ", bcn" },
    Control { scheme: "qcn", params: "cp_q_sp = \"1400 B\"", what: ", qcn" },
];

/// A switch of eight ports.
struct Hop {
    switch: Switch,
    now: Instant,
    /// Buffers to make frames in.
    spare: Vec<BytesMut>,
}

impl Hop {
    /// Under `control`.
    fn new(control: Control) -> Hop {
        let switch = Switch::new(config(control)).expect("a good configuration");
        Hop { switch, now: Instant::ZERO, spare: Vec::new() }
    }

    /// Copies `octets` as from a socket into the switch and lets it through; what came out.
    fn pass(&mut self, octets: &[u8]) -> Frame {
        self.now = self.now + PERIOD;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(octets);
        let frame = Frame::unchecked(FrameKind::Ethernet, copy);
        self.switch.handle_frame(PortNumber::from_index(INPUT), frame, self.now, self.now);
        let passed = self.drain().expect("nothing is paused, so it passes");
        self.now = self.now + PERIOD;
        self.switch.handle_timeout(self.now);
        assert!(self.drain().is_none());
        passed
    }

    /// All that comes of a call, as a driver does it; the frame among it.
    fn drain(&mut self) -> Option<Frame> {
        let mut passed = None;
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            if departure.port.index() == OUTPUT {
                passed = Some(departure.frame);
            } else {
                // A notification, on its way back.
                self.recycle(departure.frame);
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

fn config(control: Control) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(40),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(150_000),
        control: LinkControl::Pause(PauseConfig::default()),
    };
    let Control { scheme, params, .. } = control;
    let params = params.parse().expect("a table");
    let route = |number: Lid, port| Route {
        first: number,
        last: number,
        port: PortNumber::from_index(port),
    };
    let mut config = SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig { kind: "shared-pool".to_owned(), ..MemoryConfig::default() },
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: scheme.to_owned(), params },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); 8],
        routes: vec![route(SOURCE, INPUT), route(DESTINATION, OUTPUT)],
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
    };
    config.memory.headroom = headroom_needed(&config);
    config
}

/// A SEND of priority 3.
fn send(payload: usize) -> BytesMut {
    let from = SOURCE;
    let (source, destination) = (plan::ipv4(from), plan::ipv4(DESTINATION));
    let (dscp, ecn) = (Dscp::truncate(24), Ecn::Capable0);
    let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
    let queue_pair = QueuePairNumber::planned(0, from);
    let builder = PacketBuilder {
        destination: plan::mac(DESTINATION),
        source: plan::mac(from),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc001)),
        bth: Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(77)),
        extended: ExtendedHeaders::default(),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |place| place.fill(0xa5)).expect("short enough");
    octets
}

/// That what is timed is what is claimed.
fn check(passed: &Frame, sent: &[u8], marks: bool) {
    let headers = classify(FrameKind::Ethernet, &passed.octets).expect("a good frame");
    assert_eq!(headers.ecn == Ecn::CongestionExperienced, marks);
    assert!(verify_checksums(&passed.octets).is_ok() && verify_icrc(&passed.octets).is_ok());
    assert_eq!(passed.octets.len(), sent.len());
}

fn forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("forward ethernet");
    group.throughput(Throughput::Elements(1));
    for payload in [64, 1024, 1436] {
        let octets = send(payload);
        for control in CONTROLS {
            let mut hop = Hop::new(control);
            let passed = hop.pass(&octets);
            check(&passed, &octets, control.scheme == "dcqcn");
            hop.recycle(passed);
            group.bench_function(format!("{payload} B{}", control.what), |b| {
                b.iter(|| {
                    let passed = hop.pass(black_box(&octets));
                    hop.recycle(passed);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
