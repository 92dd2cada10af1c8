//! Exact pace: a worker whose time advances as far as its neighbours have promised, and not by any clock.
//!
//! ```text
//!            ┌────────────────────────────── horizon > position ────────────────────────────┐
//!            ▼                                                                              │
//!   run the devices up to the horizon ─▶ send frames and promises ─▶ read sockets ─┬─ else ─┴▶ blocked: wait, then ask
//!                                                                                  │
//!                    report, then answer until every neighbour has everything ◀────┘ position = end
//! ```
//!
//! This is conservative synchronisation (K. M. Chandy and J. Misra, 1979; R. E. Bryant, 1977). A promise states that
//! frames sent from now on leave at or after an instant. A line's next frame then arrives no earlier than that instant, or
//! the end of the frame in transmission, plus the cable's delay. The earliest over all lines is the horizon: all input
//! before it is known. The worker runs its devices up to there as the simulator does ([`crate::simulator`]), by the same
//! code, so every device gets the same input in the same order, and the run is that of the virtual clock.
//!
//! The delay of its cables keeps a process apart from its neighbours. All processes run in windows of the shortest delay,
//! since the neighbour that lags most permits one more window to all others, and smaller steps only cost messages. A quiet
//! process leaps over windows: promises also say until when a process sends nothing, if its neighbour sends it nothing
//! ([`Promise`]).

mod beside;
mod channel;
mod digest;
mod fault;
mod line_set;
mod mesh;
mod neighbours;
mod promise;
mod sending;

pub use fault::Fault;
pub use mesh::{Mesh, Session};
pub use promise::{Pledge, Promise, Secret};

use crate::cable::FrameTally;
use crate::cable::impairment::{Impairer, Injected};
use crate::cable::lines::{Destination, Lines, Outgoing};
use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::driver::orders::{DeviceSnapshot, Order};
use crate::driver::{Beat, ClockChanges, FedFrame, InFlight, Report, Supervisor};
use crate::fidelity::Lateness;
use crate::inputs::DeviceInputs;
use crate::observer::Observer;
use crate::recorder::{Recorder, RecordingPlan};
use crate::station::{Cable, Seen, Station, replay, watch};
use crate::timer::{self, Priority};
use proto::counters::DeviceReading;
use proto::device::{Depth, Device};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::os::fd::AsFd;

/// Wall time between two heartbeats.
const BEAT_NS: u64 = 125_000_000;
/// The longest sleep, and so the longest delay until a stop request takes effect.
const SLEEP_MAX_NS: u64 = 20_000_000;
/// Delay until a datagram that met a full socket is sent again.
const RETRY_NS: u64 = 50_000;
/// How long a blocked worker polls its sockets before it sleeps, where every process has a core. A wake-up costs more.
const SPIN_NS: u64 = 50_000;
/// A blocked worker asks its neighbours after this time, then after twice as long, and so on.
const ASK_FIRST_NS: u64 = 20_000_000;
const ASK_MAX_NS: u64 = 1_000_000_000;
/// A neighbour that this worker waits for may be silent for so long. The launcher notices a dead process at once.
const SILENCE_MAX_S: u64 = 60;

/// Everything an exact worker needs for one run.
pub struct ExactAssignment {
    /// The number of this process.
    pub process: usize,
    /// Each process of this host has a core of its own: a blocked worker polls before it sleeps.
    pub spins: bool,
    /// When to stop and what to measure.
    pub plan: RecordingPlan,
    /// The process's devices, in the order of their nodes.
    pub devices: Vec<Box<dyn Device>>,
    /// The ends of their cables.
    pub lines: Lines,
    /// Impairments by line index, see [`crate::driver::impairers`].
    pub impairers: Vec<Option<Impairer>>,
    /// The sockets.
    pub mesh: Mesh,
    /// Records counters, events and frames.
    pub recorder: Recorder,
}

/// A cable of a device of this worker.
struct OwnCable {
    line: Outgoing,
    impairer: Option<Impairer>,
}

impl Cable for OwnCable {
    fn impairer(&mut self) -> Option<&mut Impairer> {
        self.impairer.as_mut()
    }
}

/// What blocks a worker, and since when.
struct Blocked {
    since_ns: u64,
    asked_ns: u64,
    patience_ns: u64,
}

