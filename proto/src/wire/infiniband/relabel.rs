//! What a switch may change in a packet that passes through: the lane, and the congestion mark.
//!
//! Both are outside the ICRC and inside the VCRC. The setters leave the VCRC to the caller, who may
//! have more to change; [`relabel`] does both and lets the VCRC follow, for less than the price of
//! reading the packet once.

use crate::ids::VirtualLane;
use crate::wire::infiniband::bth;
use crate::wire::infiniband::crc;
use crate::wire::infiniband::envelope::bth_offset;
use crate::wire::infiniband::lrh::Lrh;

/// Puts the packet on another lane. Spoils the VCRC, not the ICRC.
///
/// Octets too few for an LRH stay as they are.
pub fn set_virtual_lane(octets: &mut [u8], lane: VirtualLane) {
    if let Some(header) = octets.first_chunk_mut::<{ Lrh::LEN }>() {
        header[0] = header[0] & 0x0f | lane.get() << 4;
    }
}

/// Sets FECN; false, and nothing changed, where there is no BTH to carry it. Spoils the VCRC, not
/// the ICRC.
pub fn set_fecn(octets: &mut [u8]) -> bool {
    match bth_offset(octets) {
        Ok(Some(bth)) => {
            octets[bth + bth::F_B_RESV6] |= bth::FECN;
            true
        }
        _ => false,
    }
}

/// Puts the packet on `lane`, sets FECN if `fecn` says so, and lets the VCRC follow. FECN that an
/// earlier switch has set stays.
///
/// A VCRC that was wrong stays wrong. Returns whether the packet now carries FECN.
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
