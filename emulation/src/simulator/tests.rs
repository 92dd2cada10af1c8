//! Order, edges and counts of the simulator, observed by devices that follow a script.

use super::*;
use crate::observer::Passage;
use crate::wiring::{Action, FrameFilter, Impairment, LinkWiring, NodeKind, NodeWiring};
use bytes::BytesMut;
use proto::counters::DeviceReading;
use proto::device::{Control, Departure, Device, Instrumented};
use proto::events::{DeviceEvent, EventKind};
use proto::frame::FrameKind;
use proto::ids::PortNumber;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

const DELAY_PS: u64 = 5;

/// What happened, in that order: one line for each event, from all writers.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(u64, String)>>>);

impl Diary {
    fn write(&self, at: Instant, line: impl Display) {
        let mut lines = self.0.lock().expect("no test thread panicked");
        lines.push((at.as_ps(), line.to_string()));
    }

    fn lines(&self) -> Vec<(u64, String)> {
        self.0.lock().expect("no test thread panicked").clone()
    }

    /// The lines of one instant.
    fn at(&self, ps: u64) -> Vec<String> {
        self.lines().into_iter().filter(|(at, _)| *at == ps).map(|(_, line)| line).collect()
    }

    /// Instant and line of those that start with `start`.
    fn of(&self, start: &str) -> Vec<(u64, String)> {
        self.lines().into_iter().filter(|(_, line)| line.starts_with(start)).collect()
    }
}

/// A frame to send: when its last bit leaves, by which port (from zero), and its one octet.
type Line = (u64, usize, u8);

/// Sends frames according to its script, and logs its inputs.
struct Scripted {
    name: &'static str,
    ports: usize,
    script: VecDeque<Line>,
    outbox: VecDeque<Departure>,
    events: VecDeque<DeviceEvent>,
    diary: Diary,
}

impl Device for Scripted {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        assert_eq!(arrived, now, "a virtual clock is never late");
        self.diary.write(now, format_args!("{}:{port} got {}", self.name, frame.octets[0]));
        self.events.push_back(DeviceEvent { at: now, port, tc: 0, kind: EventKind::Watchdog });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.diary.write(now, format_args!("{} timer", self.name));
        while let Some((at, port, number)) = self.script.pop_front_if(|line| line.0 <= now.as_ps())
        {
            let departure = Departure {
                port: PortNumber::from_index(port),
                frame: frame(FrameKind::Infiniband, number),
                at: Instant::from_ps(at),
            };
            self.outbox.push_back(departure);
        }
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Departure> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.script.front().map(|line| Instant::from_ps(line.0))
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }

    fn ports(&self) -> usize {
        self.ports
    }
}

impl Instrumented for Scripted {
    fn read(&mut self, _: Instant, _: &mut DeviceReading) {}

    fn begin_bin(&mut self, _: Instant) {}
}

impl Control for Scripted {}

/// Logs edges, and the frames that pass the ends it watches.
struct Watcher {
    edges: VecDeque<u64>,
    watched: Vec<(usize, usize)>,
    diary: Diary,
}

impl Observer for Watcher {
    fn next_due(&self) -> Option<Instant> {
        self.edges.front().copied().map(Instant::from_ps)
    }

    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) {
        assert_eq!(devices.len(), 3, "it sees the whole fabric");
        self.edges.pop_front();
        self.diary.write(now, "edge");
    }

    fn event(&mut self, device: usize, event: DeviceEvent, _handled: Instant) {
        self.diary.write(event.at, format_args!("event of {device}:{}", event.port));
    }

    fn wants_frames(&self, device: usize, port: PortNumber) -> bool {
        self.watched.contains(&(device, port.index()))
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        let Passage { device, port, direction, at, .. } = *passage;
        self.diary.write(at, format_args!("{direction:?} {device}:{port} {}", frame.octets[0]));
    }
}

/// Three devices in a row, a:1 – 1:b:2 – 1:c, and a port a:2 without a cable.
struct Row {
    simulator: Simulator,
    watcher: Watcher,
    diary: Diary,
}

impl Row {
    fn new(scripts: [&[Line]; 3]) -> Row {
        Row::impaired(scripts, &[], 7)
    }

