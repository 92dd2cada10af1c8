//! For tests of schemes whose switches send notifications: senders with an endless backlog, each on a
//! line of its own, into one output that drops nothing. Flow control is left out, so what keeps the
//! queue short is the scheme alone. `check/testbed` cannot serve here: it depends on this crate, so in unit tests
//! its types are those of another build of it.

use crate::congestion::schemes::Scheme;
use crate::congestion::{
    CongestionPoint, Marking, Notification, Permission, Place, QueueSample, ReactionPoint, Tag,
};
use crate::frame::FrameHeaders;
use crate::ids::{CongestionPointId, MacAddress, PortNumber, ServiceLevel, VirtualLane};
use crate::params::{self, Params};
use crate::random::Random;
use crate::units::{BitRate, Bytes, Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The lines of the Zurich benchmark, and its frames.
pub const LINE: BitRate = BitRate::gbps(10);
pub const FRAME: Bytes = Bytes::new(1_500);
/// From sender to output, and back.
const DELAY: Duration = Duration::from_us(1);

pub const CPID: CongestionPointId =
    CongestionPointId::new(0x0200_0100_0001_0003).expect("not zero");

/// Parameters that are written as in a file.
pub fn params<T: Params>(text: &str) -> T {
    params::read(&text.parse().expect("TOML")).expect("sound parameters")
}

/// The keys of the parameters that `scheme` refuses.
pub fn refused(scheme: &Scheme, text: &str) -> Vec<String> {
    let errors = scheme.configure(&text.parse().expect("TOML")).err().unwrap_or_default();
    errors.into_iter().map(|error| error.key).collect()
}

/// A place on a line of 10 Gb/s, whose inputs have buffers of 600 KB.
pub fn place(role: &str) -> Place {
    Place {
        line_rate: LINE,
        full_frame: FRAME,
        buffer: Bytes::new(600_000),
        port: PortNumber::from_index(0),
        faces_adapter: true,
        congestion_point: Some(CPID),
        random: Random::stream(1, "bottleneck", role),
    }
}

/// A full data frame, with the tag of a limiter that this congestion point called for.
pub fn frame(regulated_by: Option<CongestionPointId>) -> FrameHeaders {
    FrameHeaders {
        size: FRAME,
        source: MacAddress::from_number(1).into(),
        destination: MacAddress::from_number(2).into(),
        lane: VirtualLane::truncate(3),
        level: ServiceLevel::truncate(3),
        regulated_by,
        payload: Bytes::new(1_400),
        ..FrameHeaders::default()
    }
}

/// A queue as its congestion point sees it.
pub fn sample(queue: u64) -> QueueSample {
    QueueSample {
        ingress: PortNumber::from_index(1),
        queue: Bytes::new(queue),
        ingress_buffer: Bytes::ZERO,
        line_rate: LINE,
        blocked_since: None,
        last_departure: None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A sender's timer, or its permission, if it still is what it was then.
    Wake { sender: usize, turn: u32 },
    /// A frame reaches the output's queue, with its tag.
    Enqueue { sender: usize, tag: Option<(CongestionPointId, u32)> },
    /// The frame at the head of the queue has left.
    Left,
    /// A notification reaches its sender.
    Notify { sender: usize, number: usize },
}

struct Source {
    reaction: Box<dyn ReactionPoint>,
    last: Option<Instant>,
    turn: u32,
    served: u64,
}

/// What came of it in the measured window.
#[derive(Debug)]
pub struct Outcome {
    /// Of the output's rate, by sender.
    pub shares: Vec<f64>,
    /// The mean queue in octets, over time.
    pub queue: f64,
    /// The standard deviation of the queue over time.
    pub deviation: f64,
}

/// The output, its senders, and what is under way.
pub struct Bottleneck {
    service: BitRate,
    sources: Vec<Source>,
    output: Box<dyn CongestionPoint>,
    queue: VecDeque<usize>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    notifications: Vec<Notification>,
    serial: u64,
    now: Instant,
    /// The queue, and its square, by time; in frames and picoseconds.
    area: (u128, u128),
}

impl Bottleneck {
    /// So many senders that begin at once, into an output that serves so many Gb/s.
    pub fn new(scheme: &Scheme, params: &str, senders: usize, gbps: u64) -> Bottleneck {
        let roles = scheme.configure(&params.parse().expect("TOML")).expect("sound parameters");
        let source = |n: usize| Source {
            reaction: roles.reaction_point(place(&format!("sender {n}"))),
            last: None,
            turn: 0,
            served: 0,
        };
        let mut bottleneck = Bottleneck {
            service: BitRate::gbps(gbps),
            sources: (0..senders).map(source).collect(),
            output: roles.congestion_point(place("output")),
            queue: VecDeque::new(),
            events: BinaryHeap::new(),
            notifications: Vec::new(),
            serial: 0,
            now: Instant::ZERO,
            area: (0, 0),
        };
        for sender in 0..senders {
            bottleneck.push(Instant::ZERO, Event::Wake { sender, turn: 0 });
        }
        bottleneck
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    /// What a sender does next: its timer, or its next frame.
    fn plan(&mut self, sender: usize) {
        let source = &mut self.sources[sender];
        source.turn += 1;
        let turn = source.turn;
        let send = match source.reaction.may_send_at(source.last) {
            Permission::At(at) => at.max(source.last.unwrap_or(at)),
            Permission::Stopped => Instant::NEVER,
        };
        let due = send.min(source.reaction.poll_timeout().unwrap_or(Instant::NEVER));
        if due < Instant::NEVER {
            self.push(due.max(self.now), Event::Wake { sender, turn });
        }
    }

    fn wake(&mut self, sender: usize) {
        let (now, source) = (self.now, &mut self.sources[sender]);
        if source.reaction.poll_timeout().is_some_and(|due| due <= now) {
            source.reaction.handle_timeout(now);
        }
        let permitted = match source.reaction.may_send_at(source.last) {
            Permission::At(at) => at.max(source.last.unwrap_or(at)) <= now,
            Permission::Stopped => false,
        };
        if permitted {
            let end = now + FRAME.time_at(LINE);
            source.last = Some(end);
            source.reaction.on_transmit(FRAME, end);
            let tag = source.reaction.tag(now);
            let tag = tag.map(|Tag::RateRegulated { cpid, timestamp }| (cpid, timestamp));
            self.push(end + DELAY, Event::Enqueue { sender, tag });
        }
        self.plan(sender);
    }

    fn enqueue(&mut self, sender: usize, tag: Option<(CongestionPointId, u32)>) {
        self.queue.push_back(sender);
        let headers = frame(tag.map(|(cpid, _)| cpid));
        let queued = self.queue.len() as u64 * FRAME.get();
        let marking = self.output.on_enqueue(&headers, &sample(queued), self.now);
        if let Marking::Notify(mut notification) = marking {
            if let Notification::Bcn(body) = &mut notification {
                body.timestamp = tag.map_or(0, |(_, timestamp)| timestamp);
            }
            self.notifications.push(notification);
            let number = self.notifications.len() - 1;
            self.push(self.now + DELAY, Event::Notify { sender, number });
        }
        if self.queue.len() == 1 {
            self.push(self.now + FRAME.time_at(self.service), Event::Left);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake { sender, turn } if turn == self.sources[sender].turn => self.wake(sender),
            Event::Wake { .. } => {}
            Event::Enqueue { sender, tag } => self.enqueue(sender, tag),
            Event::Left => {
                if let Some(sender) = self.queue.pop_front() {
                    self.sources[sender].served += 1;
                }
                if !self.queue.is_empty() {
                    self.push(self.now + FRAME.time_at(self.service), Event::Left);
                }
            }
            Event::Notify { sender, number } => {
                let notification = self.notifications[number];
                self.sources[sender].reaction.on_notification(&notification, self.now);
                self.plan(sender);
            }
        }
    }

    fn run_until(&mut self, stop: Instant) {
        while let Some(Reverse((at, serial, event))) = self.events.pop() {
            let until = at.min(stop);
            let (length, lasted) =
                (self.queue.len() as u128, u128::from(until.since(self.now).as_ps()));
            self.area.0 += length * lasted;
            self.area.1 += length * length * lasted;
            self.now = until;
            if at > stop {
                self.events.push(Reverse((at, serial, event)));
                return;
            }
            self.handle(event);
        }
    }

    /// Runs for `settle` and measures for `window`.
    pub fn measure(mut self, settle: Duration, window: Duration) -> Outcome {
        self.run_until(Instant::ZERO + settle);
        self.area = (0, 0);
        for source in &mut self.sources {
            source.served = 0;
        }
        self.run_until(Instant::ZERO + settle + window);
        let time = window.as_ps() as f64;
        let octets = self.service.get() as f64 / 8.0 * time * 1e-12;
        let share = |source: &Source| (source.served * FRAME.get()) as f64 / octets;
        let (mean, square) = (self.area.0 as f64 / time, self.area.1 as f64 / time);
        let frame = FRAME.get() as f64;
        Outcome {
            shares: self.sources.iter().map(share).collect(),
            queue: mean * frame,
            deviation: (square - mean * mean).max(0.0).sqrt() * frame,
        }
    }
}
