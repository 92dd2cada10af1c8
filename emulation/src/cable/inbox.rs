//! The receiving end of socket cables: every record is checked, and everything refused is counted.

use super::datagram::{Peer, Received};
use super::lines::{Incoming, Lines, line_index};
use super::sequence::{Arrival, SequenceWindow};
use super::shim::{SendingEnd, Shim, ShimError};
use super::{FrameTally, is_link_local};
use proto::frame::{Frame, FramePool};
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Octets of the longest frame. Jumbo Ethernet frames and 4096-octet InfiniBand packets are shorter.
pub(crate) const FRAME_MAX: usize = 16_384;

/// Datagrams and records that were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Datagrams from an address that is no process of this run.
    pub foreign: u64,
    /// Records that do not begin with the magic.
    pub magic: u64,
    /// Records of another shim version.
    pub version: u64,
    /// The version of the last of those, if there was one.
    pub other_version: Option<u8>,
    /// Records of an unknown frame kind.
    pub kind: u64,
    /// Records of another run.
    pub epoch: u64,
    /// Records of a line on which that process does not send to this one.
    pub link: u64,
    /// Records whose length exceeds the datagram, and datagrams shorter than a shim.
    pub truncated: u64,
    /// Records whose length exceeds [`FRAME_MAX`], and datagrams that did not fit the buffer.
    pub oversize: u64,
    /// Datagrams whose last record is followed by fewer octets than a shim.
    pub trailing: u64,
    /// Frames that need an offload that is not implemented.
    #[serde(default)]
    pub unfinished: u64,
}

impl Rejected {
    /// The sum of all reasons.
    pub const fn total(&self) -> u64 {
        let headers = self.magic + self.version + self.kind + self.epoch + self.link;
        let lengths = self.truncated + self.oversize + self.trailing;
        self.foreign + headers + lengths + self.unfinished
    }
}

/// The account of one receiving line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedLine {
    /// The link.
    pub link: u32,
    /// The end that sent.
    pub end: SendingEnd,
    /// Its counts.
    #[serde(flatten)]
    pub counts: LineCounts,
}

/// Frames of one line, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Delivered, including those that were overtaken.
    pub received: FrameTally,
    /// Accepted after the stop: these frames were on the cable at the stop.
    pub drained: FrameTally,
    /// Sequence numbers missing between those that arrived.
    pub lost: u64,
    /// Delivered after a frame with a higher sequence number.
    pub reordered: u64,
    /// Link packets that arrived after a later frame, and were dropped because their state is outdated.
    pub stale: u64,
    /// Duplicates, which were dropped.
    pub duplicates: u64,
}

#[derive(Clone, Debug, Default)]
struct LineState {
    window: SequenceWindow,
    counts: LineCounts,
}

/// An accepted frame.
#[derive(Debug)]
pub struct Accepted {
    /// The line on which it arrived.
    pub line: Incoming,
    /// The frame; its CRCs are unchecked, or known to be bad.
    pub frame: Frame,
    /// When its last bit arrives at the port: its stamp plus the link's delay.
    pub arrived: Instant,
}

/// The receiving end of all lines of one process.
#[derive(Debug)]
pub struct Inbox {
    epoch: u32,
    /// Number of each process by its address.
    peers: HashMap<Box<[u8]>, usize>,
    /// By line index.
    states: Vec<LineState>,
    rejected: Rejected,
    lost: u64,
    draining: bool,
}

impl Inbox {
    /// For `lines` lines of the run `epoch`, with the address of each process.
    pub fn new(epoch: u32, peers: &[Peer], lines: usize) -> Inbox {
        let number = |(process, peer): (usize, &Peer)| (peer.key().into(), process);
        Inbox {
            epoch,
            peers: peers.iter().enumerate().map(number).collect(),
            states: vec![LineState::default(); lines],
            rejected: Rejected::default(),
            lost: 0,
            draining: false,
        }
    }

    /// Splits a datagram and passes on each frame that can be delivered.
    pub fn accept(
        &mut self,
        datagram: Received<'_>,
        lines: &Lines,
        pool: &mut FramePool,
        deliver: impl FnMut(Accepted),
    ) {
        let Some(process) = self.peers.get(datagram.source).copied() else {
            self.rejected.foreign += 1;
            return;
        };
        if datagram.cut {
            self.rejected.oversize += 1;
            return;
        }
        let of_peer = |shim: &Shim| {
            lines.incoming(shim.link, shim.end).filter(|line| line.process == process).copied()
        };
        self.records(datagram.octets, of_peer, pool, deliver);
    }

    /// The same for records on a cable of their own, which only the far end of `line` can have sent.
    pub(crate) fn accept_from(
        &mut self,
        line: Incoming,
        octets: &[u8],
        pool: &mut FramePool,
        deliver: impl FnMut(Accepted),
    ) {
        let of_line =
            |shim: &Shim| ((shim.link, shim.end) == (line.link, line.end)).then_some(line);
        self.records(octets, of_line, pool, deliver);
    }

