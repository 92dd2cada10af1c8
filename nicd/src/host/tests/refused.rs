//! Each fault of a packet for the host has its own drop reason, and what the host does is counted.

use super::connection::table::CONNECTIONS_MAX;
use super::datagram::DatagramPair;
use super::memory::{Memory, Place};
use super::queue_pair::{Agreement, QueuePair};
use super::receives::{Behaviour, Receive, Receives};
use super::requester::{Depth, Patience};
use super::responder::Responder;
use super::*;
use ::verbs::attributes::{Access, Handle};
use proto::counters::DropReason;
use proto::units::Duration;
use proto::wire::infiniband::{AtomicEth, Ieth};

const MTU: u32 = 1024;
const KEY: u32 = 7;
const START: u64 = 0x1000;

fn psn(n: u32) -> Psn {
    Psn::truncate(n)
}

fn number(n: u32) -> QueuePairNumber {
    QueuePairNumber::truncate(n)
}

fn packet(opcode: Opcode, at: u32, extended: ExtendedHeaders, payload: &[u8]) -> Transport<'_> {
    Transport { bth: Bth::new(opcode, number(5), psn(at)), extended, payload, pad: &[] }
}

fn reth(remote_key: u32, dma_length: u32) -> ExtendedHeaders {
    let reth = Some(Reth { virtual_address: START, remote_key, dma_length });
    ExtendedHeaders { reth, ..ExtendedHeaders::NONE }
}

fn atomic(remote_key: u32) -> ExtendedHeaders {
    atomic_at(START, remote_key)
}

fn atomic_at(virtual_address: u64, remote_key: u32) -> ExtendedHeaders {
    let atomic = AtomicEth { virtual_address, remote_key, swap_or_add: 1, compare: 0 };
    ExtendedHeaders { atomic_eth: Some(atomic), ..ExtendedHeaders::NONE }
}

fn memory() -> Memory {
    let mut memory = Memory::default();
    memory.register(KEY, START, 4096, Access::ALL);
    memory
}

/// The reason for which a responder that expects PSN 0 drops the last of these packets.
fn dropped(behaviour: Behaviour, packets: &[Transport<'_>]) -> Option<DropReason> {
    let (mut responder, mut memory) = (Responder::new(MTU, psn(0), behaviour), memory());
    let handle = |packet: &Transport<'_>| {
        let row = packet.bth.opcode.row().expect("an opcode of RC");
        responder.on_request(row, packet, &mut memory).err()
    };
    packets.iter().map(handle).last().flatten()
}