    /// The same with impairments of the frames that a:1 sends.
    fn impaired(scripts: [&[Line]; 3], faults: &[(Action, (u64, u64))], seed: u64) -> Row {
        let diary = Diary::default();
        let shapes = [("a", 2), ("b", 2), ("c", 1)];
        let node = |(name, ports): (&str, u8)| NodeWiring {
            name: name.to_owned(),
            kind: NodeKind::Switch,
            ports,
            level: 0,
        };
        let link = |a, b| {
            let delay = Duration::from_ps(DELAY_PS);
            LinkWiring { a, b, delay, frame_time: Duration::from_ps(10) }
        };
        let fault = |(action, chance): &(Action, (u64, u64))| Impairment {
            from: end(0, 0),
            frames: FrameFilter::All,
            action: *action,
            chance: *chance,
        };
        let wiring = Wiring {
            nodes: shapes.map(node).to_vec(),
            links: vec![link(end(0, 0), end(1, 0)), link(end(1, 1), end(2, 0))],
            impairments: faults.iter().map(fault).collect(),
            ..Wiring::default()
        };
        let device = |((name, ports), script): ((&'static str, u8), &[Line])| -> Box<dyn Device> {
            Box::new(Scripted {
                name,
                ports: usize::from(ports),
                script: script.iter().copied().collect(),
                outbox: VecDeque::new(),
                events: VecDeque::new(),
                diary: diary.clone(),
            })
        };
        let devices = shapes.into_iter().zip(scripts).map(device).collect();
        let watcher = Watcher { edges: VecDeque::new(), watched: vec![], diary: diary.clone() };
        Row { simulator: Simulator::new(&wiring, devices, seed), watcher, diary }
    }

    fn run(&mut self, stop: u64) -> Tally {
        let go_on = |_| ControlFlow::Continue(());
        self.simulator.run(Instant::from_ps(stop), &mut self.watcher, go_on)
    }
}

fn end(node: usize, port: usize) -> End {
    End { node, port: PortNumber::from_index(port) }
}

fn frame(kind: FrameKind, number: u8) -> Frame {
    Frame::intact(kind, BytesMut::from(&[number][..]))
}

fn data(number: u8) -> Frame {
    frame(FrameKind::Infiniband, number)
}

#[test]
fn at_one_instant_devices_go_in_order_and_ports_before_the_timer() {
    let mut row = Row::new([&[(10, 1, 0)], &[(10, 0, 0)], &[]]);
    for (place, number) in [(end(2, 0), 1), (end(1, 1), 2), (end(0, 0), 3), (end(1, 0), 4)] {
        row.simulator.inject(place, data(number), Instant::from_ps(10));
    }
    row.run(11);
    let told: Vec<_> =
        row.diary.at(10).into_iter().filter(|line| !line.starts_with("event")).collect();
    assert_eq!(told, ["a:1 got 3", "a timer", "b:1 got 4", "b:2 got 2", "b timer", "c:1 got 1"]);
    assert_eq!(row.diary.at(0), ["a timer", "b timer", "c timer"], "all wake at the start");
}

#[test]
fn the_observer_is_shown_events_device_by_device() {
    let mut row = Row::new([&[], &[], &[]]);
    row.simulator.inject(end(1, 1), data(1), Instant::from_ps(10));
    row.simulator.inject(end(2, 0), data(2), Instant::from_ps(10));
    row.run(11);
    assert_eq!(row.diary.at(10), ["b:2 got 1", "c:1 got 2", "event of 1:2", "event of 2:1"]);
}

#[test]
fn a_frame_arrives_one_delay_after_its_last_bit_left() {
    let mut row = Row::new([&[(10, 0, 1)], &[(12, 1, 2)], &[]]);
    row.run(100);
    assert_eq!(row.diary.of("b:1"), [(10 + DELAY_PS, "b:1 got 1".to_owned())]);
    assert_eq!(row.diary.of("c:1"), [(12 + DELAY_PS, "c:1 got 2".to_owned())]);
}

#[test]
fn a_cable_keeps_order_when_some_frames_are_held_back() {
    let script: Vec<Line> = (0..40).map(|number| (10 + u64::from(number), 0, number)).collect();
    let faults = [(Action::Delay(Duration::from_ps(25)), (1, 4))];
    let mut row = Row::impaired([&script, &[], &[]], &faults, 7);
    let tally = row.run(1_000);
    let arrived = row.diary.of("b:1 got");
    let expected: Vec<String> = (0..40).map(|number| format!("b:1 got {number}")).collect();
    assert_eq!(arrived.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), expected);
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    let held = arrived.iter().zip(&script).filter(|((at, _), (left, ..))| *at > left + DELAY_PS);
    assert!(held.count() as u64 > tally.injected.delayed, "what follows is held back too");
    assert!((1..40).contains(&tally.injected.delayed));
}

