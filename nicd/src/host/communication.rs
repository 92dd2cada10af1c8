//! The connection manager: what each message of QP1 does to the connections and queue pairs.

use super::HostStack;
use super::connection::{self, Connection, State};
use super::endpoint::{Endpoint, Program};
use super::frames::Peer;
use super::queue_pair::{Agreement, QueuePair};
use super::receives::Behaviour;
use super::requester::{Depth, Patience};
use super::responder::RESOURCES;
use super::service::Session;
use super::service::perftest::Control;
use super::service::rping::Rping;
use crate::config::ServiceKind;
use crate::transport::receive::{Disposition, Outcome};
use proto::counters::DropReason;
use proto::ids::{Psn, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::connection::{
    DisconnectReply, IpAddressing, Message, Reject, Request, reason,
};
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::opcode::Transport as Service;
use proto::wire::infiniband::{Opcode, Transport};
use std::net::{IpAddr, Ipv6Addr};

/// A connection whose peer was silent for so long makes room for a new one of the same peer.
const SILENCE: Duration = Duration::from_us(10_000_000);
/// Queue pairs at most.
const ENDPOINTS_MAX: usize = 64;

impl HostStack {
    /// Handles a packet for QP1.
    pub(super) fn on_management(
        &mut self,
        peer: &Peer,
        packet: &Transport<'_>,
        now: Instant,
    ) -> Outcome {
        let is_datagram = packet.bth.opcode == Opcode::UD_SEND_ONLY
            && packet.bth.opcode.row().is_some_and(|row| row.transport == Service::Ud);
        let deth = packet.extended.deth.filter(|_| is_datagram).ok_or(DropReason::Opcode)?;
        if deth.queue_key != Mad::QUEUE_KEY {
            return Err(DropReason::Key);
        }
        let parsed = Message::parse(packet.payload).map_err(|error| error.drop_reason())?;
        let (mad, message, private) = parsed;
        self.counters.datagrams += 1;
        // The sender is on the link, so its frame shows its MAC address.
        self.neighbours.learn(*peer);
        self.on_message(peer, &mad, &message, private, now);
        Ok(Disposition::Delivered)
    }

    fn on_message(
        &mut self,
        peer: &Peer,
        mad: &Mad,
        message: &Message,
        private: &[u8],
        now: Instant,
    ) {
        match message {
            Message::Request(request) => self.on_request(peer, mad, request, private, now),
            Message::Ready(ready) => {
                if let Some(connection) = self.connections.find(ready.remote_id, peer.ip)
                    && connection.state == State::RepSent
                {
                    connection.establish();
                }
            }
            Message::Wait(wait) => {
                if let Some(connection) = self.connections.find(wait.remote_id, peer.ip)
                    && connection.awaited.is_some()
                {
                    connection.due = now + connection::time(wait.service_timeout.min(RESPONSE_MAX));
                    if connection.state == State::ReqSent {
                        connection.state = State::RepWait;
                    }
                }
            }
            Message::Reject(reject) => self.on_reject(peer.ip, reject, now),
            Message::Disconnect(disconnect) => {
                // An end that is asked for twice is confirmed twice.
                let (local_id, remote_id) = (disconnect.remote_id, disconnect.local_id);
                if let Some(connection) = self.connections.find(local_id, peer.ip) {
                    connection.retire(now);
                    let number = connection.number;
                    self.drop_endpoint(number);
                }
                let reply = Message::DisconnectReply(DisconnectReply { local_id, remote_id });
                self.send_datagram(peer.ip, &reply.to_octets(mad.transaction, &[]), now);
            }
            Message::DisconnectReply(reply) => {
                if let Some(connection) = self.connections.find(reply.remote_id, peer.ip)
                    && connection.state == State::DreqSent
                {
                    connection.retire(now);
                    let number = connection.number;
                    self.drop_endpoint(number);
                }
            }
            Message::Reply(reply) => self.on_reply(peer, mad, reply, private, now),
        }
    }

    fn on_reject(&mut self, peer: IpAddr, reject: &Reject, now: Instant) {
        let found = match reject.remote_id {
            0 => self.connections.find_remote(reject.local_id, peer),
            id => self.connections.find(id, peer),
        };
        let Some(connection) = found else { return };
        let asks = matches!(connection.state, State::ReqSent | State::RepWait);
        let may_come = asks && reject.reason == reason::INVALID_SERVICE;
        // The program there may not have started yet: the REQ is repeated.
        if may_come || matches!(connection.state, State::Timewait | State::DreqSent) {
            return;
        }
        connection.retire(now);
        let number = connection.number;
        self.drop_endpoint(number);
    }

    /// Handles a REQ: accepts, refuses, or repeats the answer.
    fn on_request(
        &mut self,
        peer: &Peer,
        mad: &Mad,
        request: &Request,
        private: &[u8],
        now: Instant,
    ) {
        let remote_id = request.head.local_id;
        if let Some(known) = self.connections.find_remote(remote_id, peer.ip) {
            if known.state == State::RepSent
                && let Some(answer) = known.awaited.clone()
            {
                self.counters.repetitions += 1;
                self.send_datagram(peer.ip, &answer, now);
            }
            return;
        }
        let remote = request.head.queue_pair;
        if let Some(stale) = self.connections.of_remote(remote, peer.ip) {
            let number = stale.number;
            self.close(number, now);
            return self.refuse(peer.ip, mad, request, reason::STALE_CONNECTION, now);
        }
        match self.admit(peer, request, private, now) {
            Ok((service, mtu, session)) => {
                self.accept(peer, mad, request, (service, mtu, session), now)
            }
            Err(reason) => self.refuse(peer.ip, mad, request, reason, now),
        }
    }

    /// The service, path MTU and program of a request, or the reason of a refusal.
    fn admit(
        &mut self,
        peer: &Peer,
        request: &Request,
        private: &[u8],
        now: Instant,
    ) -> Result<(usize, u32, Session), u16> {
        let head = &request.head;
        if head.transport != 0 {
            return Err(reason::INVALID_TRANSPORT);
        }
        if !connection::is_own(request.primary.remote_gid, self.local.mac) {
            return Err(reason::INVALID_GID);
        }
        let port = IpAddressing::port(head.service).ok_or(reason::INVALID_SERVICE)?;
        let addressing = IpAddressing::parse(private).map_err(|_| reason::CONSUMER)?;
        if addressing.major != 0 || !matches!(addressing.ip_version, 4 | 6) {
            return Err(reason::CONSUMER);
        }
        let service = self.services.iter().position(|service| service.config.port == port);
        let service = service.ok_or(reason::INVALID_SERVICE)?;
        let mtu = connection::mtu(head.path_mtu).filter(|mtu| *mtu <= self.mtu);
        let mtu = mtu.ok_or(reason::INVALID_MTU)?;
        if self.endpoints.len() >= ENDPOINTS_MAX {
            return Err(reason::NO_QUEUE_PAIR);
        }
        let session = match self.services[service].config.kind {
            ServiceKind::Rping => Session::Rping(Rping::default()),
            ServiceKind::Perftest => self.perftest(service, peer.ip, now)?,
        };
        Ok((service, mtu, session))
    }

    /// Whether a connection to perftest is a control connection or one that is measured.
    fn perftest(&mut self, service: usize, peer: IpAddr, now: Instant) -> Result<Session, u16> {
        let control = self.endpoints.iter_mut().find_map(|endpoint| {
            let is_of_peer = endpoint.pair.agreement.peer.ip == peer;
            match &mut endpoint.program {
                Program::Service { session: Session::Control(control), service: of }
                    if is_of_peer && *of == service =>
                {
                    Some((endpoint.pair.agreement.number, endpoint.heard, control))
                }
                _ => None,
            }
        });
        let Some((number, heard, control)) = control else {
            return Ok(Session::Control(Control::default()));
        };
        if control.admits_data() {
            return Ok(Session::Data);
        }
        // perftest's own server has stopped to listen by now.
        if now.since(heard) > SILENCE {
            self.close(number, now);
        }
        Err(reason::INVALID_SERVICE)
    }

    fn accept(
        &mut self,
        peer: &Peer,
        mad: &Mad,
        request: &Request,
        (service, mtu, session): (usize, u32, Session),
        now: Instant,
    ) {
        let number = self.free_number();
        let expected = Psn::truncate(self.random.next_u64() as u32 & Psn::MAX);
        self.next_id = self.next_id.wrapping_add(1).max(1);
        let (local_id, mac) = (self.next_id, self.local.mac);
        let reply = connection::reply(request, local_id, number, expected, RESOURCES, mac);
        let answer = Box::new(Message::Reply(reply).to_octets(mad.transaction, &[]));
        let mut connection = Connection {
            state: State::RepSent,
            peer: peer.ip,
            local_id,
            remote_id: request.head.local_id,
            number,
            remote: request.head.queue_pair,
            transaction: mad.transaction,
            awaited: None,
            due: Instant::NEVER,
            interval: connection::time(request.head.local_response_timeout.min(RESPONSE_MAX)),
            repetitions: 0,
        };
        connection.await_answer(answer.clone(), now);
        if !self.connections.add(connection) {
            return self.refuse(peer.ip, mad, request, reason::NO_RESOURCES, now);
        }
        let patience: Patience = connection::patience(request);
        let agreement = Agreement {
            number,
            remote: request.head.queue_pair,
            peer: *peer,
            traffic_class: self.local.traffic_class(),
            mtu,
            starting_psn: request.head.starting_psn,
            expected,
            patience,
            depth: Depth::SERVICE,
        };
        self.endpoints.push(Endpoint {
            pair: QueuePair::new(agreement, Behaviour::service()),
            program: Program::Service { session, service },
            domain: self.services[service].domain,
            heard: now,
            is_unresolved: false,
        });
        self.counters.accepted += 1;
        self.send_datagram(peer.ip, &answer, now);
    }

    fn refuse(&mut self, to: IpAddr, mad: &Mad, request: &Request, reason: u16, now: Instant) {
        self.counters.refused += 1;
        self.reject(to, mad, (0, request.head.local_id), reason, now);
    }

    /// Sends a REJ. `message` is what is refused, 0 a REQ or 1 a REP, and `remote_id` its sender's identifier.
    pub(super) fn reject(
        &mut self,
        to: IpAddr,
        mad: &Mad,
        (message, remote_id): (u8, u32),
        reason: u16,
        now: Instant,
    ) {
        let none = Ipv6Addr::UNSPECIFIED;
        let reject = Message::Reject(Reject {
            local_id: 0,
            remote_id,
            message,
            reserved6: 0,
            information_length: 0,
            reserved1: false,
            reason,
            information: none,
            information2: none,
            information3: none,
            information4: none,
            information5: 0,
        });
        self.send_datagram(to, &reject.to_octets(mad.transaction, &[]), now);
    }

    /// Ends the connection of a queue pair: asks the peer with a DREQ. The queue pair stays until the peer answers.
    pub(super) fn close(&mut self, number: QueuePairNumber, now: Instant) {
        let Some(connection) = self.connections.of_queue_pair(number) else { return };
        if connection.state == State::DreqSent {
            return;
        }
        connection.state = State::DreqSent;
        let transaction = connection.transaction.wrapping_add(1);
        let message = Box::new(connection.disconnect().to_octets(transaction, &[]));
        connection.await_answer(message.clone(), now);
        let peer = connection.peer;
        self.send_datagram(peer, &message, now);
    }

    /// Repeats, gives up or forgets connections whose deadline has passed.
    pub(super) fn expire_connections(&mut self, now: Instant) {
        while let Some(connection) = self.connections.expired(now) {
            let (number, id, peer) = (connection.number, connection.local_id, connection.peer);
            match connection.awaited.clone() {
                Some(message) if connection.repetitions > 0 => {
                    connection.repetitions -= 1;
                    connection.due = now + connection.interval;
                    self.counters.repetitions += 1;
                    self.send_datagram(peer, &message, now);
                }
                Some(_) => {
                    connection.retire(now);
                    self.drop_endpoint(number);
                }
                None => self.connections.remove(id),
            }
        }
    }
}

/// The longest code of a response time: 4.3 s. A REQ may ask for hours.
pub(super) const RESPONSE_MAX: u8 = 20;
