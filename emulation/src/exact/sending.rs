//! The sending half of a channel: the datagram that is being filled, and those that the peer has not completed.

use super::digest::{DIGEST, digest};
use super::line_set::LineSet;
use super::promise::{Pledge, Promise, Secret};
use crate::cable::lines::Outgoing;
use crate::cable::shim::Shim;
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// Datagrams that a channel keeps at most. Frames to a neighbour that has not counted them hold this process back, so
/// those with frames are a handful.
pub(super) const DATAGRAMS_MAX: u64 = 1024;
/// Emptied buffers that are reused.
const SPARE_MAX: usize = 16;

/// What all channels of a process have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// This process.
    pub process: usize,
    /// It has one neighbour.
    pub is_leaf: bool,
    /// The run.
    pub epoch: u32,
    /// Its secret.
    pub secret: Secret,
    /// Its end: no promise goes beyond it.
    pub stop: Instant,
    /// The windows in which all processes run.
    pub window: Duration,
    /// Octets of the largest datagram.
    pub datagram_max: usize,
    /// Frames travel on cables of their own; the channel announces them.
    pub beside: bool,
}

/// What a process sends one neighbour.
#[derive(Debug)]
pub(super) struct Sending {
    identity: Identity,
    lines: LineSet,
    open: Vec<u8>,
    open_frames: u64,
    frames: u64,
    /// Datagrams that the peer has not completed, from number `first` on.
    kept: VecDeque<Vec<u8>>,
    first: u64,
    /// How many of `kept` the kernel has.
    handed: usize,
    /// What the last datagram pledged.
    pledged: Pledge,
    /// By number of a datagram with frames: when the first of them arrives. Without those that the peer's pledge counts.
    uncounted: VecDeque<(u64, Instant)>,
    spare: Vec<Vec<u8>>,
}

impl Sending {
    pub fn new(identity: Identity) -> Sending {
        Sending {
            identity,
            lines: LineSet::default(),
            open: vec![0; Promise::LENGTH],
            open_frames: 0,
            frames: 0,
            kept: VecDeque::new(),
            first: 0,
            handed: 0,
            pledged: Pledge::NOTHING,
            uncounted: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn add(&mut self, line: &Outgoing) {
        self.lines.add(line.index(), line.delay);
    }

    /// The number of the datagram that is being filled.
    pub fn number(&self) -> u64 {
        self.first + self.unanswered()
    }

    /// Puts a frame into the open datagram, or its announcement. `complete` is what this process has of the peer.
    ///
    /// # Errors
    /// If the frame breaks a promise, or there is no room.
    pub fn put(
        &mut self,
        line: &Outgoing,
        frame: &Frame,
        stamp: Instant,
        complete: u64,
    ) -> Result<(), String> {
        let body = if self.identity.beside { DIGEST } else { frame.octets_len() };
        let record = Shim::LENGTH + body;
        let until = self.pledged.until;
        if self.open_frames > 0 && self.open.len() + record > self.identity.datagram_max {
            // What the process will do once it has run this turn is not known yet.
            self.seal(Pledge { until, idle: until }, complete)?;
        }
        if stamp < until {
            return Err(format!("a frame leaves at {stamp:?}, before {until:?}"));
        }
        self.lines.note(line.index(), stamp);
        let shim = line.shim(frame, self.identity.epoch, self.frames as u32, stamp);
        self.open.extend_from_slice(&shim.emit());
        if self.identity.beside {
            self.open.extend_from_slice(&digest(&frame.octets).to_be_bytes());
        } else {
            frame.append_to(&mut self.open);
        }
        self.open_frames += 1;
        self.frames += 1;
        self.note_uncounted(stamp + line.delay);
        Ok(())
    }

    fn note_uncounted(&mut self, arrives: Instant) {
        let number = self.number();
        match self.uncounted.back_mut() {
            Some((last, first)) if *last == number => *first = arrives.min(*first),
            _ => self.uncounted.push_back((number, arrives)),
        }
    }

    /// When the first frame arrives that the peer's pledge does not count.
    pub fn first_uncounted(&self) -> Instant {
        self.uncounted.iter().fold(Instant::NEVER, |first, (_, arrives)| first.min(*arrives))
    }

    /// The peer's pledge counts the datagrams before number `complete`.
    pub fn count(&mut self, complete: u64) {
        while self.uncounted.pop_front_if(|(number, _)| *number < complete).is_some() {}
    }

    /// Whether the open datagram has frames.
    pub const fn has_frames(&self) -> bool {
        self.open_frames > 0
    }

    /// What the last datagram pledged.
    pub const fn pledged(&self) -> Pledge {
        self.pledged
    }

    /// When the next frame arrives at the peer at the earliest, if all later ones leave at or after `until`.
    pub fn bound(&self, until: Instant) -> Instant {
        self.lines.bound(until)
    }

    /// Closes the open datagram with a pledge.
    ///
    /// # Errors
    /// If the peer completes nothing of what is kept for it.
    pub fn seal(&mut self, pledge: Pledge, complete: u64) -> Result<(), String> {
        if self.unanswered() >= DATAGRAMS_MAX {
            return Err(format!("{DATAGRAMS_MAX} datagrams are unanswered"));
        }
        self.pledged = pledge;
        let head = self.head(0, complete);
        self.open[..Promise::LENGTH].copy_from_slice(&head);
        let mut next = self.spare.pop().unwrap_or_default();
        next.resize(Promise::LENGTH, 0);
        self.kept.push_back(std::mem::replace(&mut self.open, next));
        self.open_frames = 0;
        Ok(())
    }

    /// The record at the front of the datagram that is being filled.
    pub fn head(&self, flags: u8, complete: u64) -> [u8; Promise::LENGTH] {
        let Identity { process, epoch, secret, .. } = self.identity;
        let (number, frames) = (self.number(), self.frames);
        let flags = flags | if self.identity.is_leaf { Promise::LEAF } else { 0 };
        let (sender, pledge) = (process as u32, self.pledged);
        Promise { flags, sender, epoch, secret, pledge, number, complete, frames }.emit()
    }

    /// The datagrams that the kernel has not got yet.
    pub fn unsent(&self) -> impl Iterator<Item = &[u8]> {
        self.kept.range(self.handed..).map(Vec::as_slice)
    }

    /// Whether there are any.
    pub fn has_unsent(&self) -> bool {
        self.handed < self.kept.len()
    }

    /// The kernel took the first of them.
    pub fn sent_one(&mut self) {
        self.handed += 1;
    }

    /// Everything that is kept is to be sent again. Returns its number of datagrams.
    pub fn repeat(&mut self) -> u64 {
        std::mem::take(&mut self.handed) as u64
    }

    /// The number of the first datagram that the peer has not completed.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// How many datagrams the peer has not completed.
    pub fn unanswered(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Whether the peer has completed everything that was sent.
    pub fn is_acknowledged(&self) -> bool {
        self.kept.is_empty() && self.open_frames == 0
    }

    /// The peer has completed the datagrams before number `complete`.
    ///
    /// # Errors
    /// If they were not sent.
    pub fn acknowledge(&mut self, complete: u64) -> Result<(), String> {
        if complete > self.number() {
            return Err(format!("it has {complete} datagrams, and {} were sent", self.number()));
        }
        while self.first < complete {
            let mut octets = self.kept.pop_front().unwrap_or_default();
            if self.spare.len() < SPARE_MAX {
                octets.clear();
                self.spare.push(octets);
            }
            self.first += 1;
            self.handed = self.handed.saturating_sub(1);
        }
        Ok(())
    }
}