/// The worker.
pub struct ExactWorker {
    process: usize,
    spins: bool,
    plan: RecordingPlan,
    devices: Vec<Box<dyn Device>>,
    inputs: Vec<DeviceInputs<OwnCable>>,
    /// By device: the instant of its next input.
    next: Vec<Instant>,
    lines: Lines,
    mesh: Mesh,
    recorder: Recorder,
    /// Width of the windows between devices that are joined by memory.
    inner_window: Duration,
    /// Everything before it has happened.
    position: Instant,
    seen: Seen,
    /// What left in the present step.
    sent: Vec<(Outgoing, Frame, Instant)>,
    departures: u64,
    blocked: Option<Blocked>,
    next_beat_ns: u64,
    began_ns: u64,
}

impl ExactWorker {
    /// A worker at fabric zero.
    pub fn new(run: ExactAssignment) -> ExactWorker {
        let ExactAssignment { process, spins, plan, devices, lines, impairers, mesh, recorder } =
            run;
        let mut impairers = impairers;
        let mut inputs: Vec<DeviceInputs<OwnCable>> =
            devices.iter().map(|device| DeviceInputs::new(&**device)).collect();
        for (device, inputs) in inputs.iter_mut().enumerate() {
            for (index, port) in inputs.ports.iter_mut().enumerate() {
                let line = lines.outgoing(device, PortNumber::from_index(index)).copied();
                port.line.delay = line.map_or(Duration::ZERO, |line| line.delay);
                port.cable = line.map(|line| {
                    let impairer = impairers[line.index()].take();
                    OwnCable { line, impairer }
                });
            }
        }
        watch(&mut inputs, &recorder);
        let by_memory = lines.all_outgoing().filter(|line| !line.is_by_socket());
        let inner_window = by_memory.map(|line| line.delay).min();
        ExactWorker {
            process,
            spins,
            // Cables without delay make the window one instant, as in the simulator.
            inner_window: inner_window.map_or(NO_LIMIT, |least| least.max(Duration::from_ps(1))),
            next: vec![Instant::ZERO; devices.len()],
            plan,
            devices,
            inputs,
            lines,
            mesh,
            recorder,
            position: Instant::ZERO,
            seen: Seen::default(),
            sent: Vec::new(),
            departures: 0,
            blocked: None,
            next_beat_ns: 0,
            began_ns: monotonic_ns(),
        }
    }

    /// Adds a frame that arrives at a port from outside. Call it before [`ExactWorker::run`].
    pub fn feed(&mut self, FedFrame { device, port, at, frame }: FedFrame) {
        self.inputs[device].feed(port, at, frame);
        self.next[device] = self.next[device].min(at);
    }

    /// Drives the devices from fabric zero to the plan's stop, or until the supervisor requests a stop. Returns the
    /// report, and what neighbours may still need.
    ///
    /// # Errors
    /// If a neighbour breaks the protocol, or is silent.
    pub fn run(mut self, supervisor: &impl Supervisor) -> Result<(Report, Lingering), Fault> {
        let cpu_before = process_cpu_ns();
        loop {
            let has_news = self.receive()?;
            if has_news {
                self.blocked = None;
            }
            let horizon = self.horizon();
            if horizon > self.position {
                self.blocked = None;
                self.run_to(horizon);
                self.mesh.flush(self.position, self.earliest())?;
            } else if self.position >= self.plan.stop && self.mesh.is_done() {
                break;
            } else if has_news {
                self.mesh.flush(self.position, self.earliest())?;
            } else {
                self.wait()?;
            }
            self.execute_orders(supervisor);
            self.beat_if_due(supervisor);
            if supervisor.stop_requested() {
                break;
            }
        }
        Ok(self.finish(cpu_before))
    }

    /// Reads the sockets into the inputs.
    fn receive(&mut self) -> Result<bool, Fault> {
        let ExactWorker { mesh, lines, inputs, next, position, .. } = self;
        let mut late = None;
        let has_news = mesh.receive(lines, |line, frame, times| {
            let (_, arrives) = times;
            if arrives < *position {
                late = Some((*line, arrives));
            }
            let arrives = inputs[line.device].push_arrival(line.port, times, frame);
            next[line.device] = next[line.device].min(arrives);
        })?;
        let fault = late.and_then(|(line, arrives)| mesh.late(&line, arrives, *position));
        fault.map_or(Ok(has_news), Err)
    }

