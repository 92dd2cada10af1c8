//! Queue pairs of the agent: their states and attributes. Source: IBTA Vol 1, 10.3.1, 11.2.5.2.

use super::{Object, Registered};
use crate::host::HostStack;
use crate::host::connection;
use crate::host::datagram::DatagramPair;
use crate::host::endpoint::{Endpoint, Program};
use crate::host::frames::Peer;
use crate::host::memory::Place;
use crate::host::neighbour::Resolution;
use crate::host::queue_pair::{Agreement, QueuePair};
use crate::host::receives::{Behaviour, Receive, Receives};
use crate::host::requester::{Depth, Patience, Requester};
use crate::host::responder::RESOURCES;
use proto::ids::{MacAddress, Psn, QueuePairNumber};
use proto::units::Instant;
use std::collections::VecDeque;
use verbs::answer::{Answer, Refusal};
use verbs::attributes::{Handle, QpAttributes, Service, State};
use verbs::call::Call;
use verbs::work::Places;

/// Work requests of a queue at most.
const DEPTH_MAX: u32 = 4096;
/// The wait of RNR NAKs if the client names none: code 12, 0.64 ms.
const RNR_TIMER: u8 = 12;
/// Code 0 asks for no timer; this is the longest time that a code names, 2.4 hours.
const LONGEST: u8 = 31;

/// A queue pair of the agent.
#[derive(Debug)]
pub struct Pair {
    pub service: Service,
    pub number: QueuePairNumber,
    /// Index of its memory.
    pub domain: usize,
    pub send_cq: Handle,
    pub receive_cq: Handle,
    pub send_depth: usize,
    pub receive_depth: usize,
    /// What the client has set, and the state.
    pub attributes: QpAttributes,
    /// Receive requests that are posted before it is connected.
    pub receives: VecDeque<Receive>,
    /// Where READs and atomics go that are not complete.
    pub answers: VecDeque<Place>,
}

impl Pair {
    /// The state.
    pub fn state(&self) -> State {
        self.attributes.state.unwrap_or(State::Reset)
    }
}

/// `later` where it has a value, otherwise `earlier`.
fn merged(earlier: &QpAttributes, later: &QpAttributes) -> QpAttributes {
    macro_rules! merge {
        ($($name:ident)*) => { QpAttributes { $($name: later.$name.or(earlier.$name),)* } };
    }
    merge!(state pkey_index port access qkey path_mtu destination receive_psn send_psn address
        responder_resources initiator_depth min_rnr_timer timeout retry_count rnr_retry)
}

fn may_go(from: State, to: State) -> bool {
    use State::{Error, Init, Reset, Rtr, Rts};
    matches!((from, to), (_, Reset | Error) | (Reset | Init, Init) | (Init, Rtr) | (Rtr | Rts, Rts))
}

fn needed<T>(value: Option<T>, name: &str) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::invalid(format!("this state needs {name}")))
}

impl HostStack {
    /// Executes a call about a queue pair.
    pub(super) fn execute_pair(&mut self, call: &Call, now: Instant) -> Result<Answer, Refusal> {
        match call {
            Call::CreateQp { .. } => self.create_pair(call),
            Call::ModifyQp { qp, attributes } => {
                self.modify(*qp, attributes, now).map(|()| Answer::Done)
            }
            Call::QueryQp { qp } => Ok(Answer::Attributes(self.agent.pair(*qp)?.attributes)),
            _ => Err(Refusal::invalid("not about a queue pair")),
        }
    }

    fn create_pair(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let Call::CreateQp { pd, service, send_cq, receive_cq, send_depth, receive_depth } = *call
        else {
            return Err(Refusal::invalid("not a queue pair"));
        };
        let domain = self.agent.domain(pd)?;
        self.agent.queue(send_cq)?;
        self.agent.queue(receive_cq)?;
        if service == Service::Uc {
            return Err(Refusal::unsupported("nicd has no UC for its agent"));
        }
        if send_depth.max(receive_depth) > DEPTH_MAX {
            return Err(Refusal::limit(format!("a queue has at most {DEPTH_MAX} entries")));
        }
        let number = self.free_number();
        let pair = Pair {
            service,
            number,
            domain,
            send_cq,
            receive_cq,
            send_depth: send_depth as usize,
            receive_depth: receive_depth as usize,
            attributes: QpAttributes::to(State::Reset),
            receives: VecDeque::new(),
            answers: VecDeque::new(),
        };
        let needs = [pd, send_cq, receive_cq];
        let handle = self.agent.objects.add(Object::Qp(Box::new(pair)), &needs);
        Ok(Answer::Qp { handle, number: number.get() })
    }

