//! The octets of an Ethernet frame that an impairment may alter: payload, ICRC, headers.

use crate::wiring::FramePart;
use proto::wire::ethernet::ethertype;
use proto::wire::infiniband::{Bth, BthView};
use proto::wire::roce::Layout;
use std::ops::Range;

/// Octets up to the EtherType of a frame without tags, and of one tag. Source: IEEE 802.3, 3.1.1; IEEE 802.1Q, 9.5.
const MAC_HEADER: usize = 14;
const TAG: usize = 4;
/// Protocol numbers of TCP and UDP, and lengths of their headers and of an IPv6 header. Source: RFC 9293, 768, 8200.
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;

/// The octets of `part`. It falls back to the ICRC, and then to the headers, if a frame has none of that part; it is
/// empty only for a frame of an Ethernet header alone.
pub(super) fn place(octets: &[u8], part: FramePart) -> Range<usize> {
    let Parts { header, payload, icrc } = Parts::of(octets);
    let wanted = match part {
        FramePart::Payload => [&payload, &icrc, &header],
        FramePart::Icrc => [&icrc, &payload, &header],
        FramePart::Header => [&header, &payload, &icrc],
    };
    wanted.into_iter().find(|place| !place.is_empty()).unwrap_or(&header).clone()
}

/// The octets behind the EtherType, in three parts. Padding of the frame is in none.
struct Parts {
    header: Range<usize>,
    payload: Range<usize>,
    icrc: Range<usize>,
}

impl Parts {
    fn of(octets: &[u8]) -> Parts {
        if let Ok(Some(layout)) = Layout::find(octets) {
            let (end, base) = (layout.icrc_at(), layout.bth_at + Bth::LEN);
            let row =
                BthView::new(&octets[layout.bth_at..]).ok().and_then(|bth| bth.opcode().row());
            let extended = row.map_or(0, |row| row.extended_headers.octets());
            // An acknowledgement has no payload; its extended header is the last thing that it has.
            let behind = if base + extended < end { base + extended } else { base };
            let (header, payload) = (layout.network_at..behind, behind..end);
            return Parts { header, payload, icrc: end..layout.end };
        }
        let tags = octets[12.min(octets.len())..].chunks_exact(TAG);
        let tags = tags.take_while(|tag| matches!(tag[..2], [0x81, 0x00] | [0x88, 0xa8])).count();
        let begin = (MAC_HEADER + tags * TAG).min(octets.len());
        let (behind, end) = internet(octets, begin);
        let end = end.clamp(begin, octets.len());
        let behind = behind.clamp(begin, end);
        Parts { header: begin..behind, payload: behind..end, icrc: end..end }
    }
}

/// Where the headers of IP and TCP or UDP end, and where the packet does. A frame of another kind has no header.
fn internet(octets: &[u8], begin: usize) -> (usize, usize) {
    let at = |place: usize| octets.get(begin + place).copied().unwrap_or(0);
    let length = |place| usize::from(u16::from_be_bytes([at(place), at(place + 1)]));
    let kind = octets
        .get(begin.wrapping_sub(2)..begin)
        .map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
    let (network, protocol, whole) = match kind {
        ethertype::IPV4 => (usize::from(at(0) & 0xf) * 4, at(9), length(2)),
        ethertype::IPV6 => (IPV6_HEADER, at(6), IPV6_HEADER + length(4)),
        _ => return (begin, octets.len()),
    };
    let transport = match protocol {
        TCP => usize::from(at(network + 12) >> 4) * 4,
        UDP => UDP_HEADER,
        _ => 0,
    };
    (begin + network + transport, begin + whole)
}
