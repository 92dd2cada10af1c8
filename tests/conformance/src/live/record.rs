//! What a stage brought back: the daemon's own account, and what its neighbours saw.

use super::neighbour::Neighbour;
use super::tester::Seen;
use crate::case::Failure;
use emulation::cable::exchange::ExchangeReport;
use emulation::cable::inbox::LineCounts;
use emulation::driver::Report;
use emulation::fidelity::Fidelity;
use proto::counters::{DeviceReading, DropReason, PortReading};
use proto::events::{DeviceEvent, EventKind};
use proto::frame::{Frame, FrameKind};
use proto::units::{Duration, Instant};
use proto::wire::ethernet::MacControl;
use proto::wire::infiniband::FlowControlPacket;

pub mod ethernet;

/// Whether it is a packet, and not flow control of its link.
fn is_packet(frame: &Frame) -> bool {
    match frame.kind {
        FrameKind::Infiniband => true,
        FrameKind::InfinibandLink => false,
        FrameKind::Ethernet => !MacControl::is_announced(&frame.octets),
    }
}

/// One run of one daemon among played neighbours.
#[derive(Debug)]
pub struct Record {
    /// The daemon's account.
    pub report: Report,
    /// Whether the host kept up, daemon and tester together.
    pub fidelity: Fidelity,
    /// The tester's account of its cables.
    pub exchange: ExchangeReport,
    /// What the device has sent, in the order in which it came.
    pub seen: Vec<Seen>,
    /// By port: how the neighbour there stands at the end.
    pub neighbours: Vec<Neighbour>,
    /// The device's node.
    pub device: usize,
}

impl Record {
    /// The record, if the host kept up.
    ///
    /// # Errors
    /// Why it did not.
    pub fn trusted(&self) -> Result<&Record, Failure> {
        if self.fidelity.ok {
            return Ok(self);
        }
        let reasons = self.fidelity.reasons.join("; ");
        let dilation = self.fidelity.suggested_dilation;
        Err(Failure::Inconclusive(format!("{reasons}; dilation {dilation} should hold")))
    }

    /// The device's counters at the stop.
    pub fn device(&self) -> &DeviceReading {
        &self.report.recording.last[0]
    }

    /// The counters of one port, counted from 1.
    pub fn port(&self, port: u8) -> &PortReading {
        &self.device().ports[usize::from(port) - 1]
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
        let events = self.report.recording.events.events.iter().map(|logged| &logged.event);
        let here = events.filter(move |event| event.port.get() == port);
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
        let here = self.seen.iter().filter(move |seen| seen.port == port);
        here.filter(|seen| is_packet(&seen.frame))
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
        let packets = self.packets(port).filter(|seen| seen.at >= from && seen.at < to);
        packets.filter(of_lane).count()
    }

    /// The account of the line by which `port` receives.
    pub fn line(&self, port: u8) -> LineCounts {
        let sent = self.exchange.sent.get(usize::from(port) - 1);
        let received = &self.report.exchange.received;
        let line = sent.and_then(|sent| received.iter().find(|line| line.link == sent.link));
        line.map(|line| line.counts).unwrap_or_default()
    }

    /// Time in which a ready frame of `lane` was forbidden to leave by `port`.
    pub fn held(&self, port: u8, lane: u8) -> Duration {
        let lanes = &self.port(port).lanes;
        let found = lanes.iter().find(|reading| reading.tc == lane);
        Duration::from_ps(found.map_or(0, |reading| reading.counters.hold_ps))
    }
}
