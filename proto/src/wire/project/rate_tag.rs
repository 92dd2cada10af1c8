//! The rate-regulated tag of BCN: a limiter held this frame, and which congestion point it obeys.

use crate::wire::header::header;

header! {
    /// What follows the subtype of a rate-regulated tag: its own octets, and the EtherType that is next.
    ///
    /// ```text
    /// | reserved 8 | CPID 64 | timestamp 32 | EtherType 16 |
    /// ```
    ///
    /// Only frames with a congestion point's own CPID draw positive messages from it. Source: this
    /// project; that there is such a tag and what it is for: US 8,792,352, claim 5.
    #[derive(Default)]
    pub struct RateTag[15] "RRT" {
        /// Sent as zero and ignored.
        pub reserved: u8 = 0..8,
        /// The congestion point that the limiter obeys.
        pub cpid: u64 = 8..72,
        /// When the frame left its limiter, by the sender's clock; a message about the frame gives it back.
        pub timestamp: u32 = 72..104,
        /// What follows the tag.
        pub ethertype: u16 = 104..120,
    }
}

impl RateTag {
    /// The subtype that announces it.
    pub const SUBTYPE: u8 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let tag = RateTag {
            reserved: 0,
            cpid: 0x0102_0304_0506_0708,
            timestamp: 0x090a_0b0c,
            ethertype: 0x0800,
        };
        assert_eq!(tag.to_octets(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0]);
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..RateTag::LEN {
            let refused = Err(ParseError::short("RRT", 0, 15, present));
            assert_eq!(RateTag::parse(&[0; 15][..present]), refused);
        }
    }

    proptest! {
        #[test]
        fn any_fifteen_octets_come_back_as_they_were(octets: [u8; RateTag::LEN]) {
            prop_assert_eq!(RateTag::parse(&octets)?.to_octets(), octets);
        }
    }
}
