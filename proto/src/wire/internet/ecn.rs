//! What a switch may change in an IP packet that passes through: the mark of congestion.
//!
//! The mark is outside the ICRC of RoCEv2, which stays what it was. An IPv4 header's checksum follows
//! without the header being summed again. Source: RFC 3168, 5; RFC 1624.

use crate::ids::Ecn;
use crate::wire::ethernet::{Preface, ethertype};
use crate::wire::internet::checksum;
use crate::wire::internet::ipv4::{self, Ipv4View};
use crate::wire::internet::ipv6::Ipv6View;
use crate::wire::project::ProjectTypes;

/// Sets CE in an Ethernet frame whose IP header says that its ends would understand; returns whether
/// the frame now carries CE.
///
/// False, and nothing changed, where there is no IP header or it says Not-ECT: such a frame can only
/// be dropped. A checksum that was wrong stays wrong.
pub fn mark_congestion(octets: &mut [u8]) -> bool {
    mark_congestion_by(octets, &ProjectTypes::DEFAULT)
}

/// The same where tags of this project go under these `types`.
pub fn mark_congestion_by(octets: &mut [u8], types: &ProjectTypes) -> bool {
    let Ok(preface) = Preface::parse(octets, types) else { return false };
    let packet = &mut octets[preface.octets_len()..];
    match preface.ethertype() {
        ethertype::IPV4 => mark_ipv4(packet),
        ethertype::IPV6 => mark_ipv6(packet),
        _ => false,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    let Ok(header) = Ipv4View::new(&packet[..]) else { return false };
    if header.version() != 4 || !header.ecn().is_capable() {
        return false;
    }
    let carried = header.checksum();
    let word = [ipv4::VERSION_IHL, ipv4::DSCP_ECN].map(|at| packet[at]);
    packet[ipv4::DSCP_ECN] |= Ecn::CongestionExperienced.bits();
    let [before, after] = [word, [word[0], packet[ipv4::DSCP_ECN]]].map(u16::from_be_bytes);
    if before != after {
        let amended = checksum::amended(carried, before, after);
        packet[ipv4::CHECKSUM].copy_from_slice(&amended.to_be_bytes());
    }
    true
}

fn mark_ipv6(packet: &mut [u8]) -> bool {
    let Ok(header) = Ipv6View::new(&packet[..]) else { return false };
    let is_capable = header.version() == 6 && header.ecn().is_capable();
    if is_capable {
        // The lower two bits of the traffic class stand in the upper half of the second octet.
        packet[1] |= Ecn::CongestionExperienced.bits() << 4;
    }
    is_capable
}

#[cfg(test)]
mod tests;
