//! The requester of a host queue pair: SEND, RDMA WRITE, RDMA READ and atomics.
//!
//! Requests are executed in order. As many READs and atomics are in flight as the peer has resources for; each is
//! complete with its last response, and everything behind it waits with its completion. Source: IBTA Vol 1, 9.7.3
//! (go-back-N), 9.7.5.1.9 (responses out of sequence), 9.7.6.1.3 (time-out), 9.7.5.2.8 (RNR).

use crate::host::work::{Part, Work};
use crate::transport::rnr_timer;
use proto::ids::{Psn, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::opcode::Operation;
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, NakCode, Syndrome};
use std::collections::VecDeque;
use std::ops::Range;

/// Packets in flight at most.
const WINDOW: i32 = 64;
/// A packet in the middle of a message asks for an acknowledgement that often, well before the window is full.
const ACK_EVERY: u32 = 16;

#[derive(Clone, Debug)]
struct Entry {
    work: Work,
    first: Psn,
    packets: u32,
}

impl Entry {
    fn end(&self) -> Psn {
        self.first.plus(self.packets)
    }
}

/// How often and how long a requester tries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time without progress after which it goes back.
    pub timeout: Duration,
    /// Retransmissions without progress.
    pub retries: u8,
    /// Retries after RNR NAKs; 7 means no limit.
    pub rnr_retries: u8,
}

/// How much a requester does at once.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Work requests that wait.
    pub work: usize,
    /// READs and atomics in flight.
    pub answered: u8,
}

impl Depth {
    /// Enough for a service.
    pub const SERVICE: Depth = Depth { work: 64, answered: 1 };
}

/// Why a requester has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer refuses a request.
    Refused(NakCode),
    /// No progress, as often as it was tried.
    Retries,
    /// The receiver was not ready, as often as it was tried.
    RnrRetries,
    /// A response is none of the request.
    BadResponse,
    /// The program has ended it.
    Ended,
}

/// The sending half of a host queue pair.
#[derive(Debug)]
pub struct Requester {
    mtu: u32,
    patience: Patience,
    depth: Depth,
    entries: VecDeque<Entry>,
    /// The first PSN that is neither acknowledged nor answered.
    unacknowledged: Psn,
    next: Psn,
    /// Behind the last PSN sent.
    newest: Psn,
    /// Behind the last PSN of the last entry.
    end: Psn,
    retries: u8,
    rnr_retries: u8,
    failure: Option<Failure>,
    /// Responses have a gap, and they have been asked for again.
    gap: bool,
    /// When to go back for want of progress, or when the receiver is ready again.
    due: Instant,
    awaits_receiver: bool,
    /// Packets sent again.
    pub repeated: u64,
}

impl Requester {
    /// A requester whose first packet has PSN `first`.
    pub fn new(mtu: u32, first: Psn, patience: Patience, depth: Depth) -> Requester {
        Requester {
            mtu,
            patience,
            depth,
            entries: VecDeque::new(),
            unacknowledged: first,
            next: first,
            newest: first,
            end: first,
            retries: 0,
            rnr_retries: 0,
            failure: None,
            gap: false,
            due: Instant::NEVER,
            awaits_receiver: false,
            repeated: 0,
        }
    }

