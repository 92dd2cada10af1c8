//! What a stage leaves: the device's own account, and what its neighbours saw.

use super::case::{Failure, Level, Result, ensure};
use super::shared::Evidence;
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::inbox::LineCounts;
use emulation::driver::Report;
use emulation::fidelity::Fidelity;
use proto::counters::{DeviceReading, DropReason, LaneCounters, PortReading};
use proto::events::{DeviceEvent, EventKind};
use proto::units::{Duration, Instant};
use testbed::{Neighbour, Seen, Sent, Sightings};

/// The whole of a run.
pub const ALWAYS: (Instant, Instant) = (Instant::ZERO, Instant::NEVER);

/// One run of one device among played neighbours.
#[derive(Debug)]
pub struct Record {
    /// The device's counters at the stop.
    pub reading: DeviceReading,
    /// What has happened in it.
    pub events: Vec<DeviceEvent>,
    /// What the device has sent, in the order of arrival.
    pub seen: Vec<Seen>,
    /// The device's counters at each step that read them; none live.
    pub samples: Vec<DeviceReading>,
    /// By port: how the neighbour there stands at the end.
    pub neighbours: Vec<Neighbour>,
    /// By port: the account of the line by which it receives.
    pub lines: Vec<LineCounts>,
    /// What only a live run has.
    pub live: Option<Live>,
}

/// What only a live run has.
#[derive(Debug)]
pub struct Live {
    /// The daemon's account.
    pub report: Report,
    /// Whether the host kept up, daemon and tester together.
    pub fidelity: Fidelity,
    /// The tester's account of its cables.
    pub exchange: ExchangeReport,
}

impl Evidence for Record {
    fn kept_up(&self) -> Result<()> {
        match &self.live {
            Some(Live { fidelity, .. }) if !fidelity.ok => Err(Failure::Inconclusive(format!(
                "{}; dilation {} should hold",
                fidelity.reasons.join("; "),
                fidelity.suggested_dilation
            ))),
            _ => Ok(()),
        }
    }
}

impl Record {
    /// Where it was made.
    pub fn level(&self) -> Level {
        if self.live.is_some() { Level::Live } else { Level::Engine }
    }

    /// What only a live run has.
    ///
    /// # Errors
    /// If this one ran on the virtual clock.
    pub fn live(&self) -> Result<&Live> {
        Ok(self.live.as_ref().ok_or("this run has no daemon")?)
    }

    /// The lateness that one handling in a hundred exceeds; none on the virtual clock.
    pub fn late(&self) -> Duration {
        let late = self.live.as_ref().map(|live| live.report.lateness.wall_ns.p99());
        Duration::from_ns(late.unwrap_or(0))
    }

    /// Twice [`Record::late`]: the difference that two clocks may have.
    pub fn twice_late(&self) -> Duration {
        self.late() * 2
    }

    /// The tolerance of an instant: nothing on the virtual clock, live `slack` and [`Record::twice_late`].
    pub fn within(&self, slack: Duration) -> Duration {
        if self.live.is_some() { slack + self.twice_late() } else { Duration::ZERO }
    }

    /// The counters of one port, counted from 1.
    pub fn port(&self, port: u8) -> &PortReading {
        &self.reading.ports[usize::from(port) - 1]
    }

    /// How many frames ended at `port` for `reason`.
    pub fn drops(&self, port: u8, reason: DropReason) -> u64 {
        self.port(port).drops.get(reason)
    }

    /// A total under its operators' name; 0 if there is none.
    pub fn named(&self, port: u8, name: &str) -> u64 {
        let named = &self.port(port).named;
        named.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count)
    }

    /// What happened at `port` in `[from, to)`.
    pub fn events(
        &self,
        port: u8,
        (from, to): (Instant, Instant),
    ) -> impl Iterator<Item = &DeviceEvent> {
        let here = self.events.iter().filter(move |event| event.port.get() == port);
        here.filter(move |event| event.at >= from && event.at < to)
    }

    /// Why frames ended at `port` in `[from, to)`.
    pub fn dropped(&self, port: u8, window: (Instant, Instant)) -> Vec<DropReason> {
        let reason = |event: &DeviceEvent| match event.kind {
            EventKind::Drop { reason, .. } => Some(reason),
            _ => None,
        };
        self.events(port, window).filter_map(reason).collect()
    }

    /// When things of this kind happened at `port`.
    pub fn events_of(&self, port: u8, is: impl Fn(&EventKind) -> bool) -> Vec<Instant> {
        let here = self.events(port, ALWAYS);
        here.filter(|event| is(&event.kind)).map(|event| event.at).collect()
    }

    /// The counters of one lane or priority of `port`.
    pub fn lane(&self, port: u8, lane: u8) -> LaneCounters {
        self.port(port).lanes[usize::from(lane)].counters
    }

    /// Octets that one lane or priority of `port` held at each step that read the counters.
    pub fn held(&self, port: u8, lane: u8) -> Vec<u64> {
        let place = |reading: &DeviceReading| {
            let lanes = &reading.ports[usize::from(port) - 1].lanes;
            lanes[usize::from(lane)].counters.in_queue.value
        };
        self.samples.iter().map(place).collect()
    }

    /// How many data frames of `priority` left by `port` in the window.
    pub fn data_within(&self, port: u8, priority: u8, window: (Instant, Instant)) -> u64 {
        self.data(port, priority).within(window).total()
    }

    /// How many packets of virtual lane `lane` left by `port` in the window.
    pub fn on_lane(&self, port: u8, lane: u8, window: (Instant, Instant)) -> u64 {
        self.packets(port).on_lane(lane).within(window).total()
    }

    /// The losses of `port`, as in "vcrc 1, mtu 2"; "nothing" if nothing.
    pub fn lost(&self, port: u8) -> String {
        let all = self.port(port).drops.iter().filter(|(_, count)| *count > 0);
        let all: Vec<_> = all.map(|(reason, count)| format!("{} {count}", reason.name())).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }

    /// Holds if no port but those in `but` has lost anything.
    ///
    /// # Errors
    /// The first that has, and what.
    pub fn nothing_lost(&self, but: &[u8]) -> Result<()> {
        let ports = 1..=self.reading.ports.len() as u8;
        for port in ports.filter(|port| !but.contains(port)) {
            let lost = self.lost(port);
            ensure!(lost == "nothing", "port {port} has lost {lost}");
        }
        Ok(())
    }
}

impl Sightings for Record {
    fn sightings(&self) -> &[Seen] {
        &self.seen
    }
}
