//! The responder of a host queue pair: SEND, RDMA WRITE, RDMA READ and atomics on real memory.
//!
//! Responses leave in the order of the requests. A repeated request is acknowledged again, a repeated READ is
//! answered again, and a repeated atomic gets its first result. Source: IBTA Vol 1, 9.7.4 (validation), 9.7.5
//! (acknowledgements), 9.4.4 (READ), 9.4.5 (atomics), 9.7.5.1.3 (repetitions).

use crate::host::memory::{Memory, Place};
use crate::host::receives::{Behaviour, Receives};
use proto::counters::DropReason;
use proto::ids::Psn;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Position};
use proto::wire::infiniband::{
    Aeth, AtomicAckEth, Bth, ExtendedHeaders, NakCode, Opcode, Reth, Syndrome, Transport,
};
use std::collections::VecDeque;
use verbs::attributes::Access;

/// Responses that wait at most. A requester keeps to the responder resources that it was told; the rest of the
/// room is for repeated requests. Requests beyond it are dropped, and their requester repeats them.
const JOBS_MAX: usize = 64;
/// Results of atomics kept for repetitions: the most responder resources that this NIC grants.
pub const RESOURCES: u8 = 16;
/// Octets kept from the start of a received message.
pub const HEAD: usize = 256;

/// A response that waits.
#[derive(Clone, Debug)]
enum Job {
    Acknowledge(Psn),
    Refuse(Psn, Syndrome),
    Read { psn: Psn, place: Place, sent: u32 },
    Atomic { psn: Psn, original: u64 },
}

/// The message in progress.
#[derive(Clone, Debug)]
struct Partial {
    operation: Operation,
    /// Where its octets go: the place of a WRITE, or the buffer of a SEND.
    place: Option<Place>,
    /// The receive request that it takes.
    receive: Option<u64>,
    /// Octets that a RETH has announced.
    announced: Option<u64>,
    received: u64,
}

/// A message that a packet has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// SEND, WRITE, READ or an atomic.
    pub operation: Operation,
    /// Octets of the message.
    pub length: u64,
    /// Immediate data.
    pub immediate: Option<[u8; 4]>,
    /// The receive request that it has taken.
    pub receive: Option<u64>,
    /// Whether it was too long for its buffer, and is therefore refused.
    pub overflows: bool,
}

impl Delivery {
    /// A READ or atomic, which takes no receive request.
    fn answered(operation: Operation, length: u64) -> Delivery {
        Delivery { operation, length, immediate: None, receive: None, overflows: false }
    }
}

/// The receiving half of a host queue pair.
#[derive(Debug)]
pub struct Responder {
    mtu: u32,
    expected: Psn,
    /// Messages completed, modulo 2^24. Source: IBTA Vol 1, 9.7.7.
    messages: u32,
    nak_sent: bool,
    failed: bool,
    partial: Option<Partial>,
    jobs: VecDeque<Job>,
    atomics: VecDeque<(Psn, u64)>,
    /// What the peer may do, besides SEND.
    access: Access,
    rnr_timer: u8,
    /// What a SEND finds.
    pub receives: Receives,
    /// The first octets of the SEND in progress, or of the last one.
    pub head: Vec<u8>,
}

type Refusal = (DropReason, NakCode);

impl Responder {
    /// A responder that expects `expected` first; full packets have `mtu` octets.
    pub fn new(mtu: u32, expected: Psn, behaviour: Behaviour) -> Responder {
        let Behaviour { access, rnr_timer, receives } = behaviour;
        Responder {
            mtu,
            expected,
            messages: 0,
            nak_sent: false,
            failed: false,
            partial: None,
            jobs: VecDeque::new(),
            atomics: VecDeque::new(),
            access,
            rnr_timer,
            receives,
            head: Vec::new(),
        }
    }

