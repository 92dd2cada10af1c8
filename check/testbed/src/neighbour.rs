//! One played neighbour: the far end of one cable of the device under test.
//!
//! On InfiniBand it trains the link and sends the flow control of [`Credits`]. On Ethernet it sends
//! nothing by itself: scripts pause the device and look at the pauses it sends.

use crate::credits::{Credits, FcMode, Lane};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::units::{BitRate, Duration, Instant};
use std::collections::VecDeque;

/// The far end of one cable.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Rate of its line; without one, frames take no time.
    pub rate: Option<BitRate>,
    /// Delay of the cable, either way.
    pub delay: Duration,
    /// When its line is free.
    pub free: Instant,
    /// Packets that leave when line and credit permit, none before its instant.
    pub waiting: VecDeque<(Instant, BytesMut)>,
    credits: Option<Credits>,
}

impl Neighbour {
    /// A neighbour of InfiniBand if it has credits, else of Ethernet.
    pub fn new(rate: Option<BitRate>, delay: Duration, credits: Option<Credits>) -> Neighbour {
        Neighbour { rate, delay, free: Instant::ZERO, waiting: VecDeque::new(), credits }
    }

    /// Its credits.
    ///
    /// # Panics
    /// If it is one of Ethernet.
    pub fn credits(&mut self) -> &mut Credits {
        self.credits.as_mut().expect("a case of InfiniBand has neighbours of InfiniBand")
    }

    /// Its accounts by data lane; none on Ethernet.
    pub fn lanes(&self) -> &[Lane] {
        self.credits.as_ref().map_or(&[], |credits| &credits.lanes)
    }

    /// The format of its packets.
    pub const fn kind(&self) -> FrameKind {
        if self.credits.is_some() { FrameKind::Infiniband } else { FrameKind::Ethernet }
    }

    /// Its line takes `octets` of this kind from `earliest` on; when their last bit leaves.
    pub fn occupy(&mut self, kind: FrameKind, octets: &[u8], earliest: Instant) -> Instant {
        let size = kind.line_size(octets.len());
        let took = self.rate.map_or(Duration::ZERO, |rate| size.time_at(rate));
        self.free = self.free.max(earliest) + took;
        self.free
    }

    /// When it sends flow control by itself next.
    pub fn due(&self) -> Instant {
        match &self.credits {
            Some(credits) if credits.mode != FcMode::Off => credits.due,
            _ => Instant::NEVER,
        }
    }

    /// The flow-control packets that it sends by itself at `now`.
    pub fn words(&mut self, now: Instant) -> Vec<BytesMut> {
        let words = self.credits.as_mut().map(|credits| credits.words(now)).unwrap_or_default();
        words.iter().map(|packet| BytesMut::from(&packet.to_octets()[..])).collect()
    }

    /// When the first waiting packet may leave; never while nothing waits or credit is short.
    pub fn next(&self) -> Instant {
        match self.waiting.front() {
            Some((earliest, octets)) if self.may_send(octets) => self.free.max(*earliest),
            _ => Instant::NEVER,
        }
    }

    /// It sends a packet.
    pub fn on_send(&mut self, octets: &[u8]) {
        if let Some(credits) = &mut self.credits {
            credits.on_send(octets);
        }
    }

    /// Whether it has credit for this packet.
    pub fn may_send(&self, octets: &[u8]) -> bool {
        self.credits.as_ref().is_none_or(|credits| credits.may_send(octets))
    }

    /// It receives a frame. After the first flow control of a new peer its own next packet is due at once.
    pub fn receive(&mut self, kind: FrameKind, octets: &[u8]) {
        if let Some(credits) = &mut self.credits
            && credits.receive(kind, octets)
        {
            credits.due = Instant::ZERO;
        }
    }
}
