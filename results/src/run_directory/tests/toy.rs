//! The toy fabric: an adapter that sends a hundred octets every hundred picoseconds, and a switch
//! that does nothing.

use emulation::observer::Observer;
use emulation::recorder::{Edge, Recorder, Recording, RecordingPlan};
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::counters::{
    Balance, BinReading, DeviceReading, DropReason, Drops, FlowId, FlowReading, Gauge,
    LaneCounters, LaneReading, LatencyReading, MovedFlow, PortReading, ReceptionReading, Span,
};
use proto::device::{Control, Departure, Depth, Device, Instrumented};
use proto::events::{DeviceEvent, Direction, EventKind, HoldCause, MarkKind, NoteKind};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{BitRate, Bytes, Duration, Instant};
use scenario::inventory::Fabric;

const FLOW: FlowId = FlowId { source: 1, destination: 2, class: 0 };
const STOP: u64 = 2_500;
const REACTS: u64 = 1_500;

pub(super) fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

pub(super) fn end(node: usize) -> End {
    End { node, port: PortNumber::from_index(0) }
}

pub(super) fn fabric() -> Fabric {
    let node =
        |name: &str, kind, level| NodeWiring { name: name.to_owned(), kind, ports: 1, level };
    let link = LinkWiring {
        a: end(0),
        b: end(1),
        delay: Duration::from_ps(7),
        frame_time: Duration::from_ps(100),
    };
    let nodes = vec![node("h0", NodeKind::Nic, 0), node("s0", NodeKind::Switch, 1)];
    Fabric {
        wiring: Wiring { nodes, links: vec![link], ..Wiring::default() },
        rates: vec![BitRate::gbps(8_000)],
        attached_rates: Vec::new(),
        nominal_rates: Vec::new(),
        technology: proto::technology::Technology::Infiniband,
        tau: Duration::from_ps(100),
        full_frame: Bytes::new(100),
        addresses: vec![1, 2],
        traffic: vec!["cold".to_owned(), "hot".to_owned()],
        replays: Default::default(),
        items: vec![vec![1], vec![]],
        lanes: vec![3],
        lossless: u16::MAX,
        protected: u16::MAX,
        hosts: Vec::new(),
    }
}

/// Its queue holds 100 octets in the last 600 ps of the first two nanoseconds and in the first 100 ps
/// of the third; from 1 500 ps on its reaction point allows a quarter of the rate.
#[derive(Default)]
struct Adapter {
    now: u64,
    queue: Gauge,
    rate: Gauge,
    gap: Gauge,
    /// The octets sent and both integrals when the bin began.
    before: (u64, [u128; 2]),
}

impl Adapter {
    fn advance(&mut self, now: u64) {
        for ps in self.now..now {
            let phase = ps % 1_000;
            let full = if ps < 2_000 { phase >= 400 } else { phase < 100 };
            self.queue.set(if full { 100 } else { 0 }, at(ps));
            let reacted = ps >= REACTS;
            self.rate.set(if reacted { 2_000 } else { 8_000 }, at(ps));
            self.gap.set(if reacted { 60 } else { 0 }, at(ps));
            if ps == 0 {
                // As a device does that makes its gauges before the first bin.
                [&mut self.rate, &mut self.gap].into_iter().for_each(Gauge::restart_watermarks);
            }
        }
        [&mut self.queue, &mut self.rate, &mut self.gap].into_iter().for_each(|g| g.close(at(now)));
        self.now = now;
    }

    fn flow(&self) -> FlowReading {
        FlowReading {
            items: [0].into_iter().collect(),
            tx_bytes: self.now,
            rate: self.rate.into(),
            gap: self.gap.into(),
            scalar: if self.now > REACTS { 4 } else { 0 },
            ever_reacted: self.now > REACTS,
            first: Some(at(10)),
            offered_bytes: 2_500,
            messages: 25,
            completed: 21,
            withdrawn: 1,
            notes: 2,
            ..FlowReading::new(FLOW)
        }
    }
}

