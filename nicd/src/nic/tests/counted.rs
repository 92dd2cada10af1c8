//! Each fault of a packet has its own drop reason, and each total counts what its name says.

use super::cable::*;
use super::*;
use crate::config::*;
use crate::transport::message::{self, Stamp};
use crate::transport::receive::{Disposition, Outcome};
use ::management::datagram::{DR_DLID, SUBNET_DIRECTED, SUBNET_LID_ROUTED, method};
use ::management::packet::Addresses;
use ::management::records::{Membership, PathRecord};
use ::management::{Datagram, ManagementConfig};
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::ids::{Lid, Psn, QueuePairNumber};
use proto::wire::classify::classify;
use proto::wire::infiniband::{
    Aeth, Bth, Deth, ExtendedHeaders, Grh, Opcode, PacketBuilder, Rdeth, Reth, Syndrome,
};
use std::net::Ipv6Addr;

/// That of every queue pair of the plan.
const QUEUE_KEY: u32 = ::management::records::GROUP_QUEUE_KEY;
const GROUP: Lid = Lid::new(0xc000);
const NONE: ExtendedHeaders = ExtendedHeaders::NONE;
const DELIVERED: Outcome = Ok(Disposition::Delivered);

/// Adapter 2 with the classes RC, UD and UC. A packet for it comes from adapter 1.
fn adapter(management: bool) -> Nic {
    let classes = [Transport::Rc, Transport::Ud, Transport::Uc];
    let classes = classes.map(|transport| class(transport, Operation::Send)).to_vec();
    let management = management.then_some(ManagementConfig { guid: 0x100 });
    Nic::new(NicConfig { classes, management, ..config(2) }).expect("it is valid")
}

/// A queue pair of adapter 2 for packets of adapter `peer`.
fn of(class: u8, peer: u16) -> QueuePairNumber {
    QueuePairNumber::planned(class, Lid::new(peer))
}

fn deth(queue_key: u32, source: QueuePairNumber) -> ExtendedHeaders {
    ExtendedHeaders { deth: Some(Deth { queue_key, reserved8: 0, source }), ..NONE }
}

fn ack() -> ExtendedHeaders {
    let aeth = Aeth { syndrome: Syndrome::ACK, message_sequence_number: 0 };
    ExtendedHeaders { aeth: Some(aeth), ..NONE }
}

fn builder(opcode: Opcode, to: QueuePairNumber, extended: ExtendedHeaders) -> PacketBuilder {
    let bth = Bth::new(opcode, to, Psn::default());
    PacketBuilder { dlid: Lid::new(2), slid: Lid::new(1), extended, ..PacketBuilder::new(bth) }
}

fn made(builder: &PacketBuilder, payload: usize) -> Frame {
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, payload, |_| {}).expect("it is short");
    Frame::intact(FrameKind::Infiniband, octets)
}

fn receive(nic: &mut Nic, frame: &Frame) -> Outcome {
    let headers = &classify(frame.kind, &frame.octets).expect("plain headers");
    let received = ReceivedFrame { frame, headers, arrived: us(1) };
    nic.adapter.receive(&received, us(1))
}

/// All named totals of a port that are not zero.
fn totals(nic: &mut Nic) -> Vec<(String, u64)> {
    let mut reading = DeviceReading::default();
    nic.read(us(1), &mut reading);
    reading.ports.remove(0).named.into_iter().filter(|(_, total)| *total > 0).collect()
}

fn named(all: &[(&str, u64)]) -> Vec<(String, u64)> {
    all.iter().map(|(name, total)| ((*name).to_owned(), *total)).collect()
}

