//! RC-17 and RC-18: the NIC connects to a host that is not an adapter of its fabric, on the terms of that host, whose first PSN is just
//! before the wrap.

use super::{GAP, LOSSLESS, OWN, acknowledgement, arrival, play_nic};
use crate::ethernet::{ATTACHED, RATE};
use crate::prelude::*;
use crate::stimulus::FIRST;
use proto::ids::Psn;
use proto::wire::ethernet::{ethertype, plan};
use proto::wire::infiniband::connection::{IpAddressing, Message, Reply, Request};
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::opcode::Transport;
use proto::wire::infiniband::{Bth, Deth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::internet::{Arp, ArpOperation};
use proto::wire::roce::{Packet, PacketBuilder};
use testbed::frames::ethernet::{arp, roce};

/// The number of the host in the plan of addresses, and the port of its service.
const HOST: u16 = 200;
const PORT: u16 = 9;
/// Its queue pair, its first PSN, and the path MTU that its interface permits.
const NUMBER: u32 = 0x1234;
const START: u32 = 0xff_fffe;
const MTU: usize = 1024;
/// Two messages, each of a full packet and an octet.
const SIZE: usize = MTU + 1;
const TIMEOUT: Duration = us(20_000);
/// When the host answers ARP and REQ, and the data. Units: milliseconds after the message is posted.
const ARP: u64 = 5;
const REP: u64 = 10;
/// As if the RTU was lost.
const AGAIN: u64 = 20;
const NAK: u64 = 30;
const ACK: u64 = 50;
const LAST: u64 = 90;

/// The reply to the NIC's question for the host, if it has asked.
fn resolution(seen: &[Seen]) -> Option<Frame> {
    let [own, host] = [OWN, HOST].map(Lid::new);
    let asks = |seen: &Seen| {
        let octets = &seen.frame.octets;
        let is_arp = octets.get(12..14) == Some(&ethertype::ARP.to_be_bytes()[..]);
        is_arp && Arp::parse(&octets[14..]).is_ok_and(|arp| arp.target_protocol == plan::ipv4(host))
    };
    seen.iter().find(|seen| asks(seen))?;
    let [host, own] = [host, own].map(|one| (plan::mac(one), plan::ipv4(one)));
    Some(arp(ArpOperation::Reply, host, own))
}

/// The messages of connection management that the NIC has sent.
fn messages(seen: &[Seen]) -> impl Iterator<Item = (Mad, Message)> {
    seen.iter().filter_map(|seen| {
        let packet = Packet::parse(&seen.frame.octets).ok()??.transport;
        let (mad, message, _) = Message::parse(packet.payload).ok()?;
        (packet.bth.opcode == Opcode::UD_SEND_ONLY).then_some((mad, message))
    })
}

/// The request of the NIC.
fn asked(seen: &[Seen]) -> Option<(Mad, Request)> {
    messages(seen).find_map(|(mad, message)| match message {
        Message::Request(request) => Some((mad, request)),
        _ => None,
    })
}

/// What the host answers to what the NIC has sent so far.
type Answering = fn(&[Seen]) -> Option<Frame>;

/// The REP of the host.
fn reply(seen: &[Seen]) -> Option<Frame> {
    let (mad, request) = asked(seen)?;
    let reply = Message::Reply(Reply {
        local_id: 0x77,
        remote_id: request.head.local_id,
        queue_key: 0,
        queue_pair: QueuePairNumber::truncate(NUMBER),
        reserved8: 0,
        context: 0,
        reserved8b: 0,
        starting_psn: Psn::truncate(START),
        reserved8c: 0,
        responder_resources: 0,
        initiator_depth: 0,
        target_ack_delay: 15,
        failover: 1,
        flow_control: false,
        rnr_retry_count: 7,
        shared_receive_queue: false,
        reserved4: 0,
        guid: 1,
    });
    let source = QueuePairNumber::truncate(1);
    let deth = Some(Deth { queue_key: Mad::QUEUE_KEY, reserved8: 0, source });
    let builder = PacketBuilder {
        bth: Bth::new(Opcode::UD_SEND_ONLY, source, Psn::default()),
        extended: ExtendedHeaders { deth, ..ExtendedHeaders::NONE },
        ..roce(HOST, OWN, LOSSLESS, 0)
    };
    let datagram = reply.to_octets(mad.transaction, &[]);
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, datagram.len(), |place| place.copy_from_slice(&datagram[..])).ok()?;
    Some(Frame::unchecked(FrameKind::Ethernet, octets))
}

