//! All three roles around one queue: senders of one size to one receiver, as in docs/spec/algorithms.md 10.5.
//!
//! Each sender has a line of its own into an output that drops nothing; flow control is left out, so
//! what keeps the queue short is the scheme alone.

use super::*;
use crate::congestion::{
    CongestionPoint, Marking, Notification, Permission, QueueSample, ReactionPoint,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// From sender to output, from output to receiver, and back.
const DELAY: Duration = Duration::from_us(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A sender's timer, or its permission, if it still is what it was then.
    Wake { sender: usize, turn: u32 },
    /// A frame reaches the output's queue.
    Enqueue { sender: usize },
    /// The frame at the head of the queue has left.
    Left,
    /// A frame reaches the receiver, marked or not.
    Receive { sender: usize, marked: bool },
    /// A CNP reaches its sender.
    Cnp { sender: usize },
}

struct Flow {
    reaction: Box<dyn ReactionPoint>,
    notification: Box<dyn NotificationPoint>,
    last: Option<Instant>,
    turn: u32,
    received: u64,
    cnps: u64,
}

/// What came of it in the measured window.
struct Outcome {
    /// Of the line's rate, by sender.
    shares: Vec<f64>,
    marked: u64,
    frames: u64,
    queue_max: u64,
    cnps: Vec<u64>,
}

struct Incast {
    line: BitRate,
    flows: Vec<Flow>,
    output: Box<dyn CongestionPoint>,
    queue: VecDeque<usize>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    serial: u64,
    marked: u64,
    queue_max: u64,
}

impl Incast {
    fn new(senders: usize, gbps: u64, params: &str) -> Incast {
        let roles = roles(params);
        let role = |name: &str| Place { random: Random::stream(1, "incast", name), ..place(gbps) };
        let flow = |_| Flow {
            reaction: roles.reaction_point(role("sender")),
            notification: roles.notification_point(role("receiver")),
            last: None,
            turn: 0,
            received: 0,
            cnps: 0,
        };
        let mut incast = Incast {
            line: BitRate::gbps(gbps),
            flows: (0..senders).map(flow).collect(),
            output: roles.congestion_point(role("output")),
            queue: VecDeque::new(),
            events: BinaryHeap::new(),
            serial: 0,
            marked: 0,
            queue_max: 0,
        };
        for sender in 0..senders {
            incast.push(us(0), Event::Wake { sender, turn: 0 });
        }
        incast
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn queued(&self) -> u64 {
        self.queue.len() as u64 * FRAME.get()
    }

    /// What a sender does next: its timer, or its next frame.
    fn plan(&mut self, sender: usize, now: Instant) {
        let flow = &mut self.flows[sender];
        flow.turn += 1;
        let turn = flow.turn;
        let Permission::At(at) = flow.reaction.may_send_at(flow.last) else { return };
        let due = flow.reaction.poll_timeout().unwrap_or(Instant::NEVER);
        self.push(at.min(due).max(now), Event::Wake { sender, turn });
    }

    fn begin_service(&mut self, now: Instant) {
        let Some(sender) = self.queue.front().copied() else { return };
        let sample = QueueSample {
            ingress: PortNumber::from_index(sender),
            queue: Bytes::new(self.queued()),
            ingress_buffer: Bytes::ZERO,
            line_rate: self.line,
            blocked_since: None,
            last_departure: None,
        };
        let data = frame(FrameClass::Data, Ecn::Capable0);
        let marked = self.output.on_dequeue(&data, &sample, now) != Marking::Pass;
        let left = now + FRAME.time_at(self.line);
        self.push(left, Event::Left);
        self.push(left + DELAY, Event::Receive { sender, marked });
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Wake { sender, turn } if turn == self.flows[sender].turn => {
                let flow = &mut self.flows[sender];
                if flow.reaction.poll_timeout().is_some_and(|due| due <= now) {
                    flow.reaction.handle_timeout(now);
                }
                let permitted = match flow.reaction.may_send_at(flow.last) {
                    Permission::At(at) => at <= now,
                    Permission::Stopped => false,
                };
                if permitted {
                    let end = now + FRAME.time_at(self.line);
                    flow.last = Some(end);
                    flow.reaction.on_transmit(FRAME, end);
                    self.push(end + DELAY, Event::Enqueue { sender });
                }
                self.plan(sender, now);
            }
            Event::Wake { .. } => {}
            Event::Enqueue { sender } => {
                self.queue.push_back(sender);
                self.queue_max = self.queue_max.max(self.queued());
                if self.queue.len() == 1 {
                    self.begin_service(now);
                }
            }
            Event::Left => {
                self.queue.pop_front();
                self.begin_service(now);
            }
            Event::Receive { sender, marked } => {
                self.marked += u64::from(marked);
                let ecn = if marked { Ecn::CongestionExperienced } else { Ecn::Capable0 };
                let data = frame(FrameClass::Data, ecn);
                let flow = &mut self.flows[sender];
                flow.received += 1;
                if flow.notification.on_receive(&data, FRAME, now).is_some() {
                    flow.cnps += 1;
                    self.push(now + DELAY + DELAY, Event::Cnp { sender });
                }
            }
            Event::Cnp { sender } => {
                let cnp = Notification::becn(Travel::Cnp);
                self.flows[sender].reaction.on_notification(&cnp, now);
                self.plan(sender, now);
            }
        }
    }

    fn run_until(&mut self, stop: Instant) {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > stop {
                self.push(at, event);
                return;
            }
            self.handle(at, event);
        }
    }

    /// Runs 60 ms and measures from 10 ms on.
    fn measure(mut self) -> Outcome {
        self.run_until(us(10_000));
        (self.marked, self.queue_max) = (0, 0);
        for flow in &mut self.flows {
            (flow.received, flow.cnps) = (0, 0);
        }
        self.run_until(us(60_000));
        let line = 50e-3 * self.line.get() as f64;
        let share = |flow: &Flow| (flow.received * FRAME.get() * 8) as f64 / line;
        Outcome {
            shares: self.flows.iter().map(share).collect(),
            marked: self.marked,
            frames: self.flows.iter().map(|flow| flow.received).sum(),
            queue_max: self.queue_max,
            cnps: self.flows.iter().map(|flow| flow.cnps).collect(),
        }
    }
}