#[test]
fn each_fault_of_a_packet_has_its_own_reason() {
    let ignored: &[(&str, u64)] = &[("rp_cnp_ignored", 1)];
    let packet = |opcode, to, extended, payload| made(&builder(opcode, to, extended), payload);
    let mut raw = packet(Opcode::RC_SEND_ONLY, of(0, 1), NONE, 8);
    // LNH: no BTH follows.
    raw.octets[1] &= !0b11;
    let reth = Reth { virtual_address: 0, remote_key: 0, dma_length: 4 };
    let read = ExtendedHeaders { reth: Some(reth), ..NONE };
    let mut group = builder(Opcode::UD_SEND_ONLY, of(1, 1), deth(QUEUE_KEY, of(1, 2)));
    group.dlid = GROUP;
    let accepted = made(&group, 8);
    group.bth.partition_key = 0x8001;
    for (frame, outcome, counted) in [
        (packet(Opcode::UD_SEND_ONLY, of(1, 1), deth(QUEUE_KEY, of(1, 2)), 8), DELIVERED, &[][..]),
        (packet(Opcode::UD_SEND_ONLY, of(1, 1), deth(5, of(1, 2)), 8), Err(DropReason::Key), &[]),
        (
            packet(Opcode::UD_SEND_ONLY, of(1, 1), deth(QUEUE_KEY, of(1, 3)), 8),
            Err(DropReason::QueuePair),
            &[],
        ),
        (packet(Opcode::RC_ACKNOWLEDGE, of(0, 1), ack(), 0), Err(DropReason::QueuePair), &[]),
        (
            packet(Opcode::RC_READ_REQUEST, of(0, 1), read, 0),
            Err(DropReason::Opcode),
            &[("qp_errors", 1)],
        ),
        (packet(Opcode::CNP, of(0, 1), NONE, 8), Err(DropReason::PacketLength), ignored),
        (packet(Opcode::CNP, of(0, 1), NONE, 16), Err(DropReason::QueuePair), ignored),
        (raw, Err(DropReason::Opcode), &[]),
        (made(&group, 8), Err(DropReason::PartitionKey), &[]),
        (accepted, DELIVERED, &[("multicast_rcv_packets", 1)]),
    ] {
        let mut nic = adapter(false);
        assert_eq!(receive(&mut nic, &frame), outcome);
        assert_eq!(totals(&mut nic), named(counted), "{outcome:?}");
    }
}

#[test]
fn marks_of_packets_are_counted() {
    let mut nic = adapter(false);
    let mut marked = builder(Opcode::RC_SEND_ONLY, of(0, 1), NONE);
    (marked.bth.fecn, marked.bth.becn) = (true, true);
    assert_eq!(receive(&mut nic, &made(&marked, 8)), DELIVERED);
    let all = [("np_ecn_marked_packets", 1), ("port_rcv_fecn", 1), ("port_rcv_becn", 1)];
    assert_eq!(totals(&mut nic), named(&all));
}

#[test]
fn a_packet_of_a_group_is_delivered_or_dropped_under_one_reason() {
    let dgid = Ipv6Addr::from(0xff12_u128 << 112);
    let grh = Grh { dgid, ..Grh::default() };
    let path = PathRecord {
        lid: GROUP,
        source: Lid::new(2),
        level: Default::default(),
        key: Bth::DEFAULT_PARTITION,
    };
    let (queue_key, mtu, is_member, is_joined) = (9, 2048, true, true);
    let membership = Membership { path, grh, queue_key, mtu, is_member, is_joined };
    let group = |opcode, extended| {
        let to = QueuePairNumber::truncate(0xff_ffff);
        PacketBuilder { dlid: GROUP, grh: Some(grh), ..builder(opcode, to, extended) }
    };
    let source = of(1, 1);
    let good = group(Opcode::UD_SEND_ONLY, deth(9, source));
    let other = Grh { dgid: Ipv6Addr::LOCALHOST, ..grh };
    let outside = QueuePairNumber::truncate(5);
    let rdeth = Some(Rdeth { reserved8: 0, context: 0 });
    let reliable = ExtendedHeaders { rdeth, ..deth(9, source) };
    for (packet, outcome) in [
        (good, DELIVERED),
        (PacketBuilder { grh: Some(other), ..good }, Err(DropReason::NotForUs)),
        (group(Opcode::RC_SEND_ONLY, NONE), Err(DropReason::Opcode)),
        (group(Opcode(0xc0), NONE), Err(DropReason::Opcode)),
        (group(Opcode::RD_SEND_ONLY, reliable), Err(DropReason::Opcode)),
        (group(Opcode::UD_SEND_ONLY, deth(8, source)), Err(DropReason::Key)),
        (group(Opcode::UD_SEND_ONLY, deth(9, outside)), Err(DropReason::QueuePair)),
        (group(Opcode::UD_SEND_ONLY, deth(9, of(7, 1))), Err(DropReason::QueuePair)),
    ] {
        let mut nic = adapter(true);
        nic.adapter.set_membership(GROUP, membership, us(0));
        let mut packet = packet;
        packet.bth.fecn = true;
        let stamp = Stamp { item: 3, number: 0, posted: us(0) };
        let stamped = |octets: &mut [u8]| {
            let mut payload = bytes::BytesMut::new();
            message::append(&mut payload, 100, Some(stamp));
            octets.copy_from_slice(&payload);
        };
        let mut octets = bytes::BytesMut::new();
        packet.emit(&mut octets, 100, stamped).expect("it is short");
        let frame = Frame::intact(FrameKind::Infiniband, octets);
        assert_eq!(receive(&mut nic, &frame), outcome);
        let received = u64::from(outcome == DELIVERED);
        let mut reading = DeviceReading::default();
        nic.read(us(1), &mut reading);
        let latency = reading.latencies.first().map(|latency| (latency.item, latency.sum_ns));
        assert_eq!(latency, (received > 0).then_some((3, 1000)));
        let counted = reading
            .receptions
            .first()
            .map(|reception| (reception.delivered_bytes, reception.marked, reception.messages));
        assert_eq!(counted, (received > 0).then_some((100, 1, 1)));
        let multicast = [("multicast_rcv_packets", 1)];
        let fecn = [("port_rcv_fecn", 1)];
        let all = if received > 0 { [fecn, multicast].concat() } else { fecn.to_vec() };
        assert_eq!(totals(&mut nic), named(&all));
    }
    let mut nic = adapter(true);
    nic.adapter.lose_membership(GROUP);
    assert_eq!(totals(&mut nic), named(&[("multicast_join_refusals", 1)]));
}

