//! The one look at a frame's headers that every hop takes.
//!
//! Lengths are checked, CRCs are not. What comes out is all that counters, routing, congestion
//! points and arbitration ask for; nobody downstream reads the octets again.

use crate::frame::{FrameClass, FrameHeaders, FrameKind};
use crate::ids::VirtualLane;
use crate::units::Bytes;
use crate::wire::error::{ParseError, Reason};
use crate::wire::infiniband::envelope::{self, ICRC_LEN, VCRC_LEN};
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;
use crate::wire::infiniband::{Bth, BthView, Lrh, LrhView, Opcode};

/// What the headers of the frame say.
///
/// # Errors
/// If the octets are no frame of that kind, or have no packet headers at all (link packets, which
/// are read as [`FlowControlPacket`]).
pub fn classify(kind: FrameKind, octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    let no_headers =
        |layer, why| Err(ParseError { layer, offset: 0, reason: Reason::Illegal(why) });
    match kind {
        FrameKind::Infiniband => infiniband(octets),
        FrameKind::InfinibandLink => {
            no_headers(FlowControlPacket::LAYER, "a link packet has no headers to classify")
        }
        FrameKind::Ethernet => no_headers("Ethernet", "not an InfiniBand packet"),
    }
}

/// Data packets, LRH to VCRC. All a raw packet has after its LRH counts as payload.
fn infiniband(octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    envelope::check(octets)?;
    let lrh = LrhView::new(octets)?;
    let lane = lrh.virtual_lane();
    let mut headers = FrameHeaders {
        size: Bytes::new(octets.len() as u64),
        source: lrh.slid().get().into(),
        destination: lrh.dlid().get().into(),
        multicast: lrh.dlid().is_multicast(),
        lane: lane.get(),
        level: lrh.service_level().get(),
        class: FrameClass::Data,
        queue_pair: 0,
        psn: 0,
        fecn: false,
        becn: false,
        payload: Bytes::new(octets.len().saturating_sub(Lrh::LEN + VCRC_LEN) as u64),
    };
    if let Some(offset) = envelope::bth_offset(octets)? {
        let bth = BthView::new(&octets[offset..])?;
        headers.class = transport_class(bth.opcode());
        headers.queue_pair = bth.destination().get();
        headers.psn = bth.psn().get();
        headers.fecn = bth.fecn();
        headers.becn = bth.becn();
        headers.payload = Bytes::new(payload_len(octets, offset, &bth)? as u64);
    }
    if lane == VirtualLane::MANAGEMENT {
        headers.class = FrameClass::Management;
    }
    Ok(headers)
}

/// 0x81 is the notification of RoCEv2; on an InfiniBand link it is an opcode like any unknown one.
fn transport_class(opcode: Opcode) -> FrameClass {
    match opcode.row() {
        _ if opcode == Opcode::CNP => FrameClass::Notification,
        Some(row) if row.is_acknowledgement() => FrameClass::Ack,
        _ => FrameClass::Data,
    }
}

fn payload_len(octets: &[u8], offset: usize, bth: &BthView<&[u8]>) -> Result<usize, ParseError> {
    let body_offset = offset + Bth::LEN;
    let body = octets.len() - body_offset - ICRC_LEN - VCRC_LEN;
    let extended = bth.opcode().extended_headers().octets();
    let Some(padded) = body.checked_sub(extended) else {
        return Err(ParseError::short("extended headers", body_offset, extended, body));
    };
    let pad = usize::from(bth.pad_count());
    padded.checked_sub(pad).ok_or(ParseError::length(Bth::LAYER, offset, pad, padded))
}

#[cfg(test)]
mod tests;
