//! Queue pairs with the programs behind them: packets to them, and frames from them.

use super::HostStack;
use super::datagram::Datagram;
use super::queue_pair::QueuePair;
use super::service::{self, Exposed, Session};
use crate::transport::receive::{Disposition, Outcome};
use proto::frame::FrameClass;
use proto::ids::QueuePairNumber;
use proto::units::Instant;
use proto::wire::infiniband::Transport;
use proto::wire::infiniband::opcode::Operation;
use verbs::attributes::Handle;

/// What uses a queue pair.
#[derive(Debug)]
pub enum Program {
    /// A service of the configuration.
    Service {
        /// Its state for this connection.
        session: Session,
        /// Index of the service.
        service: usize,
    },
    /// A client of the agent, which knows the queue pair by this handle.
    Agent(Handle),
}

/// A queue pair and the program behind it.
#[derive(Debug)]
pub struct Endpoint {
    /// The queue pair.
    pub pair: QueuePair,
    /// What uses it.
    pub program: Program,
    /// Index of its memory.
    pub domain: usize,
    /// When its peer has last sent something.
    pub heard: Instant,
    /// Its peer's MAC address is not known yet.
    pub is_unresolved: bool,
}

impl Endpoint {
    /// Whether a frame can be made now.
    pub fn has_work(&self) -> bool {
        !self.is_unresolved && self.pair.has_work()
    }
}

impl HostStack {
    /// Hands a packet to the queue pair of the endpoint, and what it completes to the program.
    pub(super) fn on_packet(&mut self, at: usize, packet: &Transport<'_>, now: Instant) -> Outcome {
        let Endpoint { pair, program, domain, heard, .. } = &mut self.endpoints[at];
        *heard = now;
        let memory = &mut self.domains[*domain];
        let result = pair.on_packet(packet, memory, now, &mut self.done);
        self.counters.messages += u64::from(matches!(result, Ok(Some(_))));
        let number = pair.agreement.number;
        match program {
            Program::Service { session, service } => {
                let Exposed { key, start, .. } = self.services[*service].exposed;
                let mut ends = pair.has_failed();
                if let Ok(Some(delivery)) = &result
                    && delivery.operation == Operation::Send
                {
                    let exposed = Exposed { number, key, start };
                    match session.on_message(delivery, &pair.responder.head, &exposed) {
                        Ok(work) => ends |= work.is_some_and(|work| !pair.requester.post(work)),
                        Err(service::Unexpected) => ends = true,
                    }
                }
                for work in self.done.drain(..) {
                    if let Some(next) = session.on_completed(work) {
                        ends |= !pair.requester.post(next);
                    }
                }
                if ends {
                    self.close(number, now);
                }
            }
            Program::Agent(handle) => {
                let handle = *handle;
                if let Ok(Some(delivery)) = &result {
                    self.agent.on_delivery(handle, delivery);
                }
                self.agent.on_done(handle, self.done.drain(..), memory);
                if pair.has_failed() {
                    self.agent.on_failed(handle, pair);
                }
            }
        }
        result.map(|_| Disposition::Delivered)
    }

    /// Hands a packet with its IP header to a datagram queue pair.
    pub(super) fn on_datagram(
        &mut self,
        at: usize,
        packet: &Transport<'_>,
        headers: &[u8],
    ) -> Outcome {
        let pair = &mut self.datagrams[at];
        let arrived = pair.on_packet(packet, headers, &mut self.domains[pair.domain])?;
        self.agent.on_arrived(pair.handle, &arrived);
        self.counters.messages += 1;
        Ok(Disposition::Delivered)
    }

    /// Makes the next frame of a queue pair, one of each in turn.
    pub(super) fn make_frame(&mut self, now: Instant) {
        let (connected, all) = (self.endpoints.len(), self.endpoints.len() + self.datagrams.len());
        for step in 0..all {
            let at = (self.turn + step) % all;
            let is_made = match at.checked_sub(connected) {
                None => self.make_connected(at, now),
                Some(at) => self.make_datagram(at),
            };
            if is_made {
                self.turn = at + 1;
                return;
            }
        }
    }

    fn make_connected(&mut self, at: usize, now: Instant) -> bool {
        let Endpoint { pair, domain, is_unresolved, .. } = &mut self.endpoints[at];
        let peer = pair.agreement.peer;
        if *is_unresolved {
            return false;
        }
        let made = pair.next_packet(&self.domains[*domain], now);
        let Some((packet, payload)) = made else { return false };
        let row = packet.bth.opcode.row();
        let is_ack = row.is_some_and(|row| row.is_acknowledgement());
        let class = if is_ack { FrameClass::Ack } else { FrameClass::Data };
        let frame = self.local.roce(&mut self.pool, &peer, &packet, payload);
        self.out.push_back((frame, class));
        true
    }

    fn make_datagram(&mut self, at: usize) -> bool {
        let pair = &mut self.datagrams[at];
        let Some((peer, packet, Datagram { id, octets, .. })) = pair.next_packet() else {
            return false;
        };
        let frame = self.local.roce(&mut self.pool, &peer, &packet, &octets);
        self.out.push_back((frame, FrameClass::Data));
        self.agent.on_datagram_sent(pair.handle, id, true);
        true
    }

    /// Gives MAC addresses that have become known to the queue pairs that wait for them.
    pub(super) fn settle_addresses(&mut self) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.is_unresolved) {
            let peer = &mut endpoint.pair.agreement.peer;
            if let Some(mac) = self.neighbours.known(peer.ip) {
                (peer.mac, endpoint.is_unresolved) = (mac, false);
            }
        }
        for pair in &mut self.datagrams {
            pair.settle(&self.neighbours);
        }
    }

    /// The queue pair `number` ends.
    pub(super) fn drop_endpoint(&mut self, number: QueuePairNumber) {
        let ended = |endpoint: &Endpoint| endpoint.pair.agreement.number == number;
        if let Some(at) = self.endpoints.iter().position(ended) {
            self.counters.repeated += self.endpoints.remove(at).pair.requester.repeated;
        } else if number.plan().is_some() {
            self.counters.lost += 1;
            self.outcomes.push_back((number, None));
        }
    }

    /// A number that no queue pair has.
    pub(super) fn free_number(&mut self) -> QueuePairNumber {
        loop {
            let number = QueuePairNumber::truncate(self.next_number);
            self.next_number += 1;
            if self.next_number == super::NUMBERS {
                self.next_number = super::FIRST_NUMBER;
            }
            let is_free =
                self.endpoints.iter().all(|endpoint| endpoint.pair.agreement.number != number);
            if is_free && !self.agent.has_number(number) {
                return number;
            }
        }
    }
}