    fn modify(
        &mut self,
        handle: Handle,
        later: &QpAttributes,
        now: Instant,
    ) -> Result<(), Refusal> {
        let pair = self.agent.pair(handle)?;
        let (from, number, service) = (pair.state(), pair.number, pair.service);
        let to = later.state.unwrap_or(from);
        if from != to && !may_go(from, to) {
            return Err(Refusal::new("EINVAL", format!("no way from {from:?} to {to:?}")));
        }
        let wanted = merged(&pair.attributes, later);
        match (to, service) {
            (State::Reset, _) => {
                self.end_pair(number);
                let pair = self.agent.pair(handle)?;
                pair.receives.clear();
                pair.answers.clear();
                pair.attributes = QpAttributes::to(State::Reset);
                return Ok(());
            }
            (State::Error, _) => self.fail_pair(handle, number),
            (State::Rtr, Service::Ud) if from != to => self.open_datagrams(handle, &wanted)?,
            (State::Rtr, _) if from != to => self.connect_pair(handle, &wanted, now)?,
            (State::Rts, Service::Ud) => {
                let psn = Psn::truncate(needed(wanted.send_psn, "send_psn")?);
                if let Some(pair) = self.datagrams.iter_mut().find(|pair| pair.number == number)
                    && from != to
                {
                    pair.psn = psn;
                }
            }
            (State::Rts, _) => self.start_sending(handle, &wanted, from != to)?,
            _ => {}
        }
        self.agent.pair(handle)?.attributes = wanted;
        Ok(())
    }

    fn endpoint_of(&mut self, number: QueuePairNumber) -> Option<&mut Endpoint> {
        self.endpoints.iter_mut().find(|endpoint| endpoint.pair.agreement.number == number)
    }

    fn open_datagrams(&mut self, handle: Handle, wanted: &QpAttributes) -> Result<(), Refusal> {
        let queue_key = needed(wanted.qkey, "qkey")?;
        let pair = self.agent.pair(handle)?;
        let receives = std::mem::take(&mut pair.receives);
        let (number, domain, sends) = (pair.number, pair.domain, VecDeque::new());
        let psn = Psn::default();
        let pair = DatagramPair { handle, number, queue_key, domain, receives, sends, psn };
        self.datagrams.push(pair);
        Ok(())
    }

    /// INIT to RTR.
    fn connect_pair(
        &mut self,
        handle: Handle,
        wanted: &QpAttributes,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mtu = connection::mtu(needed(wanted.path_mtu, "path_mtu")?);
        let mtu = mtu.filter(|mtu| *mtu <= self.mtu);
        let mtu = mtu.ok_or_else(|| Refusal::invalid("the path MTU is above that of the link"))?;
        let (ip, traffic_class) = self.peer(&needed(wanted.address, "address")?)?;
        let remote = QueuePairNumber::truncate(needed(wanted.destination, "destination")?);
        let expected = Psn::truncate(needed(wanted.receive_psn, "receive_psn")?);
        if wanted.responder_resources.is_some_and(|count| count > RESOURCES) {
            return Err(Refusal::limit(format!("there are {RESOURCES} responder resources")));
        }
        let resolved = self.neighbours.resolve(ip, now);
        self.flush_unresolved(now);
        let (mac, is_unresolved) = match resolved {
            Resolution::Known(mac) => (mac, false),
            Resolution::Asked => (MacAddress::from_number(0), true),
        };
        let pair = self.agent.pair(handle)?;
        let agreement = Agreement {
            number: pair.number,
            remote,
            peer: Peer { mac, ip },
            traffic_class,
            mtu,
            starting_psn: Psn::default(),
            expected,
            // It sends nothing before it has these attributes.
            patience: Patience { timeout: connection::time(LONGEST), retries: 0, rnr_retries: 0 },
            depth: Depth { work: 0, answered: 0 },
        };
        let behaviour = Behaviour {
            access: wanted.access.unwrap_or_default(),
            rnr_timer: wanted.min_rnr_timer.unwrap_or(RNR_TIMER) & 31,
            receives: Receives::Posted(std::mem::take(&mut pair.receives)),
        };
        self.endpoints.push(Endpoint {
            pair: QueuePair::new(agreement, behaviour),
            program: Program::Agent(handle),
            domain: pair.domain,
            heard: now,
            is_unresolved,
        });
        Ok(())
    }

