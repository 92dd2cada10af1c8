//! The tester: plays every neighbour of one daemon over real cables, by a script.
//!
//! It writes the shim of each frame itself, so it can also send what no device would: a wrong CRC, an
//! aborted packet, a sequence number twice. A frame goes out some milliseconds ahead of its stamp, and
//! the daemon handles it at its stamp; so what the daemon sees does not depend on when this thread
//! woke up. Frames of the daemon are kept with their stamp and with the moment they were read.

use super::cable::Cable;
use emulation::cable::datagram::{DatagramSocket, Peer};
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::inbox::Inbox;
use emulation::cable::lines::Lines;
use emulation::cable::outbox::SentLine;
use emulation::cable::shim::SendingEnd;
use emulation::clock::{Clock, monotonic_ns};
use emulation::fidelity::Lateness;
use emulation::timer;
use proto::frame::{FrameKind, FramePool};
use proto::units::Instant;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use testbed::{Bed, Label, Neighbour, Script, Seen};

/// How far ahead of its stamp a frame goes out. Units: nanoseconds of wall time.
const AHEAD_NS: u64 = 10_000_000;
/// The least of that, for answers.
const ANSWER_NS: u64 = 3_000_000;
/// The longest sleep: how late it may notice that the run is over.
const SLEEP_MAX_NS: u64 = 20_000_000;
/// The shortest: a thread with real-time priority that never slept would starve the process that it waits for.
const SLEEP_MIN_NS: u64 = 100_000;

/// What a tester is made of.
pub struct Parts {
    /// Its socket.
    pub socket: DatagramSocket,
    /// The addresses of all processes.
    pub peers: Vec<Peer>,
    /// Which of them is the daemon under test.
    pub daemon: usize,
    /// This process's ends of the cables.
    pub lines: Lines,
    /// By port of the device under test: link, own end of it, and the neighbour there.
    pub neighbours: Vec<(u32, SendingEnd, Neighbour)>,
    /// Fabric time.
    pub clock: Clock,
    /// When the run ends; nothing is sent after that.
    pub stop: Instant,
    /// The run's mark.
    pub epoch: u32,
}

/// All neighbours of one daemon.
pub struct Tester {
    parts: Parts,
    cables: Vec<Cable>,
    inbox: Inbox,
    pool: FramePool,
    seen: Vec<Seen>,
    lateness: Lateness,
    /// The instant of the step that is being done.
    now: Instant,
}

/// What a tester brings back.
#[derive(Debug)]
pub struct Found {
    /// What the device has sent, in the order in which it came.
    pub seen: Vec<Seen>,
    /// The tester's side of the cables.
    pub exchange: ExchangeReport,
    /// How late its own frames were.
    pub lateness: Lateness,
    /// By port of the device under test: how the neighbour there stands at the end.
    pub neighbours: Vec<Neighbour>,
}

impl Tester {
    /// A tester that has done nothing yet.
    pub fn new(parts: Parts) -> Tester {
        let cable = |(link, end, _): &(u32, SendingEnd, Neighbour)| {
            let line = parts.lines.all_outgoing().find(|line| line.link == *link);
            let line = line.expect("the tester plays the far end of every cable of the device");
            Cable::new(*link, *end, line.frame_time)
        };
        let cables = parts.neighbours.iter().map(cable).collect();
        let inbox = Inbox::new(parts.epoch, &parts.peers, parts.lines.count());
        Tester {
            cables,
            inbox,
            parts,
            pool: FramePool::default(),
            seen: Vec::new(),
            lateness: Lateness::default(),
            now: Instant::ZERO,
        }
    }

    /// Follows `script` until the run is over.
    pub fn follow(mut self, script: Script, is_over: impl Fn() -> bool) -> Found {
        let mut steps: VecDeque<_> = script.into_steps().into();
        while !is_over() {
            self.receive();
            let now_ns = monotonic_ns();
            let horizon = self.parts.clock.at_wall_ns(now_ns + AHEAD_NS).min(self.parts.stop);
            let soon = self.parts.clock.at_wall_ns(now_ns + ANSWER_NS);
            while steps.front().is_some_and(|(at, _)| *at <= horizon) {
                let (at, step) = steps.pop_front().expect("there is one");
                self.now = at;
                step(&mut self);
            }
            if soon < self.parts.stop {
                self.refresh(soon);
                self.send_waiting(soon, horizon);
                let wake = self.next_ns(steps.front().map_or(Instant::NEVER, |(at, _)| *at));
                self.rest(wake);
            } else {
                // Nothing is sent any more; what the daemon still sends is read.
                self.rest(u64::MAX);
            }
        }
        self.receive();
        self.found()
    }

