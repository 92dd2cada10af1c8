//! A NIC with a host and a peer that is driven by hand.

use super::frames::{Local, Packet, Peer, TrafficClass};
use super::*;
use crate::config::{HostConfig, RoceVersion, ServeConfig, ServiceKind};
use crate::nic::Nic;
use crate::nic::tests::cable::{config, on_ethernet, us};
use proptest::prelude::*;
use proto::counters::{DeviceReading, DropReason};
use proto::device::{Device, Instrumented};
use proto::ids::{Dscp, Lid, PortNumber};
use proto::wire::infiniband::connection::messages::RequestHead;
use proto::wire::infiniband::connection::{
    Disconnect, IpAddressing, Message, Path, Ready, Reply, Request,
};
use proto::wire::infiniband::{Aeth, AtomicEth, NakCode, Reth, Syndrome, Transport};
use proto::wire::internet::{ArpOperation, Ipv4, Ipv6, icmp};
use std::net::Ipv6Addr;

mod refused;
mod verbs;

/// The traffic class of the peer's data.
const DATA: TrafficClass = TrafficClass { dscp: Dscp::truncate(0), ecn: Ecn::Capable0 };

/// The NIC with number 1, and the host with number 200 at the other end of its cable.
struct Bench {
    nic: Nic,
    peer: Local,
    /// Addresses of the NIC as the peer knows them.
    to: Peer,
    pool: FramePool,
    now: Instant,
}

fn local(number: u16) -> Local {
    let number = Lid::new(number);
    Local {
        mac: plan::mac(number),
        ipv4: plan::ipv4(number),
        ipv6: plan::ipv6(number),
        dscp: DATA.dscp,
        tag: None,
    }
}

impl Bench {
    fn new() -> Bench {
        let serve = [ServiceKind::Rping, ServiceKind::Perftest]
            .map(|kind| ServeConfig { kind, port: kind.port() });
        let host = Some(HostConfig { serve: serve.to_vec(), ..HostConfig::default() });
        let config = on_ethernet(config(1), RoceVersion::V2Ipv4);
        let own = local(1);
        Bench {
            nic: Nic::new(crate::config::NicConfig { host, ..config }).expect("it is valid"),
            peer: local(200),
            to: Peer { mac: own.mac, ip: own.ipv4.into() },
            pool: FramePool::default(),
            now: us(1),
        }
    }

    /// Gives the NIC a frame, and returns what it sends then.
    fn exchange(&mut self, frame: Frame) -> Vec<Frame> {
        self.now = self.now + proto::units::Duration::from_us(100);
        let unchecked = Frame { integrity: Integrity::Unchecked, ..frame };
        self.nic.handle_frame(PortNumber::from_index(0), unchecked, self.now, self.now);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Frame> {
        let mut sent = Vec::new();
        loop {
            while let Some(departure) = self.nic.poll_transmit(self.now) {
                self.now = departure.at;
                sent.push(departure.frame);
            }
            match self.nic.poll_timeout() {
                Some(due) if due <= self.now => self.nic.handle_timeout(self.now),
                _ => return sent,
            }
        }
    }

    /// Lets time pass up to the NIC's next deadline.
    fn wait(&mut self) -> Vec<Frame> {
        self.now = self.nic.poll_timeout().expect("the NIC waits for something").max(self.now);
        self.nic.handle_timeout(self.now);
        self.drain()
    }

    fn roce(&mut self, packet: Packet, payload: &[u8]) -> Vec<Frame> {
        let frame = self.peer.roce(&mut self.pool, &self.to, &packet, payload);
        self.exchange(frame)
    }

    /// Sends a connection message and returns the connection messages that come back.
    fn manage(&mut self, message: &Message, private: &[u8]) -> Vec<Message> {
        let qp1 = QueuePairNumber::truncate(1);
        let deth = Deth { queue_key: Mad::QUEUE_KEY, reserved8: 0, source: qp1 };
        let packet = Packet {
            from: qp1,
            bth: Bth::new(Opcode::UD_SEND_ONLY, qp1, Psn::default()),
            extended: ExtendedHeaders { deth: Some(deth), ..ExtendedHeaders::NONE },
            traffic_class: TrafficClass::from_octet(0),
        };
        let answers = self.roce(packet, &message.to_octets(7, private));
        messages(&answers)
    }

    /// Connects queue pair 0x99 to the service at `port`; the REP.
    fn connect(&mut self, port: u16) -> Reply {
        let (request, private) = request(port, 0x99);
        let answers = self.manage(&request, &private);
        let [Message::Reply(reply)] = answers[..] else { panic!("{answers:?}") };
        let ready = Ready { local_id: 5, remote_id: reply.local_id };
        assert_eq!(self.manage(&Message::Ready(ready), &[]), []);
        reply
    }

    fn reading(&mut self) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.nic.read(self.now, &mut reading);
        reading
    }

