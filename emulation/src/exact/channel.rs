//! Channels: everything that two neighbour processes send each other, in both directions.
//!
//! A channel is a numbered sequence of datagrams. Each begins with a [`Promise`], which holds when all datagrams up to it
//! are complete: all frames in it, or announced by it, have arrived. Datagrams ahead of their turn are held; those that
//! the peer has not completed are kept, to be sent again when it asks. No socket and no clock is here.
//!
//! A datagram without frames is sent only if its pledge lets the peer run a window further. A peer without other
//! neighbours runs no further than to its own next input, so for that it also waits until the peer can handle this input.
//! It is withheld while many datagrams are unanswered: a peer whose process gets no time can do nothing with it. A process
//! that has nothing to send acknowledges after [`ANSWER_AFTER`] datagrams.

use super::digest::DIGEST;
use super::fault::Fault;
use super::line_set::LineSet;
use super::promise::{Pledge, Promise};
use super::sending::{DATAGRAMS_MAX, Identity, Sending};
use crate::cable::lines::{Incoming, Lines, Outgoing};
use crate::cable::shim::Shim;
use proto::frame::Frame;
use proto::units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// A peer is let run further after so many windows, even if it has nothing to do: it reports how far it is.
const WINDOWS_MAX: u64 = 256;
/// Datagrams without frames are sent while fewer than this are unanswered.
const UNANSWERED_MAX: u64 = DATAGRAMS_MAX / 2;
/// A process that sends its peer nothing acknowledges after so many datagrams.
const ANSWER_AFTER: u64 = UNANSWERED_MAX / 2;

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
    pledge: Pledge,
    /// The datagrams of this process that the pledge counts.
    counts: u64,
    missing: u32,
    /// When its first frame arrives.
    arrives: Instant,
}

/// Both directions between this process and one neighbour.
#[derive(Debug)]
pub(super) struct Channel {
    identity: Identity,
    /// The neighbour's process; this one if its own devices are joined by sockets.
    pub peer: usize,
    /// One of the cables, for messages.
    cable: String,
    pub sending: Sending,
    /// The kernel has no room for more at present.
    pub full: bool,
    // What this process receives.
    lines: LineSet,
    held: BTreeMap<u64, Vec<u8>>,
    /// The datagrams from `complete` on that have been read.
    incomplete: VecDeque<Incomplete>,
    complete: u64,
    frames_read: u64,
    /// The promise of the last datagram read: later frames must keep it.
    until_read: Instant,
    /// What holds: the pledge of the last complete datagram.
    pledge: Pledge,
    /// The peer has no other neighbour.
    is_leaf: bool,
    /// When the first frame of the peer arrives that the last datagram sent does not count.
    heard: Instant,
    /// It has asked, or sent something that it does not know to be complete.
    pub owes_answer: bool,
    /// The datagrams of the peer that the last one to it acknowledged.
    acknowledged: u64,
    /// The peer needs a pledge, and too many datagrams are unanswered.
    withheld: bool,
}

impl Channel {
    pub fn new(identity: Identity, peer: usize, cable: String) -> Channel {
        Channel {
            identity,
            peer,
            cable,
            sending: Sending::new(identity),
            full: false,
            lines: LineSet::default(),
            held: BTreeMap::new(),
            incomplete: VecDeque::new(),
            complete: 0,
            frames_read: 0,
            until_read: Instant::ZERO,
            pledge: Pledge::NOTHING,
            is_leaf: false,
            heard: Instant::NEVER,
            owes_answer: false,
            acknowledged: 0,
            withheld: false,
        }
    }

    /// Adds a line on which the peer sends.
    pub fn add_incoming(&mut self, line: &Incoming) {
        self.lines.add(line.index(), line.delay);
    }

    /// Whether the peer is this process itself.
    pub const fn is_own(&self) -> bool {
        self.peer == self.identity.process
    }

    pub fn fault(&self, what: String) -> Fault {
        Fault { peer: self.peer, cable: self.cable.clone(), what }
    }

    /// The peer has been silent for `seconds` while this process waits for it.
    pub fn silent(&self, seconds: u64) -> Fault {
        self.fault(format!("nothing came for {seconds} s, and this process waits for it"))
    }

    // ---- sending ----

    /// Puts a frame into the open datagram, or its announcement.
    ///
    /// # Errors
    /// If the device breaks the promise of this process.
    pub fn put(&mut self, line: &Outgoing, frame: &Frame, stamp: Instant) -> Result<(), Fault> {
        let put = self.sending.put(line, frame, stamp, self.complete);
        put.map_err(|what| self.fault(what))
    }

