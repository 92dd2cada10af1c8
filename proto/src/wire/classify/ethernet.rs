//! Extracts the header fields of an Ethernet frame: addresses, priority, congestion bits, and RoCE fields if present.

use super::{Transport, priority_map::PriorityMap, transport};
use crate::frame::{FrameClass, FrameHeaders, ethernet_size};
use crate::ids::{CongestionPointId, Dscp, Ecn, ServiceLevel, VirtualLane};
use crate::units::Bytes;
use crate::wire::error::{ParseError, Reason};
use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::{CongestionTag, MacControl, Preface, ethertype};
use crate::wire::infiniband::Opcode;
use crate::wire::internet::{Ipv4View, Ipv6View};
use crate::wire::project::{ProjectTypes, SUBTYPE_LEN, Subtype, TestFrame};
use crate::wire::roce::Layout;

/// The header fields of a frame without FCS, with the priority according to `map`.
///
/// A congestion control tag does not change the other fields. A test frame is data: its flow is the queue pair,
/// its sequence the PSN, its pattern the payload. Other frames without RoCE have queue pair 0, and their payload
/// is everything after the EtherType. Messages of QCN and BCN are notifications; the other frames are data.
///
/// # Errors
/// If tags, IP, RoCE or test frame headers are truncated or their lengths disagree with the octets, and
/// for MAC control (parse it with [`MacControl`]).
pub fn classify_ethernet(octets: &[u8], map: &PriorityMap) -> Result<FrameHeaders, ParseError> {
    classify_ethernet_by(octets, octets.len(), map, &ProjectTypes::DEFAULT)
}

/// As [`classify_ethernet`], with these EtherTypes for the project's frames, for a frame of `length` octets, the first
/// of which are `octets`: without RoCE all of them.
///
/// # Errors
/// Those of [`classify_ethernet`].
pub fn classify_ethernet_by(
    octets: &[u8],
    length: usize,
    map: &PriorityMap,
    types: &ProjectTypes,
) -> Result<FrameHeaders, ParseError> {
    let preface = Preface::parse(octets, types)?;
    let envelope = &preface.envelope;
    if preface.ethertype() == ethertype::MAC_CONTROL {
        return Err(ParseError::new(
            MacControl::LAYER,
            12,
            Reason::Illegal("a MAC control frame has no headers to classify"),
        ));
    }
    let begin = preface.octets_len();
    let layout = Layout::behind(octets, length, preface)?;
    let transport = match layout {
        Some(layout) => {
            // RoCEv1 has no notification; opcode 0x81 belongs to RoCEv2.
            let notification = (layout.network != Network::Global).then_some(Opcode::ROCEV2_CNP);
            transport(octets, layout.bth_at..layout.icrc_at(), notification)?
        }
        None => other(preface.ethertype(), &octets[begin..], types)
            .map_err(|error| error.within(begin))?,
    };
    let (dscp, ecn) = differentiated(preface.ethertype(), &octets[begin..]);
    let pcp = envelope.tag.map(|tag| tag.priority);
    let priority = map.priority(pcp, dscp).get();
    Ok(FrameHeaders {
        size: ethernet_size(length),
        source: envelope.header.source.into(),
        destination: envelope.header.destination.into(),
        multicast: envelope.header.destination.is_group(),
        lane: VirtualLane::truncate(priority),
        level: ServiceLevel::truncate(priority),
        class: transport.class,
        queue_pair: transport.queue_pair,
        psn: transport.psn,
        fecn: transport.fecn,
        becn: transport.becn,
        ecn,
        regulated_by: regulated_by(&preface),
        payload: Bytes::new(transport.payload as u64),
    })
}

/// The fields of a frame without RoCE, from its `body`.
fn other(kind: u16, body: &[u8], types: &ProjectTypes) -> Result<Transport, ParseError> {
    let opaque = Transport::opaque(body.len());
    let notification = Transport { class: FrameClass::Notification, ..opaque };
    if kind == ethertype::CNM {
        return Ok(notification);
    }
    match types.subtype(kind, body) {
        Some(Subtype::Bcn) => Ok(notification),
        Some(Subtype::TestFrame) => {
            let body = &body[SUBTYPE_LEN..];
            let frame = TestFrame::parse(body).map_err(|error| error.within(SUBTYPE_LEN))?;
            let (queue_pair, psn) = (frame.flow, frame.sequence);
            Ok(Transport { queue_pair, psn, payload: body.len() - TestFrame::LEN, ..opaque })
        }
        Some(Subtype::RateTag) | None => Ok(opaque),
    }
}

/// The congestion point that a rate-regulated tag names.
fn regulated_by(preface: &Preface) -> Option<CongestionPointId> {
    match preface.tag {
        Some(CongestionTag::RateRegulated(tag)) => CongestionPointId::new(tag.cpid),
        _ => None,
    }
}

/// DSCP and ECN of an IP header, whose length [`Layout::within`] has checked.
fn differentiated(kind: u16, packet: &[u8]) -> (Option<Dscp>, Ecn) {
    match kind {
        ethertype::IPV4 => Ipv4View::new(packet).ok().map(|ip| (ip.dscp(), ip.ecn())),
        ethertype::IPV6 => Ipv6View::new(packet).ok().map(|ip| (ip.dscp(), ip.ecn())),
        _ => None,
    }
    .map_or((None, Ecn::NotCapable), |(dscp, ecn)| (Some(dscp), ecn))
}

#[cfg(test)]
mod tests;
