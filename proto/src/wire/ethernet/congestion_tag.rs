//! The tags of congestion control, behind the VLAN tags.
//!
//! ```text
//! | destination | source | [VLAN tags] | [CN-TAG or rate-regulated tag] | EtherType | …
//! ```
//!
//! No ICRC covers the tag. A frame has one at most; a second one counts as payload. Source: IEEE 802.1Q, 33.2; [`crate::wire::project`].

use crate::wire::error::ParseError;
use crate::wire::ethernet::cn_tag::CnTag;
use crate::wire::ethernet::ethertype;
use crate::wire::project::{ProjectTypes, RateTag, SUBTYPE_LEN, Subtype};

/// A congestion control tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionTag {
    /// CN-TAG of 802.1Q.
    Cn(CnTag),
    /// Rate-regulated tag of BCN.
    RateRegulated(RateTag),
}

impl CongestionTag {
    /// Length of the longest tag, in octets.
    pub const LEN_MAX: usize = SUBTYPE_LEN + RateTag::LEN;

    /// Reads the tag at the start of `octets`, which follow an EtherType; `None` if that is not the EtherType of a tag.
    ///
    /// # Errors
    /// In layers "CN-TAG" and "RRT", with offset 0: a truncated tag.
    #[inline]
    pub fn parse(
        ethertype: u16,
        octets: &[u8],
        types: &ProjectTypes,
    ) -> Result<Option<CongestionTag>, ParseError> {
        if ethertype == ethertype::CN_TAG {
            return CnTag::parse(octets).map(|tag| Some(CongestionTag::Cn(tag)));
        }
        if ethertype != types.rate_tag() {
            return Ok(None);
        }
        match types.subtype(ethertype, octets) {
            Some(Subtype::RateTag) => RateTag::parse(&octets[SUBTYPE_LEN..])
                .map(|tag| Some(CongestionTag::RateRegulated(tag)))
                .map_err(|error| error.within(SUBTYPE_LEN)),
            _ => Ok(None),
        }
    }

    /// EtherType after the tag.
    pub const fn ethertype(&self) -> u16 {
        match self {
            CongestionTag::Cn(tag) => tag.ethertype,
            CongestionTag::RateRegulated(tag) => tag.ethertype,
        }
    }

    /// The same tag with another next EtherType.
    pub const fn before(self, ethertype: u16) -> CongestionTag {
        match self {
            CongestionTag::Cn(tag) => CongestionTag::Cn(CnTag { ethertype, ..tag }),
            CongestionTag::RateRegulated(tag) => {
                CongestionTag::RateRegulated(RateTag { ethertype, ..tag })
            }
        }
    }

    /// The EtherType that announces the tag.
    pub const fn announced_by(&self, types: &ProjectTypes) -> u16 {
        match self {
            CongestionTag::Cn(_) => ethertype::CN_TAG,
            CongestionTag::RateRegulated(_) => types.rate_tag(),
        }
    }

    /// Length in octets, without the EtherType that announces the tag.
    pub const fn octets_len(&self) -> usize {
        match self {
            CongestionTag::Cn(_) => CnTag::LEN,
            CongestionTag::RateRegulated(_) => SUBTYPE_LEN + RateTag::LEN,
        }
    }

    /// Writes the tag to the front of `octets`.
    ///
    /// # Panics
    /// If there are fewer than [`Self::octets_len`].
    pub fn emit(&self, octets: &mut [u8]) {
        match self {
            CongestionTag::Cn(tag) => tag.emit(octets),
            CongestionTag::RateRegulated(tag) => {
                octets[0] = RateTag::SUBTYPE;
                tag.emit(&mut octets[SUBTYPE_LEN..]);
            }
        }
    }
}
