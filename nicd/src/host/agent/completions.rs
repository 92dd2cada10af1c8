//! Completions of the agent's work requests.

use super::Agent;
use crate::host::datagram::Arrived;
use crate::host::memory::{Memory, Place};
use crate::host::queue_pair::QueuePair;
use crate::host::receives::Receives;
use crate::host::requester::Failure;
use crate::host::responder::Delivery;
use crate::host::work::Work;
use proto::wire::infiniband::NakCode;
use proto::wire::infiniband::opcode::Operation;
use std::collections::VecDeque;
use verbs::BATCH_MAX;
use verbs::answer::Refusal;
use verbs::attributes::{Handle, State};
use verbs::runs::{self, Run};
use verbs::work::{Completed, Completion, Status};

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    entries: u32,
    completions: VecDeque<Completion>,
    /// A completion found no room.
    overran: bool,
}

impl CompletionQueue {
    /// An empty queue with room for `entries`.
    pub fn new(entries: u32) -> CompletionQueue {
        CompletionQueue { entries, completions: VecDeque::new(), overran: false }
    }

    fn push(&mut self, completion: Completion) {
        if self.completions.len() < self.entries as usize {
            self.completions.push_back(completion);
        } else {
            self.overran = true;
        }
    }

    /// Takes at most `count` completions.
    ///
    /// # Errors
    /// If that is too many, or a completion was lost. Source: IBTA Vol 1, 11.6.3.1 (CQ error).
    pub fn take(&mut self, count: u32) -> Result<Vec<Run>, Refusal> {
        if count > BATCH_MAX {
            return Err(Refusal::limit(format!("a call polls {BATCH_MAX} completions at most")));
        }
        if self.overran {
            return Err(Refusal::new("overrun", "the completion queue was full"));
        }
        let taken = self.completions.len().min(count as usize);
        let mut found = Vec::new();
        self.completions.drain(..taken).for_each(|entry| runs::push(&mut found, entry));
        Ok(found)
    }
}

impl Agent {
    /// Adds a completion to the queue for sends or for receives of a queue pair.
    fn complete(&mut self, handle: Handle, is_receive: bool, mut completion: Completion) {
        let Ok(pair) = self.pair(handle) else { return };
        completion.number = pair.number.get();
        let queue = if is_receive { pair.receive_cq } else { pair.send_cq };
        if let Ok(queue) = self.queue(queue) {
            queue.push(completion);
        }
    }

    /// A peer's message is complete.
    pub fn on_delivery(&mut self, handle: Handle, delivery: &Delivery) {
        let Some(id) = delivery.receive else { return };
        let is_send = delivery.operation == Operation::Send;
        let completed = match (delivery.overflows, is_send) {
            (true, _) => Completed::Unknown,
            (false, true) => Completed::Receive,
            (false, false) => Completed::ReceiveWrite,
        };
        let completion = Completion {
            completed,
            length: if delivery.overflows { 0 } else { delivery.length as u32 },
            immediate: delivery.immediate.map(u32::from_be_bytes),
            ..of(id, if delivery.overflows { Status::LocalLength } else { Status::Success })
        };
        self.complete(handle, true, completion);
    }

    /// A datagram has arrived.
    pub fn on_arrived(&mut self, handle: Handle, arrived: &Arrived) {
        let completion = Completion {
            completed: Completed::Receive,
            length: arrived.length,
            immediate: arrived.immediate.map(u32::from_be_bytes),
            source: arrived.source.get(),
            ..of(arrived.receive, Status::Success)
        };
        self.complete(handle, true, completion);
    }

    /// A datagram has left, or its receiver has no address.
    pub fn on_datagram_sent(&mut self, handle: Handle, id: u64, is_sent: bool) {
        let status = if is_sent { Status::Success } else { Status::Other };
        let completed = if is_sent { Completed::Send } else { Completed::Unknown };
        self.complete(handle, false, Completion { completed, ..of(id, status) });
    }

    /// Work is complete. What it has fetched goes to memory.
    pub fn on_done(
        &mut self,
        handle: Handle,
        done: impl Iterator<Item = Work>,
        memory: &mut Memory,
    ) {
        for work in done {
            let fetched = work.is_answered();
            if fetched && let Some(place) = self.pair(handle).ok().and_then(Self::next_answer) {
                memory.write(&place, &work.octets);
            }
            let completed = match work.operation {
                Operation::Send => Completed::Send,
                Operation::Write => Completed::Write,
                Operation::ReadRequest => Completed::Read,
                Operation::CompareSwap => Completed::CompareSwap,
                _ => Completed::FetchAdd,
            };
            let is_read = work.operation == Operation::ReadRequest;
            let length = if is_read { work.octets.len() as u32 } else { 0 };
            let completion = Completion { completed, length, ..of(work.id, Status::Success) };
            self.complete(handle, false, completion);
        }
    }

    fn next_answer(pair: &mut super::Pair) -> Option<Place> {
        pair.answers.pop_front()
    }

    /// The queue pair is in the error state: what is open is flushed, behind the work that has failed.
    pub fn on_failed(&mut self, handle: Handle, pair: &mut QueuePair) {
        let mut status = pair.requester.failure().map_or(Status::Flushed, status_of);
        pair.requester.fail(Failure::Ended);
        pair.responder.fail();
        for work in pair.requester.flush() {
            self.complete(handle, false, of(work.id, status));
            status = Status::Flushed;
        }
        if let Receives::Posted(posted) = &mut pair.responder.receives {
            for receive in posted.drain(..) {
                self.complete(handle, true, of(receive.id, Status::Flushed));
            }
        }
        if let Ok(pair) = self.pair(handle) {
            pair.answers.clear();
            pair.attributes.state = Some(State::Error);
        }
    }

    /// Flushes a work request that was posted in the error state.
    pub fn flush(&mut self, handle: Handle, is_receive: bool, id: u64) {
        self.complete(handle, is_receive, of(id, Status::Flushed));
    }
}

/// A completion without what only some have.
fn of(id: u64, status: Status) -> Completion {
    Completion {
        id,
        completed: Completed::Unknown,
        status,
        length: 0,
        immediate: None,
        number: 0,
        source: 0,
        vendor: 0,
    }
}

fn status_of(failure: Failure) -> Status {
    match failure {
        Failure::Refused(NakCode::RemoteAccess) => Status::RemoteAccess,
        Failure::Refused(NakCode::RemoteOperational) => Status::RemoteOperation,
        Failure::Refused(_) => Status::RemoteInvalidRequest,
        Failure::Retries => Status::RetriesExceeded,
        Failure::RnrRetries => Status::RnrRetriesExceeded,
        Failure::BadResponse => Status::BadResponse,
        Failure::Ended => Status::Flushed,
    }
}