#[test]
fn a_becn_that_the_scheme_refuses_is_counted_as_ignored() {
    // It reacts to messages of switches alone.
    let scheme = SchemeConfig { kind: "qcn".to_owned(), params: toml::Table::new() };
    let (classes, traffic) = (vec![class(Transport::Rc, Operation::Send)], vec![burst(2, 400, 1)]);
    let mut pair = Pair::alike(NicConfig { classes, traffic, scheme, ..config(1) });
    pair = pair.run_until(us(50));
    let mut answer = builder(Opcode::RC_ACKNOWLEDGE, of(0, 2), ack());
    (answer.dlid, answer.slid, answer.bth.becn) = (Lid::new(1), Lid::new(2), true);
    let now = pair.now;
    pair.nics[0].handle_frame(PortNumber::from_index(0), made(&answer, 0), now, now);
    assert_eq!(
        totals(&mut pair.nics[0]),
        named(&[("rp_cnp_ignored", 1), ("rp_becn_handled", 1), ("port_rcv_becn", 1)])
    );
}

/// The sums of what came and went, and every drop of the port.
fn sums(nic: &mut Nic) -> ([u64; 2], Vec<(DropReason, u64)>) {
    let mut reading = DeviceReading::default();
    nic.read(us(1), &mut reading);
    let drops = reading.ports[0].drops.iter().filter(|(_, frames)| *frames > 0).collect();
    ([reading.balance.delivered, reading.balance.injected], drops)
}

#[test]
fn management_packets_are_in_the_sums_and_those_without_room_are_drops() {
    let here = Addresses::subnet(Lid::new(1), Lid::PERMISSIVE);
    let frame = |datagram: &Datagram| {
        let mut octets = bytes::BytesMut::new();
        ::management::packet::emit(&here, datagram, &mut octets);
        Frame::intact(FrameKind::Infiniband, octets)
    };
    let hand_in = |nic: &mut Nic, datagram: &Datagram| {
        nic.handle_frame(PortNumber::from_index(0), frame(datagram), us(1), us(1));
    };
    let request = Datagram::request(SUBNET_LID_ROUTED, method::GET, 0x11, 0, 1);
    let mut nic = adapter(true);
    hand_in(&mut nic, &request);
    assert_eq!(sums(&mut nic), ([1, 1], vec![]));
    // An adapter passes nothing on.
    let mut on = Datagram::request(SUBNET_DIRECTED, method::GET, 0x11, 0, 1).along(&[]);
    on.set(&DR_DLID, 5);
    hand_in(&mut nic, &on);
    assert_eq!(sums(&mut nic), ([1, 1], vec![(DropReason::Management, 1)]));
    let mut nic = adapter(true);
    (0..17).for_each(|_| hand_in(&mut nic, &request));
    assert_eq!(sums(&mut nic), ([17, 17], vec![(DropReason::ManagementOverrun, 1)]));
}
