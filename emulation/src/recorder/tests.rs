//! A recorder with a test device whose counters are known at every instant.

use super::snapshot::PortSnapshot;
use super::*;
use proto::counters::{
    FlowReading, Gauge, LaneCounters, LaneReading, MovedFlow, PortReading, Span,
};
use proto::device::{Control, Instrumented};
use proto::events::EventKind;

const FLOW: FlowId = FlowId { source: 1, destination: 2, class: 0 };

/// Sends one octet a picosecond and holds a queue as long as the time since the last multiple of 100.
#[derive(Default)]
struct Toy {
    lane: LaneCounters,
    rate: Gauge,
    /// Octets sent and the integral of the rate at the start of the bin.
    before: (u64, u128),
    read_up_to: u64,
    reacts_at: u64,
}

impl Toy {
    fn advance(&mut self, now: u64) {
        for ps in self.read_up_to..now {
            self.lane.out_queue.set(ps % 100, Instant::from_ps(ps));
            self.rate.set(if ps < self.reacts_at { 100 } else { 40 }, Instant::from_ps(ps));
        }
        self.lane.tx_bytes = now;
        self.lane.out_queue.close(Instant::from_ps(now));
        self.rate.close(Instant::from_ps(now));
        self.read_up_to = now;
    }
}

impl Device for Toy {
    fn handle_frame(&mut self, _: PortNumber, _: Frame, _: Instant, _: Instant) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant) -> Option<proto::device::Departure> {
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

impl Instrumented for Toy {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.advance(now.as_ps());
        let lanes = vec![LaneReading { tc: 0, counters: self.lane }];
        let named = vec![("port_xmit_wait".to_owned(), 1)];
        reading.ports = vec![PortReading { lanes, named, ..PortReading::default() }];
        let flow = FlowReading {
            items: [0].into_iter().collect(),
            tx_bytes: now.as_ps(),
            rate: self.rate.into(),
            ever_reacted: now.as_ps() > self.reacts_at,
            ..FlowReading::new(FLOW)
        };
        reading.flows = vec![flow];
    }
    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        let mut whole = DeviceReading::default();
        self.read(now, &mut whole);
        reading.ports = whole.ports.into_iter().map(Into::into).collect();
        let FlowReading { ever_reacted, tx_bytes, scalar, .. } = whole.flows[0];
        reading.moved = vec![MovedFlow {
            flow: FLOW,
            ever_reacted,
            tx_bytes: tx_bytes - self.before.0,
            rate: Span::since(&self.rate, self.before.1),
            gap: Span::default(),
            scalar,
        }];
    }
    fn begin_bin(&mut self, now: Instant) {
        self.lane.out_queue.restart_watermarks();
        self.rate.restart_watermarks();
        self.before = (now.as_ps(), self.rate.integral);
    }
}

impl Control for Toy {}

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

fn wiring() -> Wiring {
    use crate::wiring::{NodeKind, NodeWiring};
    let node =
        |name: &str| NodeWiring { name: name.to_owned(), kind: NodeKind::Nic, ports: 1, level: 0 };
    Wiring { nodes: vec![node("h0"), node("h1")], ..Wiring::default() }
}

fn plan(edges: &[u64]) -> RecordingPlan {
    RecordingPlan {
        tau: Duration::from_ps(10),
        stop: at(1_000),
        bin: Duration::from_ps(100),
        edges: edges.iter().map(|ps| Edge { at: at(*ps), depth: Depth::All }).collect(),
        measured: Vec::new(),
        all_events: false,
        named: Vec::new(),
        watched: false,
    }
}