fn after(milliseconds: u64) -> Instant {
    FIRST + us(milliseconds * 1_000)
}

fn run(on: Level) -> Result<Record> {
    let start = FIRST.as_ps() / 1_000_000_000;
    let keys = format!(
        "arrivals = \"backlog\"\nmessages = 2\nsize = \"{SIZE} B\"\nstart = \"{start} ms\"\nport = {PORT}"
    );
    let host = "[[foreign]]\nname = \"v1\"\naddress = \"198.18.0.200\"\n";
    let rest = format!("{ATTACHED}{host}{}", traffic("t", "h1", "v1", &keys));
    play_nic(on, (1, "300 ms"), ("ack_timeout = \"20 ms\"", &rest), |script| {
        let asked: [(u64, Answering); 3] = [(ARP, resolution), (REP, reply), (AGAIN, reply)];
        for (at, answer) in asked {
            script.at(after(at), move |bed| {
                if let Some(frame) = answer(bed.seen()) {
                    bed.send_frame(1, &frame);
                }
            });
        }
        let answers =
            [(NAK, GAP, 0xff_ffff, 0), (ACK, Syndrome::ACK, 0, 1), (LAST, Syndrome::ACK, 1, 2)];
        for (at, syndrome, psn, msn) in answers {
            let frame = acknowledgement(HOST, syndrome, psn, msn);
            script.at(after(at), move |bed| bed.send_frame(1, &frame));
        }
    })
}

static RUN: Shared<Record> = Shared::new(run);

/// RC-18.
pub fn confirmed(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let (_, Request { head, .. }) = asked(&record.seen).ok_or("the NIC asks for no connection")?;
    same("the service that it asks for", head.service, IpAddressing::service(PORT))?;
    same("its path MTU", head.path_mtu, 3)?;
    let ready = messages(&record.seen).filter(|(_, one)| matches!(one, Message::Ready(_)));
    same("RTUs, one for each REP", ready.count(), 2)?;
    let named = ["host_connected", "host_lost"].map(|name| record.named(1, name));
    same("connections set up and lost", named, [1, 0])?;
    Ok("a REP draws an RTU, and the same REP another one".into())
}

/// RC-17.
pub fn wraps(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let read = |seen: &Seen| {
        let packet = Packet::parse(&seen.frame.octets).ok()??.transport;
        let is_data = packet.bth.opcode.row()?.transport == Transport::Rc;
        is_data.then(|| (packet.bth.destination.get(), packet.bth.psn.get(), packet.payload.len()))
    };
    let data: Vec<_> = record.packets(1).filter_map(|seen| Some((seen, read(seen)?))).collect();
    let packets = [(START, MTU), (0xff_ffff, 1), (0, MTU), (1, 1)];
    // From the NAK's PSN on, and what the first message's acknowledgement leaves.
    let expected = packets.iter().chain(&packets[1..]).chain(&packets[3..]);
    let expected: Vec<_> = expected.map(|(psn, octets)| (NUMBER, *psn, *octets)).collect();
    same(
        "queue pair, PSN and payload",
        data.iter().map(|one| one.1).collect::<Vec<_>>(),
        expected,
    )?;
    let came = |at| arrival(after(at), &acknowledgement(HOST, Syndrome::ACK, 0, 0));
    let within = record.within(us(200));
    near("PSN ffffff again", data[4].0.start(RATE), came(NAK), within)?;
    near("PSN 1 again", data[7].0.start(RATE), came(ACK) + TIMEOUT, within)?;
    let flow = record.reading.flows.first().ok_or("the NIC has no flow")?;
    same("messages, completed", (flow.messages, flow.completed), (2, 2))?;
    Ok("it sends to the host's queue pair from PSN fffffe on, goes back to ffffff and completes over the wrap".into())
}
