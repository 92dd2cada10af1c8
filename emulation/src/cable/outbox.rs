//! The sending end of socket cables: bundles frames for each process and sends the bundles.

use super::FrameTally;
use super::datagram::{BATCH, DatagramSocket, Peer};
use super::lines::Outgoing;
use super::packet_socket::has_no_room;
use super::shim::{SendingEnd, Shim};
use proto::frame::Frame;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;

/// Datagrams that may wait for one process; those beyond are lost, and counted.
const BACKLOG_MAX: usize = 4096;

/// Attempts to send a datagram before it is given up. Attempts that find the receiver full do not count.
const TRIES_MAX: u8 = 2;

/// The account of one sending line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentLine {
    /// The link.
    pub link: u32,
    /// The end that sent.
    pub end: SendingEnd,
    /// Frames sent, which is the number of sequence numbers used.
    pub sent: FrameTally,
}

impl SentLine {
    /// The account of `line`.
    pub(super) const fn new(line: &Outgoing, sent: FrameTally) -> SentLine {
        SentLine { link: line.link, end: line.end, sent }
    }
}

/// Counts of the sending end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendCounts {
    /// Datagrams handed to the kernel.
    pub datagrams: u64,
    /// Times a datagram had to wait because the receiver's socket was full.
    pub deferred: u64,
    /// System calls that failed for another reason.
    pub errors: u64,
    /// Frames given up; the receiver misses their sequence numbers.
    pub unsent: u64,
    /// With exact pace: datagrams sent again because the receiver asked.
    #[serde(default)]
    pub repeated: u64,
    /// With exact pace: datagrams with a promise and no frame.
    #[serde(default)]
    pub alone: u64,
    /// With exact pace: datagrams without a number, which ask or acknowledge.
    #[serde(default)]
    pub asides: u64,
}

#[derive(Debug)]
struct Datagram {
    octets: Vec<u8>,
    frames: u64,
    tries: u8,
}

#[derive(Debug)]
struct Bundle {
    peer: Peer,
    open: Datagram,
    sealed: VecDeque<Datagram>,
    /// The receiver was full during this flush.
    full: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LineState {
    next_sequence: u32,
    sent: FrameTally,
}

/// All frames that wait to be sent to other processes.
#[derive(Debug)]
pub(crate) struct Outbox {
    epoch: u32,
    datagram_max: usize,
    /// By process.
    bundles: Vec<Bundle>,
    /// By line index.
    lines: Vec<LineState>,
    /// Processes with datagrams to send.
    active: Vec<usize>,
    spare: Vec<Vec<u8>>,
    /// What was sent so far.
    pub counts: SendCounts,
}

impl Outbox {
    /// An empty outbox for `lines` lines of the run `epoch`, with the address of each process.
    pub fn new(epoch: u32, datagram_max: usize, peers: Vec<Peer>, lines: usize) -> Outbox {
        let empty = || Datagram { octets: Vec::new(), frames: 0, tries: 0 };
        let bundle = |peer| Bundle { peer, open: empty(), sealed: VecDeque::new(), full: false };
        Outbox {
            epoch,
            datagram_max,
            bundles: peers.into_iter().map(bundle).collect(),
            lines: vec![LineState::default(); lines],
            active: Vec::new(),
            spare: Vec::new(),
            counts: SendCounts::default(),
        }
    }

    /// Forgets what waits for a process. Returns what its `lines` have taken.
    pub fn forget(&mut self, process: usize, lines: impl Iterator<Item = usize>) -> FrameTally {
        let bundle = &mut self.bundles[process];
        bundle.sealed.clear();
        bundle.open.octets.clear();
        bundle.open.frames = 0;
        self.active.retain(|other| *other != process);
        let taken = lines.map(|line| std::mem::take(&mut self.lines[line]).sent);
        taken.fold(FrameTally::default(), FrameTally::plus)
    }

    /// A process has this address from now on.
    pub fn redirect(&mut self, process: usize, peer: Peer) {
        self.bundles[process].peer = peer;
    }

