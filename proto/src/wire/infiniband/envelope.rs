//! The envelope of a packet: the checks that every port makes before it reads further headers.
//!
//! They check the version, PktLen against the number of octets, and the presence and offset of the BTH. They read
//! nothing after the BTH and check no CRC. Source: IBTA Vol 1, chapter 5 and 7.7.

use super::{Bth, Grh, GrhView, LinkNextHeader, Lrh, LrhView};
use crate::wire::error::{ParseError, Reason};

/// Length of the invariant CRC, in octets.
pub const ICRC_LEN: usize = 4;

/// Length of the variant CRC, in octets.
pub const VCRC_LEN: usize = 2;

/// Unit of PktLen, in octets.
pub const WORD: usize = 4;

/// Minimum PktLen of a packet with a BTH: LRH, BTH and ICRC. Source: IBTA Vol 1, 7.7.8 (C7-43).
const TRANSPORT_WORDS_MIN: u16 = 6;

/// Minimum PktLen of a raw packet. Source: IBTA Vol 1, 7.7.8 (C7-44).
const RAW_WORDS_MIN: u16 = 5;

/// Checks the version of the LRH and PktLen against the number of octets. Octets that pass hold at least LRH and
/// VCRC.
///
/// # Errors
/// In layer "LRH": too short, an unknown version, or a PktLen that disagrees with the octets.
#[inline]
pub fn check(octets: &[u8]) -> Result<(), ParseError> {
    check_part(octets, octets.len())
}

/// The same checks for a packet of `length` octets, the first of which are `octets`.
///
/// # Errors
/// Those of [`check`].
#[inline]
pub fn check_part(octets: &[u8], length: usize) -> Result<(), ParseError> {
    let lrh = LrhView::new(octets)?;
    if lrh.version() != 0 {
        return Err(ParseError::new(Lrh::LAYER, 0, Reason::Version(lrh.version())));
    }
    let declared = usize::from(lrh.packet_length()) * WORD + VCRC_LEN;
    if declared != length {
        return Err(ParseError::length(Lrh::LAYER, 0, declared, length));
    }
    Ok(())
}

/// Offset of the packet's BTH; `None` for a raw packet, which has none.
///
/// With `Ok(Some(_))` the octets hold at least LRH, GRH if LNH requires it, BTH, ICRC and VCRC.
///
/// # Errors
/// If LRH, GRH, BTH or the CRCs are truncated, or the next header of a GRH is not a BTH.
#[inline]
pub fn bth_offset(octets: &[u8]) -> Result<Option<usize>, ParseError> {
    let offset = match LrhView::new(octets)?.next_header() {
        LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6 => return Ok(None),
        LinkNextHeader::Local => Lrh::LEN,
        LinkNextHeader::Global => {
            let grh = GrhView::new(&octets[Lrh::LEN..]).map_err(|error| error.within(Lrh::LEN))?;
            if grh.next_header() != Grh::NEXT_HEADER_BTH {
                return Err(ParseError::new(
                    Grh::LAYER,
                    Lrh::LEN,
                    Reason::Illegal("the next header is not a BTH"),
                ));
            }
            Lrh::LEN + Grh::LEN
        }
    };
    let present = octets.len() - offset;
    if present < Bth::LEN {
        return Err(ParseError::short(Bth::LAYER, offset, Bth::LEN, present));
    }
    let present = present - Bth::LEN;
    if present < ICRC_LEN + VCRC_LEN {
        return Err(ParseError::short("CRCs", offset + Bth::LEN, ICRC_LEN + VCRC_LEN, present));
    }
    Ok(Some(offset))
}

/// True for a packet without BTH and ICRC.
pub fn is_raw(octets: &[u8]) -> bool {
    LrhView::new(octets).is_ok_and(|lrh| lrh.next_header().is_raw())
}

/// True if PktLen is below the minimum of its kind of packet. Ports drop such packets; dissectors show them.
pub fn is_below_minimum(octets: &[u8]) -> bool {
    let least = if is_raw(octets) { RAW_WORDS_MIN } else { TRANSPORT_WORDS_MIN };
    LrhView::new(octets).is_ok_and(|lrh| lrh.packet_length() < least)
}

/// The VCRC in the packet: the last two octets, least significant first. 0 if there are fewer.
pub fn carried_vcrc(octets: &[u8]) -> u16 {
    octets.last_chunk().map_or(0, |found| u16::from_le_bytes(*found))
}

/// The ICRC in the packet: the four octets before the VCRC, least significant first. 0 if there are
/// fewer. Tools that print the octets as one big-endian number show the reverse order.
pub fn carried_icrc(octets: &[u8]) -> u32 {
    let covered = octets.len().saturating_sub(VCRC_LEN);
    octets[..covered].last_chunk().map_or(0, |found| u32::from_le_bytes(*found))
}