    /// Whether a request was refused for good: the queue pair is in the error state.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Enters the error state.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether a response waits.
    pub fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Handles a request. Returns the message that it completes.
    ///
    /// # Errors
    /// The drop reason.
    pub fn on_request(
        &mut self,
        row: &OpcodeRow,
        packet: &Transport<'_>,
        memory: &mut Memory,
    ) -> Result<Option<Delivery>, DropReason> {
        if self.failed {
            return Err(DropReason::QueuePair);
        }
        let psn = packet.bth.psn;
        match psn.distance_from(self.expected) {
            0 => {}
            ahead if ahead > 0 => {
                if !self.nak_sent {
                    self.nak_sent = true;
                    self.refuse(Syndrome::Nak(NakCode::PsnSequence));
                }
                return Err(DropReason::OutOfSequence);
            }
            _ => {
                self.repeat(row, packet, memory);
                return Err(DropReason::Duplicate);
            }
        }
        if self.jobs.len() >= JOBS_MAX {
            return Err(DropReason::ReceiverNotReady);
        }
        let takes_receive = match row.operation {
            Operation::Send => row.begins_message(),
            _ => packet.extended.immdt.is_some(),
        };
        if takes_receive && !self.receives.is_ready() {
            // The requester will come back, so later packets need no NAK.
            self.nak_sent = true;
            self.refuse(Syndrome::Rnr { timer: self.rnr_timer });
            return Err(DropReason::ReceiverNotReady);
        }
        match self.execute(row, packet, memory) {
            Ok(delivery) => {
                self.nak_sent = false;
                Ok(delivery)
            }
            Err((reason, code)) => {
                self.refuse(Syndrome::Nak(code));
                self.failed = true;
                Err(reason)
            }
        }
    }

    fn refuse(&mut self, syndrome: Syndrome) {
        self.jobs.push_back(Job::Refuse(self.expected, syndrome));
    }

    fn acknowledge(&mut self, psn: Psn) {
        match self.jobs.back_mut() {
            Some(Job::Acknowledge(last)) if psn.distance_from(*last) >= 0 => *last = psn,
            _ => self.jobs.push_back(Job::Acknowledge(psn)),
        }
    }

    /// Answers a repeated request as far as its answer may have been lost.
    fn repeat(&mut self, row: &OpcodeRow, packet: &Transport<'_>, memory: &Memory) {
        if self.jobs.len() >= JOBS_MAX {
            return;
        }
        let psn = packet.bth.psn;
        match (row.operation, packet.extended.reth) {
            (Operation::ReadRequest, Some(reth)) => {
                if let Some(place) = memory.place(&reth, |access| access.read) {
                    self.jobs.push_back(Job::Read { psn, place, sent: 0 });
                }
            }
            (Operation::CompareSwap | Operation::FetchAdd, _) => {
                if let Some((_, original)) = self.atomics.iter().find(|(known, _)| *known == psn) {
                    self.jobs.push_back(Job::Atomic { psn, original: *original });
                }
            }
            _ => self.acknowledge(self.expected.plus(Psn::MAX)),
        }
    }

    /// Executes the expected request.
    fn execute(
        &mut self,
        row: &OpcodeRow,
        packet: &Transport<'_>,
        memory: &mut Memory,
    ) -> Result<Option<Delivery>, Refusal> {
        match row.operation {
            Operation::Send | Operation::Write => self.accept(row, packet, memory),
            Operation::ReadRequest => self.read(packet, memory).map(Some),
            Operation::CompareSwap | Operation::FetchAdd => {
                self.change(row, packet, memory).map(Some)
            }
            _ => Err((DropReason::Opcode, NakCode::InvalidRequest)),
        }
    }

