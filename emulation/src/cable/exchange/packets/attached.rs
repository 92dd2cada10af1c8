//! The interface at an attached port: whether it can send now, and what is dropped while it cannot.
//!
//! A port follows the name of its interface. An interface that was removed and made again has another index, to
//! which the port's socket is bound anew.

use super::frame_socket::FrameSocket;
use crate::cable::FrameTally;
use crate::cable::link_watch::{LinkFacts, LinkNews};
use crate::cable::packet_socket::PacketSocket;
use crate::clock::{Clock, monotonic_ns};
use proto::events::{CarrierLoss, EventKind};
use proto::frame::Frame;
use proto::units::{Bytes, Instant};

/// Octets of the addresses and the EtherType, which the MTU does not include.
const ETHERNET: usize = 14;
/// Octets of an 802.1Q tag, which the MTU does not include either.
const TAG: usize = 4;

/// Interval at which a frame is offered to a program that does not read or is not there, in nanoseconds.
const PROBE_NS: u64 = 1_000_000;

/// An attached interface, or the cable to another program.
#[derive(Debug)]
pub(super) struct AttachedInterface {
    /// The interface's name; none for a program.
    name: Option<String>,
    /// Frames wait so long for a program that does not read, in nanoseconds; then they are dropped.
    patience_ns: u64,
    /// When a frame was last offered to the program, in monotonic nanoseconds.
    probed_ns: u64,
    /// Since when the program has not read, if so.
    full_since_ns: Option<u64>,
    /// Its index; none while there is no such interface.
    index: Option<u32>,
    /// Why it cannot send, and since when.
    loss: Option<(CarrierLoss, Instant)>,
    /// Its MTU in octets.
    mtu: usize,
    /// The list in progress contains it.
    is_listed: bool,
    /// Frames that were dropped since the loss began.
    dropped_now: u64,
    /// Frames that were dropped because it could not send.
    pub away: FrameTally,
    /// Frames that were dropped because they are longer than its MTU permits.
    pub too_long: FrameTally,
}

/// What a message of the kernel means for a port.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Consequence {
    /// Bind the socket to the interface of this index.
    pub bind: Option<u32>,
    /// Drop the frames that wait.
    pub drops: bool,
    /// The interface takes frames of this MTU from now on.
    pub mtu: Option<usize>,
    /// Events to report.
    pub events: [Option<EventKind>; 2],
}

impl AttachedInterface {
    /// What `socket` leads to, thought to be up until something else is known.
    pub fn new(socket: &FrameSocket) -> AttachedInterface {
        let (interface, patience_ns) = match socket {
            FrameSocket::Interface(socket) => (Some(socket), 0),
            FrameSocket::Peer(socket) => (None, socket.patience_ns),
        };
        AttachedInterface {
            name: interface.map(|socket| socket.name().to_owned()),
            patience_ns,
            probed_ns: 0,
            full_since_ns: None,
            index: interface.map(PacketSocket::index),
            loss: None,
            mtu: usize::MAX,
            is_listed: false,
            dropped_now: 0,
            away: FrameTally::default(),
            too_long: FrameTally::default(),
        }
    }

    /// Why it cannot send.
    pub fn loss(&self) -> Option<CarrierLoss> {
        self.loss.map(|(loss, _)| loss)
    }

    /// Its MTU in octets, once it is known.
    pub fn mtu(&self) -> Option<usize> {
        (self.mtu != usize::MAX).then_some(self.mtu)
    }

