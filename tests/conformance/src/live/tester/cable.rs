//! The cable of one neighbour: it numbers and stamps what is said on it, or as it is told to.

use bytes::BytesMut;
use emulation::cable::FrameTally;
use emulation::cable::shim::{SendingEnd, Shim};
use proto::frame::FrameKind;
use proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// What a record is sent with beyond its octets.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The shim's flags.
    pub flags: u8,
    /// The run it claims to belong to.
    pub epoch: u32,
    /// Its number on the line; the next one if none is given.
    pub sequence: Option<u32>,
    /// When its last bit left; as the line permits if none is given.
    pub stamp: Option<Instant>,
}

/// The cable of one neighbour.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) link: u32,
    pub(super) end: SendingEnd,
    pub(super) delay: Duration,
    pub(super) frame_time: Duration,
    pub(super) sequence: u32,
    last: Instant,
    pub(super) sent: FrameTally,
    /// Packets that leave when line and credit permit, none before its instant.
    pub(super) waiting: VecDeque<(Instant, BytesMut)>,
}

impl Cable {
    /// The end `end` of cable `link`, on which nothing was said.
    pub(super) fn new(link: u32, end: SendingEnd, delay: Duration, frame_time: Duration) -> Cable {
        Cable {
            link,
            end,
            delay,
            frame_time,
            sequence: 0,
            last: Instant::ZERO,
            sent: FrameTally::default(),
            waiting: VecDeque::new(),
        }
    }

    /// The shim of a record whose last bit leaves at `leaves` unless `label` knows better. One that
    /// takes the next number of the run `epoch` is counted as sent.
    pub(super) fn shim(
        &mut self,
        kind: FrameKind,
        octets: &[u8],
        label: Label,
        leaves: Instant,
        epoch: u32,
    ) -> Shim {
        let stamp = label.stamp.unwrap_or(leaves.max(self.last));
        self.last = self.last.max(stamp);
        let sequence = match label.sequence {
            Some(sequence) => sequence,
            None if label.epoch != epoch => self.sequence,
            None => self.next_number(kind, octets),
        };
        Shim {
            kind,
            flags: label.flags,
            end: self.end,
            link: self.link,
            epoch: label.epoch,
            sequence,
            length: octets.len() as u32,
            stamp,
        }
    }

    /// Takes the next number for a frame that counts as sent.
    pub(super) fn next_number(&mut self, kind: FrameKind, octets: &[u8]) -> u32 {
        self.sent.count_octets(kind, octets);
        let next = self.sequence.wrapping_add(1);
        std::mem::replace(&mut self.sequence, next)
    }
}