    /// Accepts a packet of a SEND or WRITE. Source: IBTA Vol 1, 9.7.4.1.
    fn accept(
        &mut self,
        row: &OpcodeRow,
        packet: &Transport<'_>,
        memory: &mut Memory,
    ) -> Result<Option<Delivery>, Refusal> {
        let length = packet.payload.len() as u64;
        self.check_position(row, length)?;
        if row.begins_message() {
            self.begin(row.operation, packet.extended.reth.as_ref(), memory)?;
        }
        let invalid = (DropReason::PacketLength, NakCode::InvalidRequest);
        let Some(partial) = &mut self.partial else { return Err(invalid) };
        let received = partial.received + length;
        let fits = match (partial.announced, row.ends_message()) {
            (None, _) => true,
            (Some(announced), true) => received == announced,
            (Some(announced), false) => received < announced,
        };
        if !fits {
            return Err(invalid);
        }
        let mut overflows = false;
        if let Some(place) = &partial.place {
            let part = place.part(partial.received as usize..received as usize);
            overflows = part.range.end > place.range.end;
            if !overflows {
                memory.write(&part, packet.payload);
            }
        }
        if row.operation == Operation::Send {
            let room = HEAD.saturating_sub(self.head.len()).min(packet.payload.len());
            self.head.extend_from_slice(&packet.payload[..room]);
        }
        partial.received = received;
        let immediate = packet.extended.immdt.map(|immediate| immediate.data);
        if row.operation == Operation::Write && immediate.is_some() {
            partial.receive = self.receives.take().map(|receive| receive.id);
        }
        let receive = partial.receive;
        let delivery =
            Delivery { operation: row.operation, length: received, immediate, receive, overflows };
        if overflows {
            self.refuse(Syndrome::Nak(NakCode::InvalidRequest));
            self.failed = true;
            return Ok(Some(delivery));
        }
        self.expected = self.expected.next();
        let ends = row.ends_message();
        if ends {
            self.partial = None;
            self.count_message();
        }
        if ends || packet.bth.ack_request {
            self.acknowledge(packet.bth.psn);
        }
        Ok(ends.then_some(delivery))
    }

    fn check_position(&self, row: &OpcodeRow, length: u64) -> Result<(), Refusal> {
        let mtu = u64::from(self.mtu);
        let fits = match &self.partial {
            None => row.begins_message(),
            Some(partial) => !row.begins_message() && partial.operation == row.operation,
        };
        if !fits {
            return Err((DropReason::Opcode, NakCode::InvalidRequest));
        }
        let length_fits = match row.position {
            Position::First | Position::Middle => length == mtu,
            Position::Last => length > 0 && length <= mtu,
            Position::Only => length <= mtu,
        };
        if length_fits { Ok(()) } else { Err((DropReason::PacketLength, NakCode::InvalidRequest)) }
    }

    fn begin(
        &mut self,
        operation: Operation,
        reth: Option<&Reth>,
        memory: &Memory,
    ) -> Result<(), Refusal> {
        let denied = (DropReason::Key, NakCode::RemoteAccess);
        self.partial = Some(match operation {
            Operation::Send => {
                self.head.clear();
                let taken = self.receives.take();
                let receive = taken.as_ref().map(|receive| receive.id);
                let place = taken.map(|receive| receive.place);
                Partial { operation, place, receive, announced: None, received: 0 }
            }
            _ => {
                let reth = reth.filter(|_| self.access.write).ok_or(denied)?;
                let place = memory.place(reth, |access| access.write).ok_or(denied)?;
                let announced = Some(u64::from(reth.dma_length));
                Partial { operation, place: Some(place), receive: None, announced, received: 0 }
            }
        });
        Ok(())
    }

    fn count_message(&mut self) {
        self.messages = (self.messages + 1) & Psn::MAX;
    }

    fn read(&mut self, packet: &Transport<'_>, memory: &Memory) -> Result<Delivery, Refusal> {
        let opcode = (DropReason::Opcode, NakCode::InvalidRequest);
        let reth = packet.extended.reth.filter(|_| self.partial.is_none()).ok_or(opcode)?;
        let place = memory.place(&reth, |access| access.read && self.access.read);
        let place = place.ok_or((DropReason::Key, NakCode::RemoteAccess))?;
        let (psn, length) = (self.expected, place.range.len());
        self.expected = psn.plus(packets(length, self.mtu));
        self.count_message();
        self.jobs.push_back(Job::Read { psn, place, sent: 0 });
        Ok(Delivery::answered(Operation::ReadRequest, length as u64))
    }

