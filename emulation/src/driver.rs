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
//! The worker is a simulator that runs no faster than wall time. Once a turn it reads the clock. Everything due
//! by then happens in the order of its own instants, and a device gets the instant at which an input was due,
//! not the later one at which the thread handles it. A late wake-up therefore changes the measured lateness of
//! departures only, and nothing that a device computes. One exception: a frame that a socket delivers after its
//! `arrived` is handled late, since `now` never runs back.

pub mod account;
mod assignment;
mod changes;
mod core_placement;
mod ending;
mod moderation;
mod neighbours;
pub mod orders;
mod pace;
mod report;
mod stepping;

pub use assignment::{Assignment, Change, FedFrame, Supervisor, impairers};
pub use changes::ClockChanges;
pub use report::{Beat, InFlight, Report, evidence};

pub use pace::is_heavily_overcommitted;

use crate::alarm::WaitSet;
use crate::cable::exchange::Exchange;
use crate::cable::inbox::Accepted;
use crate::cable::lines::{Destination, Outgoing};
use crate::cable::memory::{Flight, Flights};
use crate::calendar::Calendar;
use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::fidelity::Meter;
use crate::fidelity::timeline::LoadSample;
use crate::observer::{Observer, Passage};
use crate::physics::{Line, lines_of};
use crate::timer::{self, Priority};
use account::PendingAccount;
use core_placement::CorePlacement;
use moderation::Moderation;
use pace::{Pace, is_overcommitted};
use proto::device::Step;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::units::Instant;
use std::os::fd::AsFd;

/// Wall time between two heartbeats.
const BEAT_NS: u64 = 125_000_000;
/// The longest sleep, and so the longest delay until a stop request takes effect.
const SLEEP_MAX_NS: u64 = 20_000_000;
/// Delay until a datagram that met a full socket is sent again.
const RETRY_NS: u64 = 100_000;
/// The longest such delay towards a program outside, whose work the retries interrupt.
const RETRY_OUTSIDE_MAX_NS: u64 = 800_000;
/// Steps before sockets are read again.
const TURN_MAX: usize = 512;
/// Departures sent together at most: with more, the first would be late.
const FLUSH_MAX: usize = 64;
/// Wall time after the stop for which an overloaded worker may catch up before the run is cut short.
const GRACE_NS: u64 = 2_000_000_000;

/// The event loop and its state. Create and run it on the data-plane thread.
pub struct Worker {
    run: Assignment,
    priority: Priority,
    departures: Flights,
    arrivals: Flights,
    /// By device: the instant of its timer.
    wakes: Calendar,
    meter: Meter,
    pace: Pace,
    /// With attached interfaces: when sockets are read.
    moderation: Option<Moderation>,
    /// With attached interfaces and real-time priority: which core the thread uses.
    placement: Option<CorePlacement>,
    /// The latest arrival that a socket has delivered.
    latest_arrival: Instant,
    /// The latest reading of the clock.
    clock_read: Instant,
    /// Changes of the clock of which this worker has learned, and those of them that were in force already.
    changes: ClockChanges,
    /// Processes that have ended or taken the place of others, as far as this worker has learned.
    peers_changed: u64,
    /// The instant of the last step.
    now: Instant,
    /// By device and port: the laws that frames obey.
    laws: Vec<Vec<Line>>,
    /// An account that a client waits for.
    account: Option<PendingAccount>,
    /// Devices with a program beside them.
    managed: Vec<usize>,
    /// With orders that must not wait: the sockets and the alarm of these orders.
    awaited: Option<WaitSet>,
    next_beat_ns: u64,
    /// Delay of the next retry.
    retry_ns: u64,
    unwired: u64,
}

/// The next step.
enum Next {
    Sample,
    Departure,
    Arrival,
    Timeout(usize),
}

impl Worker {
    /// A worker before it begins, scheduled with `priority`.
    pub fn new(run: Assignment, priority: Priority) -> Worker {
        let windows = run.plan.measured.clone();
        let (stamped, outside) = (run.exchange.is_stamped(), run.lines.has_outside());
        let overcommitted = is_overcommitted(run.processes);
        Worker {
            priority,
            departures: Flights::default(),
            arrivals: Flights::default(),
            wakes: Calendar::new(run.devices.len()),
            meter: Meter::new(windows, run.plan.bin),
            pace: Pace::new(&run.clock, &run.lines, stamped, overcommitted),
            moderation: outside.then(Moderation::default),
            placement: (outside && priority == Priority::Fifo).then(CorePlacement::here).flatten(),
            latest_arrival: Instant::ZERO,
            clock_read: Instant::ZERO,
            changes: ClockChanges::default(),
            peers_changed: 0,
            now: run.begin,
            laws: run.devices.iter().map(|device| lines_of(&**device)).collect(),
            account: None,
            managed: Vec::new(),
            awaited: None,
            next_beat_ns: 0,
            retry_ns: RETRY_NS,
            unwired: 0,
            run,
        }
    }