/// Runs until the stop; every edge is sampled `late` too late.
fn run(plan: RecordingPlan, late: u64, reacts_at: u64) -> Recording {
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Toy { reacts_at, ..Toy::default() })];
    let mut recorder = Recorder::new(plan, &wiring(), vec![1]);
    while let Some(due) = recorder.next_due().filter(|due| due.as_ps() + late < 1_000) {
        recorder.sample(due + Duration::from_ps(late), &mut devices);
    }
    let event = EventKind::Watchdog;
    let event = DeviceEvent { at: at(999), port: PortNumber::from_index(0), tc: 0, kind: event };
    recorder.event(0, event, at(999));
    recorder.finish(at(1_000), &mut devices)
}

#[test]
fn bins_and_edges_agree_where_they_coincide() {
    let recording = run(plan(&[0, 200, 250, 700, 1_000]), 0, 2_000);
    assert_eq!(recording.edges.len(), 5);
    let octets = |edge: usize| recording.edges[edge].devices[0].ports[0].lanes[0].counters;
    let binned = |bins: std::ops::Range<u32>, column: usize| -> u64 {
        bins.map(|place| recording.ports[0].bins.get(place).counts[column]).sum()
    };
    assert_eq!(octets(3).tx_bytes - octets(1).tx_bytes, 500);
    assert_eq!(binned(2..7, 1), 500);
    let queue = |edge: usize| octets(edge).out_queue.integral;
    let spans: u128 = (2..7).map(|place| recording.ports[0].bins.get(place).out.integral).sum();
    assert_eq!(queue(3) - queue(1), spans);
    assert_eq!(recording.edges[0].taken, Instant::ZERO);
    assert_eq!(recording.edges[4].taken, at(1_000), "the last edge is taken at the stop");
}

#[test]
fn an_edge_inside_a_bin_leaves_its_envelope_whole() {
    let with = run(plan(&[250, 333]), 0, 2_000);
    let without = run(plan(&[]), 0, 2_000);
    assert_eq!(with.ports, without.ports);
    assert_eq!(with.grid, without.grid);
    let bin = without.ports[0].bins.get(2);
    assert_eq!((bin.out.min, bin.out.max, bin.out.mean(100)), (0, 99, 50));
}

#[test]
fn a_late_worker_says_how_long_its_bins_were() {
    let recording = run(plan(&[500]), 7, 2_000);
    assert_eq!(recording.grid.slots[0].length(), Duration::from_ps(107));
    assert_eq!(recording.grid.slots[1].length(), Duration::from_ps(100));
    assert_eq!(recording.edges[0].edge, at(500));
    assert_eq!(recording.edges[0].taken, at(507));
    let octets: u64 = recording.ports[0].bins.iter().map(|(_, bin)| bin.counts[1]).sum();
    assert_eq!(octets, 1_000, "nothing is lost to lateness");
}

#[test]
fn a_flow_is_pooled_until_its_reaction_point_moves() {
    let neutral = run(plan(&[]), 0, 2_000);
    assert!(neutral.flows.is_empty());
    assert_eq!(neutral.pools[0].bins.iter().map(|(_, bin)| bin.tx_bytes).sum::<u64>(), 1_000);
    let reacted = run(plan(&[]), 0, 450);
    let bins: Vec<_> = reacted.flows[0].bins.iter().collect();
    assert_eq!(bins[0].0, 4, "its series begins with the bin in which it reacted");
    assert_eq!((bins[0].1.rate.min, bins[0].1.rate.max, bins[0].1.rate.mean(100)), (40, 100, 70));
    assert_eq!(reacted.pools[0].bins.iter().map(|(_, bin)| bin.tx_bytes).sum::<u64>(), 400);
}

#[test]
fn an_edge_keeps_the_named_counters_that_were_asked_for_and_the_last_reading_all() {
    let recording = run(plan(&[100]), 0, 2_000);
    assert!(recording.edges[0].devices[0].ports[0].named.is_empty());
    let asked = run(RecordingPlan { named: vec!["_wait".to_owned()], ..plan(&[100]) }, 0, 2_000);
    assert_eq!(asked.edges[0].devices[0].ports[0].named, [("port_xmit_wait".to_owned(), 1)]);
    assert_eq!(recording.last[0].ports[0].named.len(), 1);
    assert_eq!((recording.nodes.as_slice(), recording.stopped), ([1].as_slice(), at(1_000)));
}

