//! The requester of a host queue pair: SEND, RDMA WRITE and RDMA READ of a service.
//!
//! Requests are executed in order. A READ is sent when everything before it is acknowledged, and nothing is sent
//! until it is answered, so one responder resource is enough. Source: IBTA Vol 1, 9.7.3 (go-back-N), 9.7.5.1.9
//! (READ responses out of sequence), 9.7.6.1.3 (time-out), 9.7.5.2.8 (RNR).

use crate::host::responder::packets;
use crate::transport::rnr_timer;
use proto::ids::{Psn, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::opcode::{Operation, Position};
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, NakCode, Opcode, Reth, Syndrome};
use std::collections::VecDeque;
use std::ops::Range;

/// Requests that wait at most.
pub const WORK_MAX: usize = 64;
/// Packets in flight at most.
const WINDOW: i32 = 64;

/// A work request, and its result: a READ comes back with its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// SEND, WRITE or READ request.
    pub operation: Operation,
    /// The remote place; not used by a SEND.
    pub reth: Reth,
    /// The octets to send, or those that a READ has fetched.
    pub octets: Vec<u8>,
}

impl Work {
    /// A SEND of these octets.
    pub fn send(octets: Vec<u8>) -> Work {
        let reth = Reth { virtual_address: 0, remote_key: 0, dma_length: 0 };
        Work { operation: Operation::Send, reth, octets }
    }

    fn length(&self) -> usize {
        match self.operation {
            Operation::ReadRequest => self.reth.dma_length as usize,
            _ => self.octets.len(),
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    work: Work,
    first: Psn,
    packets: u32,
}

/// How often and how long a requester tries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time without progress after which it goes back.
    pub timeout: Duration,
    /// Retransmissions without progress.
    pub retries: u8,
    /// Retries after RNR NAKs; 7 is no limit.
    pub rnr_retries: u8,
}

/// The sending half of a host queue pair.
#[derive(Debug)]
pub struct Requester {
    mtu: u32,
    patience: Patience,
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
    failed: bool,
    /// The responses of a READ have a gap, and it has been asked for again.
    gap: bool,
    /// When to go back for want of progress, or when the receiver is ready again.
    due: Instant,
    awaits_receiver: bool,
    /// Packets sent again.
    pub repeated: u64,
}

impl Requester {
    /// A requester whose first packet has PSN `first`.
    pub fn new(mtu: u32, first: Psn, patience: Patience) -> Requester {
        Requester {
            mtu,
            patience,
            entries: VecDeque::new(),
            unacknowledged: first,
            next: first,
            newest: first,
            end: first,
            retries: 0,
            rnr_retries: 0,
            failed: false,
            gap: false,
            due: Instant::NEVER,
            awaits_receiver: false,
            repeated: 0,
        }
    }

    /// Whether it has given up.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether another work request fits.
    pub fn has_room(&self) -> bool {
        self.entries.len() < WORK_MAX
    }

    /// Adds a work request. False if there is no room.
    pub fn post(&mut self, work: Work) -> bool {
        if self.failed || !self.has_room() {
            return false;
        }
        let packets = packets(work.length(), self.mtu);
        let first = self.end;
        self.end = first.plus(packets);
        self.entries.push_back(Entry { work, first, packets });
        true
    }

    /// When [`Requester::on_timeout`] must be called.
    pub fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// The entry of `next`, if it may be sent now.
    fn sendable(&self) -> Option<(usize, u32)> {
        let open = self.next.distance_from(self.unacknowledged) < WINDOW;
        if self.failed || self.awaits_receiver || !open {
            return None;
        }
        let at = self.entries.iter().position(|entry| {
            let offset = self.next.distance_from(entry.first);
            offset >= 0 && offset.cast_unsigned() < entry.packets
        })?;
        let is_read = |entry: &Entry| entry.work.operation == Operation::ReadRequest;
        // A READ waits for everything before it, and everything behind it waits for the READ.
        if self.entries.iter().take(at).any(is_read) || (at > 0 && is_read(&self.entries[at])) {
            return None;
        }
        let offset = self.next.distance_from(self.entries[at].first).cast_unsigned();
        Some((at, offset))
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
        let Entry { work, packets, .. } = &self.entries[at];
        let psn = self.next;
        let begin = (offset * self.mtu) as usize;
        let is_read = work.operation == Operation::ReadRequest;
        let (opcode, place, ends) = if is_read {
            (Opcode::RC_READ_REQUEST, 0..0, true)
        } else {
            let (first, last) = (offset == 0, offset + 1 == *packets);
            let place = begin..work.octets.len().min(begin + self.mtu as usize);
            (opcode(work.operation, first, last), place, last)
        };
        let sent = if is_read { begin } else { 0 };
        let reth = Reth {
            virtual_address: work.reth.virtual_address.wrapping_add(sent as u64),
            dma_length: (work.length() - sent) as u32,
            ..work.reth
        };
        let wants_reth = work.operation != Operation::Send && (is_read || offset == 0);
        let extended =
            ExtendedHeaders { reth: wants_reth.then_some(reth), ..ExtendedHeaders::NONE };
        let taken = if is_read { packets - offset } else { 1 };
        let is_repeated = psn.distance_from(self.newest) < 0;
        self.repeated += u64::from(is_repeated);
        self.next = psn.plus(taken);
        if self.next.distance_from(self.newest) > 0 {
            self.newest = self.next;
        }
        if self.due == Instant::NEVER {
            self.due = now + self.patience.timeout;
        }
        let bth = Bth { ack_request: ends || is_repeated, ..Bth::new(opcode, to, psn) };
        Some((bth, extended, (at, place)))
    }