    /// Counts a frame without shim that arrived on `line`.
    pub(crate) fn accept_bare(&mut self, line: Incoming, frame: &Frame) {
        let counts = &mut self.states[line_index(line.link, line.end)].counts;
        let tally = if self.draining { &mut counts.drained } else { &mut counts.received };
        tally.count(frame);
    }

    /// Counts a refusal for a reason that the caller found.
    pub fn refuse(&mut self, reason: impl FnOnce(&mut Rejected) -> &mut u64) {
        *reason(&mut self.rejected) += 1;
    }

    fn records(
        &mut self,
        all: &[u8],
        admit: impl Fn(&Shim) -> Option<Incoming>,
        pool: &mut FramePool,
        mut deliver: impl FnMut(Accepted),
    ) {
        if all.is_empty() {
            self.rejected.truncated += 1;
            return;
        }
        let mut rest = all;
        while !rest.is_empty() {
            let whole = rest.len() == all.len();
            let Some((shim, octets, next)) = self.split(rest, whole) else { return };
            rest = next;
            let Some(line) = self.admit(&shim, &admit) else { continue };
            if self.judge(&shim, octets) {
                let mut copy = pool.take();
                copy.extend_from_slice(octets);
                let frame = Frame { octets: copy, kind: shim.kind, integrity: shim.integrity() };
                deliver(Accepted { line, frame, arrived: shim.stamp + line.delay });
            }
        }
    }

    /// Counts frames accepted from now on as drained.
    pub fn begin_drain(&mut self) {
        self.draining = true;
    }

    /// Refusals so far.
    pub const fn rejected(&self) -> Rejected {
        self.rejected
    }

    /// Sequence numbers missing so far, on all lines together.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The account of each line of the fabric that is received here.
    pub fn received<'a>(&'a self, lines: &'a Lines) -> impl Iterator<Item = ReceivedLine> + 'a {
        lines.all_incoming().filter(|line| !line.outside).map(|line| ReceivedLine {
            link: line.link,
            end: line.end,
            counts: self.states[line_index(line.link, line.end)].counts,
        })
    }

    /// Frames received by attached interfaces, before and after the stop.
    pub(crate) fn received_from_outside(&self, lines: &Lines) -> [FrameTally; 2] {
        let outside = lines.all_incoming().filter(|line| line.outside);
        outside.fold([FrameTally::default(); 2], |[received, drained], line| {
            let counts = self.states[line_index(line.link, line.end)].counts;
            [received.plus(counts.received), drained.plus(counts.drained)]
        })
    }

    /// The first record and the octets after it. `None` if the rest of the datagram is invalid: after a broken
    /// header the start of the next record is unknown.
    fn split<'a>(&mut self, octets: &'a [u8], whole: bool) -> Option<(Shim, &'a [u8], &'a [u8])> {
        let rejected = &mut self.rejected;
        let shim = match Shim::parse(octets) {
            Ok(shim) => shim,
            Err(error) => {
                match error {
                    ShimError::Truncated { .. } if whole => rejected.truncated += 1,
                    ShimError::Truncated { .. } => rejected.trailing += 1,
                    ShimError::Magic(_) => rejected.magic += 1,
                    ShimError::Version(version) => {
                        rejected.version += 1;
                        rejected.other_version = Some(version);
                    }
                    ShimError::Kind(_) => rejected.kind += 1,
                    ShimError::End(_) => rejected.link += 1,
                }
                return None;
            }
        };
        let length = shim.length as usize;
        let body = &octets[Shim::LENGTH..];
        if length > FRAME_MAX {
            rejected.oversize += 1;
            return None;
        }
        if length > body.len() {
            rejected.truncated += 1;
            return None;
        }
        let (frame, rest) = body.split_at(length);
        Some((shim, frame, rest))
    }

    /// The line of a record, if the record is of this run and `admit` returns a line.
    fn admit(
        &mut self,
        shim: &Shim,
        admit: impl Fn(&Shim) -> Option<Incoming>,
    ) -> Option<Incoming> {
        if shim.epoch != self.epoch {
            self.rejected.epoch += 1;
            return None;
        }
        let line = admit(shim);
        if line.is_none() {
            self.rejected.link += 1;
        }
        line
    }

    /// Counts a record by its sequence number. Returns whether its frame is to be delivered.
    fn judge(&mut self, shim: &Shim, octets: &[u8]) -> bool {
        let LineState { window, counts } = &mut self.states[line_index(shim.link, shim.end)];
        match window.observe(shim.sequence) {
            Arrival::Newer { missing } => {
                counts.lost += u64::from(missing);
                self.lost += u64::from(missing);
            }
            Arrival::Duplicate => {
                counts.duplicates += 1;
                return false;
            }
            Arrival::Late => {
                // It was counted as lost when a later one arrived.
                counts.lost -= 1;
                self.lost -= 1;
                if is_link_local(shim.kind, octets) {
                    counts.stale += 1;
                    return false;
                }
                counts.reordered += 1;
            }
        }
        let tally = if self.draining { &mut counts.drained } else { &mut counts.received };
        tally.count_octets(shim.kind, octets);
        true
    }
}

#[cfg(test)]
mod tests;
