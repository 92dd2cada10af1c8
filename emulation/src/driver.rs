//! The worker: many devices on one thread, driven by the wall clock.
//!
//! ```text
//!            ┌────────────────────────── one turn ──────────────────────────┐
//!  sockets → receive → arrivals ┐                                           │
//!                      timeouts ├─ in order of their instants → device ─┐   │
//!                    departures ┘ ←─────────────────────────────────────┘   │
//!                        └→ bundles → flush → measure lateness → wait ──────┘
//! ```
//!
//! The worker is a simulator that wall time holds back. Once a turn it reads the clock; everything
//! due by then happens in the order of its own instants, and each device is told the instant at
//! which the thing was due, not the one at which this thread got round to it. So a late wake-up
//! shows in the lateness of departures, where it is measured, and in nothing a device computes.
//! Only a frame that a socket delivers after its `arrived` is handled later than its time, since
//! `now` never runs back.

mod ending;
mod moderation;
pub mod orders;
mod pace;
mod placement;
mod report;
#[cfg(test)]
#[allow(dead_code, reason = "the tests of `daemon` use all of it")]
mod toy;

pub use report::{Beat, InFlight, Report, evidence};

pub use pace::throng;

use crate::cable::exchange::Exchange;
use crate::cable::impairment::Impairer;
use crate::cable::inbox::Accepted;
use crate::cable::lines::{Destination, Lines, Outgoing, line_index};
use crate::cable::memory::{Flight, Flights};
use crate::calendar::Calendar;
use crate::clock::{Clock, monotonic_ns, process_cpu_ns};
use crate::fidelity::Meter;
use crate::fidelity::timeline::Moment;
use crate::observer::Observer;
use crate::recorder::{Recorder, RecordingPlan};
use crate::timer::{self, Priority};
use crate::wiring::{End, Wiring};
use moderation::Moderation;
use orders::Order;
use pace::{Pace, crowd};
use placement::Placement;
use proto::device::Device;
use proto::events::Direction;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::os::fd::AsFd;

/// Wall time between two signs of life.
const BEAT_NS: u64 = 125_000_000;
/// The longest sleep: how late a request to stop may be noticed.
const SLEEP_MAX_NS: u64 = 20_000_000;
/// How soon a datagram that met a full socket is tried again.
const RETRY_NS: u64 = 100_000;
/// Things that happen before sockets are looked at again.
const TURN_MAX: usize = 512;
/// Departures that are sent together at most: more would be late for the sake of the first.
const FLUSH_MAX: usize = 64;
/// An overloaded worker may catch up for so long after the stop before it is cut short.
const GRACE_NS: u64 = 2_000_000_000;

/// The worker's way to whoever supervises it. Nothing here may ever wait.
pub trait Supervisor {
    /// The run shall end now.
    fn stop_requested(&self) -> bool;

    /// A sign of life.
    fn beat(&self, beat: Beat);

    /// What somebody wants of the worker, the first first. Asked once a turn at least.
    fn order(&self) -> Option<Order> {
        None
    }
}

/// A frame that reaches a port from outside the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedFrame {
    /// Index into the worker's own devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// When it arrives; whole nanoseconds if it comes from a capture file.
    pub at: Instant,
    /// The frame.
    pub frame: Frame,
}

/// What a worker drives, and in which run.
pub struct Assignment {
    /// The process's number.
    pub process: usize,
    /// How many processes there are.
    pub processes: usize,
    /// Fabric time.
    pub clock: Clock,
    /// When to stop and what to measure.
    pub plan: RecordingPlan,
    /// The process's devices, in the order of their nodes.
    pub devices: Vec<Box<dyn Device>>,
    /// The ends of their cables.
    pub lines: Lines,
    /// Faults by line, see [`impairers`].
    pub impairers: Vec<Option<Impairer>>,
    /// The socket.
    pub exchange: Exchange,
    /// The observer.
    pub recorder: Recorder,
}