#[test]
fn each_fault_of_a_request_has_its_own_reason() {
    const NONE: ExtendedHeaders = ExtendedHeaders::NONE;
    let full = [0; MTU as usize];
    let [send, first] = [Opcode::RC_SEND_ONLY, Opcode::RC_SEND_FIRST];
    let [write, read] = [Opcode::RC_WRITE_ONLY, Opcode::RC_READ_REQUEST];
    let good = packet(send, 0, NONE, b"1");
    let begun = packet(first, 0, NONE, &full);
    let bad_key = packet(write, 0, reth(KEY + 1, 4), b"1234");
    let cases: [(&[Transport<'_>], Option<DropReason>); 15] = [
        (&[good], None),
        (&[bad_key, packet(send, 1, NONE, b"1")], Some(DropReason::QueuePair)),
        (&[packet(send, 1, NONE, b"1")], Some(DropReason::OutOfSequence)),
        (&[good, good], Some(DropReason::Duplicate)),
        (&[packet(Opcode::RC_ACKNOWLEDGE, 0, NONE, b"")], Some(DropReason::Opcode)),
        (&[begun, packet(send, 1, NONE, b"1")], Some(DropReason::Opcode)),
        (&[packet(first, 0, NONE, b"1")], Some(DropReason::PacketLength)),
        (&[packet(write, 0, reth(KEY, 5), b"1234")], Some(DropReason::PacketLength)),
        (&[bad_key], Some(DropReason::Key)),
        (&[begun, packet(read, 1, reth(KEY, 4), b"")], Some(DropReason::Opcode)),
        (&[packet(read, 0, reth(KEY + 1, 4), b"")], Some(DropReason::Key)),
        (&[begun, packet(Opcode::RC_FETCH_ADD, 1, atomic(KEY), b"")], Some(DropReason::Opcode)),
        (&[packet(Opcode::RC_FETCH_ADD, 0, atomic(KEY + 1), b"")], Some(DropReason::Key)),
        (&[packet(Opcode::RC_FETCH_ADD, 0, atomic_at(START + 4, KEY), b"")], Some(DropReason::Key)),
        (&[packet(read, 0, reth(KEY, 4), b"")], None),
    ];
    for (at, (packets, reason)) in cases.into_iter().enumerate() {
        assert_eq!(dropped(Behaviour::service(), packets), reason, "case {at}");
    }
    let no_access = || Behaviour { access: Access::default(), ..Behaviour::service() };
    for closed in [
        packet(write, 0, reth(KEY, 4), b"1234"),
        packet(read, 0, reth(KEY, 4), b""),
        packet(Opcode::RC_FETCH_ADD, 0, atomic(KEY), b""),
    ] {
        assert_eq!(dropped(no_access(), &[closed]), Some(DropReason::Key));
    }
    let busy = Receives::Posted(Default::default());
    let busy = Behaviour { receives: busy, ..Behaviour::service() };
    assert_eq!(dropped(busy, &[good]), Some(DropReason::ReceiverNotReady));
    // So many answers may wait.
    let reads: Vec<_> = (0..65).map(|at| packet(read, at, reth(KEY, 4), b"")).collect();
    assert_eq!(dropped(Behaviour::service(), &reads[..64]), None);
    assert_eq!(dropped(Behaviour::service(), &reads), Some(DropReason::ReceiverNotReady));
}

#[test]
fn a_queue_pair_drops_what_is_not_of_its_service_or_partition() {
    let agreement = Agreement {
        number: number(5),
        remote: number(6),
        peer: Peer { mac: local(200).mac, ip: local(200).ipv4.into() },
        traffic_class: DATA,
        mtu: MTU,
        starting_psn: psn(0),
        expected: psn(0),
        patience: Patience { timeout: Duration::from_us(100), retries: 7, rnr_retries: 7 },
        depth: Depth { work: 16, answered: 16 },
    };
    let mut foreign = packet(Opcode::RC_SEND_ONLY, 0, ExtendedHeaders::NONE, b"1");
    foreign.bth.partition_key = 0x8001;
    let ieth = ExtendedHeaders { ieth: Some(Ieth { remote_key: KEY }), ..ExtendedHeaders::NONE };
    for (packet, reason) in [
        (packet(Opcode::UC_SEND_ONLY, 0, ExtendedHeaders::NONE, b"1"), DropReason::Opcode),
        (packet(Opcode::RC_SEND_ONLY_INVALIDATE, 0, ieth, b"1"), DropReason::Opcode),
        (foreign, DropReason::PartitionKey),
    ] {
        let mut pair = QueuePair::new(agreement, Behaviour::service());
        let outcome = pair.on_packet(&packet, &mut memory(), us(1), &mut Vec::new());
        assert_eq!(outcome, Err(reason));
    }
}

#[test]
fn each_fault_of_a_datagram_has_its_own_reason() {
    let deth = |queue_key| {
        let deth = Some(Deth { queue_key, reserved8: 0, source: number(6) });
        ExtendedHeaders { deth, ..ExtendedHeaders::NONE }
    };
    let receive = Receive { id: 1, place: Place { key: KEY, range: 0..64 } };
    let mut foreign = packet(Opcode::UD_SEND_ONLY, 0, deth(9), b"1");
    foreign.bth.partition_key = 0x8001;
    let none = ExtendedHeaders::NONE;
    for (packet, receives, reason) in [
        (packet(Opcode::UD_SEND_ONLY, 0, deth(9), b"1"), 1, None),
        (packet(Opcode::RC_SEND_ONLY, 0, none, b"1"), 1, Some(DropReason::Opcode)),
        (foreign, 1, Some(DropReason::PartitionKey)),
        (packet(Opcode::UD_SEND_ONLY, 0, deth(8), b"1"), 1, Some(DropReason::Key)),
        (packet(Opcode::UD_SEND_ONLY, 0, deth(9), b"1"), 0, Some(DropReason::ReceiverNotReady)),
        (packet(Opcode::UD_SEND_ONLY, 0, deth(9), &[0; 65]), 1, Some(DropReason::PacketLength)),
    ] {
        let mut pair = DatagramPair {
            handle: Handle::default(),
            number: number(5),
            queue_key: 9,
            domain: 0,
            receives: vec![receive.clone(); receives].into(),
            sends: Default::default(),
            psn: psn(0),
        };
        assert_eq!(pair.on_packet(&packet, &[0; 20], &mut memory()).err(), reason);
    }
}

#[test]
fn a_frame_for_the_host_is_delivered_or_dropped_under_one_reason() {
    let qp1 = |opcode, queue_key| {
        let deth = Some(Deth { queue_key, reserved8: 0, source: number(1) });
        let extended = ExtendedHeaders { deth, ..ExtendedHeaders::NONE };
        let extended =
            if opcode == Opcode::UD_SEND_ONLY { extended } else { ExtendedHeaders::NONE };
        let bth = Bth::new(opcode, number(1), psn(0));
        Packet { from: number(1), bth, extended, traffic_class: TrafficClass::from_octet(0) }
    };
    let unknown = || Packet {
        from: number(9),
        bth: Bth::new(Opcode::RC_SEND_ONLY, number(77), psn(0)),
        extended: ExtendedHeaders::NONE,
        traffic_class: TrafficClass::from_octet(0),
    };
    let elsewhere: IpAddr = plan::ipv4(Lid::new(3)).into();
    let (here, peer): (IpAddr, _) = (local(1).ipv4.into(), local(200));
    for (ip, packet, reason) in [
        (elsewhere, unknown(), DropReason::NotForUs),
        (here, unknown(), DropReason::QueuePair),
        (here, qp1(Opcode::RC_SEND_ONLY, 0), DropReason::Opcode),
        (here, qp1(Opcode::UD_SEND_ONLY, 5), DropReason::Key),
    ] {
        let mut bench = Bench::new();
        bench.to.ip = ip;
        bench.roce(packet, &[0; 256]);
        bench.assert_balance((0, 0), Some(reason));
    }
    for to in [here, local(1).ipv6.into()] {
        let mut bench = Bench::new();
        let echo = [if to.is_ipv4() { 8 } else { 128 }, 0, 0, 0, 0x12, 0x34, 0, 1];
        let ping = peer.icmp(&mut bench.pool, &Peer { mac: local(1).mac, ip: to }, 64, &echo);
        let mut damaged = ping.clone();
        bench.exchange(ping);
        bench.assert_balance((1, 1), None);
        damaged.octets[14 + if to.is_ipv4() { Ipv4::LEN } else { Ipv6::LEN } + 5] ^= 1;
        bench.exchange(damaged);
        bench.assert_balance((1, 1), Some(DropReason::Checksum));
    }
}

#[test]
fn answers_beyond_the_queue_of_the_host_are_counted() {
    let mut bench = Bench::new();
    let to = Peer { mac: local(1).mac, ip: local(1).ipv4.into() };
    let ping = bench.peer.icmp(&mut bench.pool, &to, 64, &[8, 0, 0, 0, 0x12, 0x34, 0, 1]);
    let now = bench.now;
    for _ in 0..=OUT_MAX {
        let ping = Frame { integrity: Integrity::Unchecked, ..ping.clone() };
        bench.nic.handle_frame(PortNumber::from_index(0), ping, now, now);
    }
    assert_eq!(bench.counter("host_overruns"), 1);
}

#[test]
fn connection_datagrams_are_counted_in_both_directions() {
    let mut bench = Bench::new();
    bench.connect(7174);
    // REQ and RTU came, and REP went.
    let counters = ["host_cm_received", "host_cm_sent", "host_accepted"];
    assert_eq!(counters.map(|name| bench.counter(name)), [2, 1, 1]);
}

#[test]
fn connections_beyond_the_tables_are_counted() {
    use crate::config::RemoteConfig;
    use crate::transport::foreign::ConnectRequest;
    let (peer, class) = (Lid::new(9), 0);
    let remote = RemoteConfig { lid: peer, class, port: 7174, mtu: config(1).link.mtu };
    let host = Some(HostConfig { remotes: vec![remote], ..HostConfig::default() });
    let config = crate::config::NicConfig { host, ..on_ethernet(config(1), RoceVersion::V2Ipv4) };
    let mut host = HostStack::new(&config).expect("it has a host");
    let request = ConnectRequest { number: QueuePairNumber::planned(class, peer), peer };
    (0..CONNECTIONS_MAX + 3).for_each(|_| host.connect(request, us(1)));
    // The peer's address is unknown, so the requests wait.
    let expected = (3, (CONNECTIONS_MAX - UNRESOLVED_MAX) as u64);
    assert_eq!((host.counters.lost, host.counters.overruns), expected);
    assert_eq!(host.outcomes.len(), 3, "the adapter knows of those that are lost");
}
