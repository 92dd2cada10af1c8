//! Faults of NICs that are not a change of our own NIC, made by a relay before soft-RoCE. Names are those of `faults.toml`.
//!
//! soft-RoCE sends no notifications. The relay sends them in its place, one a millisecond, so that their faults can be made.

use super::relay::{Editor, Sends, State, Way, unaltered};
use bytes::BytesMut;
use proto::ids::{Ecn, QueuePairNumber};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::roce::{Layout, NetworkHeaders, Packet, PacketBuilder, notification};

/// The faults by name.
pub const FAULTS: [(&str, Editor); 4] = [
    ("uc-acknowledged", |state, way, port, frame, sends| {
        let answer = parse(&frame)
            .filter(|packet| way == Way::In && packet.transport.bth.opcode == Opcode::UC_SEND_ONLY)
            .map(|packet| {
                let extended = ExtendedHeaders { aeth: Some(ACK), ..ExtendedHeaders::NONE };
                let number = QueuePairNumber::truncate(1 << 20);
                back(
                    &packet,
                    Bth::new(Opcode::RC_ACKNOWLEDGE, number, packet.transport.bth.psn),
                    extended,
                    &[],
                )
            });
        unaltered(state, way, port, frame, sends);
        sends.extend(answer.map(|frame| (Way::Out, port, frame)));
    }),
    ("cnp-wrong-pair", |state, way, port, frame, sends| {
        notify(state, (way, port, frame), sends, |_, own, _| (1, own));
    }),
    ("cnp-every-packet", |state, way, port, frame, sends| {
        notify(state, (way, port, frame), sends, |peer, _, marks| (marks, peer));
    }),
    ("cnp-ignored", unaltered),
];

/// The relay as a notification point and a reaction point without a fault.
pub fn notifies(state: &mut State, way: Way, port: u8, frame: Vec<u8>, sends: &mut Sends) {
    obey(state, way, &frame);
    notify(state, (way, port, frame), sends, |peer, _, _| (1, peer));
}

const ACK: proto::wire::infiniband::Aeth = proto::wire::infiniband::Aeth {
    syndrome: proto::wire::infiniband::Syndrome::ACK,
    message_sequence_number: 0,
};

fn parse(frame: &[u8]) -> Option<Packet<'_>> {
    let layout = Layout::find(frame).ok().flatten()?;
    Packet::parse_at(frame, &layout).ok()
}

/// A packet to the source of `packet`, or with a packet of the device as `packet` to its destination.
fn build(
    packet: &Packet<'_>,
    turns: bool,
    bth: Bth,
    extended: ExtendedHeaders,
    payload: &[u8],
) -> Vec<u8> {
    let NetworkHeaders::Ipv4(mut ip, _, udp) = packet.network else { return Vec::new() };
    let header = packet.ethernet.header;
    let (mut destination, mut source) = (header.destination, header.source);
    if turns {
        (destination, source) = (source, destination);
        (ip.source, ip.destination) = (ip.destination, ip.source);
    }
    ip.ecn = Ecn::NotCapable;
    let network = NetworkHeaders::Ipv4(ip, &[], udp);
    let builder = PacketBuilder { destination, source, tag: None, network, bth, extended };
    let mut octets = BytesMut::new();
    let emitted = builder.emit(&mut octets, payload.len(), |place| place.copy_from_slice(payload));
    emitted.expect("it has the headers of its opcode");
    octets.to_vec()
}

fn back(packet: &Packet<'_>, bth: Bth, extended: ExtendedHeaders, payload: &[u8]) -> Vec<u8> {
    build(packet, true, bth, extended, payload)
}

/// Delays each SEND of the device by 2 ms behind a notification, until 64 of them have passed.
fn obey(state: &mut State, way: Way, frame: &[u8]) {
    let Some(opcode) = parse(frame).map(|packet| packet.transport.bth.opcode) else { return };
    let delayed = state.counts.entry(0).or_default();
    let is_send =
        [Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST].contains(&opcode);
    match way {
        Way::In if opcode == Opcode::ROCEV2_CNP => *delayed = 64,
        Way::Out if is_send && *delayed > 0 => {
            *delayed -= 1;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        _ => {}
    }
}

/// After an acknowledgement of marked packets, as many notifications as `choose` says, to the queue pair that it says: it
/// gets that of the tester, that of the device, and the number of marks.
fn notify(
    state: &mut State,
    (way, port, frame): (Way, u8, Vec<u8>),
    sends: &mut Sends,
    choose: fn(u32, u32, u32) -> (u32, u32),
) {
    let mut notices = Vec::new();
    if let Some(packet) = parse(&frame) {
        let bth = packet.transport.bth;
        let is_marked = matches!(packet.network, NetworkHeaders::Ipv4(ip, ..) if ip.ecn == Ecn::CongestionExperienced);
        match way {
            Way::In if is_marked => {
                state.number = bth.destination.get();
                *state.counts.entry(port).or_default() += 1;
            }
            Way::Out if bth.opcode == Opcode::RC_ACKNOWLEDGE => {
                let marks = state.counts.remove(&port).unwrap_or(0);
                if marks > 0 {
                    let (count, number) = choose(bth.destination.get(), state.number, marks);
                    let number = QueuePairNumber::truncate(number);
                    let bth = notification::bth(number, Bth::DEFAULT_PARTITION);
                    let body = [0; notification::BODY_LEN];
                    let notice = build(&packet, false, bth, ExtendedHeaders::NONE, &body);
                    notices = vec![notice; count as usize];
                }
            }
            _ => {}
        }
    }
    unaltered(state, way, port, frame, sends);
    sends.extend(notices.into_iter().map(|frame| (Way::Out, port, frame)));
}