fn outcome(senders: usize, gbps: u64, params: &str) -> Outcome {
    Incast::new(senders, gbps, params).measure()
}

/// ROCE-14, and docs/spec/algorithms.md 10.5: two and three senders on 40 Gb/s, eight on 100 Gb/s.
#[test]
fn senders_share_a_line_evenly_and_fill_it() {
    for (senders, gbps, tolerance) in [(2, 40, 0.2), (3, 40, 0.2), (8, 100, 0.25)] {
        let Outcome { shares, marked, frames, queue_max, cnps } = outcome(senders, gbps, "");
        let fair = 1.0 / senders as f64;
        let said = format!("{shares:.3?}, marked {marked} of {frames}, {queue_max} B, {cnps:?}");
        assert!(shares.iter().all(|share| (share / fair - 1.0).abs() <= tolerance), "{said}");
        assert!(shares.iter().sum::<f64>() >= 0.95, "{said}");
        // At most one CNP an interval of 50 µs: 1000 in 50 ms.
        assert!(cnps.iter().all(|cnps| (20..=1_000).contains(cnps)), "{said}");
        assert!(marked > 0 && marked * 20 < frames, "{said}");
    }
}

#[test]
fn frozen_senders_fill_the_queue_without_end() {
    let Outcome { queue_max, marked, frames, .. } = outcome(2, 40, "reaction = \"frozen\"");
    assert!(queue_max > 100_000_000, "{queue_max} B");
    assert_eq!(marked, frames, "above Kmax everything is marked");
}
#[test]
fn every_profile_fills_the_line() {
    for profile in ["cx", "hpcc"] {
        let Outcome { shares, cnps, .. } = outcome(3, 40, &format!("profile = \"{profile}\""));
        assert!(shares.iter().sum::<f64>() >= 0.95, "{profile}: {shares:.3?}, {cnps:?}");
        assert!(shares.iter().all(|share| *share > 0.2), "{profile}: {shares:.3?}, {cnps:?}");
    }
}
