//! What a stage leaves: the device's own account, and what its neighbours saw.

use super::case::{Failure, Level, ensure};
use super::shared::Evidence;
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::inbox::LineCounts;
use emulation::driver::Report;
use emulation::fidelity::Fidelity;
use proto::counters::{DeviceReading, DropReason, PortReading};
use proto::events::{DeviceEvent, EventKind};
use proto::frame::FrameKind;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::infiniband::{FlowControlPacket, Packet};
use testbed::frames::ethernet::{control_of, priority, quanta_for};
use testbed::frames::is_packet;
use testbed::{Neighbour, Seen};

/// One run of one device among played neighbours.
#[derive(Debug)]
pub struct Record {
    /// The device's counters at the stop.
    pub reading: DeviceReading,
    /// What has happened in it.
    pub events: Vec<DeviceEvent>,
    /// What the device has sent, in the order of arrival.
    pub seen: Vec<Seen>,
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
    fn trusted(&self) -> Result<(), Failure> {
        let Some(Live { fidelity, .. }) = &self.live else { return Ok(()) };
        ensure(fidelity.ok, String::new).map_err(|_| {
            let (reasons, dilation) = (fidelity.reasons.join("; "), fidelity.suggested_dilation);
            Failure::Inconclusive(format!("{reasons}; dilation {dilation} should hold"))
        })
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
    pub fn live(&self) -> Result<&Live, Failure> {
        Ok(self.live.as_ref().ok_or_else(|| "this run has no daemon".to_owned())?)
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
        from: Instant,
        to: Instant,
    ) -> impl Iterator<Item = &DeviceEvent> {
        let here = self.events.iter().filter(move |event| event.port.get() == port);
        here.filter(move |event| event.at >= from && event.at < to)
    }

    /// Why frames ended at `port` in `[from, to)`.
    pub fn dropped(&self, port: u8, from: Instant, to: Instant) -> Vec<DropReason> {
        let reason = |event: &DeviceEvent| match event.kind {
            EventKind::Drop { reason, .. } => Some(reason),
            _ => None,
        };
        self.events(port, from, to).filter_map(reason).collect()
    }

    /// Packets that left by `port`.
    pub fn packets(&self, port: u8) -> impl Iterator<Item = &Seen> {
        self.line(port).filter(|seen| is_packet(&seen.frame))
    }

    /// Every frame that left by `port`.
    pub fn line(&self, port: u8) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.port == port)
    }

    /// Packets that left by any port.
    pub fn all_packets(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| is_packet(&seen.frame))
    }

    /// Flow-control packets that left by `port` about `lane`.
    pub fn flow_control(
        &self,
        port: u8,
        lane: u8,
    ) -> impl Iterator<Item = (&Seen, FlowControlPacket)> {
        let links = self.seen.iter().filter(|seen| seen.frame.kind == FrameKind::InfinibandLink);
        let here = links.filter(move |seen| seen.port == port);
        let here = here.filter_map(|seen| {
            FlowControlPacket::parse(&seen.frame.octets).ok().map(|packet| (seen, packet))
        });
        here.filter(move |(_, packet)| packet.virtual_lane.get() == lane)
    }

    /// Packets of `lane` that left by `port` in `[from, to)`.
    pub fn on_lane(&self, port: u8, lane: u8, from: Instant, to: Instant) -> usize {
        let of_lane = |seen: &&Seen| seen.frame.octets.first().is_some_and(|o| o >> 4 == lane);
        self.between(port, from, to).filter(of_lane).count()
    }

    /// Packets that left by `port` in `[from, to)`.
    pub fn between(&self, port: u8, from: Instant, to: Instant) -> impl Iterator<Item = &Seen> {
        self.packets(port).filter(move |seen| seen.at >= from && seen.at < to)
    }

    /// PSNs of the packets of `lane` that left by `port` in `[from, to)`, in order.
    pub fn numbers(&self, port: u8, lane: u8, from: Instant, to: Instant) -> Vec<u32> {
        let parsed = self.between(port, from, to);
        let parsed = parsed.filter_map(|seen| Packet::parse(&seen.frame.octets).ok());
        let of_lane = parsed.filter(|packet| packet.lrh.virtual_lane.get() == lane);
        of_lane.filter_map(|packet| packet.bth.map(|bth| bth.psn.get())).collect()
    }

    /// Time in which a ready frame of `lane` was forbidden to leave by `port`.
    pub fn held(&self, port: u8, lane: u8) -> Duration {
        let found = self.port(port).lanes.iter().find(|reading| reading.tc == lane);
        Duration::from_ps(found.map_or(0, |reading| reading.counters.hold_ps))
    }

    /// When things of this kind happened at `port`.
    pub fn told(&self, port: u8, is: impl Fn(&EventKind) -> bool) -> Vec<Instant> {
        let here = self.events(port, Instant::ZERO, Instant::NEVER);
        here.filter(|event| is(&event.kind)).map(|event| event.at).collect()
    }

    /// MAC control that left by `port`.
    pub fn control(&self, port: u8) -> impl Iterator<Item = &Seen> {
        self.line(port).filter(|seen| control_of(&seen.frame).is_some())
    }

    /// The pauses sent by `port` for `priority`, and when they left: quanta, 0 for XON.
    pub fn asked(&self, port: u8, priority: u8) -> Vec<(Instant, u16)> {
        let here = self.line(port);
        here.filter_map(|seen| Some((seen.at, quanta_for(&seen.frame, priority)?))).collect()
    }

    /// Data frames of `priority`, by their DSCP, that left by `port`.
    pub fn data(&self, port: u8, of: u8) -> impl Iterator<Item = &Seen> {
        self.packets(port).filter(move |seen| priority(&seen.frame) == Some(of))
    }

    /// How many of them left in `[from, to)`.
    pub fn data_within(&self, port: u8, priority: u8, (from, to): (Instant, Instant)) -> usize {
        self.data(port, priority).filter(|seen| seen.at >= from && seen.at < to).count()
    }

    /// When their first bits left, on a line of `rate`.
    pub fn starts(&self, port: u8, priority: u8, rate: BitRate) -> Vec<Instant> {
        self.data(port, priority).map(|seen| start(seen, rate)).collect()
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
    pub fn nothing_lost(&self, but: &[u8]) -> Result<(), Failure> {
        let ports = 1..=self.reading.ports.len() as u8;
        for port in ports.filter(|port| !but.contains(port)) {
            let lost = self.lost(port);
            ensure(lost == "nothing", || format!("port {port} has lost {lost}"))?;
        }
        Ok(())
    }
}

/// When the first bit of a frame left, on a line of `rate`.
pub fn start(seen: &Seen, rate: BitRate) -> Instant {
    Instant::from_ps(seen.at.as_ps() - seen.frame.line_size().time_at(rate).as_ps())
}
