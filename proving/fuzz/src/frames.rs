//! Frames of an InfiniBand peer, chosen by a tape: valid, damaged, or random octets.

use crate::tape::Tape;
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::wire::infiniband::{
    Bth, ExtendedHeaders, FlowControlOp, FlowControlPacket, Grh, Opcode, PacketBuilder,
};

/// A packet with valid lengths and CRCs and random fields.
pub fn packet(tape: &mut Tape<'_>, lids: &[u16], classes: u8) -> Frame {
    let lid = |tape: &mut Tape<'_>| match tape.u8() {
        255 => Lid::new(0xffff),
        254 => Lid::new(0xc000),
        other => Lid::new(lids[usize::from(other) % lids.len()]),
    };
    let (slid, dlid) = (lid(tape), lid(tape));
    let (flags, bth, extended) = transport(tape, slid, classes);
    let lanes = tape.u8();
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(if flags & 0x80 != 0 { lanes >> 4 } else { 0 }),
        service_level: ServiceLevel::truncate(lanes & 15),
        dlid,
        slid,
        grh: (flags & 0x40 != 0).then(Grh::default),
        bth,
        extended,
    };
    let payload = match flags >> 4 & 3 {
        0 => 0,
        1 => 256,
        2 => usize::from(tape.u8()),
        _ => usize::from(tape.u16() % 4200),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |_| ()).expect("the payload fits a packet");
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// Flags for the caller, and the headers of a random opcode from a queue pair of `from`. The bits of the flags, from
/// the lowest, are SE, FECN, BECN and AckReq.
pub fn transport(tape: &mut Tape<'_>, from: Lid, classes: u8) -> (u8, Bth, ExtendedHeaders) {
    let opcode = match tape.u8() {
        unknown @ 250.. => Opcode(unknown),
        other => Opcode::ALL[usize::from(other) % Opcode::ALL.len()],
    };
    let flags = tape.u8();
    let class = tape.u8() % (classes + 1);
    let queue_pair = match class {
        class if class == classes => QueuePairNumber::truncate(tape.u8().into()),
        class => QueuePairNumber::planned(class, from),
    };
    // Small numbers match the state of a new queue pair; the others are arbitrary.
    let psn = match tape.u16() {
        far @ 0xff00.. => Psn::truncate(u32::from(far) << 12),
        near => Psn::truncate(u32::from(near % 64)),
    };
    let bth = Bth {
        solicited: flags & 1 != 0,
        fecn: flags & 2 != 0,
        becn: flags & 4 != 0,
        ack_request: flags & 8 != 0,
        ..Bth::new(opcode, queue_pair, psn)
    };
    let mut rest = [0; 64];
    let set = opcode.extended_headers();
    let given = tape.take(set.octets());
    rest[..given.len()].copy_from_slice(given);
    let extended =
        ExtendedHeaders::parse(set, &rest, 0).expect("the octets suffice for any opcode");
    (flags, bth, extended)
}

/// A CNP whose body is empty, random, or most often a report of RR CC.
pub fn notification(tape: &mut Tape<'_>, lids: &[u16], classes: u8) -> Frame {
    let lid = |tape: &mut Tape<'_>| Lid::new(lids[tape.below(lids.len())]);
    let (slid, dlid) = (lid(tape), lid(tape));
    let (flags, bth, _) = transport(tape, slid, classes);
    let mut body = [0; 16];
    let given = tape.take(body.len());
    body[..given.len()].copy_from_slice(given);
    if flags & 0x30 != 0 {
        body[..4].copy_from_slice(&[b'R', b'R', 1, 1 | flags >> 6]);
    }
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::ZERO,
        service_level: ServiceLevel::default(),
        dlid,
        slid,
        grh: None,
        bth: Bth { becn: true, ..Bth::new(Opcode::CNP, bth.destination, bth.psn) },
        extended: ExtendedHeaders::NONE,
    };
    let length = if flags & 8 == 0 { body.len() } else { 0 };
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, length, |place| place.copy_from_slice(&body[..place.len()]))
        .expect("the payload fits a packet");
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// A frame with one bit flipped.
pub fn damaged(tape: &mut Tape<'_>, mut frame: Frame) -> Frame {
    let bit = usize::from(tape.u16()) % (frame.octets.len() * 8);
    frame.octets[bit / 8] ^= 1 << (bit % 8);
    frame
}

/// Random octets, most likely not a frame.
pub fn garbage(tape: &mut Tape<'_>) -> Frame {
    let kind = [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet];
    let kind = kind[tape.below(kind.len())];
    let length = tape.u8();
    Frame::unchecked(kind, tape.take(length.into()).into())
}

/// A link packet with random fields.
pub fn link_packet(tape: &mut Tape<'_>) -> Frame {
    let (first, second) = (tape.u16(), tape.u16());
    let packet = FlowControlPacket {
        // Most belong to a trained link.
        op: FlowControlOp::from_bits(if first >> 12 > 3 { 0 } else { (first >> 12) as u8 }),
        fctbs: first & 0xfff,
        virtual_lane: VirtualLane::truncate(if second >> 12 > 8 {
            (second >> 12) as u8
        } else {
            0
        }),
        fccl: second & 0xfff,
    };
    link(&packet)
}

/// A link packet as a frame.
pub fn link(packet: &FlowControlPacket) -> Frame {
    Frame::unchecked(FrameKind::InfinibandLink, packet.to_octets()[..].into())
}
