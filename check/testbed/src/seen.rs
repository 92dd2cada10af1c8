//! What a device has sent, and words to choose from it: by port, kind and time.

use crate::frames::ethernet::{control_of, priority, quanta_for};
use crate::frames::is_packet;
use proto::frame::{Frame, FrameKind};
use proto::units::{BitRate, Instant};
use proto::wire::infiniband::{FlowControlPacket, Packet};

/// A frame that the device under test has sent.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The device's port, counted from 1.
    pub port: u8,
    /// When its last bit left.
    pub at: Instant,
    /// When the neighbour received it.
    pub received: Instant,
    /// The frame.
    pub frame: Frame,
}

impl Seen {
    /// When its first bit left, on a line of `rate`.
    pub fn start(&self, rate: BitRate) -> Instant {
        Instant::from_ps(self.at.as_ps() - self.frame.line_size().time_at(rate).as_ps())
    }
}

/// All frames that a device has sent, in the order in which its neighbours received them.
pub trait Sightings {
    /// All of them.
    fn sightings(&self) -> &[Seen];

    /// Every frame that left by `port`.
    fn line(&self, port: u8) -> impl Iterator<Item = &Seen> + Clone {
        self.sightings().iter().filter(move |seen| seen.port == port)
    }

    /// Packets that left by any port; flow control of links is left out.
    fn all_packets(&self) -> impl Iterator<Item = &Seen> + Clone {
        self.sightings().iter().filter(|seen| is_packet(&seen.frame))
    }

    /// Packets that left by `port`.
    fn packets(&self, port: u8) -> impl Iterator<Item = &Seen> + Clone {
        self.line(port).filter(|seen| is_packet(&seen.frame))
    }

    /// Data frames of `priority`, by their DSCP, that left by `port`.
    fn data(&self, port: u8, of: u8) -> impl Iterator<Item = &Seen> + Clone {
        self.packets(port).filter(move |seen| priority(&seen.frame) == Some(of))
    }

    /// Frames of MAC control that left by `port`.
    fn control(&self, port: u8) -> impl Iterator<Item = &Seen> + Clone {
        self.line(port).filter(|seen| control_of(&seen.frame).is_some())
    }

    /// The pauses for `priority` that left by `port`: when, and quanta (0 for XON).
    fn pauses(&self, port: u8, priority: u8) -> Vec<(Instant, u16)> {
        let read = |seen: &Seen| Some((seen.at, quanta_for(&seen.frame, priority)?));
        self.line(port).filter_map(read).collect()
    }

    /// Flow-control packets of `lane` that left by `port`, and when.
    fn flow_control(
        &self,
        port: u8,
        lane: u8,
    ) -> impl Iterator<Item = (Instant, FlowControlPacket)> + Clone {
        let links = self.line(port).filter(|seen| seen.frame.kind == FrameKind::InfinibandLink);
        let read =
            |seen: &Seen| Some((seen.at, FlowControlPacket::parse(&seen.frame.octets).ok()?));
        links.filter_map(read).filter(move |(_, packet)| packet.virtual_lane.get() == lane)
    }
}

/// Some of the frames that a device has sent.
pub trait Sent<'a>: Iterator<Item = &'a Seen> + Sized {
    /// Those whose last bit left in `[from, to)`.
    fn within(self, (from, to): (Instant, Instant)) -> impl Iterator<Item = &'a Seen> {
        self.filter(move |seen| seen.at >= from && seen.at < to)
    }

    /// Those whose last bit left at `from` or later.
    fn since(self, from: Instant) -> impl Iterator<Item = &'a Seen> {
        self.filter(move |seen| seen.at >= from)
    }

    /// Those of which `is` holds.
    fn that(self, is: impl Fn(&Frame) -> bool) -> impl Iterator<Item = &'a Seen> {
        self.filter(move |seen| is(&seen.frame))
    }

    /// Those on virtual lane `lane`.
    fn on_lane(self, lane: u8) -> impl Iterator<Item = &'a Seen> {
        self.that(move |frame| frame.octets.first().is_some_and(|octet| octet >> 4 == lane))
    }

    /// How many.
    fn total(self) -> u64 {
        self.count() as u64
    }

    /// When the last bit of each left.
    fn times(self) -> Vec<Instant> {
        self.map(|seen| seen.at).collect()
    }

    /// When the first bit of each left, on a line of `rate`.
    fn starts(self, rate: BitRate) -> Vec<Instant> {
        self.map(|seen| seen.start(rate)).collect()
    }

    /// When the first bit of the first left, on a line of `rate`; never if there is none.
    fn first_start(mut self, rate: BitRate) -> Instant {
        self.next().map_or(Instant::NEVER, |seen| seen.start(rate))
    }

    /// PSNs of packets of InfiniBand.
    fn psns(self) -> Vec<u32> {
        let psn = |seen: &Seen| Some(Packet::parse(&seen.frame.octets).ok()?.bth?.psn.get());
        self.filter_map(psn).collect()
    }
}

impl<'a, I: Iterator<Item = &'a Seen>> Sent<'a> for I {}