    /// Puts a copy of `frame` into the next datagram for `process`.
    pub fn put(&mut self, line: &Outgoing, process: usize, frame: &Frame, stamp: Instant) {
        let state = &mut self.lines[line.index()];
        let shim = line.shim(frame, self.epoch, state.next_sequence, stamp);
        state.next_sequence = state.next_sequence.wrapping_add(1);
        state.sent.count(frame);
        let record = Shim::LENGTH + frame.octets_len();
        if record > self.datagram_max {
            self.counts.unsent += 1;
            return;
        }
        let bundle = &self.bundles[process];
        if bundle.open.octets.len() + record > self.datagram_max {
            self.seal(process);
        }
        let bundle = &mut self.bundles[process];
        if bundle.open.frames == 0 && bundle.sealed.is_empty() {
            self.active.push(process);
        }
        bundle.open.octets.extend_from_slice(&shim.emit());
        frame.append_to(&mut bundle.open.octets);
        bundle.open.frames += 1;
    }

    /// Closes the open datagram for `process`, if it has any frames.
    fn seal(&mut self, process: usize) {
        let bundle = &mut self.bundles[process];
        if bundle.open.frames == 0 {
            return;
        }
        let octets = self.spare.pop().unwrap_or_default();
        let fresh = Datagram { octets, frames: 0, tries: 0 };
        let sealed = std::mem::replace(&mut bundle.open, fresh);
        if bundle.sealed.len() < BACKLOG_MAX {
            bundle.sealed.push_back(sealed);
        } else {
            self.counts.unsent += sealed.frames;
            self.recycle(sealed);
        }
    }

    /// Sends all that the receivers accept now. The rest stays, see [`Self::waiting`].
    pub fn flush(&mut self, socket: &DatagramSocket) {
        for index in 0..self.active.len() {
            self.seal(self.active[index]);
        }
        while let Some(first) = self.first_ready() {
            match socket.send(self.ready()) {
                Ok(sent) => self.remove_sent(sent),
                Err(error) => self.fail(first, &error),
            }
        }
        let bundles = &mut self.bundles;
        self.active.retain(|process| {
            bundles[*process].full = false;
            !bundles[*process].sealed.is_empty()
        });
    }

    /// Whether datagrams wait for a receiver to make room.
    pub fn waiting(&self) -> bool {
        !self.active.is_empty()
    }

    /// The account of a line.
    pub fn sent(&self, line: &Outgoing) -> SentLine {
        SentLine::new(line, self.lines[line.index()].sent)
    }

    fn first_ready(&self) -> Option<usize> {
        let ready = |process: &&usize| {
            let bundle = &self.bundles[**process];
            !bundle.full && !bundle.sealed.is_empty()
        };
        self.active.iter().find(ready).copied()
    }

    /// The datagrams that may be sent now, by process, and each process's in order.
    fn ready(&self) -> impl Iterator<Item = (&Peer, &[u8])> {
        let open = self.active.iter().map(|process| &self.bundles[*process]);
        open.filter(|bundle| !bundle.full).flat_map(|bundle| {
            bundle.sealed.iter().map(|datagram| (&bundle.peer, datagram.octets.as_slice()))
        })
    }

    /// Removes the first `sent` datagrams of [`Self::ready`].
    fn remove_sent(&mut self, sent: usize) {
        debug_assert!(sent <= BATCH, "a call sends at most its batch");
        self.counts.datagrams += sent as u64;
        let mut left = sent;
        for index in 0..self.active.len() {
            let process = self.active[index];
            while left > 0 && !self.bundles[process].full {
                let Some(datagram) = self.bundles[process].sealed.pop_front() else { break };
                self.recycle(datagram);
                left -= 1;
            }
        }
    }

    /// The first ready datagram, for `process`, was refused.
    fn fail(&mut self, process: usize, error: &io::Error) {
        let bundle = &mut self.bundles[process];
        if error.kind() == io::ErrorKind::Interrupted {
            return;
        }
        if has_no_room(error) {
            bundle.full = true;
            self.counts.deferred += 1;
            return;
        }
        // UDP reports here that an *earlier* datagram met a closed port, so the failure need not be that of
        // this datagram.
        self.counts.errors += 1;
        let first = bundle.sealed.front_mut().expect("a refused datagram is still in its queue");
        first.tries += 1;
        if first.tries >= TRIES_MAX {
            self.counts.unsent += first.frames;
            let given_up = bundle.sealed.pop_front();
            given_up.into_iter().for_each(|datagram| self.recycle(datagram));
        }
    }

    fn recycle(&mut self, datagram: Datagram) {
        const SPARE_MAX: usize = 64;
        if self.spare.len() < SPARE_MAX {
            let mut octets = datagram.octets;
            octets.clear();
            self.spare.push(octets);
        }
    }
}

#[cfg(test)]
mod tests;
