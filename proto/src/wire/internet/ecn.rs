//! ECN marking by a switch: sets CE in the IP header of a forwarded frame.
//!
//! The ICRC of RoCEv2 does not cover the ECN field and stays valid. The IPv4 header checksum is updated
//! incrementally. Source: RFC 3168, 5; RFC 1624.

use crate::ids::Ecn;
use crate::wire::ethernet::{Preface, ethertype};
use crate::wire::internet::{Ipv4View, Ipv6View, checksum, ipv4};
use crate::wire::project::ProjectTypes;

/// Sets CE in an Ethernet frame whose IP header has ECT(0), ECT(1) or CE. Returns true if the frame now has
/// CE set.
///
/// Returns false and changes nothing if there is no IP header or it has Not-ECT; such a frame can only be
/// dropped. A wrong checksum stays wrong.
pub fn mark_congestion(octets: &mut [u8]) -> bool {
    let Ok(preface) = Preface::parse(octets, &ProjectTypes::DEFAULT) else { return false };
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
        // ECN is bits 4 and 5 of the second octet.
        packet[1] |= Ecn::CongestionExperienced.bits() << 4;
    }
    is_capable
}

#[cfg(test)]
mod tests;
