//! What the headers of an Ethernet frame say: addresses, priority, congestion, and RoCE if it is some.

use super::{Transport, priority_map::PriorityMap, transport};
use crate::frame::{FrameHeaders, ethernet_size};
use crate::ids::{Dscp, Ecn};
use crate::units::Bytes;
use crate::wire::error::{ParseError, Reason};
use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::{Envelope, MacControl, ethertype};
use crate::wire::infiniband::Opcode;
use crate::wire::internet::{Ipv4View, Ipv6View};
use crate::wire::roce::Layout;

/// What the headers of a frame without FCS say, to a port that tells priorities by `map`.
///
/// Frames that carry no RoCE are data of queue pair 0, all behind their EtherType payload.
///
/// # Errors
/// If envelope, IP or RoCE headers are cut off or their lengths disagree with the octets; and for MAC
/// control, which has no headers to classify and is read as [`MacControl`].
pub fn classify_ethernet(octets: &[u8], map: &PriorityMap) -> Result<FrameHeaders, ParseError> {
    let envelope = Envelope::parse(octets)?;
    if envelope.ethertype() == ethertype::MAC_CONTROL {
        let reason = Reason::Illegal("a MAC control frame has no headers to classify");
        return Err(ParseError { layer: MacControl::LAYER, offset: 12, reason });
    }
    let begin = envelope.octets_len();
    let layout = Layout::within(octets, envelope)?;
    let transport = match layout {
        Some(layout) => {
            // RoCEv1 has no notification of its own: 0x81 is that of v2.
            let notification = (layout.network != Network::Global).then_some(Opcode::ROCEV2_CNP);
            transport(octets, layout.bth_at..layout.icrc_at(), notification)?
        }
        None => Transport::opaque(octets.len() - begin),
    };
    let (dscp, ecn) = differentiated(envelope.ethertype(), &octets[begin..]);
    let pcp = envelope.tag.map(|tag| tag.priority);
    let priority = map.priority(pcp, dscp).get();
    Ok(FrameHeaders {
        size: ethernet_size(octets.len()),
        source: envelope.header.source.number(),
        destination: envelope.header.destination.number(),
        multicast: envelope.header.destination.is_group(),
        lane: priority,
        level: priority,
        class: transport.class,
        queue_pair: transport.queue_pair,
        psn: transport.psn,
        fecn: transport.fecn,
        becn: transport.becn,
        ecn,
        regulated_by: None,
        payload: Bytes::new(transport.payload as u64),
    })
}

/// DSCP and ECN of an IP header, which [`Layout::within`] has seen whole.
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
