//! The measured switch: a worker as in the daemon, with one switch of two ports.

use crate::cable_end::CableEnd;
use crate::neighbours::{Neighbours, drive};
use crate::{Signals, Speed, measure};
use bytes::BytesMut;
use emulation::cable::datagram::{DatagramSocket, Peer};
use emulation::cable::exchange::{DATAGRAM_MAX, Exchange, Session, Sockets};
use emulation::cable::lines::Lines;
use emulation::cable::shim::SendingEnd;
use emulation::cable::udp;
use emulation::clock::{Clock, monotonic_ns};
use emulation::driver::{Assignment, Beat, Supervisor, Worker, impairers};
use emulation::recorder::{Recorder, RecordingPlan};
use emulation::timer::Priority;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::congestion::SchemeConfig;
use proto::frame::FrameKind;
use proto::ids::{Lid, PortNumber, Psn, QueuePairNumber, VirtualLane};
use proto::link::credit::CreditFlow;
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig, full_frame};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use switchd::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use switchd::switch::Switch;

/// Twenty times the rate that one core can forward, at dilation 1, so that the line is never the bottleneck.
const RATE: BitRate = BitRate::gbps(100);
/// Symbol time, chosen so that the watchdog of 400 000 symbols lasts 8 ms. With the symbol time of this line rate
/// the watchdog would expire when the scheduler preempts the neighbour.
const PHYSICAL_LANES: u8 = u8::MAX;
const MTU: Bytes = Bytes::new(2048);
/// The maximum that credits can express.
const BUFFER: Bytes = Bytes::new(2048 * 64);
const DELAY: Duration = Duration::from_ns(100);
const EPOCH: u32 = 1;
const ORIGIN: Lid = Lid::new(1);
const DESTINATION: Lid = Lid::new(2);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A SEND from the source's adapter to the sink's.
pub fn data_frame(payload: usize) -> BytesMut {
    let queue_pair = QueuePairNumber::planned(0, ORIGIN);
    let bth = Bth::new(Opcode::UC_SEND_ONLY, queue_pair, Psn::default());
    let builder = PacketBuilder { slid: ORIGIN, dlid: DESTINATION, ..PacketBuilder::new(bth) };
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, payload, |place| place.fill(0xa5))
        .expect("the payload fits a packet");
    octets
}

/// Runs the switch for `length_ns`; the source puts `bundle` frames into each datagram.
pub fn run(signals: &Signals, payload: usize, bundle: usize, length_ns: u64) -> Speed {
    let open = || udp::open(LOOPBACK).expect("the loopback interface is up");
    let peer = |s: &DatagramSocket| udp::peer(s.address()).expect("its own address");
    let (own, source, sink) = (open(), open(), open());
    let peers = vec![peer(&own), peer(&source), peer(&sink)];
    let clock = Clock::new(monotonic_ns(), NonZeroU64::MIN);
    let mut cabled = Cabled {
        clock: clock.clone(),
        source: end(source, peers[0].clone(), (0, SendingEnd::A)),
        sink: end(sink, peers[0].clone(), (1, SendingEnd::B)),
        frame: data_frame(payload),
        bundle,
    };
    let assignment = assignment(clock, own, peers);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            signals.register_forwarder();
            Worker::new(assignment, Priority::Normal).run(&Quiet(signals))
        });
        scope.spawn(|| drive(&mut cabled, signals));
        measure(signals, length_ns)
    })
}

fn end(socket: DatagramSocket, worker: Peer, line: (u32, SendingEnd)) -> CableEnd {
    let flow = CreditFlow::new(1, BUFFER, full_frame(MTU), RATE, PHYSICAL_LANES, Instant::ZERO);
    CableEnd::new(socket, worker, line, EPOCH, flow)
}

struct Quiet<'a>(&'a Signals);

impl Supervisor for Quiet<'_> {
    fn stop_requested(&self) -> bool {
        self.0.stopped()
    }

    fn beat(&self, _: Beat) {}
}