    /// Why it has given up, if it has.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Gives up.
    pub fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.due = Instant::NEVER;
    }

    /// How many work requests fit.
    pub fn room(&self) -> usize {
        self.depth.work.saturating_sub(self.entries.len())
    }

    /// Adds a work request. False if there is no room.
    pub fn post(&mut self, work: Work) -> bool {
        if self.failure.is_some() || self.room() == 0 {
            return false;
        }
        let (first, packets) = (self.end, work.packets(self.mtu));
        self.end = first.plus(packets);
        self.entries.push_back(Entry { work, first, packets });
        true
    }

    /// Removes work that is not complete.
    pub fn flush(&mut self) -> impl Iterator<Item = Work> {
        std::mem::take(&mut self.entries).into_iter().map(|entry| entry.work)
    }

    /// When [`Requester::on_timeout`] must be called.
    pub fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// The entry of `next`, if it may be sent now.
    fn sendable(&self) -> Option<(usize, u32)> {
        let open = self.next.distance_from(self.unacknowledged) < WINDOW;
        if self.failure.is_some() || self.awaits_receiver || !open || self.next == self.end {
            return None;
        }
        let holds = |entry: &Entry| {
            let offset = self.next.distance_from(entry.first);
            offset >= 0 && offset.cast_unsigned() < entry.packets
        };
        let at = self.entries.iter().position(holds)?;
        let entry = &self.entries[at];
        let in_flight = self.entries.iter().take(at).filter(|entry| entry.work.is_answered());
        let limit = match (entry.work.is_answered(), entry.work.fence) {
            (_, true) => 1,
            (true, false) => usize::from(self.depth.answered),
            (false, false) => usize::MAX,
        };
        if in_flight.count() >= limit {
            return None;
        }
        Some((at, self.next.distance_from(entry.first).cast_unsigned()))
    }

    /// Whether a packet may be sent now.
    pub fn has_work(&self) -> bool {
        self.sendable().is_some()
    }

    /// The octets of a payload that [`Requester::next_request`] has named.
    pub fn payload(&self, (entry, place): (usize, Range<usize>)) -> &[u8] {
        self.entries.get(entry).map_or(&[], |entry| &entry.work.octets[place])
    }

    /// The next packet, which leaves now: its headers, and the entry and place of its payload.
    pub fn next_request(
        &mut self,
        to: QueuePairNumber,
        now: Instant,
    ) -> Option<(Bth, ExtendedHeaders, (usize, Range<usize>))> {
        let (at, offset) = self.sendable()?;
        let work = &self.entries[at].work;
        let Part { opcode, extended, place, is_last, numbers } = work.part(offset, self.mtu);
        let psn = self.next;
        let is_repeated = psn.distance_from(self.newest) < 0;
        let bth = Bth {
            ack_request: is_last || is_repeated || offset % ACK_EVERY == ACK_EVERY - 1,
            solicited: work.solicited && is_last && !work.is_answered(),
            ..Bth::new(opcode, to, psn)
        };
        self.repeated += u64::from(is_repeated);
        self.next = psn.plus(numbers);
        if self.next.distance_from(self.newest) > 0 {
            self.newest = self.next;
        }
        if self.due == Instant::NEVER {
            self.due = now + self.patience.timeout;
        }
        Some((bth, extended, (at, place)))
    }

    /// Handles an acknowledgement; appends what it completes to `done`.
    pub fn on_acknowledge(&mut self, psn: Psn, aeth: Aeth, now: Instant, done: &mut Vec<Work>) {
        if !self.is_in_flight(psn) {
            return;
        }
        match aeth.syndrome {
            Syndrome::Ack { .. } => {
                self.confirm(psn.next(), now, done);
                // What is still open before it is a response that was lost.
                if psn.distance_from(self.unacknowledged) >= 0 {
                    self.ask_again();
                }
            }
            Syndrome::Nak(NakCode::PsnSequence) => {
                self.confirm(psn, now, done);
                self.go_back(now);
            }
            Syndrome::Rnr { timer } => {
                self.confirm(psn, now, done);
                let limited = self.patience.rnr_retries != 7;
                if limited && self.rnr_retries >= self.patience.rnr_retries {
                    return self.fail(Failure::RnrRetries);
                }
                self.rnr_retries = self.rnr_retries.saturating_add(1);
                self.next = self.unacknowledged;
                self.awaits_receiver = true;
                self.due = now + rnr_timer::wait(timer);
            }
            Syndrome::Nak(code) => {
                self.confirm(psn, now, done);
                self.fail(Failure::Refused(code));
            }
            Syndrome::Unknown(_) => self.fail(Failure::BadResponse),
        }
    }

    /// Whether `psn` is sent, and neither acknowledged nor answered.
    fn is_in_flight(&self, psn: Psn) -> bool {
        let since = psn.distance_from(self.unacknowledged);
        self.failure.is_none() && since >= 0 && psn.distance_from(self.newest) < 0
    }

    /// Everything before `psn` has arrived. READs and atomics are confirmed by their responses only.
    fn confirm(&mut self, psn: Psn, now: Instant, done: &mut Vec<Work>) {
        while let Some(front) = self.entries.front() {
            if front.work.is_answered() {
                return;
            }
            if psn.distance_from(front.end()) < 0 {
                if psn.distance_from(self.unacknowledged) > 0 {
                    self.advance(psn, now);
                }
                return;
            }
            self.complete(now, done);
        }
    }

    /// The first entry is complete.
    fn complete(&mut self, now: Instant, done: &mut Vec<Work>) {
        if let Some(entry) = self.entries.pop_front() {
            self.advance(entry.end(), now);
            done.push(entry.work);
        }
    }

    /// Progress: the first open PSN is now `psn`.
    fn advance(&mut self, psn: Psn, now: Instant) {
        self.unacknowledged = psn;
        if self.next.distance_from(psn) < 0 {
            self.next = psn;
        }
        (self.retries, self.rnr_retries, self.gap) = (0, 0, false);
        if !self.awaits_receiver {
            let waits = self.newest.distance_from(psn) > 0;
            self.due = if waits { now + self.patience.timeout } else { Instant::NEVER };
        }
    }

    /// Whether a response with `psn` is the next one. It confirms what was sent before its request, and it shows that
    /// a response before it is lost if there is one.
    fn expects_response(&mut self, psn: Psn, now: Instant, done: &mut Vec<Work>) -> bool {
        if !self.is_in_flight(psn) {
            return false;
        }
        self.confirm(psn, now, done);
        if psn != self.unacknowledged {
            self.ask_again();
        }
        psn == self.unacknowledged
    }

    /// Asks for responses again that are lost, once for each gap.
    fn ask_again(&mut self) {
        if !std::mem::replace(&mut self.gap, true) {
            self.next = self.unacknowledged;
        }
    }

    /// Handles a READ response; appends what it completes to `done`.
    pub fn on_read_response(
        &mut self,
        psn: Psn,
        payload: &[u8],
        now: Instant,
        done: &mut Vec<Work>,
    ) {
        if !self.expects_response(psn, now, done) {
            return;
        }
        let Some(front) = self.entries.front_mut() else { return };
        let (total, filled) = (front.work.length(), front.work.octets.len());
        let is_read = front.work.operation == Operation::ReadRequest;
        if !is_read || payload.len() != (self.mtu as usize).min(total - filled) {
            return self.fail(Failure::BadResponse);
        }
        front.work.octets.extend_from_slice(payload);
        if filled + payload.len() == total {
            self.complete(now, done);
        } else {
            self.advance(psn.next(), now);
        }
    }

    /// Handles the response of an atomic, with the number that was there before; appends what it completes to `done`.
    pub fn on_atomic_response(
        &mut self,
        psn: Psn,
        original: u64,
        now: Instant,
        done: &mut Vec<Work>,
    ) {
        if !self.expects_response(psn, now, done) {
            return;
        }
        match self.entries.front_mut().map(|front| &mut front.work) {
            Some(work) if work.is_answered() && work.operation != Operation::ReadRequest => {
                work.octets = original.to_le_bytes().to_vec();
                self.complete(now, done);
            }
            _ => self.fail(Failure::BadResponse),
        }
    }

    fn go_back(&mut self, now: Instant) {
        if self.retries >= self.patience.retries {
            return self.fail(Failure::Retries);
        }
        self.retries += 1;
        self.gap = false;
        self.next = self.unacknowledged;
        self.due = now + self.patience.timeout;
    }

    /// A deadline has passed: it goes back, or the receiver is ready again.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.due > now {
            return;
        }
        let was_waiting = std::mem::take(&mut self.awaits_receiver);
        if was_waiting || self.newest == self.unacknowledged {
            self.due = Instant::NEVER;
        } else {
            self.go_back(now);
        }
    }
}
