//! Work requests of the agent.

use crate::host::HostStack;
use crate::host::datagram::Datagram;
use crate::host::endpoint::Endpoint;
use crate::host::memory::Place;
use crate::host::receives::{Receive, Receives};
use crate::host::work::Work;
use proto::ids::QueuePairNumber;
use proto::wire::infiniband::Reth;
use proto::wire::infiniband::opcode::Operation as Wire;
use verbs::BATCH_MAX;
use verbs::answer::{Answer, Refusal};
use verbs::attributes::{Handle, Service, State};
use verbs::call::Call;
use verbs::work::{Operation, ReceiveWork, SendWork};

/// The largest message in octets. Source: IBTA Vol 1, 9.7.1 (2^31), bounded by the memory of nicd.
pub const MESSAGE_MAX: u32 = 1 << 24;

impl HostStack {
    /// Executes a call that posts.
    pub(super) fn post(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let bounded = |count: u32| {
            let limit = || Refusal::limit(format!("a call posts 1 to {BATCH_MAX} work requests"));
            (1..=BATCH_MAX).contains(&count).then_some(()).ok_or_else(limit)
        };
        match call {
            Call::PostSend { qp, work, count } => {
                bounded(*count)?;
                self.post_send(*qp, work, *count)?;
            }
            Call::PostReceive { qp, work, count } => {
                bounded(*count)?;
                self.post_receive(*qp, work, *count)?;
            }
            _ => return Err(Refusal::invalid("nothing to post")),
        }
        Ok(Answer::Done)
    }

    fn post_send(&mut self, qp: Handle, work: &SendWork, count: u32) -> Result<(), Refusal> {
        let pair = self.agent.pair(qp)?;
        let (number, domain, state) = (pair.number, pair.domain, pair.state());
        let (service, depth) = (pair.service, pair.send_depth);
        if !matches!(state, State::Rts | State::Error) {
            return Err(Refusal::new("EINVAL", format!("the queue pair is in {state:?}")));
        }
        if work.places.length > MESSAGE_MAX {
            return Err(Refusal::limit(format!("a message has at most {MESSAGE_MAX} octets")));
        }
        let places = self.local_places(&work.places, count, domain)?;
        if state == State::Error {
            (0..count).for_each(|k| self.agent.flush(qp, false, id(work.id, k)));
            return Ok(());
        }
        if service == Service::Ud {
            return self.post_datagrams(number, work, places, depth);
        }
        check(work, self.agent.pair(qp)?.attributes.initiator_depth.unwrap_or(0))?;
        let is_pair = |endpoint: &&mut Endpoint| endpoint.pair.agreement.number == number;
        let endpoint = self.endpoints.iter_mut().find(is_pair);
        let requester =
            &mut endpoint.ok_or_else(|| Refusal::unknown("queue pair", qp))?.pair.requester;
        if requester.room() < count as usize {
            return Err(Refusal::new("ENOMEM", "the send queue is full"));
        }
        let memory = &self.domains[domain];
        for (k, place) in (0..count).zip(places) {
            let work = wire_work(work, k, memory.read(&place));
            if work.is_answered() {
                self.agent.pair(qp)?.answers.push_back(place);
            }
            requester.post(work);
        }
        Ok(())
    }

    fn post_datagrams(
        &mut self,
        number: QueuePairNumber,
        work: &SendWork,
        places: Vec<Place>,
        depth: usize,
    ) -> Result<(), Refusal> {
        let receiver =
            work.receiver.ok_or_else(|| Refusal::invalid("a datagram needs a receiver"))?;
        let (to, traffic_class) = self.agent.receiver(receiver.ah)?;
        if work.operation != Operation::Send || work.places.length > self.mtu {
            return Err(Refusal::invalid("a datagram is a SEND not longer than the MTU"));
        }
        let mac = self.neighbours.known(to);
        let pair = self.datagrams.iter_mut().find(|pair| pair.number == number);
        let pair = pair.ok_or_else(|| Refusal::invalid("the queue pair has ended"))?;
        if depth - pair.sends.len().min(depth) < places.len() {
            return Err(Refusal::new("ENOMEM", "the send queue is full"));
        }
        let memory = &self.domains[pair.domain];
        for (k, place) in (0..).zip(places) {
            pair.sends.push_back(Datagram {
                id: id(work.id, k),
                to,
                mac,
                traffic_class,
                number: QueuePairNumber::truncate(receiver.number),
                queue_key: receiver.qkey,
                immediate: immediate(work, k),
                octets: memory.read(&place).to_vec(),
                solicited: work.solicited,
            });
        }
        Ok(())
    }

