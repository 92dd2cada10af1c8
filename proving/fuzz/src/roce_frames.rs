//! Frames of an Ethernet peer, chosen by a tape.

use crate::frames::transport;
use crate::tape::Tape;
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Dscp, Ecn, Lid, PortNumber, Priority, VlanId};
use proto::wire::ethernet::preface::insert_tag;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, MacAddress, MacControl, Pause, Pfc, Preface, VlanTag,
    ethertype, plan,
};
use proto::wire::infiniband::{Bth, Grh};
use proto::wire::internet::{Ipv4, Ipv6, Udp};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, TestFrame};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};

/// A RoCE packet with valid lengths and checks and random fields.
pub fn packet(tape: &mut Tape<'_>, lids: &[u16], classes: u8) -> Frame {
    let lid = |tape: &mut Tape<'_>| Lid::new(lids[tape.below(lids.len())]);
    let (from, to) = (lid(tape), lid(tape));
    let (flags, bth, extended) = transport(tape, from, classes);
    // Flag 2 chooses the destination here.
    let bth = Bth { fecn: false, ..bth };
    let service = tape.u8();
    let builder = PacketBuilder {
        destination: if flags & 2 == 0 { plan::mac(to) } else { MacAddress::BROADCAST },
        source: plan::mac(from),
        tag: (flags & 0x40 != 0).then(|| VlanTag {
            priority: Priority::truncate(service),
            drop_eligible: false,
            id: VlanId::truncate(1),
            ethertype: 0,
        }),
        network: network(flags >> 6, service, from, to, tape),
        bth,
        extended,
    };
    let payload = match flags >> 4 & 3 {
        0 => 16,
        1 => 256,
        2 => usize::from(tape.u8()),
        _ => usize::from(tape.u16() % 4200),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |_| ()).expect("the payload fits a packet");
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// Mostly IPv4, with any DSCP and ECN; sometimes with a UDP port other than RoCEv2's.
fn network(
    choice: u8,
    service: u8,
    from: Lid,
    to: Lid,
    tape: &mut Tape<'_>,
) -> NetworkHeaders<'static> {
    let (dscp, ecn) = (Dscp::truncate(service >> 2), Ecn::from_bits(service));
    let mut udp = Udp::roce(0xc000 | tape.u16());
    if udp.source_port & 0xff == 0xff {
        udp.destination_port += 1;
    }
    let (source, destination) = (plan::ipv4(from), plan::ipv4(to));
    match (choice, udp.source_port % 8) {
        (_, 0) => NetworkHeaders::Global(Grh::default()),
        (2, _) => {
            let (source, destination) = (plan::ipv6(from), plan::ipv6(to));
            NetworkHeaders::Ipv6(Ipv6 { dscp, ecn, source, destination, ..Ipv6::default() }, udp)
        }
        (_, part) => {
            let more_fragments = part == 1;
            let ip = Ipv4 { dscp, ecn, more_fragments, source, destination, ..Ipv4::default() };
            NetworkHeaders::Ipv4(ip, &[], udp)
        }
    }
}