#[test]
fn a_recording_survives_the_way_to_the_launcher() {
    let recording = run(plan(&[100, 300]), 3, 450);
    let text = serde_json::to_string(&recording).expect("a recording is plain data");
    let back: Recording = serde_json::from_str(&text).expect("it was written by us");
    assert_eq!(back, recording);
    assert_eq!(recording, run(plan(&[100, 300]), 3, 450), "the same run is the same record");
}

#[test]
fn nobody_asks_for_frames_without_a_capture() {
    let recorder = Recorder::new(plan(&[]), &wiring(), vec![0]);
    assert!(!recorder.wants_frames(0, PortNumber::from_index(0)));
    assert_eq!(recorder.next_due(), Some(at(100)));
}

#[test]
fn a_watched_run_tells_of_each_bin_and_records_the_same() {
    let watched = RecordingPlan { watched: true, ..plan(&[]) };
    let mut devices: Vec<Box<dyn Device>> =
        vec![Box::new(Toy { reacts_at: 2_000, ..Toy::default() })];
    let mut recorder = Box::new(Recorder::new(watched, &wiring(), vec![1]));
    let listener = recorder.listen().expect("the plan wants it");
    while let Some(due) = recorder.next_due().filter(|due| due.as_ps() < 1_000) {
        recorder.sample(due, &mut devices);
    }
    let recording = recorder.finish(at(1_000), &mut devices);
    let told: Vec<BinSnapshot> = listener.try_iter().collect();
    assert_eq!(told.len(), recording.grid.slots.len());
    for (place, snapshot) in told.iter().enumerate() {
        assert_eq!(snapshot.slot, recording.grid.slots[place]);
        let (bin, port) = (recording.ports[0].bins.get(place as u32), snapshot.ports[0]);
        assert_eq!((port.tx_bytes, port.queue), (bin.tx_bytes(), bin.out.mean(100)));
    }
    assert_eq!(told.iter().map(|snapshot| snapshot.ports[0].tx_bytes).sum::<u64>(), 1_000);
    assert_eq!(recording.ports, run(plan(&[]), 0, 2_000).ports);
    assert!(Recorder::new(plan(&[]), &wiring(), vec![1]).listen().is_none(), "nobody asked");
}

#[test]
fn a_listener_that_takes_nothing_holds_nothing_up() {
    let long = RecordingPlan { watched: true, stop: at(100_000), ..plan(&[]) };
    let mut devices: Vec<Box<dyn Device>> =
        vec![Box::new(Toy { reacts_at: u64::MAX, ..Toy::default() })];
    let mut recorder = Box::new(Recorder::new(long, &wiring(), vec![1]));
    let listener = recorder.listen().expect("the plan wants it");
    while let Some(due) = recorder.next_due().filter(|due| due.as_ps() < 100_000) {
        recorder.sample(due, &mut devices);
    }
    let recording = recorder.finish(at(100_000), &mut devices);
    assert_eq!(listener.try_iter().count(), WAITING_MAX);
    assert_eq!(recording.grid.slots.len(), 1_000);
}

#[test]
fn a_port_is_the_sum_of_its_lanes_and_holds_as_long_as_the_longest() {
    let at = End { node: 3, port: PortNumber::from_index(0) };
    let mut port = PortSnapshot::idle(at);
    let bin = PortBin { counts: std::array::from_fn(|n| n as u64), ..PortBin::default() };
    (0..2).for_each(|_| port.add(&bin, 1_000));
    let sums =
        PortSnapshot { at, tx_bytes: 2, hold_ps: 4, queue: 0, marks: 12, notes: 16, drops: 22 };
    assert_eq!(port, sums);
}