    /// The NIC has delivered and made so many frames, and dropped one for this reason or none.
    fn assert_balance(&mut self, delivered_and_injected: (u64, u64), dropped: Option<DropReason>) {
        let reading = self.reading();
        let drops = reading.ports[0].drops.iter().filter(|(_, frames)| *frames > 0);
        let expected: Vec<_> = dropped.into_iter().map(|reason| (reason, 1)).collect();
        assert_eq!(drops.collect::<Vec<_>>(), expected);
        let balance = reading.balance;
        assert_eq!((balance.delivered, balance.injected), delivered_and_injected);
    }

    fn counter(&mut self, name: &str) -> u64 {
        let reading = self.reading();
        let found = reading.ports[0].named.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }
}

/// A REQ of queue pair `queue_pair` for the service at `port`, and its private data.
fn request(port: u16, queue_pair: u32) -> (Message, Vec<u8>) {
    let (peer, own) = (local(200).ipv4.to_ipv6_mapped(), local(1).ipv4.to_ipv6_mapped());
    let mut head = RequestHead::parse(&[0; RequestHead::LEN]).expect("52 octets");
    head.local_id = 5 + queue_pair;
    head.service = IpAddressing::service(port);
    head.queue_pair = QueuePairNumber::truncate(queue_pair);
    (head.initiator_depth, head.responder_resources) = (128, 128);
    (head.starting_psn, head.partition_key) = (Psn::truncate(1000), 0xffff);
    (head.path_mtu, head.retry_count, head.rnr_retry_count) = (3, 7, 7);
    head.local_response_timeout = 18;
    let none = Path::parse(&[0; Path::LEN]).expect("44 octets");
    let primary = Path { local_gid: peer, remote_gid: own, ack_timeout: 14, ..none };
    let addressing = IpAddressing {
        major: 0,
        minor: 0,
        ip_version: 4,
        reserved4: 0,
        source_port: 40_000,
        source: Ipv6Addr::from_bits(peer.to_bits() as u32 as u128),
        destination: Ipv6Addr::from_bits(own.to_bits() as u32 as u128),
    };
    let request = Request { head, primary, alternate: none };
    (Message::Request(request), addressing.to_octets().to_vec())
}

fn messages(frames: &[Frame]) -> Vec<Message> {
    let packets = frames.iter().filter_map(|frame| RocePacket::parse(&frame.octets).ok()?);
    packets
        .filter(|packet| packet.transport.bth.destination.get() == 1)
        .map(|packet| Message::parse(packet.transport.payload).expect("a message").1)
        .collect()
}

/// Headers and payload of every RoCE frame of a connection.
fn data(frames: &[Frame]) -> Vec<(Bth, ExtendedHeaders, Vec<u8>)> {
    let packets = frames.iter().filter_map(|frame| RocePacket::parse(&frame.octets).ok()?);
    packets
        .map(|packet| packet.transport)
        .filter(|transport| transport.bth.destination.get() != 1)
        .map(|Transport { bth, extended, payload, .. }| (bth, extended, payload.to_vec()))
        .collect()
}

#[test]
fn arp_requests_and_pings_are_answered_in_both_versions_of_ip() {
    let mut bench = Bench::new();
    let (peer, own) = (bench.peer, local(1));
    let asked = neighbour::question(&peer, &mut bench.pool, own.ipv4.into());
    let answers = bench.exchange(asked);
    let arp = Arp::parse(&answers[0].octets[14..]).expect("an ARP packet");
    assert_eq!((arp.operation, arp.sender_hardware), (ArpOperation::Reply, own.mac));
    assert_eq!((arp.sender_protocol, arp.target_protocol), (own.ipv4, peer.ipv4));
    assert_eq!(answers[0].octets.len(), 60, "padded");
    let other = neighbour::question(&peer, &mut bench.pool, plan::ipv4(Lid::new(3)).into());
    assert!(bench.exchange(other).is_empty(), "a question for another host");

    let asked = neighbour::question(&peer, &mut bench.pool, own.ipv6.into());
    let answers = bench.exchange(asked);
    let message = &answers[0].octets[14 + Ipv6::LEN..];
    assert!(icmp::is_intact_v6(message, own.ipv6, peer.ipv6));
    let shown = icmp::Neighbour::parse(message).expect("an advertisement");
    assert_eq!((shown.kind, shown.solicited, shown.target), (136, true, own.ipv6));

    for (to, request, reply) in [(IpAddr::from(own.ipv4), 8, 0), (IpAddr::from(own.ipv6), 128, 129)]
    {
        let echo = [request, 0, 0, 0, 0x12, 0x34, 0, 1, 9, 9, 9];
        let ping = peer.icmp(&mut bench.pool, &Peer { mac: own.mac, ip: to }, 64, &echo);
        let mut damaged = ping.clone();
        let answers = bench.exchange(ping);
        let header = if to.is_ipv4() { 14 + Ipv4::LEN } else { 14 + Ipv6::LEN };
        let message = &answers[0].octets[header..header + echo.len()];
        assert_eq!((message[0], &message[4..]), (reply, &echo[4..]));
        damaged.octets[header + 8] ^= 1;
        assert!(bench.exchange(damaged).is_empty(), "a wrong checksum");
    }
    assert_eq!(bench.counter("host_echoes_answered"), 2);
    assert_eq!(bench.counter("host_neighbours_answered"), 2);
}