    /// The instant to run to: what is promised, in whole windows, and no further than heartbeats permit.
    fn horizon(&self) -> Instant {
        let horizon = self.mesh.horizon(self.earliest().max(self.position));
        let most = self.mesh.whole(self.position + self.plan.bin.max(self.mesh.window()));
        if horizon >= self.plan.stop {
            return most.min(self.plan.stop);
        }
        most.min(self.mesh.whole(horizon))
    }

    /// Runs window by window to `horizon`, or less far: a frame that leaves can bring an answer before it.
    fn run_to(&mut self, horizon: Instant) {
        let mut horizon = horizon;
        while self.position < horizon {
            let input = self.earliest().max(self.position);
            self.advance(horizon.min(self.mesh.whole(input) + self.mesh.window()));
            horizon = horizon.min(self.horizon());
        }
    }

    /// The instant of the earliest input that is known.
    fn earliest(&self) -> Instant {
        self.next.iter().fold(Instant::NEVER, |first, next| first.min(*next))
    }

    /// Runs all devices up to `until`, and takes the samples before it, as [`crate::simulator::Simulator::run`] does.
    fn advance(&mut self, until: Instant) {
        while self.position < until {
            let due = self.recorder.next_due().unwrap_or(Instant::NEVER);
            if due <= self.position {
                self.recorder.sample(self.position, &mut self.devices);
                continue;
            }
            let end = due.min(until);
            self.run_windows(end);
            replay(&mut self.recorder, &mut self.seen.observations);
            self.position = end;
        }
    }

    fn run_windows(&mut self, until: Instant) {
        loop {
            let begin = self.earliest();
            if begin >= until {
                return;
            }
            let end = until.min(begin + self.inner_window);
            for device in 0..self.devices.len() {
                while self.next[device] < end {
                    self.step(device);
                }
            }
        }
    }

    /// One step of a device.
    fn step(&mut self, node: usize) {
        let ExactWorker { devices, inputs, seen, sent, .. } = self;
        let (at, due) = inputs[node].next();
        let mut station = Station { node, device: &mut *devices[node], inputs: &mut inputs[node] };
        station.step(at, due, seen, |cable, frame, stamp| sent.push((cable.line, frame, stamp)));
        self.next[node] = self.inputs[node].next().0;
        let mut sent = std::mem::take(&mut self.sent);
        self.departures += sent.len() as u64;
        for (line, frame, stamp) in sent.drain(..) {
            let Destination::Device { device, port } = line.to else {
                self.mesh.send(&line, frame, stamp);
                continue;
            };
            let times = (stamp, stamp + line.delay);
            let arrives = self.inputs[device].push_arrival(port, times, frame);
            self.next[device] = self.next[device].min(arrives);
        }
        self.sent = sent;
    }

    /// Waits until a socket can be read, and asks neighbours that have been silent for some time.
    fn wait(&mut self) -> Result<(), Fault> {
        let now_ns = monotonic_ns();
        if self.mesh.waiting() {
            self.mesh.transmit();
        }
        let blocked = self.blocked.get_or_insert(Blocked {
            since_ns: now_ns,
            asked_ns: now_ns,
            patience_ns: ASK_FIRST_NS,
        });
        if self.spins && now_ns < blocked.since_ns + SPIN_NS {
            std::hint::spin_loop();
            return Ok(());
        }
        if now_ns >= blocked.since_ns + SILENCE_MAX_S * 1_000_000_000 {
            let silent = self.mesh.silent(self.position, SILENCE_MAX_S);
            return silent.map_or(Ok(()), Err);
        }
        if now_ns >= blocked.asked_ns + blocked.patience_ns {
            blocked.asked_ns = now_ns;
            blocked.patience_ns = (blocked.patience_ns * 2).min(ASK_MAX_NS);
            self.mesh.ask(self.position);
        }
        let nap = if self.mesh.waiting() { RETRY_NS } else { SLEEP_MAX_NS };
        timer::wait(Some(self.mesh.as_fd()), now_ns + nap);
        Ok(())
    }

