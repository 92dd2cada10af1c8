//! Changes that a switch may make to a forwarded packet: the virtual lane and FECN.
//!
//! The ICRC does not cover them, but the VCRC does. The setters do not update the VCRC, so that the caller can make
//! further changes. [`relabel`] makes both changes and updates the VCRC without reading the whole packet.

use super::envelope::bth_offset;
use super::{Lrh, bth, crc};
use crate::ids::VirtualLane;

/// Sets the packet's virtual lane. Invalidates the VCRC, but not the ICRC.
///
/// Octets that are too few for an LRH stay unchanged.
pub fn set_virtual_lane(octets: &mut [u8], lane: VirtualLane) {
    if let Some(header) = octets.first_chunk_mut::<{ Lrh::LEN }>() {
        header[0] = header[0] & 0x0f | lane.get() << 4;
    }
}

/// Sets FECN. Invalidates the VCRC, but not the ICRC. Returns false and changes nothing if the packet has no
/// BTH.
pub fn set_fecn(octets: &mut [u8]) -> bool {
    let Ok(Some(bth)) = bth_offset(octets) else { return false };
    octets[bth + bth::F_B_RESV6] |= bth::FECN;
    true
}

/// Sets the packet's virtual lane, sets FECN if `fecn` is true, and updates the VCRC. FECN set by an earlier
/// switch stays set.
///
/// A wrong VCRC stays wrong. Returns true if the packet now has FECN set.
pub fn relabel(octets: &mut [u8], lane: VirtualLane, fecn: bool) -> bool {
    let Some(before) = octets.first().copied() else { return false };
    set_virtual_lane(octets, lane);
    let change = before ^ octets[0];
    if change != 0 {
        crc::amend_vcrc(octets, 0, change);
    }
    let Ok(Some(bth)) = bth_offset(octets) else { return false };
    let position = bth + bth::F_B_RESV6;
    let carried = octets[position] & bth::FECN != 0;
    if fecn && !carried {
        octets[position] |= bth::FECN;
        crc::amend_vcrc(octets, position, bth::FECN);
    }
    carried || fecn
}

#[cfg(test)]
mod tests;