    /// Adds a frame that arrives at a port from outside. Call it before [`Worker::run`].
    pub fn feed(&mut self, FedFrame { device, port, at, frame }: FedFrame) {
        self.arrivals.push(at, device, port, frame);
    }

    /// Drives the devices from their begin to the plan's stop, or until the supervisor requests a stop.
    pub fn run(mut self, supervisor: &impl Supervisor) -> Report {
        let cpu_before = process_cpu_ns();
        // Without the set orders wait for the next wake-up.
        let with_sockets = |alarm| WaitSet::of([self.run.exchange.as_fd(), alarm]).ok();
        self.awaited = supervisor.alarm().and_then(with_sockets);
        if !self.await_begin(supervisor) {
            // Every device gets a timeout when it begins, whether it has requested one or not.
            self.meter.advance(self.now, || load_sample(&self.run.exchange));
            for device in 0..self.run.devices.len() {
                self.run.devices[device].begin(self.now);
                self.run.devices[device].handle_timeout(self.now);
                self.collect_outputs(device, Step::at(self.now));
            }
            while !self.is_over(supervisor) {
                self.turn(supervisor);
            }
        }
        self.finish(supervisor, cpu_before)
    }

    /// Waits for the begin. Returns true if a stop was requested before it.
    fn await_begin(&mut self, supervisor: &impl Supervisor) -> bool {
        let begin = self.run.clock.wall_ns_of(self.run.begin);
        while monotonic_ns() < begin {
            if supervisor.stop_requested() {
                return true;
            }
            self.beat_if_due(supervisor);
            timer::wait(None, begin.min(monotonic_ns() + SLEEP_MAX_NS));
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
        self.learn_changes(supervisor);
        self.receive();
        let now = self.read_clock();
        self.run.exchange.pass_time(now);
        let limit = self.run.plan.stop.min(self.account_due());
        let horizon = self.pace.horizon(now, self.latest_arrival).min(limit);
        let mut steps = 0;
        while steps < TURN_MAX && self.meter.pending() < FLUSH_MAX && self.step(horizon) {
            steps += 1;
        }
        self.transmit_until(now);
        self.send_started();
        self.make_account(now);
        self.meter.advance(horizon, || load_sample(&self.run.exchange));
        self.execute_orders(supervisor);
        self.deliver_management(supervisor);
        self.beat_if_due(supervisor);
        self.idle();
    }

    /// Reads all sockets, unless they are left to fill ([`Moderation`]). Frames wait in `arrivals` until they
    /// are due.
    fn receive(&mut self) {
        let Worker { run, arrivals, latest_arrival, moderation, placement, .. } = self;
        // Reading the clock costs time, so this happens only where the result is used.
        let now_ns = moderation.map_or(0, |_| monotonic_ns());
        if moderation.is_some_and(|moderation| moderation.filling(now_ns).is_some()) {
            return;
        }
        let Assignment { exchange, lines, impairers, .. } = run;
        let count = exchange.receive(lines, |Accepted { line, frame, arrived }| {
            // Only a cut by hand stops frames from outside.
            let frame = match impairers[line.index()].as_mut().filter(|_| line.outside) {
                None => Some(frame),
                Some(impairer) => {
                    let [frame, _] = impairer.apply(frame, arrived).frames;
                    frame
                }
            };
            let Some(frame) = frame else { return };
            *latest_arrival = (*latest_arrival).max(arrived);
            arrivals.push(arrived, line.device, line.port, frame);
            if let Some(moderation) = moderation {
                moderation.count(line.device, line.port);
            }
        });
        while let Some((device, port, kind)) = run.exchange.poll_event() {
            let at = run.clock.now();
            run.recorder.event(device, DeviceEvent { at, port, tc: 0, kind }, at);
        }
        if let Some(moderation) = moderation {
            moderation.close(now_ns);
        }
        if let Some(placement) = placement {
            placement.count(count, now_ns);
        }
    }

    /// The instant of the earliest step.
    fn next_instant(&self) -> Instant {
        self.departures.next_at().min(self.arrivals.next_at()).min(self.wakes.first().0)
    }

    /// Executes the next step if it is due by `horizon`; returns false if none is.
    fn step(&mut self, horizon: Instant) -> bool {
        let Some((due, next)) = self.next() else { return false };
        if due > horizon || due >= self.run.plan.stop {
            return false;
        }
        self.now = self.now.max(due);
        match next {
            Next::Sample => {
                // Reading hundreds of devices takes a good part of a frame time.
                self.send_started();
                self.run.recorder.sample(self.now, &mut self.run.devices);
            }
            Next::Departure => self.transmit_until(due),
            Next::Arrival => self.arrive(),
            Next::Timeout(device) => {
                self.run.devices[device].handle_timeout(self.now);
                self.collect_outputs(device, Step::at(self.now));
            }
        }
        true
    }

    /// Sends every frame whose transmission has begun. Its stamp is the instant at which its last bit leaves, so it may be
    /// sent earlier. Without stamps only finished departures are sent.
    fn send_started(&mut self) {
        let stamped = self.run.exchange.is_stamped();
        while stamped && self.departures.next_at() < Instant::NEVER {
            self.transmit_until(self.departures.next_at());
            if self.meter.pending() >= FLUSH_MAX {
                self.send();
            }
        }
        self.send();
    }

    /// The next step and its instant. At one instant the order is: sample, departures, then by device its
    /// frames before its timeout.
    fn next(&self) -> Option<(Instant, Next)> {
        let departure = self.departures.next_at();
        let (due, next) = self.next_inside()?;
        if departure < due || departure == due && !matches!(next, Next::Sample) {
            return Some((departure, Next::Departure));
        }
        Some((due, next))
    }

    /// The same without departures, which no device waits for.
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

    /// Transmits all departures due by `until`.
    fn transmit_until(&mut self, until: Instant) {
        while self.departures.next_at() <= until && self.meter.pending() < FLUSH_MAX {
            if let Some(flight) = self.departures.pop() {
                self.transmit_one(flight);
            }
        }
    }

    fn transmit_one(&mut self, flight: Flight) {
        let Flight { at, device, port, frame, .. } = flight;
        let Some(line) = self.run.lines.outgoing(device, port).copied() else {
            self.unwired += 1;
            return self.run.exchange.recycle(frame);
        };
        let (direction, handled) = (Direction::Tx, self.now);
        self.observe_frame(&frame, Passage { device, port, direction, at, handled });
        self.meter.leaves(at, line.frame_time);
        let Some(impairer) = &mut self.run.impairers[line.index()] else {
            return self.forward(&line, frame, at);
        };
        let impaired = impairer.apply(frame, at);
        for frame in impaired.frames.into_iter().flatten() {
            self.forward(&line, frame, impaired.at);
        }
    }

    fn observe_frame(&mut self, frame: &Frame, passage: Passage) {
        if self.run.recorder.wants_frames(passage.device, passage.port) {
            self.run.recorder.frame(frame, &passage);
        }
    }

    fn forward(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        match line.to {
            Destination::Device { device, port } => {
                self.arrivals.push(stamp + line.delay, device, port, frame);
            }
            Destination::Process(_) | Destination::Outside => {
                self.run.exchange.send(line, frame, stamp);
            }
        }
    }

    /// Flushes the sockets, then reads the clock to measure how late the departures were.
    fn send(&mut self) {
        self.run.exchange.flush();
        if self.meter.pending() > 0 {
            self.meter.left(&self.run.clock, monotonic_ns());
        }
    }

    /// Waits until the next step is due or a socket can be read.
    fn idle(&mut self) {
        let inside = self.next_inside().map_or(Instant::NEVER, |(due, _)| due);
        let other = inside.min(self.run.plan.stop);
        let due = self.pace.wake_ns(&self.run.clock, self.departures.next_at(), other);
        let now_ns = monotonic_ns();
        let nap = self.nap_ns();
        let wake = due.min(self.next_beat_ns).min(now_ns + nap);
        let filling = self.moderation.and_then(|moderation| moderation.filling(now_ns));
        if let Some(until) = filling {
            return timer::wait(None, wake.min(until));
        }
        if wake > self.pace.read_by_ns(now_ns) {
            let awaited = self.awaited.as_ref().map(WaitSet::as_fd);
            timer::wait(awaited.or(Some(self.run.exchange.as_fd())), wake);
        }
        // Frames in the socket are not due yet, so reading waits a little for more of them.
        timer::wait(None, wake.min(self.pace.read_by_ns(monotonic_ns())));
    }

    /// The longest sleep now. Each vain retry doubles the next delay where programs outside are the receivers.
    fn nap_ns(&mut self) -> u64 {
        if !self.run.exchange.waiting() {
            self.retry_ns = RETRY_NS;
            return SLEEP_MAX_NS;
        }
        let most = if self.moderation.is_some() { RETRY_OUTSIDE_MAX_NS } else { RETRY_NS };
        let nap = self.retry_ns;
        self.retry_ns = (nap * 2).min(most);
        nap
    }

    fn beat_if_due(&mut self, supervisor: &impl Supervisor) {
        let wall_ns = monotonic_ns();
        if wall_ns < self.next_beat_ns {
            return;
        }
        self.next_beat_ns = wall_ns + BEAT_NS;
        let beat = Beat { recent: self.meter.take_recent(wall_ns), ..self.beat() };
        supervisor.beat(beat);
        self.run.recorder.flush_tap();
    }
}

fn load_sample(exchange: &Exchange) -> LoadSample {
    LoadSample { wall_ns: monotonic_ns(), cpu_ns: process_cpu_ns(), lost: exchange.lost() }
}

#[cfg(test)]
mod tests;