    /// Gives the peer `pledge`: closes the open datagram if it has frames, or if the peer needs the pledge. The last
    /// promise of a run is always given. Returns whether it travels alone.
    ///
    /// # Errors
    /// If the peer completes nothing of what is kept for it.
    pub fn promise(&mut self, pledge: Pledge) -> Result<bool, Fault> {
        let is_alone = !self.sending.has_frames();
        let is_needed = !is_alone || !self.is_own() && self.is_needed(pledge);
        let is_last = pledge.until == self.identity.stop;
        self.withheld = is_alone && is_needed && !is_last && !self.has_room();
        if self.withheld || !is_needed {
            return Ok(false);
        }
        self.sending.seal(pledge, self.complete).map_err(|what| self.fault(what))?;
        let missing = self.incomplete.iter().map(|datagram| datagram.arrives);
        self.heard = missing.min().unwrap_or(Instant::NEVER);
        self.acknowledge();
        Ok(is_alone)
    }

    /// A datagram to the peer acknowledges what is complete.
    fn acknowledge(&mut self) {
        self.owes_answer = false;
        self.acknowledged = self.complete;
    }

    /// Whether another datagram without frames may be sent.
    fn has_room(&self) -> bool {
        self.sending.unanswered() < UNANSWERED_MAX
    }

    /// Whether a pledge was withheld for which there is room now.
    pub fn may_pledge_again(&self) -> bool {
        self.withheld && self.has_room()
    }

    /// Whether the peer waits for an acknowledgement, and nothing was sent that could have it.
    pub const fn is_overdue(&self) -> bool {
        self.complete - self.acknowledged >= ANSWER_AFTER
    }

    /// Whether the peer can do more with `pledge` than with what it has.
    fn is_needed(&self, pledge: Pledge) -> bool {
        let pledged = self.sending.pledged();
        if pledge.until == self.identity.stop && pledged.until < pledge.until {
            return true;
        }
        let window = self.identity.window.as_ps();
        let whole = |bound: Instant| bound.as_ps() / window;
        let has = whole(self.sending.bound(pledged.given(self.heard)));
        let gets = whole(self.sending.bound(pledge.given(Instant::NEVER)));
        // The first input that the peer may have.
        let input = self.pledge.given(self.sending.first_uncounted());
        let can_run = !self.is_leaf || gets.saturating_mul(window) > input.as_ps();
        gets > has && (can_run || gets >= has.saturating_add(WINDOWS_MAX))
    }

    /// A datagram without number, which acknowledges, and asks if `asks` is set.
    pub fn aside(&mut self, asks: bool) -> [u8; Promise::LENGTH] {
        self.acknowledge();
        let flags = Promise::ASIDE | if asks { Promise::ASKS } else { 0 };
        self.sending.head(flags, self.complete)
    }

    // ---- receiving ----

    /// When the next frame of the peer arrives at the earliest.
    pub fn bound(&self) -> Instant {
        self.lines.bound(self.pledge.given(self.sending.first_uncounted()))
    }

    /// The same if the peer is this process, which sends nothing before `until`.
    pub fn own_bound(&self, until: Instant) -> Instant {
        if self.sending.is_acknowledged() { self.lines.bound(until) } else { self.bound() }
    }

    /// Whether the peer's last promise holds: no frame that leaves before the end is missing.
    pub fn is_done(&self) -> bool {
        match self.is_own() {
            true => self.sending.is_acknowledged(),
            false => self.pledge.until == self.identity.stop,
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
        self.sending.acknowledge(promise.complete).map_err(|what| self.fault(what))?;
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
        let (mut missing, mut arrives) = (0, Instant::NEVER);
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
            arrives = arrives.min(parsed.stamp + line.delay);
            if self.identity.beside {
                let digest = u64::from_be_bytes(body.try_into().expect("a digest is split off"));
                missing += 1;
                let number = promise.number;
                each(line, Content::Announced(Announced { number, shim: parsed, digest }));
            } else {
                self.lines.note(line.index(), parsed.stamp);
                each(line, Content::Frame(parsed, body));
            }
        }
        self.check(promise)?;
        self.until_read = promise.pledge.until;
        self.is_leaf = promise.flags & Promise::LEAF != 0;
        self.heard = self.heard.min(arrives);
        let (pledge, counts) = (promise.pledge, promise.complete);
        self.incomplete.push_back(Incomplete { pledge, counts, missing, arrives });
        Ok(())
    }

    /// Checks the promise of a datagram against those before it and against its frames.
    fn check(&self, promise: &Promise) -> Result<(), Fault> {
        let (until, before, stop) = (promise.pledge.until, self.until_read, self.identity.stop);
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
        self.lines.note(line.index(), stamp);
        let place = number.checked_sub(self.complete).and_then(|place| usize::try_from(place).ok());
        if let Some(incomplete) = place.and_then(|place| self.incomplete.get_mut(place)) {
            incomplete.missing -= 1;
        }
        self.advance();
    }

    /// The datagrams that are complete take effect.
    fn advance(&mut self) {
        while let Some(Incomplete { pledge, counts, missing: 0, .. }) = self.incomplete.front() {
            self.pledge = *pledge;
            self.sending.count(*counts);
            self.complete += 1;
            self.incomplete.pop_front();
        }
        if self.is_own() {
            // What arrived here left here.
            let _ = self.sending.acknowledge(self.complete);
            self.sending.count(self.complete);
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
