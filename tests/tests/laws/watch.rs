//! A device with a check around it, independent of the code under test: what it sends is compared with what its lines can
//! carry, and what it says about its wake-ups with what it does.

use crate::run::Conditions;
use emulation::observer::Observer;
use proto::counters::{BinReading, DeviceReading};
use proto::device::{Control, Departure, Depth, Device, Instrumented};
use proto::events::{DeviceEvent, EventKind, Law};
use proto::frame::{Frame, FrameClass};
use proto::ids::PortNumber;
use proto::link::LinkConfig;
use proto::units::{BitRate, Bytes, Instant};
use proto::wire::classify::classify_frame;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A law and how it is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The law, in a few words that are the same for each violation of it.
    pub law: &'static str,
    /// Where, when, and by how much.
    pub what: String,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Index of the node.
    pub node: usize,
    /// Hash of the ports, instants and sizes of all departures.
    pub times: u64,
    /// Hash of their octets. Payload names the instant at which its message was posted.
    pub octets: u64,
    /// Its first violation of each law.
    pub violations: Vec<Violation>,
}

/// What the checks of all devices of a run share.
#[derive(Default)]
pub struct Sink {
    /// Steps of all devices.
    steps: AtomicU64,
    /// Steps after which no device does anything, so that each run ends.
    steps_max: u64,
    reports: Mutex<Vec<Report>>,
}

impl Sink {
    /// Nothing yet, and devices that do nothing after `steps_max` steps.
    pub fn new(steps_max: u64) -> Sink {
        Sink { steps_max, ..Sink::default() }
    }

    /// Steps of all devices so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether the run has taken so many steps that it is only to end.
    pub fn is_over(&self) -> bool {
        self.steps() > self.steps_max
    }

    /// The reports of the devices that have been dropped, in node order.
    pub fn reports(&self) -> Vec<Report> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reports.sort_by_key(|report| report.node);
        reports
    }
}

/// The line of a port.
#[derive(Clone, Copy)]
pub struct Line {
    /// Its rate.
    pub rate: BitRate,
    /// Octets of line time that each frame takes beyond its own.
    pub overhead: Bytes,
}

/// Steps at one instant after which a device counts as hung.
const STEPS_AT_ONCE: u32 = 100_000;

/// A device and the checks around it.
pub struct Watched {
    inner: Box<dyn Device>,
    name: String,
    lines: Vec<Line>,
    /// By port: when the last bit of the latest frame leaves.
    free: Vec<Instant>,
    /// Polls the device where nothing calls for it.
    pokes: bool,
    /// Picoseconds of a unit of time.
    unit: u64,
    /// A departure of such a poll.
    early: Option<Departure>,
    /// The class of the frame that the present step handles.
    handling: Option<FrameClass>,
    at: Instant,
    steps_at_once: u32,
    report: Report,
    sink: Arc<Sink>,
}

impl Watched {
    /// Checks `inner`, which is node `node` and has these lines.
    pub fn new(
        inner: Box<dyn Device>,
        (node, name): (usize, &str),
        lines: Vec<Line>,
        Conditions { pokes, unit, .. }: Conditions,
        sink: &Arc<Sink>,
    ) -> Watched {
        Watched {
            inner,
            name: name.to_owned(),
            free: vec![Instant::ZERO; lines.len()],
            lines,
            pokes,
            unit,
            early: None,
            handling: None,
            at: Instant::ZERO,
            steps_at_once: 0,
            report: Report { node, times: 0, octets: 0, violations: Vec::new() },
            sink: Arc::clone(sink),
        }
    }

    fn violate(&mut self, law: &'static str, what: String) {
        if self.report.violations.iter().all(|known| known.law != law) {
            self.report.violations.push(Violation { law, what });
        }
    }

    fn step(&mut self, now: Instant) {
        self.sink.steps.fetch_add(1, Ordering::Relaxed);
        self.steps_at_once = if now > self.at { 0 } else { self.steps_at_once + 1 };
        self.at = now;
        assert!(
            self.steps_at_once < STEPS_AT_ONCE,
            "{} takes {STEPS_AT_ONCE} steps at {} ps without end",
            self.name,
            now.as_ps()
        );
    }

