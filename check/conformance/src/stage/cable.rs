//! The cable of one neighbour: it numbers and stamps frames, or takes the number and stamp of a label.

use emulation::cable::FrameTally;
use emulation::cable::shim::{SendingEnd, Shim};
use proto::frame::FrameKind;
use proto::units::{Duration, Instant};
use testbed::Label;

/// The cable of one neighbour.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) link: u32,
    pub(super) end: SendingEnd,
    pub(super) frame_time: Duration,
    pub(super) sequence: u32,
    last: Instant,
    pub(super) sent: FrameTally,
}

impl Cable {
    /// The end `end` of cable `link`, unused so far.
    pub(super) fn new(link: u32, end: SendingEnd, frame_time: Duration) -> Cable {
        Cable {
            link,
            end,
            frame_time,
            sequence: 0,
            last: Instant::ZERO,
            sent: FrameTally::default(),
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
        let own = label.epoch.is_none_or(|other| other == epoch);
        let sequence = match label.sequence {
            Some(sequence) => sequence,
            None if !own => self.sequence,
            None => self.next_number(kind, octets),
        };
        Shim {
            kind,
            flags: if label.aborted { Shim::ABORTED } else { 0 },
            end: self.end,
            link: self.link,
            epoch: label.epoch.unwrap_or(epoch),
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