#[test]
fn the_stop_is_exclusive() {
    let mut row = Row::new([&[(10, 0, 1), (11, 0, 2), (16, 0, 3)], &[], &[]]);
    let tally = row.run(11 + DELAY_PS);
    assert_eq!(row.diary.of("b:1"), [(10 + DELAY_PS, "b:1 got 1".to_owned())]);
    assert_eq!(row.diary.at(16), [""; 0], "neither the frame nor the timer of the stop");
    assert_eq!((tally.on_cables, tally.ended), (1, Instant::from_ps(16)));
}

#[test]
fn an_edge_is_read_before_anything_at_its_instant() {
    let mut row = Row::new([&[(10, 0, 1), (20, 0, 2)], &[], &[]]);
    row.watcher.edges = VecDeque::from([0, 10, 12, 14, 15, 30]);
    row.run(30);
    assert_eq!(row.diary.at(0)[0], "edge");
    assert_eq!(row.diary.at(10), ["edge", "a timer"]);
    assert_eq!(row.diary.at(12), ["edge"], "also where nothing happens");
    assert_eq!(row.diary.at(15), ["edge", "b:1 got 1", "event of 1:1"]);
    assert_eq!(row.watcher.edges, [30], "the edge at the stop belongs to whoever ends the run");
    let course = row.diary.lines().into_iter().filter(|(_, line)| !line.starts_with("event"));
    assert!(course.is_sorted_by_key(|(at, _)| at), "the observer hears of events later");
}

#[test]
fn frames_are_shown_at_the_ports_that_are_watched_and_nowhere_else() {
    let mut row = Row::new([&[(10, 0, 1)], &[(30, 1, 2)], &[]]);
    row.watcher.watched = vec![(0, 0), (2, 0)];
    row.run(100);
    assert_eq!(row.diary.of("Tx"), [(10, "Tx 0:1 1".to_owned())]);
    assert_eq!(row.diary.of("Rx"), [(35, "Rx 2:1 2".to_owned())]);
}

#[test]
fn an_injected_frame_queues_behind_those_on_its_cable() {
    let mut row = Row::new([&[], &[], &[]]);
    row.simulator.inject(end(1, 0), data(1), Instant::from_ps(20));
    row.simulator.inject(end(1, 0), data(2), Instant::from_ps(10));
    row.simulator.inject(end(1, 0), frame(FrameKind::InfinibandLink, 3), Instant::from_ps(30));
    let tally = row.run(100);
    let expected = [(20, "got 1"), (20, "got 2"), (30, "got 3")];
    assert_eq!(row.diary.of("b:1"), expected.map(|(at, got)| (at, format!("b:1 {got}"))));
    assert_eq!(tally.fed, 2, "a link packet ends at the port and is not in the balance");
}

#[test]
fn a_frame_injected_for_later_does_not_hold_up_the_cable() {
    let mut row = Row::new([&[(10, 0, 1), (40, 0, 2)], &[], &[]]);
    row.simulator.inject(end(1, 0), data(7), Instant::from_ps(30));
    row.simulator.inject(end(1, 0), data(8), Instant::from_ps(50));
    row.run(100);
    let expected = [(10 + DELAY_PS, 1), (30, 7), (40 + DELAY_PS, 2), (50, 8)];
    let expected = expected.map(|(at, number)| (at, format!("b:1 got {number}")));
    assert_eq!(row.diary.of("b:1 got"), expected);
}

#[test]
fn the_tally_counts_hops_and_what_is_still_flying() {
    let mut row = Row::new([&[(10, 0, 1), (20, 0, 2)], &[(10, 1, 3), (22, 0, 4)], &[]]);
    row.simulator.inject(end(2, 0), frame(FrameKind::InfinibandLink, 9), Instant::from_ps(12));
    row.simulator.inject(end(1, 1), frame(FrameKind::InfinibandLink, 9), Instant::from_ps(90));
    let expected = Tally {
        frame_hops: 3,
        packet_hops: 2,
        on_cables: 2,
        fed: 0,
        injected: Injected::default(),
        ended: Instant::from_ps(24),
    };
    assert_eq!(row.run(24), expected);
}

