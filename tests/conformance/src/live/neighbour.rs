//! One neighbour that a tester plays: the far end of one cable of the device under test.
//!
//! | | what it says by itself | what it obeys |
//! |---|---|---|
//! | InfiniBand | what [`Credits`] says | credit, for what is [`enqueued`](super::tester::Tester::enqueue) |
//! | Ethernet | nothing: a script pauses the device | nothing: a script looks at what was asked |

use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::units::{BitRate, Instant};

pub mod credits;

pub use credits::{Credits, Lane, OFFER_MAX, Voice, cost};

/// The far end of one cable.
#[derive(Clone, Debug)]
pub struct Neighbour {
    rate: BitRate,
    /// When the last bit of what it has sent leaves.
    free: Instant,
    /// What it does besides, by technology.
    pub manner: Manner,
}

/// What a neighbour does without being told.
#[derive(Clone, Debug)]
pub enum Manner {
    /// InfiniBand.
    Credits(Credits),
    /// Ethernet.
    Mute,
}

impl Neighbour {
    /// Somebody at a line of `rate` who has said and heard nothing yet.
    pub fn new(rate: BitRate, manner: Manner) -> Neighbour {
        Neighbour { rate, free: Instant::ZERO, manner }
    }

    /// Its credits.
    ///
    /// # Panics
    /// If it is one of Ethernet.
    pub fn credits(&mut self) -> &mut Credits {
        match &mut self.manner {
            Manner::Credits(credits) => credits,
            Manner::Mute => panic!("a case of InfiniBand has neighbours of InfiniBand"),
        }
    }

    /// Its accounts by data lane; none on Ethernet.
    pub fn lanes(&self) -> &[Lane] {
        match &self.manner {
            Manner::Credits(credits) => &credits.lanes,
            Manner::Mute => &[],
        }
    }

    /// In which format it speaks, but for flow control of InfiniBand.
    pub const fn kind(&self) -> FrameKind {
        match self.manner {
            Manner::Credits(_) => FrameKind::Infiniband,
            Manner::Mute => FrameKind::Ethernet,
        }
    }

    /// Its own line takes `octets` of this kind from `earliest` on; when their last bit leaves.
    pub fn occupy(&mut self, kind: FrameKind, octets: &[u8], earliest: Instant) -> Instant {
        let start = self.free.max(earliest);
        self.free = start + kind.line_size(octets.len()).time_at(self.rate);
        self.free
    }

    /// Since when its line is free.
    pub const fn free(&self) -> Instant {
        self.free
    }

    /// When it says something by itself next; never if it does not.
    pub fn due(&self) -> Instant {
        match &self.manner {
            Manner::Credits(credits) if credits.voice != Voice::Silent => credits.due,
            _ => Instant::NEVER,
        }
    }

    /// What it says by itself at `now`.
    pub fn words(&mut self, now: Instant) -> Vec<(FrameKind, BytesMut)> {
        let Manner::Credits(credits) = &mut self.manner else { return Vec::new() };
        let words = credits.words(now).into_iter();
        let octets = words.map(|packet| BytesMut::from(&packet.to_octets()[..]));
        octets.map(|octets| (FrameKind::InfinibandLink, octets)).collect()
    }

    /// It sends a packet.
    pub fn on_send(&mut self, octets: &[u8]) {
        if let Manner::Credits(credits) = &mut self.manner {
            credits.on_send(octets);
        }
    }

    /// Whether it may send this packet.
    pub fn may_send(&self, octets: &[u8]) -> bool {
        match &self.manner {
            Manner::Credits(credits) => credits.may_send(octets),
            Manner::Mute => true,
        }
    }

    /// It hears something; what it says next may be due at once for it.
    pub fn hear(&mut self, kind: FrameKind, octets: &[u8]) {
        if let Manner::Credits(credits) = &mut self.manner
            && credits.hear(kind, octets)
        {
            // Somebody new is there: what there is to say is said again, now.
            credits.due = Instant::ZERO;
        }
    }
}