/// The faults of `wiring` by line index.
pub fn impairers(wiring: &Wiring, seed: u64) -> Vec<Option<Impairer>> {
    let at = |end: End| Impairer::new(wiring, end, seed);
    let links = wiring.links.iter().flat_map(|link| [at(link.a), at(link.b)]);
    // What comes in by an attached interface is not this fabric's to impair.
    links.chain(wiring.attached.iter().flat_map(|attached| [at(attached.at), None])).collect()
}

/// The loop and its state. Built and run on the thread that is to be the data plane.
pub struct Worker {
    run: Assignment,
    priority: Priority,
    departures: Flights,
    arrivals: Flights,
    /// By device: when it wants to be called.
    wakes: Calendar,
    meter: Meter,
    pace: Pace,
    /// Where interfaces of the host are attached: when sockets are read.
    moderation: Option<Moderation>,
    /// The same: on which core this thread is, if it leaves none by itself.
    placement: Option<Placement>,
    /// The latest arrival that a socket has brought.
    heard: Instant,
    /// The instant of the last thing that happened.
    now: Instant,
    next_beat_ns: u64,
    unwired: u64,
}

/// What happens next.
enum Next {
    Sample,
    Departure,
    Arrival,
    Timeout(usize),
}

impl Worker {
    /// A worker that has not begun.
    pub fn new(run: Assignment, priority: Priority) -> Worker {
        let windows = run.plan.measured.clone();
        Worker {
            priority,
            departures: Flights::default(),
            arrivals: Flights::default(),
            wakes: Calendar::new(run.devices.len()),
            meter: Meter::new(run.clock, windows, run.plan.bin),
            pace: Pace::new(
                &run.clock,
                &run.lines,
                run.exchange.is_stamped(),
                crowd(run.processes),
            ),
            moderation: run.lines.has_outside().then(Moderation::default),
            placement: (run.lines.has_outside() && priority == Priority::Fifo)
                .then(Placement::here)
                .flatten(),
            heard: Instant::ZERO,
            now: Instant::ZERO,
            next_beat_ns: 0,
            unwired: 0,
            run,
        }
    }

    /// A frame from outside will reach a port.
    pub fn feed(&mut self, FedFrame { device, port, at, frame }: FedFrame) {
        self.arrivals.push(at, device, port, frame);
    }

    /// Drives the devices from fabric zero to the plan's stop, or until told to stop.
    pub fn run(mut self, supervisor: &impl Supervisor) -> Report {
        let cpu_before = process_cpu_ns();
        let stopped = self.await_origin(supervisor);
        if !stopped {
            self.begin();
            while !self.is_over(supervisor) {
                self.turn(supervisor);
            }
        }
        self.finish(supervisor, cpu_before)
    }

    /// At fabric zero every device is called once, whether it has asked for that or not.
    fn begin(&mut self) {
        self.meter.advance(Instant::ZERO, || moment(&self.run.exchange));
        for device in 0..self.run.devices.len() {
            self.run.devices[device].handle_timeout(Instant::ZERO);
            self.settle(device);
        }
    }

    /// True if the run was stopped before it began.
    fn await_origin(&mut self, supervisor: &impl Supervisor) -> bool {
        let origin = self.run.clock.origin_ns();
        while monotonic_ns() < origin {
            if supervisor.stop_requested() {
                return true;
            }
            self.beat_if_due(supervisor);
            timer::wait(None, origin.min(monotonic_ns() + SLEEP_MAX_NS));
        }
        false
    }

    fn is_over(&self, supervisor: &impl Supervisor) -> bool {
        if supervisor.stop_requested() {
            return true;
        }
        let wall = monotonic_ns();
        let stop = self.run.clock.wall_ns_of(self.run.plan.stop);
        let idle = self.next_instant() >= self.run.plan.stop;
        wall >= stop && (idle || wall >= stop.saturating_add(GRACE_NS))
    }