    fn change(
        &mut self,
        row: &OpcodeRow,
        packet: &Transport<'_>,
        memory: &mut Memory,
    ) -> Result<Delivery, Refusal> {
        let opcode = (DropReason::Opcode, NakCode::InvalidRequest);
        let atomic = packet.extended.atomic_eth.filter(|_| self.partial.is_none()).ok_or(opcode)?;
        if !atomic.virtual_address.is_multiple_of(8) {
            return Err((DropReason::Key, NakCode::InvalidRequest));
        }
        if !self.access.atomic {
            return Err((DropReason::Key, NakCode::RemoteAccess));
        }
        let result = memory.change(&atomic, |number| match row.operation {
            Operation::FetchAdd => number.wrapping_add(atomic.swap_or_add),
            _ if number == atomic.compare => atomic.swap_or_add,
            _ => number,
        });
        let original = result.ok_or((DropReason::Key, NakCode::RemoteAccess))?;
        let psn = self.expected;
        self.expected = psn.next();
        self.count_message();
        if self.atomics.len() == usize::from(RESOURCES) {
            self.atomics.pop_front();
        }
        self.atomics.push_back((psn, original));
        self.jobs.push_back(Job::Atomic { psn, original });
        Ok(Delivery::answered(row.operation, 8))
    }

    /// The next response: its headers, with destination 0, and the place of its payload.
    pub fn next_response(&mut self) -> Option<(Bth, ExtendedHeaders, Place)> {
        let message_sequence_number = self.messages;
        let aeth = |syndrome| Some(Aeth { syndrome, message_sequence_number });
        let none = ExtendedHeaders::NONE;
        let bth = |opcode, psn| Bth::new(opcode, proto::ids::QueuePairNumber::truncate(0), psn);
        match self.jobs.front_mut()? {
            Job::Read { psn, place, sent } => {
                let (length, mtu) = (place.range.len(), self.mtu as usize);
                let count = packets(length, self.mtu);
                let begin = *sent as usize * mtu;
                let part = place.part(begin..length.min(begin + mtu));
                let number = psn.plus(*sent);
                *sent += 1;
                let opcode = match (*sent == 1, *sent == count) {
                    (true, true) => Opcode::RC_READ_RESPONSE_ONLY,
                    (true, false) => Opcode::RC_READ_RESPONSE_FIRST,
                    (false, true) => Opcode::RC_READ_RESPONSE_LAST,
                    (false, false) => Opcode::RC_READ_RESPONSE_MIDDLE,
                };
                if *sent == count {
                    self.jobs.pop_front();
                }
                let aeth =
                    aeth(Syndrome::ACK).filter(|_| opcode != Opcode::RC_READ_RESPONSE_MIDDLE);
                Some((bth(opcode, number), ExtendedHeaders { aeth, ..none }, part))
            }
            job => {
                let (opcode, psn, syndrome, original) = match *job {
                    Job::Acknowledge(psn) => (Opcode::RC_ACKNOWLEDGE, psn, Syndrome::ACK, None),
                    Job::Refuse(psn, syndrome) => (Opcode::RC_ACKNOWLEDGE, psn, syndrome, None),
                    Job::Atomic { psn, original } => {
                        (Opcode::RC_ATOMIC_ACKNOWLEDGE, psn, Syndrome::ACK, Some(original))
                    }
                    Job::Read { .. } => return None,
                };
                self.jobs.pop_front();
                let atomic_ack_eth = original.map(|original| AtomicAckEth { original });
                let extended = ExtendedHeaders { aeth: aeth(syndrome), atomic_ack_eth, ..none };
                Some((bth(opcode, psn), extended, Place::default()))
            }
        }
    }
}

/// Packets of a message with this length; an empty one has one packet.
pub fn packets(length: usize, mtu: u32) -> u32 {
    (length as u64).div_ceil(u64::from(mtu)).max(1) as u32
}