/// A CNM, a BCN message, a test frame, or a packet, with tags of congestion control or without.
pub fn notification(tape: &mut Tape<'_>, lids: &[u16], classes: u8) -> Frame {
    const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
    let lid = |tape: &mut Tape<'_>| Lid::new(lids[tape.below(lids.len())]);
    let (flags, from, to) = (tape.u8(), lid(tape), lid(tape));
    let congestion = match flags >> 6 {
        0 => None,
        1 => Some(CongestionTag::Cn(CnTag { flow_id: tape.u16() % 8, ethertype: 0 })),
        _ => {
            let cpid = cpid(tape);
            Some(CongestionTag::RateRegulated(RateTag { cpid, ..RateTag::default() }))
        }
    };
    if flags & 3 == 3 {
        let mut frame = packet(tape, lids, classes);
        if let Some(tag) = congestion {
            // A frame that has no place for a tag stays as it is.
            let _ = insert_tag(&mut frame.octets, tag, &TYPES);
        }
        return frame;
    }
    let priority = Priority::truncate(if flags & 4 == 0 { 3 } else { tape.u8() });
    let vlan = VlanTag { priority, drop_eligible: false, id: VlanId::truncate(0), ethertype: 0 };
    let preface = |to: Lid, kind: u16| {
        let source = match flags & 8 {
            0 => plan::port_mac(Lid::new(100), PortNumber::from_index(0)),
            _ => plan::mac(from),
        };
        let envelope = Envelope::untagged(plan::mac(to), source, kind);
        Preface::untagged(if flags & 16 == 0 { envelope.tagged(vlan) } else { envelope })
    };
    let emit = |preface: Preface, body: &[u8]| {
        let mut octets = BytesMut::zeroed(preface.octets_len());
        preface.emit(&mut octets);
        octets.extend_from_slice(body);
        octets
    };
    let tagged = |preface: Preface| congestion.map_or(preface, |tag| preface.tagged(tag, &TYPES));
    let test = |to: Lid| tagged(preface(to, TYPES.test_frame()));
    let octets = match flags & 3 {
        0 => {
            let message = Cnm {
                quantized_feedback: tape.u8() % 64,
                cpid: cpid(tape),
                q_offset: tape.u16() as i16,
                q_delta: tape.u16() as i16,
                encapsulated_priority: priority,
                encapsulated_destination: plan::mac(to),
                ..Cnm::default()
            };
            emit(tagged(preface(from, ethertype::CNM)), &message.to_octets())
        }
        1 => {
            let sample = emit(test(to), &[]);
            let (bits, cpid) = (tape.u8(), cpid(tape));
            let message = Bcn {
                version: Bcn::VERSION,
                cpid,
                q_offset: tape.u16() as i16,
                q_delta: tape.u16() as i16,
                mild: bits & 1 != 0,
                severe: bits & 2 != 0,
                stop: bits & 4 != 0,
                length: sample.len() as u8,
                ..Bcn::default()
            };
            let body = [&[Bcn::SUBTYPE][..], &message.to_octets(), &sample].concat();
            emit(preface(from, TYPES.bcn()), &body)
        }
        _ => {
            let mut body = vec![0; 46 + usize::from(tape.u8())];
            body[0] = TestFrame::SUBTYPE;
            let given = tape.take(TestFrame::LEN);
            body[1..=given.len()].copy_from_slice(given);
            emit(test(to), &body)
        }
    };
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// A congestion point of the switch of these targets, or another.
fn cpid(tape: &mut Tape<'_>) -> u64 {
    0x0200_0100_0064_0000 | u64::from(tape.u8() % 64)
}

/// A PFC frame for any priorities that starts a short pause or ends it.
pub fn pfc(tape: &mut Tape<'_>) -> Frame {
    let (enabled, time) = (tape.u8(), u16::from(tape.u8()));
    control(&MacControl::Pfc(Pfc { reserved: 0, enabled, times: [time; 8] }))
}

/// A MAC control frame with random fields, truncated anywhere.
pub fn mac_control(tape: &mut Tape<'_>) -> Frame {
    let mut frame = match tape.u8() % 4 {
        0 => control(&MacControl::Pause(Pause { time: tape.u16() })),
        1 => control(&MacControl::Unknown(tape.u16())),
        vector => {
            let (enabled, reserved) = (tape.u8(), tape.u8() * (vector & 1));
            control(&MacControl::Pfc(Pfc { reserved, enabled, times: [tape.u16(); 8] }))
        }
    };
    let left = usize::from(tape.u8()).max(14);
    frame.octets.truncate(left);
    frame
}

fn control(control: &MacControl) -> Frame {
    Frame::unchecked(FrameKind::Ethernet, control.to_octets(plan::mac(Lid::new(2)))[..].into())
}
