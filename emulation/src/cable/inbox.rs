//! The receiving end of socket cables: every record is checked, and everything refused is counted.

use super::datagram::{Peer, Received};
use super::lines::{Incoming, Lines};
use super::sequence::{Arrival, SequenceWindow};
use super::shim::{SendingEnd, Shim, ShimError};
use super::{FrameTally, is_link_local};
use proto::frame::{Frame, FramePool};
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Octets of the longest frame. Jumbo Ethernet frames and 4096-octet InfiniBand packets are shorter.
pub(crate) const FRAME_MAX: usize = 16_384;

/// How far a stamp may be ahead of the worker's last look at the clock: far more than any transmission and any sleep
/// last, far less than for ever.
pub(crate) const BELIEVED_AHEAD: Duration = Duration::from_us(10_000_000);

/// Datagrams and records that were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Datagrams from an address that is not a process of this run.
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
    /// Promises without the run's secret.
    #[serde(default)]
    pub secret: u64,
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
    /// Records whose stamp is too far in the future.
    #[serde(default)]
    pub future: u64,
}

impl Rejected {
    /// Counts a record whose shim is invalid. `whole`: it is the first of its datagram.
    fn count(&mut self, error: ShimError, whole: bool) {
        *match error {
            ShimError::Truncated { .. } if whole => &mut self.truncated,
            ShimError::Truncated { .. } => &mut self.trailing,
            ShimError::Magic(_) => &mut self.magic,
            ShimError::Version(version) => {
                self.other_version = Some(version);
                &mut self.version
            }
            ShimError::Kind(_) => &mut self.kind,
            ShimError::End(_) => &mut self.link,
        } += 1;
    }

    /// The sum of all reasons.
    pub const fn total(&self) -> u64 {
        let headers = self.magic + self.version + self.kind + self.epoch + self.secret + self.link;
        let lengths = self.truncated + self.oversize + self.trailing;
        self.foreign + headers + lengths + self.unfinished + self.future
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
    /// Refusals so far.
    pub rejected: Rejected,
    /// Sequence numbers missing so far, on all lines together.
    pub lost: u64,
    /// Later stamps are not believed.
    pub latest_stamp: Instant,
    /// The run has stopped: frames that still arrive were on the cable at the stop.
    pub draining: bool,
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
            latest_stamp: Instant::ZERO + BELIEVED_AHEAD,
            draining: false,
        }
    }

    /// Forgets the process at an address, if it has one. Returns what the `lines` from it have brought.
    pub(super) fn forget(
        &mut self,
        process: usize,
        lines: impl Iterator<Item = usize>,
    ) -> Vec<(usize, FrameTally)> {
        self.peers.retain(|_, other| *other != process);
        let brought = |line: usize| (line, std::mem::take(&mut self.states[line]).counts.received);
        lines.map(brought).collect()
    }

    /// A process has this address.
    pub(super) fn expect(&mut self, process: usize, peer: &Peer) {
        self.peers.insert(peer.key().into(), process);
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
        let counts = &mut self.states[line.index()].counts;
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
            if shim.epoch != self.epoch {
                self.rejected.epoch += 1;
                continue;
            }
            let Some(line) = admit(&shim) else {
                self.rejected.link += 1;
                continue;
            };
            if shim.stamp > self.latest_stamp {
                self.rejected.future += 1;
                continue;
            }
            if self.judge(&line, &shim, octets) {
                let mut copy = pool.take();
                copy.extend_from_slice(octets);
                let integrity = shim.integrity();
                let frame = Frame { integrity, ..Frame::unchecked(shim.kind, copy) };
                deliver(Accepted { line, frame, arrived: shim.stamp + line.delay });
            }
        }
    }

    /// The account of each line of the fabric that is received here.
    pub fn received<'a>(&'a self, lines: &'a Lines) -> impl Iterator<Item = ReceivedLine> + 'a {
        lines.all_incoming().filter(|line| !line.outside).map(|line| ReceivedLine {
            link: line.link,
            end: line.end,
            counts: self.states[line.index()].counts,
        })
    }

    /// The counts of one line, by its index.
    pub(crate) fn counts(&self, line: usize) -> LineCounts {
        self.states[line].counts
    }

    /// The first record and the octets after it. `None` if the rest of the datagram is invalid: after a broken
    /// header the start of the next record is unknown.
    fn split<'a>(&mut self, octets: &'a [u8], whole: bool) -> Option<(Shim, &'a [u8], &'a [u8])> {
        let rejected = &mut self.rejected;
        let shim = Shim::parse(octets).map_err(|error| rejected.count(error, whole)).ok()?;
        let length = shim.length as usize;
        if length > FRAME_MAX {
            rejected.oversize += 1;
            return None;
        }
        let parts = octets[Shim::LENGTH..].split_at_checked(length);
        rejected.truncated += u64::from(parts.is_none());
        parts.map(|(frame, rest)| (shim, frame, rest))
    }

    /// Counts a record by its sequence number. Returns whether its frame is to be delivered.
    fn judge(&mut self, line: &Incoming, shim: &Shim, octets: &[u8]) -> bool {
        let LineState { window, counts } = &mut self.states[line.index()];
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
