//! Frames that cases send: short to ask for, whole on the wire.

use crate::case::{Failure, ensure};
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Psn, QueuePairNumber};
use proto::wire::ethernet::MacControl;
use proto::wire::infiniband::{Bth, FlowControlPacket, Opcode, Packet, PacketBuilder, crc};

pub mod congestion;
pub mod ethernet;

/// An RC SEND Only between two adapters, on lane and service level 0.
pub fn send_only(from: u16, to: u16, psn: u32) -> PacketBuilder {
    with_opcode(Opcode::RC_SEND_ONLY, from, to, psn)
}

/// A packet with this opcode between the queue pairs that two adapters have for class 0.
pub fn with_opcode(opcode: Opcode, from: u16, to: u16, psn: u32) -> PacketBuilder {
    let queue_pair = QueuePairNumber::planned(0, Lid::new(from));
    let bth = Bth { ack_request: true, ..Bth::new(opcode, queue_pair, Psn::truncate(psn)) };
    PacketBuilder { slid: Lid::new(from), dlid: Lid::new(to), ..PacketBuilder::new(bth) }
}

/// The frame that `builder` makes around `payload` octets, each the low bits of its place.
///
/// # Panics
/// If there is no such packet.
pub fn frame(builder: &PacketBuilder, payload: usize) -> Frame {
    let mut octets = bytes::BytesMut::new();
    let fill = |place: &mut [u8]| {
        place.iter_mut().enumerate().for_each(|(index, octet)| *octet = index as u8);
    };
    builder.emit(&mut octets, payload, fill).expect("a case asks for packets that there are");
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// A frame of these octets.
pub fn raw(kind: FrameKind, octets: &[u8]) -> Frame {
    Frame::unchecked(kind, octets.into())
}

/// Whether a frame goes on beyond its link, and does not govern it.
pub fn is_packet(frame: &Frame) -> bool {
    match frame.kind {
        FrameKind::Infiniband => true,
        FrameKind::InfinibandLink => false,
        FrameKind::Ethernet => !MacControl::is_announced(&frame.octets),
    }
}

/// The frame of a flow-control packet.
pub fn link_packet(packet: &FlowControlPacket) -> Frame {
    raw(FrameKind::InfinibandLink, &packet.to_octets())
}

/// `frame` with `change` made to its octets and both CRCs computed anew.
pub fn altered(mut frame: Frame, change: impl FnOnce(&mut [u8])) -> Frame {
    change(&mut frame.octets);
    crc::refresh_both(&mut frame.octets);
    frame
}

/// A packet that a device has sent, taken apart, and its BTH.
///
/// # Errors
/// If it is no packet with a BTH, or one of its CRCs is wrong.
pub fn parsed(frame: &Frame) -> Result<(Packet<'_>, Bth), Failure> {
    let packet = Packet::parse(&frame.octets).map_err(|error| error.to_string())?;
    let crcs = [crc::verify_vcrc(&frame.octets), crc::verify_icrc(&frame.octets)];
    ensure(crcs.iter().all(Result::is_ok), || "a CRC of what the device sent is wrong".to_owned())?;
    let bth = packet.bth.ok_or_else(|| "the device sent a raw packet".to_owned())?;
    Ok((packet, bth))
}

/// `builder` with FECN as given.
pub fn marked(builder: PacketBuilder, fecn: bool) -> PacketBuilder {
    PacketBuilder { bth: Bth { fecn, ..builder.bth }, ..builder }
}