    /// Handles an acknowledgement; appends what it completes to `done`.
    pub fn on_acknowledge(&mut self, psn: Psn, aeth: Aeth, now: Instant, done: &mut Vec<Work>) {
        let known =
            psn.distance_from(self.unacknowledged) >= 0 && psn.distance_from(self.newest) < 0;
        if self.failed || !known {
            return;
        }
        match aeth.syndrome {
            Syndrome::Ack { .. } => self.confirm(psn.next(), now, done),
            Syndrome::Nak(NakCode::PsnSequence) => {
                self.confirm(psn, now, done);
                self.go_back(now);
            }
            Syndrome::Rnr { timer } => {
                self.confirm(psn, now, done);
                let limited = self.patience.rnr_retries != 7;
                self.failed |= limited && self.rnr_retries >= self.patience.rnr_retries;
                self.rnr_retries = self.rnr_retries.saturating_add(1);
                self.next = self.unacknowledged;
                self.awaits_receiver = true;
                self.due = now + rnr_timer::wait(timer);
            }
            Syndrome::Nak(_) | Syndrome::Unknown(_) => self.failed = true,
        }
    }

    /// Everything before `psn` has arrived. A READ is confirmed by its responses only.
    fn confirm(&mut self, psn: Psn, now: Instant, done: &mut Vec<Work>) {
        while let Some(front) = self.entries.front() {
            let is_read = front.work.operation == Operation::ReadRequest;
            let covered = psn.distance_from(front.first.plus(front.packets)) >= 0;
            if is_read || !covered {
                let is_ahead = psn.distance_from(self.unacknowledged) > 0;
                if is_ahead && !is_read {
                    self.advance(psn, now);
                }
                return;
            }
            self.advance(front.first.plus(front.packets), now);
            done.extend(self.entries.pop_front().map(|entry| entry.work));
        }
    }

    /// Progress: the first open PSN is now `psn`.
    fn advance(&mut self, psn: Psn, now: Instant) {
        self.unacknowledged = psn;
        if self.next.distance_from(psn) < 0 {
            self.next = psn;
        }
        (self.retries, self.rnr_retries, self.gap) = (0, 0, false);
        let waits = self.next.distance_from(psn) > 0;
        self.due = if waits { now + self.patience.timeout } else { Instant::NEVER };
    }

    /// Handles a READ response; appends the READ to `done` if this is its last octet.
    pub fn on_read_response(
        &mut self,
        psn: Psn,
        payload: &[u8],
        now: Instant,
        done: &mut Vec<Work>,
    ) {
        let Some(front) = self.entries.front_mut() else { return };
        let (mtu, end) = (self.mtu as usize, front.first.plus(front.packets));
        if self.failed || front.work.operation != Operation::ReadRequest {
            return;
        }
        let (total, filled) = (front.work.length(), front.work.octets.len());
        if psn != self.unacknowledged {
            let is_later = psn.distance_from(self.unacknowledged) > 0 && psn.distance_from(end) < 0;
            if is_later && !std::mem::replace(&mut self.gap, true) {
                self.next = self.unacknowledged;
            }
            return;
        }
        if payload.len() != mtu.min(total - filled) {
            self.failed = true;
            return;
        }
        front.work.octets.extend_from_slice(payload);
        let is_complete = front.work.octets.len() == total;
        self.advance(psn.next(), now);
        if is_complete {
            done.extend(self.entries.pop_front().map(|entry| entry.work));
        }
    }

    fn go_back(&mut self, now: Instant) {
        if self.retries >= self.patience.retries {
            self.failed = true;
            self.due = Instant::NEVER;
            return;
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

fn opcode(operation: Operation, first: bool, last: bool) -> Opcode {
    let position = match (first, last) {
        (true, true) => Position::Only,
        (true, false) => Position::First,
        (false, true) => Position::Last,
        (false, false) => Position::Middle,
    };
    match (operation, position) {
        (Operation::Write, Position::First) => Opcode::RC_WRITE_FIRST,
        (Operation::Write, Position::Middle) => Opcode::RC_WRITE_MIDDLE,
        (Operation::Write, Position::Last) => Opcode::RC_WRITE_LAST,
        (Operation::Write, Position::Only) => Opcode::RC_WRITE_ONLY,
        (_, Position::First) => Opcode::RC_SEND_FIRST,
        (_, Position::Middle) => Opcode::RC_SEND_MIDDLE,
        (_, Position::Last) => Opcode::RC_SEND_LAST,
        (_, Position::Only) => Opcode::RC_SEND_ONLY,
    }
}
