//! The one look at a frame's headers that every hop takes.
//!
//! Lengths are checked, CRCs are not. What comes out is all that counters, routing, congestion
//! points and arbitration ask for; nobody downstream reads the octets again.

pub mod ethernet;
pub mod priority_map;

pub use ethernet::{classify_ethernet, classify_ethernet_by};
pub use priority_map::PriorityMap;

use crate::frame::{FrameClass, FrameHeaders, FrameKind};
use crate::ids::{Ecn, VirtualLane};
use crate::units::Bytes;
use crate::wire::error::{ParseError, Reason};
use crate::wire::infiniband::envelope::{self, ICRC_LEN, VCRC_LEN};
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;
use crate::wire::infiniband::opcode::OpcodeRow;
use crate::wire::infiniband::{Bth, BthView, Lrh, LrhView, Opcode};
use std::ops::Range;

/// What the headers of the frame say. On Ethernet the priority is that of the tag; a port that goes
/// by something else asks [`classify_ethernet`].
///
/// # Errors
/// If the octets are no frame of that kind, or have no packet headers at all (link packets, which
/// are read as [`FlowControlPacket`], and MAC control).
#[inline]
pub fn classify(kind: FrameKind, octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    let no_headers =
        |layer, why| Err(ParseError { layer, offset: 0, reason: Reason::Illegal(why) });
    match kind {
        FrameKind::Infiniband => infiniband(octets),
        FrameKind::InfinibandLink => {
            no_headers(FlowControlPacket::LAYER, "a link packet has no headers to classify")
        }
        FrameKind::Ethernet => classify_ethernet(octets, &PriorityMap::BY_PCP),
    }
}

/// Data packets, LRH to VCRC. All a raw packet has after its LRH counts as payload.
#[inline]
fn infiniband(octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    envelope::check(octets)?;
    let transport = match envelope::bth_offset(octets)? {
        Some(offset) => {
            let end = octets.len() - ICRC_LEN - VCRC_LEN;
            transport(octets, offset..end, Some(Opcode::CNP))?
        }
        None => Transport::opaque(octets.len() - Lrh::LEN - VCRC_LEN),
    };
    let lrh = LrhView::new(octets)?;
    let management = lrh.virtual_lane() == VirtualLane::MANAGEMENT;
    Ok(FrameHeaders {
        size: Bytes::new(octets.len() as u64),
        source: lrh.slid().into(),
        destination: lrh.dlid().into(),
        multicast: lrh.dlid().is_multicast(),
        lane: lrh.virtual_lane(),
        level: lrh.service_level(),
        class: if management { FrameClass::Management } else { transport.class },
        queue_pair: transport.queue_pair,
        psn: transport.psn,
        fecn: transport.fecn,
        becn: transport.becn,
        ecn: Ecn::NotCapable,
        regulated_by: None,
        payload: Bytes::new(transport.payload as u64),
    })
}

/// What the BTH adds to what the link's own header says.
struct Transport {
    class: FrameClass,
    queue_pair: u32,
    psn: u32,
    fecn: bool,
    becn: bool,
    payload: usize,
}

impl Transport {
    /// Of a packet without a BTH, which carries so many octets.
    const fn opaque(payload: usize) -> Transport {
        let class = FrameClass::Data;
        Transport { class, queue_pair: 0, psn: 0, fecn: false, becn: false, payload }
    }
}

/// Reads a BTH at the start of `place`, which ends before the ICRC and holds a BTH at least.
#[inline]
fn transport(
    octets: &[u8],
    place: Range<usize>,
    notification: Option<Opcode>,
) -> Result<Transport, ParseError> {
    let Range { start: offset, end } = place;
    let bth = BthView::new(&octets[offset..])?;
    let row = bth.opcode().row();

    let body_offset = offset + Bth::LEN;
    let body = end - body_offset;
    let extended = row.map_or(0, |row| row.extended_headers.octets());
    let Some(padded) = body.checked_sub(extended) else {
        return Err(ParseError::short("extended headers", body_offset, extended, body));
    };
    let pad = usize::from(bth.pad_count());
    let Some(payload) = padded.checked_sub(pad) else {
        return Err(ParseError::length(Bth::LAYER, offset, pad, padded));
    };
    Ok(Transport {
        class: transport_class(bth.opcode(), row, notification),
        queue_pair: bth.destination().get(),
        psn: bth.psn().get(),
        fecn: bth.fecn(),
        becn: bth.becn(),
        payload,
    })
}

/// InfiniBand and RoCEv2 have different opcodes for notifications: 0x80 and 0x81. Where it is not its
/// own, each is an opcode like any unknown one.
fn transport_class(
    opcode: Opcode,
    row: Option<&OpcodeRow>,
    notification: Option<Opcode>,
) -> FrameClass {
    match row {
        _ if Some(opcode) == notification => FrameClass::Notification,
        Some(row) if row.is_acknowledgement() => FrameClass::Ack,
        _ => FrameClass::Data,
    }
}

#[cfg(test)]
mod tests;