    fn turn(&mut self, supervisor: &impl Supervisor) {
        self.receive();
        let now = self.run.clock.now();
        let horizon = self.pace.horizon(now, self.heard).min(self.run.plan.stop);
        let mut steps = 0;
        while steps < TURN_MAX && self.meter.pending() < FLUSH_MAX && self.step(horizon) {
            steps += 1;
        }
        self.depart(now);
        self.clear_the_lines();
        self.meter.advance(horizon, || moment(&self.run.exchange));
        self.obey(supervisor);
        self.beat_if_due(supervisor);
        self.rest();
    }

    /// Sockets are drained eagerly, but for those that fill on purpose; frames wait here for the instant at which
    /// they arrive.
    fn receive(&mut self) {
        let Worker { run, arrivals, heard, moderation, placement, .. } = self;
        // Only where it matters: a look at the clock is not free.
        let now_ns = moderation.map_or(0, |_| monotonic_ns());
        if moderation.is_some_and(|moderation| moderation.filling(now_ns).is_some()) {
            return;
        }
        let count = run.exchange.receive(&run.lines, |Accepted { line, frame, arrived }| {
            *heard = (*heard).max(arrived);
            arrivals.push(arrived, line.device, line.port, frame);
            if let Some(moderation) = moderation {
                moderation.count(line.device, line.port);
            }
        });
        if let Some(moderation) = moderation {
            moderation.close(now_ns);
        }
        if let Some(placement) = placement {
            placement.count(count, now_ns);
        }
    }

    /// The earliest instant at which anything happens to a device or a cable.
    fn next_instant(&self) -> Instant {
        self.departures.next_at().min(self.arrivals.next_at()).min(self.wakes.first().0)
    }

    /// Lets the next thing happen if it is due by `horizon`; false if nothing is.
    fn step(&mut self, horizon: Instant) -> bool {
        let Some((due, next)) = self.next() else { return false };
        if due > horizon || due >= self.run.plan.stop {
            return false;
        }
        self.now = self.now.max(due);
        match next {
            Next::Sample => {
                // Reading hundreds of devices takes a good part of a frame time.
                self.clear_the_lines();
                self.run.recorder.sample(self.now, &mut self.run.devices);
            }
            Next::Departure => self.depart(due),
            Next::Arrival => self.arrive(),
            Next::Timeout(device) => {
                self.run.devices[device].handle_timeout(self.now);
                self.settle(device);
            }
        }
        true
    }

    /// Sends what has left, and every frame that has begun to leave, however long its last bit still takes: its stamp
    /// says how long. A frame without a stamp waits for its last bit.
    fn clear_the_lines(&mut self) {
        let stamped = self.run.exchange.is_stamped();
        while stamped && self.departures.next_at() < Instant::NEVER {
            self.depart(self.departures.next_at());
            if self.meter.pending() >= FLUSH_MAX {
                self.send();
            }
        }
        self.send();
    }

    /// What happens next, and when. At one instant a sample comes before all else, then last bits
    /// leave, and then it is device by device, a device's frames before its timeout.
    fn next(&self) -> Option<(Instant, Next)> {
        let departure = self.departures.next_at();
        let (due, next) = self.next_inside()?;
        if departure < due || departure == due && !matches!(next, Next::Sample) {
            return Some((departure, Next::Departure));
        }
        Some((due, next))
    }

    /// The same apart from departures, which no device waits for.
    fn next_inside(&self) -> Option<(Instant, Next)> {
        let sample = self.run.recorder.next_due().unwrap_or(Instant::NEVER);
        let (arrival, receiver) = self.arrivals.next();
        let (timeout, device) = self.wakes.first();
        let first = sample.min(arrival).min(timeout);
        let next = match first {
            Instant::NEVER if self.departures.next_at() == Instant::NEVER => return None,
            _ if first == sample => Next::Sample,
            _ if (arrival, receiver) <= (timeout, device) => Next::Arrival,
            _ => Next::Timeout(device),
        };
        Some((first, next))
    }

    fn arrive(&mut self) {
        let Some(Flight { at, device, port, frame, .. }) = self.arrivals.pop() else { return };
        if at < self.now {
            let line = self.run.lines.outgoing(device, port);
            self.meter.handled_late(at, self.now, line.map(|line| line.frame_time));
        }
        self.show(device, port, Direction::Rx, &frame, at);
        self.run.devices[device].handle_frame(port, frame, at, self.now);
        self.settle(device);
    }

