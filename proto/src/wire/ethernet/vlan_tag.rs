//! The VLAN tag: a frame's priority and VLAN.

use crate::ids::{Priority, VlanId};
use crate::wire::header::header;

header! {
    /// The four octets after the EtherType of a tag: the tag control information and the next EtherType.
    ///
    /// ```text
    /// | PCP 3 | DEI 1 | VID 12 | EtherType 16 |
    /// ```
    ///
    /// Source: IEEE 802.1Q, 9.6.
    pub struct VlanTag[4] "VLAN tag" {
        /// PCP: the frame's priority.
        pub priority: Priority = 0..3,
        /// DEI: drop eligible indicator.
        pub drop_eligible: bool = 3..4,
        /// VID: VLAN identifier.
        pub id: VlanId = 4..16,
        /// EtherType after the tag.
        pub ethertype: u16 = 16..32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;

    #[test]
    fn every_tag_round_trips() {
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
