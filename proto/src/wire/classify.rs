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
use crate::wire::infiniband::opcode::OpcodeRow;
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
    let transport = match envelope::bth_offset(octets)? {
        Some(offset) => transport(octets, offset)?,
        None => Transport {
            class: FrameClass::Data,
            queue_pair: 0,
            psn: 0,
            fecn: false,
            becn: false,
            payload: octets.len() - Lrh::LEN - VCRC_LEN,
        },
    };
    let lrh = LrhView::new(octets)?;
    let management = lrh.virtual_lane() == VirtualLane::MANAGEMENT;
    Ok(FrameHeaders {
        size: Bytes::new(octets.len() as u64),
        source: lrh.slid().get().into(),
        destination: lrh.dlid().get().into(),
        multicast: lrh.dlid().is_multicast(),
        lane: lrh.virtual_lane().get(),
        level: lrh.service_level().get(),
        class: if management { FrameClass::Management } else { transport.class },
        queue_pair: transport.queue_pair,
        psn: transport.psn,
        fecn: transport.fecn,
        becn: transport.becn,
        payload: Bytes::new(transport.payload as u64),
    })
}

/// What the BTH adds to what the LRH says.
struct Transport {
    class: FrameClass,
    queue_pair: u32,
    psn: u32,
    fecn: bool,
    becn: bool,
    payload: usize,
}

/// Reads a BTH at an `offset` that [`envelope::bth_offset`] has found.
#[inline]
fn transport(octets: &[u8], offset: usize) -> Result<Transport, ParseError> {
    let bth = BthView::new(&octets[offset..])?;
    let row = bth.opcode().row();

    let body_offset = offset + Bth::LEN;
    let body = octets.len() - body_offset - ICRC_LEN - VCRC_LEN;
    let extended = row.map_or(0, |row| row.extended_headers.octets());
    let Some(padded) = body.checked_sub(extended) else {
        return Err(ParseError::short("extended headers", body_offset, extended, body));
    };
    let pad = usize::from(bth.pad_count());
    let Some(payload) = padded.checked_sub(pad) else {
        return Err(ParseError::length(Bth::LAYER, offset, pad, padded));
    };
    Ok(Transport {
        class: transport_class(bth.opcode(), row),
        queue_pair: bth.destination().get(),
        psn: bth.psn().get(),
        fecn: bth.fecn(),
        becn: bth.becn(),
        payload,
    })
}

/// 0x81 is the notification of RoCEv2; on an InfiniBand link it is an opcode like any unknown one.
fn transport_class(opcode: Opcode, row: Option<&OpcodeRow>) -> FrameClass {
    match row {
        _ if opcode == Opcode::CNP => FrameClass::Notification,
        Some(row) if row.is_acknowledgement() => FrameClass::Ack,
        _ => FrameClass::Data,
    }
}

#[cfg(test)]
mod tests;
