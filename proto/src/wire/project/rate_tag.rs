//! The rate-regulated tag of BCN: marks a frame of a rate limiter with the limiter's congestion point.

use crate::wire::header::header;

header! {
    /// The octets after the subtype of a rate-regulated tag: the tag's fields and the next EtherType.
    ///
    /// ```text
    /// | reserved 8 | CPID 64 | timestamp 32 | EtherType 16 |
    /// ```
    ///
    /// A congestion point sends positive messages only for frames with its own CPID. Source: this
    /// project; purpose of the tag: US 8,792,352, claim 5.
    #[derive(Default)]
    pub struct RateTag[15] "RRT" {
        /// Sent as zero and ignored.
        pub reserved: u8 = 0..8,
        /// CPID of the congestion point that controls the limiter.
        pub cpid: u64 = 8..72,
        /// Time at which the frame left its limiter, by the sender's clock. A message about the frame returns it.
        pub timestamp: u32 = 72..104,
        /// EtherType after the tag.
        pub ethertype: u16 = 104..120,
    }
}

impl RateTag {
    /// The subtype of rate-regulated tags.
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
        fn any_fifteen_octets_round_trip(octets: [u8; RateTag::LEN]) {
            prop_assert_eq!(RateTag::parse(&octets)?.to_octets(), octets);
        }
    }
}