    /// Counts `frame` and returns true if the interface cannot send it.
    pub fn refuses(&mut self, frame: &Frame) -> bool {
        if self.loss.is_some() && !self.is_probe_due() {
            self.drop(frame);
            return true;
        }
        let is_tagged = matches!(frame.octets.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
        let headers = ETHERNET + if is_tagged { TAG } else { 0 };
        let is_too_long = frame.octets.len() > self.mtu.saturating_add(headers);
        if is_too_long {
            self.too_long.count(frame);
        }
        is_too_long
    }

    /// Whether a frame is to be offered to a program that was not there.
    fn is_probe_due(&mut self) -> bool {
        if self.loss() != Some(CarrierLoss::NoPeer) {
            return false;
        }
        let now_ns = monotonic_ns();
        let is_due = now_ns >= self.probed_ns + PROBE_NS;
        if is_due {
            self.probed_ns = now_ns;
        }
        is_due
    }

    /// The program has taken a frame or sent one.
    pub fn find_peer(&mut self, clock: &Clock) -> Consequence {
        self.full_since_ns = None;
        if self.loss() != Some(CarrierLoss::NoPeer) {
            return Consequence::default();
        }
        self.change(None, clock.now())
    }

    /// The program did not take a frame: it is not there, or `is_full` and does not read. Frames that wait are to be
    /// dropped if it does not read for long.
    pub fn miss_peer(&mut self, is_full: bool, now: Instant) -> Consequence {
        if self.name.is_some() {
            return Consequence::default();
        }
        let now_ns = monotonic_ns();
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        if is_full && self.loss.is_none() && now_ns < since_ns + self.patience_ns {
            return Consequence::default();
        }
        Consequence { drops: true, ..self.change(Some(CarrierLoss::NoPeer), now) }
    }

    /// Counts a frame that is dropped because the interface cannot send.
    pub fn drop(&mut self, frame: &Frame) {
        self.dropped_now += 1;
        self.away.count(frame);
    }

    /// The binding to the interface that [`Consequence::bind`] names has failed: it is gone again.
    pub fn lose(&mut self, now: Instant) -> Consequence {
        self.index = None;
        self.change(Some(CarrierLoss::Removed), now)
    }

    /// Takes a message of the kernel.
    pub fn observe(&mut self, news: LinkNews<'_>, now: Instant) -> Consequence {
        match news {
            _ if self.name.is_none() => {}
            LinkNews::Begin => self.is_listed = false,
            LinkNews::Complete if !self.is_listed => return self.lose(now),
            LinkNews::Removed(index) if self.index == Some(index) => return self.lose(now),
            LinkNews::Present(name, facts) if self.is_same(name, facts.index) => {
                return self.meet(facts, now);
            }
            _ => {}
        }
        Consequence::default()
    }

    /// Whether the interface with this name and index is the one to follow: one with the name, or the old one under
    /// another name.
    fn is_same(&self, name: &str, index: u32) -> bool {
        self.name.as_deref() == Some(name) || self.index == Some(index)
    }

    fn meet(&mut self, facts: LinkFacts, now: Instant) -> Consequence {
        self.is_listed = true;
        let bind = (self.index != Some(facts.index)).then_some(facts.index);
        self.index = Some(facts.index);
        let mtu = (self.mtu != facts.mtu).then_some(facts.mtu);
        let before = self.mtu();
        self.mtu = facts.mtu;
        let loss = match facts {
            LinkFacts { is_up: false, .. } => Some(CarrierLoss::Down),
            LinkFacts { has_carrier: false, .. } => Some(CarrierLoss::NoCarrier),
            _ => None,
        };
        let mut consequence = Consequence { bind, mtu, ..self.change(loss, now) };
        if mtu.is_some() && before.is_some() {
            let mtu = Bytes::new(facts.mtu as u64);
            consequence.events[1] = Some(EventKind::InterfaceMtu { mtu });
        }
        consequence
    }

    fn change(&mut self, loss: Option<CarrierLoss>, now: Instant) -> Consequence {
        let before = self.loss;
        if self.loss() == loss {
            return Consequence::default();
        }
        let since = before.map_or(now, |(_, since)| since);
        self.loss = loss.map(|loss| (loss, since));
        let event = match loss {
            Some(cause) => EventKind::CarrierDown { cause },
            None => EventKind::CarrierUp {
                away: now.since(since),
                dropped: std::mem::take(&mut self.dropped_now),
            },
        };
        Consequence { drops: loss.is_some(), events: [Some(event), None], ..Consequence::default() }
    }
}