    fn receive(&mut self) {
        let received = self.parts.clock.now();
        let Tester { parts, inbox, pool, seen, cables, .. } = self;
        let Parts { socket, lines, neighbours, .. } = parts;
        loop {
            let count = socket.receive(|datagram| {
                inbox.accept(datagram, lines, pool, |accepted| {
                    let index = cables.iter().position(|cable| cable.link == accepted.line.link);
                    let Some(index) = index else { return };
                    let delay = neighbours[index].2.delay;
                    let at = Instant::ZERO + accepted.arrived.since(Instant::ZERO + delay);
                    neighbours[index].2.receive(accepted.frame.kind, &accepted.frame.octets);
                    let port = index as u8 + 1;
                    seen.push(Seen { port, at, received, frame: accepted.frame });
                });
            });
            if count == 0 {
                return;
            }
        }
    }

    /// Neighbours send the flow control that is due at `now`.
    fn refresh(&mut self, now: Instant) {
        for port in 1..=self.cables.len() as u8 {
            for octets in self.neighbour(port).words(now) {
                self.now = now;
                self.put(port, FrameKind::InfinibandLink, &octets, Label::default());
            }
        }
    }

    /// What waits for line and credit leaves from `now` on, as far as both permit before `horizon`.
    fn send_waiting(&mut self, now: Instant, horizon: Instant) {
        for port in 1..=self.cables.len() as u8 {
            while self.neighbour(port).next() < horizon
                && let Some((earliest, octets)) = self.neighbour(port).waiting.pop_front()
            {
                self.now = now.max(earliest);
                self.send(port, &octets);
            }
        }
    }

    /// When there is something to do next, if the next step is at `step`. Units: wall nanoseconds.
    fn next_ns(&self, step: Instant) -> u64 {
        let clock = &self.parts.clock;
        let neighbours = self.parts.neighbours.iter().map(|(.., neighbour)| neighbour);
        let wall = |due: Instant, ahead| clock.wall_ns_of(due).saturating_sub(ahead);
        let refresh = neighbours.clone().map(Neighbour::due).min();
        let refresh = refresh.map_or(u64::MAX, |due| wall(due, ANSWER_NS));
        let next = neighbours.map(Neighbour::next).filter(|next| *next < Instant::NEVER);
        let lines = next.map(|next| wall(next, AHEAD_NS / 2));
        let step = wall(step, AHEAD_NS);
        step.min(refresh).min(lines.min().unwrap_or(u64::MAX))
    }

    /// Waits until `wake_ns`, or for the socket.
    fn rest(&self, wake_ns: u64) {
        let now_ns = monotonic_ns();
        let wake = wake_ns.clamp(now_ns + SLEEP_MIN_NS, now_ns + SLEEP_MAX_NS);
        timer::wait(Some(self.parts.socket.as_fd()), wake);
    }

    fn found(self) -> Found {
        let sent = self.cables.iter();
        let sent =
            sent.map(|cable| SentLine { link: cable.link, end: cable.end, sent: cable.sent });
        let own = |link: u32| self.cables.iter().any(|cable| cable.link == link);
        let received = self.inbox.received(&self.parts.lines).filter(|line| own(line.link));
        let exchange = ExchangeReport {
            buffers: self.parts.socket.buffers(),
            rejected: self.inbox.rejected,
            sent: sent.collect(),
            received: received.collect(),
            ..ExchangeReport::default()
        };
        let neighbours = self.parts.neighbours.into_iter().map(|(.., neighbour)| neighbour);
        let neighbours = neighbours.collect();
        Found { seen: self.seen, exchange, lateness: self.lateness, neighbours }
    }
}

impl Bed for Tester {
    fn now(&self) -> Instant {
        self.now
    }

    fn neighbour(&mut self, port: u8) -> &mut Neighbour {
        &mut self.parts.neighbours[usize::from(port) - 1].2
    }

    fn seen(&self) -> &[Seen] {
        &self.seen
    }

    fn put(&mut self, port: u8, kind: FrameKind, octets: &[u8], label: Label) {
        let index = usize::from(port) - 1;
        let leaves = self.parts.neighbours[index].2.occupy(kind, octets, self.now);
        let cable = &mut self.cables[index];
        let shim = cable.shim(kind, octets, label, leaves, self.parts.epoch);
        let record = [&shim.emit()[..], octets].concat();
        let peer = &self.parts.peers[self.parts.daemon];
        // A full socket shows as a frame that the reconciliation misses.
        let _ = self.parts.socket.send(std::iter::once((peer, &record[..])));
        let late_ns = monotonic_ns().saturating_sub(self.parts.clock.wall_ns_of(shim.stamp));
        if label.stamp.is_none() {
            let late = self.parts.clock.piece(shim.stamp).fabric(late_ns).as_ps() * 1_000;
            self.lateness.wall_ns.record(late_ns);
            self.lateness.frames.record(late / cable.frame_time.as_ps().max(1));
        }
    }

    fn sequence(&self, port: u8) -> u32 {
        self.cables[usize::from(port) - 1].sequence
    }

    fn hold_back(&mut self, port: u8, kind: FrameKind, octets: &[u8]) -> u32 {
        self.cables[usize::from(port) - 1].next_number(kind, octets)
    }
}