    fn beat_if_due(&mut self, supervisor: &impl Supervisor) {
        let now_ns = monotonic_ns();
        if now_ns >= self.next_beat_ns {
            self.next_beat_ns = now_ns + BEAT_NS;
            supervisor.beat(self.beat());
            self.recorder.flush_tap();
        }
    }

    fn beat(&self) -> Beat {
        Beat {
            at: self.position,
            departures: self.departures,
            rejected: self.mesh.report().rejected,
            cpu_ns: process_cpu_ns(),
            ..Beat::default()
        }
    }

    /// Executes a pending order. A run with exact pace is that of its scenario, so nothing in it can be changed.
    fn execute_orders(&mut self, supervisor: &impl Supervisor) {
        let Some(order) = supervisor.order() else { return };
        match order {
            Order::Read(mut snapshot, depth, reply) => {
                self.read(&mut snapshot, depth);
                reply(snapshot);
            }
            Order::Tap(tap, reply) => {
                let before = std::mem::replace(&mut self.recorder.tap, tap);
                watch(&mut self.inputs, &self.recorder);
                reply((before, self.position));
            }
            Order::Impair(_, reply) => reply(false),
            Order::SlowDown(_, _, _, reply) => reply(false),
            Order::Traffic { reply, .. } => reply(0),
            Order::Change(.., reply) => {
                reply(Err("a run with exact pace cannot change".to_owned()));
            }
            Order::Agent(.., reply) => reply(None),
            Order::Account(_, reply) => reply(None),
            // The configuration of a daemon excludes programs beside devices with exact pace.
            Order::Manage(..) | Order::Claim(..) => {}
        }
    }

    fn read(&mut self, snapshot: &mut DeviceSnapshot, depth: Depth) {
        snapshot.devices.resize_with(self.devices.len(), DeviceReading::default);
        for (device, reading) in self.devices.iter_mut().zip(&mut snapshot.devices) {
            device.read_to(depth, self.position, reading);
        }
        snapshot.beat = self.beat();
        snapshot.injected = self.injected();
    }

    fn injected(&self) -> Injected {
        let cables = self.inputs.iter().flat_map(DeviceInputs::cables);
        Injected::by(cables.filter_map(|cable| cable.impairer.as_ref()))
    }

    fn finish(mut self, cpu_before: u64) -> (Report, Lingering) {
        let mut on_cables = FrameTally::default();
        let in_flight = self.inputs.iter().flat_map(DeviceInputs::in_flight);
        in_flight.for_each(|frame| on_cables.count(frame));
        let injected = self.injected();
        let report = Report {
            process: self.process,
            stopped_at: self.position,
            cut_short: self.position < self.plan.stop,
            priority: Priority::Normal,
            departures: self.departures,
            changes: ClockChanges::default(),
            lateness: Lateness::default(),
            timeline: Vec::new(),
            in_flight: InFlight { on_the_line: FrameTally::default(), on_cables },
            injected,
            unwired: 0,
            exchange: self.mesh.report(),
            wall_ns: monotonic_ns() - self.began_ns,
            cpu_ns: process_cpu_ns() - cpu_before,
            recording: self.recorder.finish(self.position, &mut self.devices),
        };
        (report, Lingering { mesh: self.mesh, lines: self.lines })
    }
}

/// No window: everything is one.
const NO_LIMIT: Duration = Duration::from_ps(u64::MAX);

/// The sockets of a worker that is done: a neighbour may still ask for what was lost.
pub struct Lingering {
    mesh: Mesh,
    lines: Lines,
}

impl Lingering {
    /// Answers neighbours until each has everything, or the supervisor requests a stop.
    pub fn serve(mut self, supervisor: &impl Supervisor) {
        while !self.mesh.is_acknowledged() && !supervisor.stop_requested() {
            // The run is over here, and a neighbour that is not yet done judges its own input.
            let _ = self.mesh.receive(&self.lines, |_, _, _| {});
            self.mesh.answer();
            self.mesh.transmit();
            timer::wait(Some(self.mesh.as_fd()), monotonic_ns() + SLEEP_MAX_NS);
        }
        self.mesh.answer();
    }
}

#[cfg(test)]
mod tests;