impl Instrumented for Adapter {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.advance(now.as_ps());
        let counters = LaneCounters {
            tx_frames: self.now / 100,
            tx_bytes: self.now,
            hold_ps: self.now / 2,
            out_queue: self.queue,
            ..LaneCounters::default()
        };
        let mut drops = Drops::default();
        drops.add(DropReason::Icrc, self.now / 1_000);
        reading.ports = vec![PortReading {
            lanes: vec![LaneReading { tc: 0, counters }],
            drops,
            named: vec![("rx_prio3_pause".to_owned(), self.now / 1_000)],
            ..Default::default()
        }];
        reading.flows = vec![self.flow()];
        reading.balance =
            Balance { injected: 25, delivered: 0, buffered: 1, link_local: 5, withdrawn: 1 };
    }
    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        let mut whole = DeviceReading::default();
        self.read(now, &mut whole);
        reading.ports = whole.ports.into_iter().map(Into::into).collect();
        let FlowReading { flow, ever_reacted, tx_bytes, scalar, .. } = self.flow();
        let (octets, [before_rate, before_gap]) = self.before;
        reading.moved = vec![MovedFlow {
            flow,
            ever_reacted,
            tx_bytes: tx_bytes - octets,
            rate: Span::since(&self.rate, before_rate),
            gap: Span::since(&self.gap, before_gap),
            scalar,
        }];
    }
    fn begin_bin(&mut self, _: Instant) {
        self.before = (self.now, [self.rate.integral, self.gap.integral]);
        [&mut self.queue, &mut self.rate, &mut self.gap]
            .into_iter()
            .for_each(Gauge::restart_watermarks);
    }
}

/// Receives what the adapter sends and counts it nowhere but at the end.
struct Switch;

impl Instrumented for Switch {
    fn read(&mut self, _: Instant, reading: &mut DeviceReading) {
        let lanes = vec![LaneReading { tc: 0, counters: LaneCounters::default() }];
        reading.ports = vec![PortReading { lanes, ..PortReading::default() }];
        reading.receptions = vec![ReceptionReading {
            flow: FLOW,
            delivered_bytes: 1_234,
            messages: 12,
            last: None,
            marked: 7,
            reordered: 0,
            periods: Default::default(),
        }];
        let mut latency = LatencyReading { item: 1, ..LatencyReading::default() };
        [5, 10, 12, 900].into_iter().for_each(|ns| latency.count(Duration::from_ns(ns)));
        reading.latencies = vec![latency];
        reading.balance = Balance { delivered: 18, ..Balance::default() };
    }
    fn begin_bin(&mut self, _: Instant) {}
}

/// Devices of one port that neither send nor wake: they have readings only.
macro_rules! silent_devices {
    ($($device:ty),*) => {$(
        impl Device for $device {
            fn handle_frame(&mut self, _: PortNumber, _: Frame, _: Instant, _: Instant) {}
            fn handle_timeout(&mut self, _: Instant) {}
            fn poll_transmit(&mut self, _: Instant) -> Option<Departure> {
                None
            }
            fn poll_timeout(&self) -> Option<Instant> {
                None
            }
            fn poll_event(&mut self) -> Option<DeviceEvent> {
                None
            }
            fn ports(&self) -> usize {
                1
            }
        }

        impl Control for $device {}
    )*};
}

silent_devices!(Adapter, Switch);

fn device(node: usize) -> Box<dyn Device> {
    if node == 0 { Box::new(Adapter::default()) } else { Box::new(Switch) }
}

/// What happens at each node.
fn events(node: usize) -> Vec<DeviceEvent> {
    let event = |ps, kind| DeviceEvent { at: at(ps), port: PortNumber::from_index(0), tc: 0, kind };
    if node == 1 {
        let (queue, limit) = (Bytes::new(74_664), Bytes::new(67_197));
        return vec![event(
            900,
            EventKind::Mark { flow: FLOW, mark: MarkKind::Fecn, queue, limit },
        )];
    }
    let waited = Duration::from_ps(500);
    vec![
        event(700, EventKind::Free { cause: HoldCause::Credit, waited }),
        event(1_100, EventKind::Note { flow: FLOW, note: NoteKind::Becn, dir: Direction::Rx }),
        event(1_200, EventKind::Drop { reason: DropReason::Icrc, bytes: Bytes::new(2_074) }),
    ]
}

/// Runs the fabric with its nodes spread over workers, each with a recorder of its own.
pub(super) fn record(workers: &[&[usize]], edges: &[u64]) -> Vec<Recording> {
    let run = |nodes: &&[usize]| {
        let plan = RecordingPlan {
            tau: Duration::from_ps(100),
            stop: at(STOP),
            bin: Duration::from_ps(1_000),
            edges: edges.iter().map(|ps| Edge { at: at(*ps), depth: Depth::All }).collect(),
            measured: Vec::new(),
            all_events: false,
            named: Vec::new(),
            watched: false,
        };
        let mut devices: Vec<_> = nodes.iter().map(|node| device(*node)).collect();
        let mut recorder = Recorder::new(plan, &fabric().wiring, nodes.to_vec());
        for (device, node) in nodes.iter().enumerate() {
            events(*node).into_iter().for_each(|event| recorder.event(device, event, event.at));
        }
        while let Some(due) = recorder.next_due().filter(|due| *due < at(STOP)) {
            recorder.sample(due, &mut devices);
        }
        recorder.finish(at(STOP), &mut devices)
    };
    workers.iter().map(run).collect()
}