    /// Takes from a device all it has to give after a call.
    fn settle(&mut self, index: usize) {
        let device = &mut self.run.devices[index];
        while let Some(departure) = device.poll_transmit(self.now) {
            self.departures.push(departure.at, index, departure.port, departure.frame);
        }
        while let Some(event) = device.poll_event() {
            self.run.recorder.event(index, event);
        }
        self.wakes.set(index, device.poll_timeout().unwrap_or(Instant::NEVER));
    }

    /// Last bits leave that are due by `until`.
    fn depart(&mut self, until: Instant) {
        while self.departures.next_at() <= until && self.meter.pending() < FLUSH_MAX {
            if let Some(flight) = self.departures.pop() {
                self.depart_one(flight);
            }
        }
    }

    fn depart_one(&mut self, flight: Flight) {
        let Flight { at, device, port, frame, .. } = flight;
        let Some(line) = self.run.lines.outgoing(device, port).copied() else {
            self.unwired += 1;
            return self.run.exchange.recycle(frame);
        };
        self.show(device, port, Direction::Tx, &frame, at);
        self.meter.leaves(at, line.frame_time);
        let Some(impairer) = &mut self.run.impairers[line_index(line.link, line.end)] else {
            return self.convey(&line, frame, at);
        };
        let impaired = impairer.apply(frame, at);
        for frame in impaired.frames.into_iter().flatten() {
            self.convey(&line, frame, impaired.at);
        }
    }

    fn show(
        &mut self,
        device: usize,
        port: PortNumber,
        way: Direction,
        frame: &Frame,
        at: Instant,
    ) {
        if self.run.recorder.wants_frames(device, port) {
            self.run.recorder.frame(device, port, way, frame, at);
        }
    }

    fn convey(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        match line.to {
            Destination::Device { device, port } => {
                self.arrivals.push(stamp + line.delay, device, port, frame);
            }
            Destination::Process(_) | Destination::Outside => {
                self.run.exchange.send(line, frame, stamp);
            }
        }
    }

    /// Sends what has left, and only then looks at the clock to see how late that was.
    fn send(&mut self) {
        self.run.exchange.flush();
        if self.meter.pending() > 0 {
            self.meter.left(monotonic_ns());
        }
    }

    /// Waits for the next thing that is due, or for the socket.
    fn rest(&self) {
        let inside = self.next_inside().map_or(Instant::NEVER, |(due, _)| due);
        let other = inside.min(self.run.plan.stop);
        let due = self.pace.wake_ns(&self.run.clock, self.departures.next_at(), other);
        let now_ns = monotonic_ns();
        let nap = if self.run.exchange.waiting() { RETRY_NS } else { SLEEP_MAX_NS };
        let wake = due.min(self.next_beat_ns).min(now_ns + nap);
        let filling = self.moderation.and_then(|moderation| moderation.filling(now_ns));
        if let Some(until) = filling {
            return timer::wait(None, wake.min(until));
        }
        if wake > self.pace.read_by_ns(now_ns) {
            timer::wait(Some(self.run.exchange.as_fd()), wake);
        }
        // What the socket holds is not due yet: more may come before it is read.
        timer::wait(None, wake.min(self.pace.read_by_ns(monotonic_ns())));
    }

    fn beat_if_due(&mut self, supervisor: &impl Supervisor) {
        let wall_ns = monotonic_ns();
        if wall_ns < self.next_beat_ns {
            return;
        }
        self.next_beat_ns = wall_ns + BEAT_NS;
        supervisor.beat(self.beat());
        self.run.recorder.flush_tap();
    }
}

fn moment(exchange: &Exchange) -> Moment {
    Moment { wall_ns: monotonic_ns(), cpu_ns: process_cpu_ns(), lost: exchange.lost() }
}

#[cfg(test)]
mod tests;
