//! The active side of connection management: queue pairs of the adapter connect to foreign hosts.
//!
//! The queue pair keeps its planned number, and the peer is told to begin at PSN 0, as all planned queue pairs do.

use super::HostStack;
use super::communication::RESPONSE_MAX;
use super::connection::{self, Connection, State};
use super::frames::Peer;
use crate::config::{RemoteConfig, RoceVersion};
use crate::transport::foreign::{ConnectRequest, Terms};
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel};
use proto::units::Instant;
use proto::wire::ethernet::plan;
use proto::wire::infiniband::connection::messages::RequestHead;
use proto::wire::infiniband::connection::{IpAddressing, Message, Path, Reply, Request, reason};
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::{Bth, Reth};
use std::net::{IpAddr, Ipv6Addr};

/// Time that each side may take for an answer: code 18, 1.07 s.
const RESPONSE: u8 = 18;
/// The LID of a port that has none. Source: IBTA Vol 1, A17.4.
const NO_LID: Lid = Lid::new(0xffff);
/// The local ACK timeout that the peer is told: code 19, 2.1 s, as Linux does.
const ACK_TIMEOUT: u8 = 19;
/// Ports of clients begin here. Source: RFC 6335, 6 (dynamic ports).
const CLIENT_PORTS: u16 = 49_152;

impl HostStack {
    /// Asks for a connection of one of the adapter's queue pairs.
    pub fn connect(&mut self, wanted: ConnectRequest, now: Instant) {
        let class = wanted.number.plan().map(|(class, _)| class);
        let is_wanted =
            |remote: &&RemoteConfig| remote.lid == wanted.peer && Some(remote.class) == class;
        let remote = self.remotes.iter().find(is_wanted).copied();
        let Some(remote) = remote else {
            return self.outcomes.push_back((wanted.number, None));
        };
        self.next_id = self.next_id.wrapping_add(1).max(1);
        let local_id = self.next_id;
        let (own, peer): (IpAddr, IpAddr) = match self.version {
            RoceVersion::V2Ipv4 => (self.local.ipv4.into(), plan::ipv4(remote.lid).into()),
            RoceVersion::V2Ipv6 => (self.local.ipv6.into(), plan::ipv6(remote.lid).into()),
        };
        let transaction = self.random.next_u64();
        let request = Request {
            head: self.request_head(local_id, wanted.number, &remote),
            primary: path(own, peer),
            alternate: Path::parse(&[0; Path::LEN]).expect("44 octets"),
        };
        let addressing = addressing(own, peer, CLIENT_PORTS | local_id as u16 & 0x3fff);
        let private = addressing.to_octets();
        let asked = Box::new(Message::Request(request).to_octets(transaction, &private));
        let mut connection = Connection {
            state: State::ReqSent,
            peer,
            local_id,
            remote_id: 0,
            number: wanted.number,
            remote: QueuePairNumber::truncate(0),
            transaction,
            awaited: None,
            due: Instant::NEVER,
            interval: connection::time(RESPONSE),
            repetitions: 0,
        };
        connection.await_answer(asked.clone(), now);
        if self.connections.add(connection) {
            self.send_datagram(peer, &asked, now);
        } else {
            self.counters.lost += 1;
            self.outcomes.push_back((wanted.number, None));
        }
        self.flush_unresolved(now);
    }

    fn request_head(
        &self,
        local_id: u32,
        number: QueuePairNumber,
        remote: &RemoteConfig,
    ) -> RequestHead {
        let (retry_count, rnr_retry_count) = self.limits;
        RequestHead {
            local_id,
            reserved32: 0,
            service: IpAddressing::service(remote.port),
            guid: connection::guid(self.local.mac),
            reserved32b: 0,
            queue_key: 0,
            queue_pair: number,
            responder_resources: 0,
            context: 0,
            initiator_depth: 0,
            remote_context: 0,
            remote_response_timeout: RESPONSE,
            transport: 0,
            flow_control: false,
            starting_psn: Psn::default(),
            local_response_timeout: RESPONSE.min(RESPONSE_MAX),
            retry_count,
            partition_key: Bth::DEFAULT_PARTITION,
            path_mtu: connection::mtu_code(remote.mtu.get() as u32),
            rdc_exists: false,
            rnr_retry_count,
            cm_retries: connection::REPETITIONS,
            shared_receive_queue: false,
            extended_transport: 0,
        }
    }