#[test]
fn a_request_is_refused_with_the_reason_of_the_standard() {
    let mut bench = Bench::new();
    let refused = |bench: &mut Bench, change: &dyn Fn(&mut Request)| {
        let (Message::Request(mut request), private) = request(7174, 0x99) else { panic!() };
        change(&mut request);
        let answers = bench.manage(&Message::Request(request), &private);
        let [Message::Reject(reject)] = answers[..] else { panic!("{answers:?}") };
        assert_eq!((reject.remote_id, reject.message), (request.head.local_id, 0));
        reject.reason
    };
    let service = |request: &mut Request| request.head.service = IpAddressing::service(9);
    assert_eq!(refused(&mut bench, &service), 8);
    assert_eq!(refused(&mut bench, &|request| request.head.service = 0x0111_0000), 8);
    assert_eq!(refused(&mut bench, &|request| request.head.path_mtu = 5), 26, "above the link's");
    assert_eq!(refused(&mut bench, &|request| request.head.transport = 1), 9);
    assert_eq!(
        refused(&mut bench, &|request| request.primary.remote_gid = Ipv6Addr::LOCALHOST),
        12
    );
    assert_eq!(bench.counter("host_refused"), 5);
}

#[test]
fn a_request_of_a_connected_queue_pair_ends_the_stale_connection() {
    let mut bench = Bench::new();
    bench.connect(7174);
    let (Message::Request(mut request), private) = request(7174, 0x99) else { panic!() };
    request.head.local_id = 77;
    let answers = bench.manage(&Message::Request(request), &private);
    let [Message::Disconnect(end), Message::Reject(reject)] = answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((end.remote_id, reject.remote_id, reject.reason), (5 + 0x99, 77, 10));
}

#[test]
fn an_answer_is_repeated_and_given_up_after_fifteen_times() {
    let mut bench = Bench::new();
    let (asked, private) = request(7174, 0x99);
    let first = bench.manage(&asked, &private);
    assert_eq!(bench.manage(&asked, &private), first, "a repeated REQ gets the same REP");
    let begin = bench.now;
    for _ in 0..15 {
        let repeated = bench.wait();
        assert_eq!(messages(&repeated), first);
    }
    let waited = bench.now.since(begin).as_ps() / 15;
    assert!(waited.abs_diff(4_096_000 << 18) < 1_000_000_000, "{waited} ps between two");
    assert!(bench.wait().is_empty());
    assert_eq!((bench.counter("host_queue_pairs"), bench.counter("host_cm_repeated")), (0, 16));
}

#[test]
fn an_end_is_confirmed_each_time_it_is_asked_for() {
    let mut bench = Bench::new();
    let reply = bench.connect(7174);
    let disconnect = Disconnect {
        local_id: 5 + 0x99,
        remote_id: reply.local_id,
        queue_pair: reply.queue_pair,
        reserved8: 0,
    };
    for _ in 0..2 {
        let answers = bench.manage(&Message::Disconnect(disconnect), &[]);
        let [Message::DisconnectReply(confirmed)] = answers[..] else { panic!("{answers:?}") };
        assert_eq!((confirmed.local_id, confirmed.remote_id), (reply.local_id, 5 + 0x99));
    }
    assert_eq!(bench.counter("host_queue_pairs"), 0);
    assert!(bench.wait().is_empty(), "Timewait ends");
    bench.connect(7174);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_frame_makes_the_host_panic(
        body in prop::collection::vec(any::<u8>(), 0..400),
        kind in prop::sample::select(vec![0x0806u16, 0x0800, 0x86dd]),
        number in 0u32..3, protocol in prop::sample::select(vec![1u8, 17, 58]),
    ) {
        let mut bench = Bench::new();
        let reply = bench.connect(7174);
        let mut body = body;
        // Mostly plausible headers, so that the rest is reached.
        if let Some(start) = body.first_chunk_mut::<20>() && kind == 0x0800 {
            (start[0], start[9]) = (0x45, protocol);
        }
        let mac = bench.to.mac;
        let frame = bench.peer.ethernet(&mut bench.pool, mac, kind, |octets| octets.extend_from_slice(&body));
        bench.exchange(frame);
        let to = [1, reply.queue_pair.get(), 7][number as usize];
        let opcode = Opcode(body.first().copied().unwrap_or(0));
        let set = opcode.extended_headers();
        let rest = body.get(1..).unwrap_or_default();
        if let Ok(extended) = ExtendedHeaders::parse(set, rest, 0) && rest.len() >= set.octets() {
            let bth = Bth::new(opcode, QueuePairNumber::truncate(to), reply.starting_psn);
            let packet = Packet { from: QueuePairNumber::truncate(0x99), bth, extended, traffic_class: DATA };
            bench.roce(packet, &rest[set.octets()..]);
        }
    }
}
