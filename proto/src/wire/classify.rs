//! Extracts the header fields that every hop needs, once for each frame.
//!
//! Lengths are checked, CRCs are not. The result has every field that counters, routing, congestion
//! points and arbitration use, so they do not parse the octets again.

pub mod ethernet;
pub mod priority_map;

pub use ethernet::{classify_ethernet, classify_ethernet_by};
pub use priority_map::PriorityMap;

use crate::frame::{Frame, FrameClass, FrameHeaders, FrameKind};
use crate::ids::{Ecn, VirtualLane};
use crate::units::Bytes;
use crate::wire::error::{ParseError, Reason};
use crate::wire::infiniband::envelope::{self, ICRC_LEN, VCRC_LEN};
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;
use crate::wire::infiniband::opcode::OpcodeRow;
use crate::wire::infiniband::{Bth, BthView, Lrh, LrhView, Opcode};
use crate::wire::project::ProjectTypes;
use std::ops::Range;

/// The header fields of a frame. On Ethernet the priority is the PCP of the tag; use [`classify_ethernet`] for
/// another priority map.
///
/// # Errors
/// If the octets are not a frame of that kind, or have no packet headers: link packets (parse them with
/// [`FlowControlPacket`]) and MAC control.
#[inline]
pub fn classify(kind: FrameKind, octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    classify_part(kind, octets, octets.len())
}

/// As [`classify`]; of the octets of `frame` the last may be implied.
///
/// # Errors
/// Those of [`classify`].
#[inline]
pub fn classify_frame(frame: &Frame) -> Result<FrameHeaders, ParseError> {
    classify_part(frame.kind, &frame.octets, frame.octets_len())
}

/// Classifies a frame of `length` octets, the first of which are `octets`.
#[inline]
fn classify_part(
    kind: FrameKind,
    octets: &[u8],
    length: usize,
) -> Result<FrameHeaders, ParseError> {
    let no_headers =
        |layer, why| Err(ParseError { layer, offset: 0, reason: Reason::Illegal(why) });
    match kind {
        FrameKind::Infiniband => infiniband(octets, length),
        FrameKind::InfinibandLink => {
            no_headers(FlowControlPacket::LAYER, "a link packet has no headers to classify")
        }
        FrameKind::Ethernet => {
            classify_ethernet_by(octets, length, &PriorityMap::BY_PCP, &ProjectTypes::DEFAULT)
        }
    }
}

/// Classifies a data packet, LRH to VCRC. The payload of a raw packet is everything after its LRH.
#[inline]
fn infiniband(octets: &[u8], length: usize) -> Result<FrameHeaders, ParseError> {
    envelope::check_part(octets, length)?;
    let transport = match envelope::bth_offset(octets)? {
        Some(offset) => {
            let end = length - ICRC_LEN - VCRC_LEN;
            transport(octets, offset..end, Some(Opcode::CNP))?
        }
        None => Transport::opaque(length - Lrh::LEN - VCRC_LEN),
    };
    let lrh = LrhView::new(octets)?;
    let management = lrh.virtual_lane() == VirtualLane::MANAGEMENT;
    Ok(FrameHeaders {
        size: Bytes::new(length as u64),
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

/// Completes the fields of the link header with those of the BTH.
struct Transport {
    class: FrameClass,
    queue_pair: u32,
    psn: u32,
    fecn: bool,
    becn: bool,
    payload: usize,
}

impl Transport {
    /// Fields of a packet without a BTH and with `payload` octets.
    const fn opaque(payload: usize) -> Transport {
        let class = FrameClass::Data;
        Transport { class, queue_pair: 0, psn: 0, fecn: false, becn: false, payload }
    }
}

/// Reads the BTH at the start of `place`, which holds at least a BTH and ends before the ICRC.
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

/// InfiniBand and RoCEv2 have different opcodes for notifications: 0x80 and 0x81. In the other technology each
/// is an unknown opcode.
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