    fn post_receive(&mut self, qp: Handle, work: &ReceiveWork, count: u32) -> Result<(), Refusal> {
        let pair = self.agent.pair(qp)?;
        let (number, domain, depth) = (pair.number, pair.domain, pair.receive_depth);
        let state = pair.state();
        if state == State::Reset {
            return Err(Refusal::new("EINVAL", "the queue pair is in Reset"));
        }
        let places = self.local_places(&work.places, count, domain)?;
        if state == State::Error {
            (0..count).for_each(|k| self.agent.flush(qp, true, id(work.id, k)));
            return Ok(());
        }
        let connected = self.endpoints.iter_mut().find_map(|endpoint| {
            let pair = &mut endpoint.pair;
            match &mut pair.responder.receives {
                Receives::Posted(posted) if pair.agreement.number == number => Some(posted),
                _ => None,
            }
        });
        let datagrams = self.datagrams.iter_mut().find(|pair| pair.number == number);
        let queue = match connected.or(datagrams.map(|pair| &mut pair.receives)) {
            Some(queue) => queue,
            None => &mut self.agent.pair(qp)?.receives,
        };
        if depth - queue.len().min(depth) < places.len() {
            return Err(Refusal::new("ENOMEM", "the receive queue is full"));
        }
        let receive = |(k, place)| Receive { id: id(work.id, k), place };
        queue.extend((0..).zip(places).map(receive));
        Ok(())
    }
}

fn id(first: u64, k: u32) -> u64 {
    first.wrapping_add(u64::from(k))
}

fn immediate(work: &SendWork, k: u32) -> Option<[u8; 4]> {
    work.immediate.map(|immediate| immediate.wrapping_add(k).to_be_bytes())
}

/// Refuses work that lacks a part.
fn check(work: &SendWork, initiator_depth: u8) -> Result<(), Refusal> {
    let is_atomic = matches!(work.operation, Operation::CompareSwap | Operation::FetchAdd);
    let missing = match work.operation {
        Operation::Send => false,
        Operation::Write | Operation::Read => work.remote.is_none(),
        Operation::CompareSwap | Operation::FetchAdd => {
            work.remote.is_none() || work.operands.is_none()
        }
    };
    if missing {
        return Err(Refusal::invalid("the operation needs a remote place or operands"));
    }
    if is_atomic && work.places.length != 8 {
        return Err(Refusal::invalid("the result of an atomic has 8 octets"));
    }
    if (is_atomic || work.operation == Operation::Read) && initiator_depth == 0 {
        return Err(Refusal::new("EINVAL", "the queue pair has initiator_depth 0"));
    }
    Ok(())
}

/// The k-th work request for the requester; `octets` are those of its place.
fn wire_work(work: &SendWork, k: u32, octets: &[u8]) -> Work {
    let step = u64::from(k);
    let reth =
        work.remote.map_or(Reth { virtual_address: 0, remote_key: 0, dma_length: 0 }, |remote| {
            Reth {
                virtual_address: remote.address.wrapping_add(remote.stride.wrapping_mul(step)),
                remote_key: remote.rkey,
                dma_length: work.places.length,
            }
        });
    let operands = work.operands.unwrap_or_default();
    let stepped = |first: u64, by: u64| first.wrapping_add(by.wrapping_mul(step));
    let (operation, sends) = match work.operation {
        Operation::Send => (Wire::Send, true),
        Operation::Write => (Wire::Write, true),
        Operation::Read => (Wire::ReadRequest, false),
        Operation::CompareSwap => (Wire::CompareSwap, false),
        Operation::FetchAdd => (Wire::FetchAdd, false),
    };
    Work {
        id: id(work.id, k),
        operands: (
            stepped(operands.compare, operands.compare_step),
            stepped(operands.swap_or_add, operands.swap_or_add_step),
        ),
        immediate: immediate(work, k).filter(|_| sends),
        fence: work.fence,
        solicited: work.solicited,
        ..Work::new(operation, reth, if sends { octets.to_vec() } else { Vec::new() })
    }
}