    /// Handles a REP: the connection is ready to use.
    pub(super) fn on_reply(
        &mut self,
        peer: &Peer,
        mad: &Mad,
        reply: &Reply,
        private: &[u8],
        now: Instant,
    ) {
        let found = self.connections.find(reply.remote_id, peer.ip);
        let asked = found.filter(|known| match known.state {
            State::ReqSent | State::RepWait => true,
            // The RTU was lost.
            State::Established => known.remote_id == reply.local_id,
            _ => false,
        });
        let Some(connection) = asked else {
            let refused = (1, reply.local_id);
            return self.reject(peer.ip, mad, refused, reason::INVALID_ID, now);
        };
        let is_new = connection.state != State::Established;
        (connection.remote_id, connection.remote) = (reply.local_id, reply.queue_pair);
        connection.establish();
        let (ready, number, transaction) =
            (connection.ready(), connection.number, connection.transaction);
        self.send_datagram(peer.ip, &ready.to_octets(transaction, &[]), now);
        let asked = number.plan().zip(plan_number(peer.ip));
        let remote = asked.and_then(|((class, _), lid)| {
            self.remotes.iter().find(|remote| (remote.lid, remote.class) == (lid, class))
        });
        if let Some(remote) = remote.filter(|_| is_new) {
            let place = Reth::parse(private).ok().filter(|place| place.dma_length > 0);
            let terms = Terms {
                mac: peer.mac,
                remote: reply.queue_pair,
                starting_psn: reply.starting_psn,
                mtu: remote.mtu.get() as u32,
                memory: place.map(|place| (place.virtual_address, place.remote_key)),
            };
            self.counters.connected += 1;
            self.outcomes.push_back((number, Some(terms)));
        }
    }

    /// The next connection of the adapter's queue pairs that is set up (with its terms), or lost.
    pub fn poll_outcome(&mut self) -> Option<(QueuePairNumber, Option<Terms>)> {
        self.outcomes.pop_front()
    }
}

/// The number of a foreign host by its address.
fn plan_number(ip: IpAddr) -> Option<Lid> {
    match ip {
        IpAddr::V4(ip) => plan::adapter_of_ipv4(ip),
        IpAddr::V6(ip) => plan::adapter_of_ipv6(ip),
    }
}

fn gid(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn path(own: IpAddr, peer: IpAddr) -> Path {
    Path {
        local_lid: NO_LID,
        remote_lid: NO_LID,
        local_gid: gid(own),
        remote_gid: gid(peer),
        flow_label: 0,
        reserved6: 0,
        packet_rate: 0,
        traffic_class: 0,
        hop_limit: 64,
        service_level: ServiceLevel::truncate(0),
        subnet_local: false,
        reserved3: 0,
        ack_timeout: ACK_TIMEOUT,
        reserved3b: 0,
    }
}

/// The header of the private data. IPv4 addresses fill the last four octets. Source: IBTA Vol 1, A11.
fn addressing(own: IpAddr, peer: IpAddr, source_port: u16) -> IpAddressing {
    let field = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => Ipv6Addr::from_bits(ip.to_bits().into()),
        IpAddr::V6(ip) => ip,
    };
    IpAddressing {
        major: 0,
        minor: 0,
        ip_version: if own.is_ipv4() { 4 } else { 6 },
        reserved4: 0,
        source_port,
        source: field(own),
        destination: field(peer),
    }
}