fn assignment(clock: Clock, socket: DatagramSocket, peers: Vec<Peer>) -> Assignment {
    let wiring = wiring();
    // Process 0 contains only the switch.
    let lines = Lines::new(&wiring, &[1, 2, 0], 0, false).expect("the wiring is valid");
    let session = Session {
        epoch: EPOCH,
        peers,
        datagram_max: DATAGRAM_MAX,
        bare: false,
        clock: clock.clone(),
    };
    let plan = RecordingPlan {
        tau: full_frame(MTU).time_at(RATE),
        stop: Instant::NEVER,
        bin: Duration::from_us(1000),
        edges: Vec::new(),
        measured: vec![(Instant::ZERO, Instant::NEVER)],
        all_events: false,
        named: Vec::new(),
        watched: false,
    };
    Assignment {
        process: 0,
        processes: 1,
        clock,
        begin: Instant::ZERO,
        recorder: Recorder::new(plan.clone(), &wiring, vec![2]),
        plan,
        devices: vec![Box::new(Switch::new(switch()).expect("the configuration is valid"))],
        impairers: impairers(&wiring, 1),
        exchange: Exchange::new(Sockets::Datagrams(socket), session, &lines)
            .expect("a datagram socket serves every line"),
        lines,
    }
}

/// source:1 – 1:switch:2 – 1:sink
fn wiring() -> Wiring {
    let node =
        |name: &str, kind, ports| NodeWiring { name: name.to_owned(), kind, ports, level: 0 };
    let end = |node, port| End { node, port: PortNumber::from_index(port) };
    let frame_time = full_frame(MTU).time_at(RATE);
    let link = |a, b| LinkWiring { a, b, delay: DELAY, frame_time };
    Wiring {
        nodes: vec![
            node("source", NodeKind::Nic, 1),
            node("sink", NodeKind::Nic, 1),
            node("switch", NodeKind::Switch, 2),
        ],
        links: vec![link(end(0, 0), end(2, 0)), link(end(2, 1), end(1, 0))],
        ..Wiring::default()
    }
}

fn switch() -> SwitchConfig {
    let link = LinkConfig {
        rate: RATE,
        mtu: MTU,
        buffer: BUFFER,
        control: FlowControlConfig::Credit(CreditConfig {
            lanes: PHYSICAL_LANES,
            data_lanes: 1,
            ..CreditConfig::default()
        }),
    };
    let port = PortNumber::from_index(1);
    SwitchConfig {
        name: "switch".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig::default(),
        sl2vl: vec![0; 16],
        // As in the scenarios, a congestion point examines every frame.
        scheme: SchemeConfig { kind: "ib-cca".to_owned(), params: toml::Table::new() },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); 2],
        routes: vec![Route { first: DESTINATION, last: DESTINATION, port }],
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
    }
}

/// A source and a sink at the ends of the switch's two cables.
struct Cabled {
    clock: Clock,
    source: CableEnd,
    sink: CableEnd,
    frame: BytesMut,
    bundle: usize,
}

impl Neighbours for Cabled {
    fn send(&mut self, room: u64) -> u64 {
        let now = self.clock.now();
        let size = Bytes::new(self.frame.len() as u64);
        self.sink.put_flow_control(now);
        self.sink.flush();
        self.source.receive(now);
        self.source.put_flow_control(now);
        let mut sent = 0;
        let may_send = |source: &CableEnd, sent| {
            sent < room && source.flow.may_transmit(VirtualLane::ZERO, size)
        };
        while self.source.room() > 0 && may_send(&self.source, sent) {
            self.source.begin();
            for _ in 0..self.bundle {
                if !may_send(&self.source, sent) {
                    break;
                }
                self.source.put(FrameKind::Infiniband, &self.frame, now);
                self.source.flow.on_transmit(VirtualLane::ZERO, size);
                sent += 1;
            }
        }
        self.source.flush();
        sent
    }

    fn receive(&mut self) -> u64 {
        self.sink.receive(self.clock.now())
    }

    fn sink(&self) -> BorrowedFd<'_> {
        self.sink.socket().as_fd()
    }
}
