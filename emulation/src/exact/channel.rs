//! Channels: everything that two neighbour processes send each other, in both directions.
//!
//! A channel is a numbered sequence of datagrams. Each begins with a [`Promise`], which holds when all datagrams up to it
//! are complete: all frames in it, or announced by it, have arrived. Datagrams ahead of their turn are held; those that
//! the peer has not completed are kept, to be sent again when it asks. No socket and no clock is here.

use super::digest::{DIGEST, digest};
use super::fault::Fault;
use super::line_set::LineSet;
use super::promise::{Promise, Secret};
use crate::cable::lines::{Incoming, Lines, Outgoing};
use crate::cable::shim::Shim;
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Datagrams that a channel holds, and keeps, at most. Neighbours are less than a cable's delay apart, which is a
/// handful of datagrams.
const DATAGRAMS_MAX: u64 = 1024;
/// Emptied buffers that are reused.
const SPARE_MAX: usize = 16;

/// What all channels of a process have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// This process.
    pub process: usize,
    /// The run.
    pub epoch: u32,
    /// Its secret.
    pub secret: Secret,
    /// Its end: no promise goes beyond it.
    pub stop: Instant,
    /// Octets of the largest datagram.
    pub datagram_max: usize,
    /// Frames travel on cables of their own; the channel announces them.
    pub beside: bool,
}

/// A frame that the peer sends by a cable of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    /// Number of the announcing datagram.
    pub number: u64,
    /// Its shim, of which the frame itself has none or another.
    pub shim: Shim,
    /// Its digest.
    pub digest: u64,
}

/// What a datagram has for this process.
pub(super) enum Content<'a> {
    /// A frame.
    Frame(Shim, &'a [u8]),
    /// A frame that comes by its own cable.
    Announced(Announced),
}

/// A datagram of which announced frames are missing, or which waits for one before it.
#[derive(Debug)]
struct Incomplete {
    until: Instant,
    missing: u32,
}

/// Both directions between this process and one neighbour.
#[derive(Debug)]
pub(super) struct Channel {
    identity: Identity,
    /// The neighbour's process; this one if its own devices are joined by sockets.
    pub peer: usize,
    /// One of the cables, for messages.
    cable: String,
    // What this process sends.
    outgoing: LineSet,
    open: Vec<u8>,
    open_frames: u64,
    frames_sent: u64,
    /// Datagrams that the peer has not completed, from number `first` on.
    kept: VecDeque<Vec<u8>>,
    first: u64,
    /// How many of `kept` the kernel has.
    handed: usize,
    promised: Instant,
    spare: Vec<Vec<u8>>,
    /// The kernel has no room for more at present.
    pub full: bool,
    // What it receives.
    incoming: LineSet,
    held: BTreeMap<u64, Vec<u8>>,
    /// The datagrams from `complete` on that have been read.
    incomplete: VecDeque<Incomplete>,
    complete: u64,
    frames_read: u64,
    /// The promise of the last datagram read: later frames must keep it.
    until_read: Instant,
    /// The promise that holds: that of the last complete datagram.
    until: Instant,
    /// It has asked, or sent something that it does not know to be complete.
    pub owes_answer: bool,
}

impl Channel {
    pub fn new(identity: Identity, peer: usize, cable: String) -> Channel {
        Channel {
            identity,
            peer,
            cable,
            outgoing: LineSet::default(),
            open: vec![0; Promise::LENGTH],
            open_frames: 0,
            frames_sent: 0,
            kept: VecDeque::new(),
            first: 0,
            handed: 0,
            promised: Instant::ZERO,
            spare: Vec::new(),
            full: false,
            incoming: LineSet::default(),
            held: BTreeMap::new(),
            incomplete: VecDeque::new(),
            complete: 0,
            frames_read: 0,
            until_read: Instant::ZERO,
            until: Instant::ZERO,
            owes_answer: false,
        }
    }

    /// Adds a line on which this process sends.
    pub fn add_outgoing(&mut self, line: &Outgoing) {
        self.outgoing.add(line.index(), line.delay);
    }

    /// Adds a line on which the peer sends.
    pub fn add_incoming(&mut self, line: &Incoming) {
        self.incoming.add(line.index(), line.delay);
    }

    /// The shortest delay of the lines on which the peer sends.
    pub fn shortest(&self) -> Duration {
        self.incoming.shortest()
    }

    fn fault(&self, what: String) -> Fault {
        Fault { peer: self.peer, cable: self.cable.clone(), what }
    }

    /// The peer has been silent for `seconds` while this process waits for it.
    pub fn silent(&self, seconds: u64) -> Fault {
        self.fault(format!("nothing came for {seconds} s, and this process waits for it"))
    }

