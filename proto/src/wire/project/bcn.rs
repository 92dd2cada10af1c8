//! The BCN message: the notification that a BCN congestion point sends to the source of a frame.

use crate::wire::error::{ParseError, Reason};
use crate::wire::header::header;

header! {
    /// The fixed part of a BCN message: from the octet after the subtype to the length.
    ///
    /// ```text
    /// | version 8 | CPID 64 | Qoff 16 | Qdelta 16 | timestamp 32
    /// | mild 1 | severe 1 | stop 1 | reserved 5 | length 8 | sample …
    /// ```
    ///
    /// BCN was not standardised and no table of its fields is public, so this layout is specific to this
    /// project. Source: this project; the fields: US 8,792,352, US 8,121,038,
    /// US 8,804,529.
    #[derive(Default)]
    pub struct Bcn[19] "BCN" {
        /// [`Bcn::VERSION`].
        pub version: u8 = 0..8,
        /// CPID of the congestion point.
        pub cpid: u64 = 8..72,
        /// Equilibrium minus queue length; negative if the queue is too long.
        ///
        /// Units: 64 octets.
        pub q_offset: i16 = 72..88,
        /// Queue length minus queue length at the previous sample.
        ///
        /// Units: 64 octets.
        pub q_delta: i16 = 88..104,
        /// Timestamp of the sampled frame's rate-regulated tag; 0 if it had none.
        pub timestamp: u32 = 104..136,
        /// The queue is above its mild threshold.
        pub mild: bool = 136..137,
        /// The queue is above its severe threshold.
        pub severe: bool = 137..138,
        /// BCN(0,0): every source stops for a time.
        pub stop: bool = 138..139,
        /// Sent as zero and ignored; five bits.
        pub reserved: u8 = 139..144,
        /// Number of octets of the sampled frame that follow, from its destination address on.
        pub length: u8 = 144..152,
    }
}

impl Bcn {
    /// The subtype of BCN messages.
    pub const SUBTYPE: u8 = 2;

    /// The only defined version.
    pub const VERSION: u8 = 1;

    /// Maximum number of octets of the sampled frame in a message.
    pub const SAMPLE_MAX: usize = 64;

    /// Reads the message at the start of `octets`, which follow the subtype, and returns it with its octets of the
    /// sampled frame. The rest is padding.
    ///
    /// # Errors
    /// In layer "BCN": too few octets for the header or for the sample length, a version other than
    /// [`Bcn::VERSION`], or a sample length above [`Bcn::SAMPLE_MAX`].
    pub fn parse_message(octets: &[u8]) -> Result<(Bcn, &[u8]), ParseError> {
        let bcn = Bcn::parse(octets)?;
        let refuse = |reason| Err(ParseError::new(Bcn::LAYER, 0, reason));
        if bcn.version != Bcn::VERSION {
            return refuse(Reason::Version(bcn.version));
        }
        let (size, rest) = (usize::from(bcn.length), &octets[Bcn::LEN..]);
        if size > Bcn::SAMPLE_MAX {
            return refuse(Reason::Illegal("the sample's length is above 64"));
        }
        let sample = rest.get(..size).ok_or(ParseError::length(Bcn::LAYER, 0, size, rest.len()))?;
        Ok((bcn, sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> Bcn {
        Bcn {
            version: Bcn::VERSION,
            cpid: 0x0102_0304_0506_0708,
            q_offset: -2,
            q_delta: 3,
            timestamp: 0x090a_0b0c,
            mild: true,
            severe: false,
            stop: true,
            reserved: 0,
            length: 2,
        }
    }

    const WRITTEN: [u8; 21] =
        [1, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xfe, 0, 3, 9, 10, 11, 12, 0xa0, 2, 0xd0, 0xd1];

    #[test]
    fn the_layout_is_the_documented_one() {
        assert_eq!(message().to_octets(), WRITTEN[..19]);
        assert_eq!(Bcn::parse_message(&WRITTEN), Ok((message(), &[0xd0, 0xd1][..])));
        let padded = [&WRITTEN[..], &[0; 19]].concat();
        assert_eq!(Bcn::parse_message(&padded), Ok((message(), &[0xd0, 0xd1][..])));
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..Bcn::LEN {
            let refused = Err(ParseError::short("BCN", 0, 19, present));
            assert_eq!(Bcn::parse_message(&WRITTEN[..present]), refused);
        }
        for present in [0, 1] {
            let refused = Err(ParseError::length("BCN", 0, 2, present));
            assert_eq!(Bcn::parse_message(&WRITTEN[..19 + present]), refused);
        }
    }

    #[test]
    fn other_versions_and_long_samples_are_refused() {
        let reason = |bcn: Bcn| {
            let octets = [&bcn.to_octets()[..], &[0; 100]].concat();
            Bcn::parse_message(&octets).map(drop).map_err(|error| error.reason)
        };
        assert_eq!(reason(Bcn { version: 0, ..message() }), Err(Reason::Version(0)));
        assert_eq!(reason(Bcn { version: 2, ..message() }), Err(Reason::Version(2)));
        assert_eq!(reason(Bcn { length: 64, ..message() }), Ok(()));
        let illegal = Reason::Illegal("the sample's length is above 64");
        assert_eq!(reason(Bcn { length: 65, ..message() }), Err(illegal));
    }

    proptest! {
        #[test]
        fn any_nineteen_octets_round_trip(octets: [u8; Bcn::LEN]) {
            prop_assert_eq!(Bcn::parse(&octets)?.to_octets(), octets);
        }

        #[test]
        fn any_octets_parse_or_are_refused(octets in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Ok((bcn, sample)) = Bcn::parse_message(&octets) {
                prop_assert_eq!(usize::from(bcn.length), sample.len());
            }
        }
    }
}
