//! ICRC, VCRC and LPCRC: coverage, computation, and update after a change of one octet.
//!
//! All functions take whole frames, LRH to VCRC (or the six octets of a link packet), and accept any
//! octets. All CRCs are sent least significant octet first, unlike every other number.
//! Source: IBTA Vol 1, 7.8 (ICRC, VCRC) and 7.9.4 (LPCRC).

use super::envelope::{ICRC_LEN, VCRC_LEN, WORD, bth_offset, carried_icrc, carried_vcrc};
use super::{Bth, Grh, LinkNextHeader, Lrh, LrhView, bth};
use crate::wire::error::ParseError;
use crate::wire::ethernet::{self, crc::Network};
use crc_fast::CrcParams;
use std::sync::LazyLock;

/// Generator of VCRC and LPCRC, x^16 + x^12 + x^3 + x + 1.
const GENERATOR: u16 = 0x100b;

/// The CRC of "123456789".
const CHECK: u16 = 0x0a3d;

/// The parameters for the vectorised computation, computed once because the folding keys are costly.
static VECTOR_PARAMETERS: LazyLock<CrcParams> = LazyLock::new(|| {
    CrcParams::new("VCRC", 16, GENERATOR.into(), 0xffff, true, 0xffff, CHECK.into())
});

/// Below this number of octets the table is faster than the vectorised computation.
const VECTOR_MIN: usize = 20;

/// The register after one zero octet, by the low octet of the register before: the register times x^8.
static OCTET_STEP: [u16; 256] = octet_steps();

/// x^(32·n), reflected, for every packet length of n words: the factor of a change followed by n words.
static WORD_POWERS: [u16; Lrh::PACKET_LENGTH_MAX as usize + 1] = word_powers();

/// The register (or any residue, bit 15 being x^0) times x^`exponent`.
const fn times_x(mut register: u16, exponent: usize) -> u16 {
    let mut done = 0;
    while done < exponent {
        register = register >> 1 ^ GENERATOR.reverse_bits() & (register & 1).wrapping_neg();
        done += 1;
    }
    register
}

const fn octet_steps() -> [u16; 256] {
    let mut steps = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        steps[octet] = times_x(octet as u16, 8);
        octet += 1;
    }
    steps
}

const fn word_powers() -> [u16; Lrh::PACKET_LENGTH_MAX as usize + 1] {
    let mut powers = [0x8000; Lrh::PACKET_LENGTH_MAX as usize + 1];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = times_x(powers[n - 1], 32);
        n += 1;
    }
    powers
}

fn step(register: u16, octet: u8) -> u16 {
    OCTET_STEP[usize::from(register as u8 ^ octet)] ^ register >> 8
}

/// The residue of `octet`, as it enters the register, times `residue`.
///
/// Bit 7 of an octet entering is x^8, so the residue is first moved up by one octet.
fn times_octet(residue: u16, octet: u8) -> u16 {
    let mut term = step(residue, 0);
    let mut sum = 0;
    for bit in (0..8).rev() {
        sum ^= term & (u16::from(octet >> bit) & 1).wrapping_neg();
        term = times_x(term, 1);
    }
    sum
}

/// The CRC of VCRC and LPCRC.
pub(crate) fn crc16(octets: &[u8]) -> u16 {
    if octets.len() < VECTOR_MIN {
        return !octets.iter().fold(0xffff, |register, octet| step(register, *octet));
    }
    crc_fast::checksum_with_params(*VECTOR_PARAMETERS, octets) as u16
}

/// The correct VCRC of a packet, which covers everything before the last two octets.
pub fn vcrc(octets: &[u8]) -> u16 {
    crc16(&octets[..octets.len().saturating_sub(VCRC_LEN)])
}

/// The correct LPCRC of a link packet, which covers its first four octets.
pub fn lpcrc(octets: &[u8]) -> u16 {
    crc16(&octets[..octets.len().min(4)])
}

/// The correct ICRC of a packet; `None` for raw packets and octets that [`bth_offset`] refuses.
pub fn icrc(octets: &[u8]) -> Option<u32> {
    let bth = bth_offset(octets).ok()??;
    Some(icrc_with_bth_at(bth, octets))
}

/// The correct ICRC of a packet with LNH 2 or 3, without checks of the other headers, which may be truncated.
/// `None` for other values of LNH and if the octets are too few for LRH and CRCs.
///
/// For dissectors, which report CRC errors before header errors. For complete packets the result equals
/// [`icrc`].
pub fn icrc_by_link_header(octets: &[u8]) -> Option<u32> {
    let next = LrhView::new(octets).ok()?.next_header();
    let room = octets.len() >= Lrh::LEN + ICRC_LEN + VCRC_LEN;
    let bth = if next == LinkNextHeader::Global { Lrh::LEN + Grh::LEN } else { Lrh::LEN };
    (room && !next.is_raw()).then(|| icrc_with_bth_at(bth, octets))
}