    // ---- sending ----

    /// The number of the datagram that is being filled.
    pub fn number(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Puts a frame into the open datagram, or its announcement.
    ///
    /// # Errors
    /// If the device breaks the promise of this process.
    pub fn put(&mut self, line: &Outgoing, frame: &Frame, stamp: Instant) -> Result<(), Fault> {
        let body = if self.identity.beside { DIGEST } else { frame.octets_len() };
        let record = Shim::LENGTH + body;
        if self.open_frames > 0 && self.open.len() + record > self.identity.datagram_max {
            self.seal(self.promised)?;
        }
        if stamp < self.promised {
            let what = format!("a frame leaves at {stamp:?}, before {:?}", self.promised);
            return Err(self.fault(what));
        }
        self.outgoing.note(line.index(), stamp);
        let shim = line.shim(frame, self.identity.epoch, self.frames_sent as u32, stamp);
        self.open.extend_from_slice(&shim.emit());
        if self.identity.beside {
            self.open.extend_from_slice(&digest(&frame.octets).to_be_bytes());
        } else {
            frame.append_to(&mut self.open);
        }
        self.open_frames += 1;
        self.frames_sent += 1;
        Ok(())
    }

    /// Promises `until`: closes the open datagram if it has frames, or if the promise lets the peer run further. The
    /// last promise of a run is always given.
    ///
    /// # Errors
    /// If the peer completes nothing of what is kept for it.
    pub fn promise(&mut self, until: Instant) -> Result<bool, Fault> {
        let is_own = self.peer == self.identity.process;
        let raises = || self.outgoing.bound(until) > self.outgoing.bound(self.promised);
        let is_last = until == self.identity.stop && self.promised < until;
        let is_alone = self.open_frames == 0;
        if is_alone && (is_own || !(raises() || is_last)) {
            return Ok(false);
        }
        self.seal(until)?;
        Ok(is_alone)
    }

    fn seal(&mut self, until: Instant) -> Result<(), Fault> {
        if self.kept.len() as u64 >= DATAGRAMS_MAX {
            return Err(self.fault(format!("{DATAGRAMS_MAX} datagrams are unanswered")));
        }
        self.promised = until;
        let head = self.head(0, self.number());
        self.open[..Promise::LENGTH].copy_from_slice(&head);
        let mut next = self.spare.pop().unwrap_or_default();
        next.resize(Promise::LENGTH, 0);
        self.kept.push_back(std::mem::replace(&mut self.open, next));
        self.open_frames = 0;
        self.owes_answer = false;
        Ok(())
    }

    fn head(&self, flags: u8, number: u64) -> [u8; Promise::LENGTH] {
        let Identity { process, epoch, secret, .. } = self.identity;
        let (until, complete, frames) = (self.promised, self.complete, self.frames_sent);
        let sender = process as u32;
        Promise { flags, sender, epoch, secret, until, number, complete, frames }.emit()
    }

    /// A datagram without number, which acknowledges, and asks if `asks` is set.
    pub fn aside(&self, asks: bool) -> [u8; Promise::LENGTH] {
        self.head(Promise::ASIDE | if asks { Promise::ASKS } else { 0 }, self.number())
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

    /// Whether the peer has completed everything that was sent.
    pub fn is_acknowledged(&self) -> bool {
        self.kept.is_empty() && self.open_frames == 0
    }

    fn acknowledge(&mut self, complete: u64) -> Result<(), Fault> {
        if complete > self.number() {
            let what = format!("it has {complete} datagrams, and {} were sent", self.number());
            return Err(self.fault(what));
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

    // ---- receiving ----

    /// When the next frame of the peer arrives at the earliest.
    pub fn bound(&self) -> Instant {
        self.incoming.bound(self.until)
    }

    /// The same if the peer is this process, which sends nothing before `until`.
    pub fn own_bound(&self, until: Instant) -> Instant {
        if self.has_everything() { self.incoming.bound(until) } else { self.bound() }
    }

    /// With a channel to itself: everything that was sent has arrived.
    fn has_everything(&self) -> bool {
        self.is_acknowledged()
    }

    /// Whether the peer's last promise holds: no frame that leaves before the end is missing.
    pub fn is_done(&self) -> bool {
        match self.peer == self.identity.process {
            true => self.has_everything(),
            false => self.until == self.identity.stop,
        }
    }

    /// Takes a datagram of the peer; `promise` is its begin. `each` gets its content, and that of those behind it that
    /// were held. Returns whether it was new, and whether the peer asks for repeats.
    ///
    /// # Errors
    /// If it contradicts what came before.
    pub fn receive(
        &mut self,
        promise: &Promise,
        octets: &[u8],
        lines: &Lines,
        each: &mut impl FnMut(&Incoming, Content<'_>),
    ) -> Result<Reception, Fault> {
        self.acknowledge(promise.complete)?;
        if promise.flags & Promise::ASIDE != 0 {
            let asks = promise.flags & Promise::ASKS != 0;
            self.owes_answer |= asks;
            return Ok(if asks { Reception::Asked } else { Reception::Old });
        }
        self.owes_answer = true;
        let next = self.complete + self.incomplete.len() as u64;
        if promise.number < next {
            return Ok(Reception::Old);
        }
        if promise.number >= next + DATAGRAMS_MAX {
            let what = format!("datagram {} came when {next} was due", promise.number);
            return Err(self.fault(what));
        }
        if promise.number > next {
            self.held.entry(promise.number).or_insert_with(|| octets.to_vec());
            return Ok(Reception::Old);
        }
        self.read(promise, octets, lines, each)?;
        while let Some((number, octets)) = self.held.pop_first() {
            if number != self.complete + self.incomplete.len() as u64 {
                self.held.insert(number, octets);
                break;
            }
            let promise = Promise::parse(&octets);
            let promise =
                promise.map_err(|_| self.fault("a held datagram is broken".to_owned()))?;
            self.read(&promise, &octets, lines, each)?;
        }
        self.advance();
        Ok(Reception::New)
    }

    /// Reads the datagram that is due.
    fn read(
        &mut self,
        promise: &Promise,
        octets: &[u8],
        lines: &Lines,
        each: &mut impl FnMut(&Incoming, Content<'_>),
    ) -> Result<(), Fault> {
        let mut missing = 0;
        let mut rest = &octets[Promise::LENGTH..];
        while !rest.is_empty() {
            let parsed = Shim::parse(rest).map_err(|error| self.fault(error.to_string()))?;
            let line = lines.incoming(parsed.link, parsed.end);
            let line = line.filter(|line| line.process == self.peer && !line.outside);
            let line = line.ok_or_else(|| self.fault("a frame of another line came".to_owned()))?;
            if parsed.stamp < self.until_read {
                let (stamp, until) = (parsed.stamp, self.until_read);
                let what = format!("a frame left at {stamp:?}, and the promise was {until:?}");
                return Err(self.fault(what));
            }
            let length = if self.identity.beside { DIGEST } else { parsed.length as usize };
            let parts = rest[Shim::LENGTH..].split_at_checked(length);
            let (body, next) = parts.ok_or_else(|| self.fault("a frame is cut off".to_owned()))?;
            rest = next;
            self.frames_read += 1;
            if self.identity.beside {
                let digest = u64::from_be_bytes(body.try_into().expect("a digest is split off"));
                missing += 1;
                let number = promise.number;
                each(line, Content::Announced(Announced { number, shim: parsed, digest }));
            } else {
                self.incoming.note(line.index(), parsed.stamp);
                each(line, Content::Frame(parsed, body));
            }
        }
        self.check(promise)?;
        self.until_read = promise.until;
        self.incomplete.push_back(Incomplete { until: promise.until, missing });
        Ok(())
    }

    /// Checks the promise of a datagram against those before it and against its frames.
    fn check(&self, promise: &Promise) -> Result<(), Fault> {
        let (until, before, stop) = (promise.until, self.until_read, self.identity.stop);
        let what = if until < before {
            format!("its promise goes back from {before:?} to {until:?}")
        } else if until > stop {
            format!("its promise of {until:?} is beyond the run's end at {stop:?}")
        } else if promise.frames != self.frames_read {
            let (sent, came) = (promise.frames, self.frames_read);
            format!("it counts {sent} frames, and {came} came")
        } else {
            return Ok(());
        };
        Err(self.fault(what))
    }

    /// A frame that datagram `number` announced has arrived by its line.
    pub fn arrived(&mut self, number: u64, line: &Incoming, stamp: Instant) {
        self.incoming.note(line.index(), stamp);
        let place = number.checked_sub(self.complete).and_then(|place| usize::try_from(place).ok());
        if let Some(incomplete) = place.and_then(|place| self.incomplete.get_mut(place)) {
            incomplete.missing -= 1;
        }
        self.advance();
    }

    /// The datagrams that are complete take effect.
    fn advance(&mut self) {
        while let Some(Incomplete { until, missing: 0 }) = self.incomplete.front() {
            self.until = *until;
            self.complete += 1;
            self.incomplete.pop_front();
        }
        if self.peer == self.identity.process {
            // What arrived here left here.
            let _ = self.acknowledge(self.complete);
        }
    }
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// It was due, and has been read.
    New,
    /// It is a repeat, was held, or only acknowledges.
    Old,
    /// The peer waits for what is kept here.
    Asked,
}