    fn check(&mut self, departure: &Departure, now: Instant) {
        let Departure { port, frame, at } = departure;
        let index = port.index();
        let Line { rate, overhead } = self.lines[index];
        let length = (frame.line_size() + overhead).time_at(rate);
        let place = || {
            let (name, size) = (&self.name, frame.line_size().get());
            let (length, at) = (length.as_ps(), at.as_ps());
            format!(
                "{name}:{port} at {rate}: a frame of {size} octets, {length} ps long, leaves at {at} ps"
            )
        };
        if *at < self.free[index] + length {
            let what =
                format!("{}; the one before left at {} ps", place(), self.free[index].as_ps());
            self.violate("frames of one line are no closer than it permits", what);
        } else if *at < now + length {
            let what = format!("{}; it was handed over at {} ps", place(), now.as_ps());
            self.violate("no frame begins before it is handed over", what);
        }
        self.free[index] = *at;
        let time = ((at.as_ps() / self.unit) << 8) | (at.as_ps() % self.unit);
        let size = frame.line_size().get() << 48;
        self.report.times = mix(self.report.times, time ^ size ^ (index as u64) << 40);
        self.report.octets = mix(self.report.octets, crc32fast::hash(&frame.octets).into());
    }
}

/// A hash of a hash so far and the next number: the step of FNV-1a, and a turn that moves the upper bits down.
fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}

impl Drop for Watched {
    fn drop(&mut self) {
        let report = std::mem::take(&mut self.report);
        self.sink.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }
}

impl Device for Watched {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        self.step(now);
        if self.sink.is_over() {
            return;
        }
        // A device whose frame may leave now has asked for a wake-up by now.
        if self.pokes
            && self.early.is_none()
            && self.inner.poll_timeout().is_none_or(|due| due > now)
        {
            self.early = self.inner.poll_transmit(now);
            if let Some(departure) = &self.early {
                let what = format!(
                    "{}:{} had a frame of {} octets that may leave at {} ps, and had not asked to be called",
                    self.name,
                    departure.port,
                    departure.frame.line_size().get(),
                    now.as_ps()
                );
                self.violate("a permitted frame does not wait for a free line", what);
            }
        }
        self.handling = classify_frame(&frame).ok().map(|headers| headers.class);
        self.inner.handle_frame(port, frame, arrived, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.step(now);
        self.handling = None;
        if !self.sink.is_over() {
            self.inner.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        if self.sink.is_over() {
            return None;
        }
        let departure = self.early.take().or_else(|| self.inner.poll_transmit(now))?;
        self.check(&departure, now);
        Some(departure)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.sink.is_over() { None } else { self.inner.poll_timeout() }
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        let event = self.inner.poll_event()?;
        if let EventKind::Drop { reason, bytes } = event.kind
            && reason.is_want_of_room()
            && let Some(class @ (FrameClass::Ack | FrameClass::Notification)) = self.handling
        {
            let what = format!(
                "{}:{} drops a frame of {} octets ({class:?}, {}) at {} ps",
                self.name,
                event.port,
                bytes.get(),
                reason.name(),
                event.at.as_ps()
            );
            self.violate(FEEDBACK, what);
        }
        Some(event)
    }

    fn ports(&self) -> usize {
        self.inner.ports()
    }

    fn link(&self, port: PortNumber) -> Option<&LinkConfig> {
        self.inner.link(port)
    }

    fn ignores_pauses(&self) -> bool {
        self.inner.ignores_pauses()
    }
}

/// Keeps what cables and devices report of the laws of physics.
#[derive(Default)]
pub struct Physics(pub Vec<(usize, DeviceEvent)>);

impl Observer for Physics {
    fn event(&mut self, device: usize, event: DeviceEvent, _handled: Instant) {
        if matches!(event.kind, EventKind::Violation { .. }) {
            self.0.push((device, event));
        }
    }
}

/// What an event of [`Physics`] says.
pub fn physics(node: &str, event: &DeviceEvent) -> Option<Violation> {
    let EventKind::Violation { law, earliest, bytes } = event.kind else { return None };
    let law = match law {
        Law::LineRate => "a line carries frames one after another",
        Law::Causality => "no frame starts before its cause",
        Law::Delay => "no frame arrives before it has left and the delay is over",
        Law::Pause => "no frame starts in a pause of its priority",
        Law::Credit => "no frame starts without credit",
        Law::Pacing => "no frame starts before its reaction point permits",
    };
    let DeviceEvent { at, port, tc, .. } = event;
    let what = format!(
        "{node}:{port} lane {tc}: a frame of {} octets at {} ps, {} ps at the earliest",
        bytes.get(),
        at.as_ps(),
        earliest.as_ps()
    );
    Some(Violation { law, what })
}

/// The law of feedback, which holds under conditions that only the scenario knows.
pub const FEEDBACK: &str = "feedback is not lost by the congestion that it reports";

impl Instrumented for Watched {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.inner.read(now, reading);
    }

    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.inner.read_ports(now, reading);
    }

    fn read_to(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        self.inner.read_to(depth, now, reading);
    }

    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        self.inner.read_bin(now, reading);
    }

    fn begin_bin(&mut self, now: Instant) {
        self.inner.begin_bin(now);
    }
}

impl Control for Watched {}
