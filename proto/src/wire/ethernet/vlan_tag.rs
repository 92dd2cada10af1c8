//! The VLAN tag: a frame's priority, and which of the virtual networks it is in.

use crate::ids::{Priority, VlanId};
use crate::wire::big_endian::u16_at;
use crate::wire::header::header_pair;

/// What stands behind the EtherType of a tag: its own two octets, and the EtherType that is next.
///
/// ```text
/// | PCP 3 | DEI 1 | VID 12 | EtherType 16 |
/// ```
///
/// Source: IEEE 802.1Q, 9.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// PCP: the frame's priority.
    pub priority: Priority,
    /// DEI: to be dropped before others.
    pub drop_eligible: bool,
    /// VID.
    pub id: VlanId,
    /// What follows the tag.
    pub ethertype: u16,
}

mod field {
    use std::ops::Range;
    pub const CONTROL: Range<usize> = 0..2;
    pub const ETHERTYPE: Range<usize> = 2..4;
}

header_pair!(VlanTagView views VlanTag, "VLAN tag", 4);

impl VlanTag {
    /// The tag's octets.
    pub fn to_octets(&self) -> [u8; VlanTag::LEN] {
        let control = u16::from(self.priority.get()) << 13
            | u16::from(self.drop_eligible) << 12
            | self.id.get();
        let mut octets = [0; VlanTag::LEN];
        octets[field::CONTROL].copy_from_slice(&control.to_be_bytes());
        octets[field::ETHERTYPE].copy_from_slice(&self.ethertype.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> VlanTagView<T> {
    fn control(&self) -> u16 {
        u16_at(self.octets(), field::CONTROL)
    }

    /// PCP.
    pub fn priority(&self) -> Priority {
        Priority::truncate((self.control() >> 13) as u8)
    }

    /// DEI.
    pub fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// VID.
    pub fn id(&self) -> VlanId {
        VlanId::truncate(self.control())
    }

    /// What follows the tag.
    pub fn ethertype(&self) -> u16 {
        u16_at(self.octets(), field::ETHERTYPE)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> VlanTag {
        VlanTag {
            priority: self.priority(),
            drop_eligible: self.drop_eligible(),
            id: self.id(),
            ethertype: self.ethertype(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;

    #[test]
    fn every_tag_there_is_comes_back_as_it_was() {
        for control in 0..=u16::MAX {
            let octets = [(control >> 8) as u8, control as u8, 0x08, 0x00];
            let tag = VlanTag::parse(&octets).expect("four octets");
            assert_eq!(tag.priority.get(), octets[0] >> 5);
            assert_eq!(tag.id.get(), control % 4096);
            assert_eq!(tag.to_octets(), octets);
        }
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..VlanTag::LEN {
            let refused = Err(ParseError::short("VLAN tag", 0, 4, present));
            assert_eq!(VlanTag::parse(&[0; 4][..present]), refused);
        }
    }
}