/// The headers up to the BTH are copied, with all variant fields set to ones. The rest, with the payload, is read
/// in place. Truncated headers are masked as far as present.
///
/// With a GRH the LRH counts as ones throughout; without, only its VL does.
/// Source: IBTA Vol 1, 7.8.1.
fn icrc_with_bth_at(bth: usize, octets: &[u8]) -> u32 {
    icrc_over(bth, &octets[..octets.len() - ICRC_LEN - VCRC_LEN])
}

/// The ICRC over `covered`, which begins with the LRH.
pub(crate) fn icrc_over(bth: usize, covered: &[u8]) -> u32 {
    if bth > Lrh::LEN {
        // Outside its subnet the whole LRH counts as ones, as on Ethernet, which has none.
        return ethernet::crc::icrc(Network::Global, Grh::LEN, &covered[Lrh::LEN..]);
    }
    let (headers, rest) = covered.split_at(covered.len().min(bth + Bth::LEN));
    let mut copy = [0; Lrh::LEN + Bth::LEN];
    let masked = &mut copy[..headers.len()];
    masked.copy_from_slice(headers);
    masked[0] |= 0xf0;
    if let Some(octet) = masked.get_mut(bth + bth::F_B_RESV6) {
        *octet = 0xff;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(masked);
    hasher.update(rest);
    hasher.finalize()
}

/// Checks the VCRC.
///
/// # Errors
/// In layer "VCRC": a wrong VCRC, or too few octets for one.
pub fn verify_vcrc(octets: &[u8]) -> Result<(), ParseError> {
    let Some(offset) = octets.len().checked_sub(VCRC_LEN) else {
        return Err(ParseError::short("VCRC", 0, VCRC_LEN, octets.len()));
    };
    ParseError::check("VCRC", offset, vcrc(octets), carried_vcrc(octets))
}

/// Checks the ICRC. A raw packet has none and passes.
///
/// # Errors
/// In layer "ICRC": a wrong ICRC. Those of [`bth_offset`].
pub fn verify_icrc(octets: &[u8]) -> Result<(), ParseError> {
    let Some(bth) = bth_offset(octets)? else { return Ok(()) };
    let offset = octets.len() - ICRC_LEN - VCRC_LEN;
    ParseError::check("ICRC", offset, icrc_with_bth_at(bth, octets), carried_icrc(octets))
}

/// Checks the LPCRC of a link packet.
///
/// # Errors
/// In layer "LPCRC": a wrong LPCRC, or too few octets for one.
pub fn verify_lpcrc(octets: &[u8]) -> Result<(), ParseError> {
    let Some([_, _, _, _, low, high]) = octets.first_chunk() else {
        return Err(ParseError::short("LPCRC", 4, 2, octets.len().saturating_sub(4)));
    };
    ParseError::check("LPCRC", 4, lpcrc(octets), u16::from_le_bytes([*low, *high]))
}

/// Writes the correct VCRC. Octets that are too few for a VCRC stay unchanged.
pub fn refresh_vcrc(octets: &mut [u8]) {
    let computed = vcrc(octets);
    if let Some(place) = octets.last_chunk_mut() {
        *place = computed.to_le_bytes();
    }
}

/// Writes the correct ICRC, if the packet has one, and then the correct VCRC.
pub fn refresh_both(octets: &mut [u8]) {
    if let Some(computed) = icrc(octets) {
        let end = octets.len() - VCRC_LEN;
        octets[end - ICRC_LEN..end].copy_from_slice(&computed.to_le_bytes());
    }
    refresh_vcrc(octets);
}

/// Updates the VCRC after a change of one octet, without reading the packet: the octet at `position`
/// was XORed with `change`.
///
/// A CRC is linear, so the change of the CRC is the change of the octet times x to the power of the number of
/// following bits. A wrong VCRC stays wrong, so that corruption remains detectable.
pub fn amend_vcrc(octets: &mut [u8], position: usize, change: u8) {
    let covered = octets.len().saturating_sub(VCRC_LEN);
    let Some(distance) = covered.checked_sub(position).filter(|distance| *distance > 0) else {
        return;
    };
    let Some(power) = WORD_POWERS.get(distance / WORD) else {
        return amend_longer_than_pktlen(octets, position, change);
    };
    let power = (0..distance % WORD).fold(*power, |power, _| step(power, 0));
    let carried = carried_vcrc(octets) ^ times_octet(power, change);
    octets[covered..].copy_from_slice(&carried.to_le_bytes());
}

/// The factor for lengths beyond the table. No packet is that long, but the result is correct.
#[cold]
fn amend_longer_than_pktlen(octets: &mut [u8], position: usize, change: u8) {
    let after = vcrc(octets);
    octets[position] ^= change;
    let before = vcrc(octets);
    octets[position] ^= change;
    let carried = carried_vcrc(octets) ^ before ^ after;
    let covered = octets.len() - VCRC_LEN;
    octets[covered..].copy_from_slice(&carried.to_le_bytes());
}

#[cfg(test)]
mod tests;
