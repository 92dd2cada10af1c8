//! Checks of a RoCE packet: the end-to-end ICRC and the checksums of IPv4 and UDP.
//!
//! All functions take a frame without FCS. Frames without RoCE pass.
//! Source: IBTA Vol 1, annexes A16 and A17 (ICRC); RFC 791, RFC 768, RFC 8200 (checksums).

use crate::wire::error::ParseError;
use crate::wire::ethernet::crc::{self, Network};
use crate::wire::infiniband::envelope::ICRC_LEN;
use crate::wire::internet::checksum;
use crate::wire::internet::{Ipv4, Ipv6, Udp, UdpView};
use crate::wire::roce::layout::Layout;

/// The correct ICRC of the packet at `layout`.
pub fn icrc(octets: &[u8], layout: &Layout) -> u32 {
    icrc_over(&octets[layout.network_at..layout.icrc_at()], layout)
}

/// The ICRC over `covered`, which begins with the network header.
pub(crate) fn icrc_over(covered: &[u8], layout: &Layout) -> u32 {
    crc::icrc(layout.network, layout.bth_at - layout.network_at, covered)
}

/// The ICRC in the packet, sent least significant octet first; 0 if `octets` end before it.
pub fn carried_icrc(octets: &[u8], layout: &Layout) -> u32 {
    let packet = octets.get(..layout.end).unwrap_or_default();
    packet.last_chunk::<ICRC_LEN>().map_or(0, |found| u32::from_le_bytes(*found))
}

/// Writes the correct ICRC, then the UDP checksum, which covers it. A UDP checksum of 0 means none and stays.
pub fn refresh(octets: &mut [u8], layout: &Layout) {
    let icrc = icrc(octets, layout).to_le_bytes();
    octets[layout.icrc_at()..layout.end].copy_from_slice(&icrc);
    let Some(udp_at) = layout.udp_at() else { return };
    let place = udp_at + 6..udp_at + 8;
    if octets[place.clone()] != [0, 0]
        && let Some(checksum) = udp_checksum(octets, layout)
    {
        octets[place].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The correct UDP checksum; `None` without UDP.
pub fn udp_checksum(octets: &[u8], layout: &Layout) -> Option<u16> {
    let addresses = match layout.network {
        Network::Global => return None,
        Network::Ipv4 => 12..Ipv4::LEN,
        Network::Ipv6 => 8..Ipv6::LEN,
    };
    let datagram = &octets[layout.udp_at()?..layout.end];
    Some(checksum::udp(&octets[layout.network_at..][addresses], datagram))
}

/// Checks the ICRC.
///
/// # Errors
/// In layer "ICRC": a wrong ICRC. Those of [`Layout::find`].
pub fn verify_icrc(octets: &[u8]) -> Result<(), ParseError> {
    Layout::find(octets)?.map_or(Ok(()), |layout| verify_icrc_at(octets, &layout))
}

/// The same check, for a packet with a known layout.
///
/// # Errors
/// In layer "ICRC": a wrong ICRC.
pub fn verify_icrc_at(octets: &[u8], layout: &Layout) -> Result<(), ParseError> {
    ParseError::check("ICRC", layout.icrc_at(), icrc(octets, layout), carried_icrc(octets, layout))
}

/// Checks the checksums of the IPv4 header and of UDP. A UDP checksum of 0 means none and passes, over IPv6, too,
/// because Linux sends it.
///
/// # Errors
/// In layers "IPv4" and "UDP": a wrong checksum. Those of [`Layout::find`].
pub fn verify_checksums(octets: &[u8]) -> Result<(), ParseError> {
    Layout::find(octets)?.map_or(Ok(()), |layout| verify_checksums_at(octets, &layout))
}

/// The same check, for a packet with a known layout.
///
/// # Errors
/// In layers "IPv4" and "UDP": a wrong checksum.
pub fn verify_checksums_at(octets: &[u8], layout: &Layout) -> Result<(), ParseError> {
    let Some(udp_at) = layout.udp_at() else { return Ok(()) };
    if layout.network == Network::Ipv4 {
        checksum::verify_ipv4_header(&octets[layout.network_at..udp_at])
            .map_err(|error| error.within(layout.network_at))?;
    }
    let present = UdpView::new(&octets[udp_at..])?.checksum();
    let computed = udp_checksum(octets, layout).filter(|_| present != 0).unwrap_or(present);
    ParseError::check(Udp::LAYER, udp_at, computed, present)
}
