//! Changes that a switch may make to a forwarded packet: the virtual lane and FECN.
//!
//! The ICRC does not cover them, but the VCRC does. The setters do not update the VCRC, so that the caller can make
//! further changes. [`relabel`] makes both changes and updates the VCRC without reading the whole packet.
//! Source: IBTA Vol 1, 7.8 (what the CRCs cover).

use super::envelope::bth_offset;
use super::{Lrh, bth, crc};
use crate::frame::Frame;
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
    change(octets, lane, fecn, crc::amend_vcrc)
}

/// As [`relabel`], of a frame whose last octets may be implied. An implied VCRC needs no update.
pub fn relabel_frame(frame: &mut Frame, lane: VirtualLane, fecn: bool) -> bool {
    if frame.implied == 0 {
        return relabel(&mut frame.octets, lane, fecn);
    }
    change(&mut frame.octets, lane, fecn, |_, _, _| {})
}

/// Makes the changes of [`relabel`]. `amend` gets the octets after each change, its position, and the changed bits.
#[inline]
fn change(
    octets: &mut [u8],
    lane: VirtualLane,
    fecn: bool,
    amend: impl Fn(&mut [u8], usize, u8),
) -> bool {
    let Some(before) = octets.first().copied() else { return false };
    set_virtual_lane(octets, lane);
    let changed = before ^ octets[0];
    if changed != 0 {
        amend(octets, 0, changed);
    }
    let Ok(Some(bth)) = bth_offset(octets) else { return false };
    let position = bth + bth::F_B_RESV6;
    let carried = octets[position] & bth::FECN != 0;
    if fecn && !carried {
        octets[position] |= bth::FECN;
        amend(octets, position, bth::FECN);
    }
    carried || fecn
}

#[cfg(test)]
mod tests;
