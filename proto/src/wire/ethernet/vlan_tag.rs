//! The VLAN tag: a frame's priority, and which of the virtual networks it is in.

use crate::ids::{Priority, VlanId};
use crate::wire::header::header;

header! {
    /// What stands behind the EtherType of a tag: its own two octets, and the EtherType that is next.
    ///
    /// ```text
    /// | PCP 3 | DEI 1 | VID 12 | EtherType 16 |
    /// ```
    ///
    /// Source: IEEE 802.1Q, 9.6.
    pub struct VlanTag[4] "VLAN tag" {
        /// PCP: the frame's priority.
        pub priority: Priority = 0..3,
        /// DEI: to be dropped before others.
        pub drop_eligible: bool = 3..4,
        /// VID.
        pub id: VlanId = 4..16,
        /// What follows the tag.
        pub ethertype: u16 = 16..32,
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