    /// RTR to RTS.
    fn start_sending(
        &mut self,
        handle: Handle,
        wanted: &QpAttributes,
        is_new: bool,
    ) -> Result<(), Refusal> {
        let first = Psn::truncate(needed(wanted.send_psn, "send_psn")?);
        let timeout = match needed(wanted.timeout, "timeout")? {
            0 => LONGEST,
            code => code,
        };
        let patience = Patience {
            timeout: connection::time(timeout),
            retries: needed(wanted.retry_count, "retry_count")?,
            rnr_retries: needed(wanted.rnr_retry, "rnr_retry")?,
        };
        let pair = self.agent.pair(handle)?;
        let answered = wanted.initiator_depth.unwrap_or(0);
        let (number, depth) = (pair.number, Depth { work: pair.send_depth, answered });
        if let Some(endpoint) = self.endpoint_of(number).filter(|_| is_new) {
            let pair = &mut endpoint.pair;
            pair.requester = Requester::new(pair.agreement.mtu, first, patience, depth);
        }
        Ok(())
    }

    /// Moves a queue pair to the error state.
    fn fail_pair(&mut self, handle: Handle, number: QueuePairNumber) {
        let is_pair = |endpoint: &&mut Endpoint| endpoint.pair.agreement.number == number;
        if let Some(endpoint) = self.endpoints.iter_mut().find(is_pair) {
            self.agent.on_failed(handle, &mut endpoint.pair);
        } else {
            let flushed = self.agent.pair(handle).map(|pair| std::mem::take(&mut pair.receives));
            for receive in flushed.unwrap_or_default() {
                self.agent.flush(handle, true, receive.id);
            }
        }
        self.end_datagrams(number);
    }

    fn end_datagrams(&mut self, number: QueuePairNumber) {
        let Some(at) = self.datagrams.iter().position(|pair| pair.number == number) else { return };
        let DatagramPair { handle, receives, sends, .. } = self.datagrams.remove(at);
        sends.iter().for_each(|send| self.agent.flush(handle, false, send.id));
        receives.iter().for_each(|receive| self.agent.flush(handle, true, receive.id));
    }

    /// Removes a queue pair from the host stack.
    pub(super) fn end_pair(&mut self, number: QueuePairNumber) {
        if self.endpoint_of(number).is_some() {
            self.drop_endpoint(number);
        }
        self.datagrams.retain(|pair| pair.number != number);
    }

    /// No host answers for `ip`: queue pairs that wait for its address fail.
    pub(in crate::host) fn give_up_address(&mut self, ip: std::net::IpAddr) {
        use crate::host::requester::Failure;
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.is_unresolved) {
            let pair = &mut endpoint.pair;
            if pair.agreement.peer.ip == ip
                && let Program::Agent(handle) = endpoint.program
            {
                pair.requester.fail(Failure::Retries);
                self.agent.on_failed(handle, pair);
            }
        }
        for pair in &mut self.datagrams {
            while let Some(first) =
                pair.sends.pop_front_if(|first| first.to == ip && first.mac.is_none())
            {
                self.agent.on_datagram_sent(pair.handle, first.id, false);
            }
        }
    }

    /// The first place in the memory of `domain`, and the distance to the next.
    pub(super) fn local_places(
        &mut self,
        places: &Places,
        count: u32,
        domain: usize,
    ) -> Result<Vec<Place>, Refusal> {
        let Registered { domain: of, key, length } = self.agent.memory(places.memory)?;
        if of != domain {
            return Err(Refusal::invalid("the memory is of another protection domain"));
        }
        verbs::memory::contains(length, places, count)?;
        let place = |k| {
            // The last place is within the region, so no offset is beyond 64 bits.
            let begin = places.offset_of(k).unwrap_or(0) as usize;
            Place { key, range: begin..begin + places.length as usize }
        };
        Ok((0..count).map(place).collect())
    }
}