#[test]
fn what_is_lost_or_doubled_on_purpose_is_in_the_tally() {
    let script: Vec<Line> = (0..60).map(|number| (10 + u64::from(number), 0, number)).collect();
    let faults = [(Action::Lose, (1, 3)), (Action::Duplicate, (1, 3))];
    let mut row = Row::impaired([&script, &[], &[]], &faults, 7);
    let tally = row.run(1_000);
    let (lost, doubled) = (tally.injected.lost.end_to_end, tally.injected.duplicated.end_to_end);
    assert!(lost > 0 && doubled > 0, "{tally:?}");
    assert_eq!(tally.packet_hops, 60 - lost + doubled);
    assert_eq!(row.diary.of("b:1 got").len() as u64, tally.packet_hops);
}

#[test]
fn a_port_without_a_cable_talks_to_nobody() {
    let mut row = Row::new([&[(10, 1, 1), (11, 0, 2)], &[], &[]]);
    row.watcher.watched = vec![(0, 1)];
    let tally = row.run(100);
    assert_eq!((tally.frame_hops, tally.on_cables), (1, 0));
    assert_eq!(row.diary.of("Tx"), [(10, "Tx 0:2 1".to_owned())], "it did leave the port");
}

#[test]
fn one_seed_gives_one_course_and_another_seed_another() {
    let script: Vec<Line> = (0..60).map(|number| (10 + u64::from(number), 0, number)).collect();
    let run = |seed| {
        let faults = [(Action::Delay(Duration::from_ps(7)), (1, 3)), (Action::Lose, (1, 5))];
        let mut row = Row::impaired([&script, &[(12, 1, 9)], &[]], &faults, seed);
        let tally = row.run(1_000);
        (row.diary.lines(), tally)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let script: Vec<Line> = (0..400).map(|number| (10 + number / 3, 0, number as u8)).collect();
    let run = |threads| {
        let faults = [(Action::Delay(Duration::from_ps(7)), (1, 3)), (Action::Lose, (1, 5))];
        let mut row = Row::impaired([&script, &script, &script], &faults, 7);
        row.simulator = row.simulator.on_threads(threads);
        row.watcher.watched = vec![(0, 0), (1, 0), (2, 0)];
        row.watcher.edges = VecDeque::from([0, 33, 90]);
        let tally = row.run(1_000);
        let lines = row.diary.lines();
        // Devices of several threads log concurrently; the observer gets one order.
        let told = |line: &str| ["event", "Tx", "Rx", "edge"].iter().any(|w| line.starts_with(w));
        let (told, mut done): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(_, line)| told(line));
        done.sort();
        (told, done, tally)
    };
    let one = run(1);
    assert!(one.0.len() > 1_000, "there was something to see");
    for threads in [2, 3, 8] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}

#[test]
fn a_run_can_be_broken_off() {
    let script: Vec<Line> = (0..40_000).map(|at| (at, 1, 0)).collect();
    let mut row = Row::new([&script, &[], &[]]);
    let mut asked = Vec::new();
    let tally = row.simulator.run(Instant::from_ps(50_000), &mut row.watcher, |at| {
        asked.push(at);
        if asked.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(asked.len(), 2);
    assert_eq!(Some(&tally.ended), asked.last());
    assert!(tally.ended < Instant::from_ps(40_000));
}

#[test]
#[should_panic(expected = "there is one device for each node")]
fn a_fabric_without_its_devices_is_refused() {
    let node = NodeWiring { name: "a".to_owned(), kind: NodeKind::Nic, ports: 1, level: 0 };
    Simulator::new(&Wiring { nodes: vec![node], ..Wiring::default() }, vec![], 7);
}

#[test]
#[should_panic(expected = "another shard has panicked")]
fn a_panic_in_one_thread_ends_the_run_instead_of_hanging_it() {
    // A frame for a port that the device does not have.
    let mut row = Row::new([&[(10, 0, 1)], &[], &[]]);
    row.simulator = row.simulator.on_threads(3);
    row.simulator.inputs[0].ports[0].cable.as_mut().expect("a:1 is wired").to.port =
        PortNumber::from_index(9);
    row.run(1_000);
}
