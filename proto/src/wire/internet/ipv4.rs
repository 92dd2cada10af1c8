//! IPv4, without its options.

use crate::ids::{Dscp, Ecn};
use crate::wire::header::header;
use core::net::Ipv4Addr;
use core::ops::Range;

header! {
    /// Internet Protocol, version 4.
    ///
    /// ```text
    ///  0       4       8           14  16  19                         32
    /// | version |  IHL  |   DSCP    |ECN|         total length         |
    /// |          identification         |-|DF|MF|   fragment offset   |
    /// |      TTL        |   protocol    |       header checksum        |
    /// |                             source                             |
    /// |                          destination                           |
    /// ```
    ///
    /// Routers may change DSCP, ECN, TTL and the checksum, which the ICRC does not cover.
    /// Source: RFC 791, 3.1; RFC 2474 (DSCP), RFC 3168 (ECN).
    pub struct Ipv4[20] "IPv4", view Ipv4View {
        /// Version, four bits: 4.
        pub version: u8 = 0..4,
        /// IHL, four bits: length of the header with options, in words.
        pub header_words: u8 = 4..8,
        /// DSCP: differentiated services code point.
        pub dscp: Dscp = 8..14,
        /// ECN: explicit congestion notification.
        pub ecn: Ecn = 14..16,
        /// Total length, header and payload.
        ///
        /// Units: octets.
        pub total_length: u16 = 16..32,
        /// Identification; covered by the ICRC.
        pub identification: u16 = 32..48,
        /// The bit before DF, sent as zero.
        pub reserved: bool = 48..49,
        /// DF: do not fragment.
        pub dont_fragment: bool = 49..50,
        /// MF: more fragments.
        pub more_fragments: bool = 50..51,
        /// Fragment offset, thirteen bits.
        ///
        /// Units: eight octets.
        pub fragment_offset: u16 = 51..64,
        /// TTL: time to live.
        pub time_to_live: u8 = 64..72,
        /// Protocol of the payload; [`crate::wire::ethernet::ethertype::UDP`] for RoCEv2.
        pub protocol: u8 = 72..80,
        /// Header checksum.
        pub checksum: u16 = 80..96,
        /// Source address.
        pub source: Ipv4Addr = 96..128,
        /// Destination address.
        pub destination: Ipv4Addr = 128..160,
    }
}

/// The octet of version and IHL.
pub(super) const VERSION_IHL: usize = 0;
/// The octet of DSCP and ECN.
pub(super) const DSCP_ECN: usize = 1;
/// The octets of the header checksum.
pub(super) const CHECKSUM: Range<usize> = 10..12;

impl Default for Ipv4 {
    /// A header with unspecified addresses and the values of RoCEv2: UDP, DF, ECT(0), no options.
    fn default() -> Ipv4 {
        Ipv4 {
            version: Ipv4::VERSION,
            header_words: Ipv4::WORDS_MIN,
            dscp: Dscp::default(),
            ecn: Ecn::Capable0,
            total_length: 0,
            identification: 0,
            reserved: false,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: crate::wire::ethernet::ethertype::UDP,
            checksum: 0,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
        }
    }
}

impl Ipv4 {
    /// The version of this header.
    pub const VERSION: u8 = 4;

    /// IHL of a header without options.
    pub const WORDS_MIN: u8 = (Ipv4::LEN / 4) as u8;

    /// Length of the header with options in octets, from IHL.
    pub const fn header_len(&self) -> usize {
        self.header_words as usize * 4
    }

    /// True for a fragment. Only the first fragment has the UDP ports.
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }
}

impl<T: AsRef<[u8]>> Ipv4View<T> {
    /// True for part of a datagram.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn a_captured_header_has_the_values_that_tshark_shows() {
        // A notification of a ConnectX-4 Lx (scapy, test/contrib/roce.uts).
        let captured = [
            0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00,
            0x11, 0x01, 0x0a, 0x00, 0x12, 0x01,
        ];
        let expected = Ipv4 {
            dscp: Dscp::truncate(48),
            total_length: 60,
            identification: 29068,
            checksum: 0x9161,
            source: [10, 0, 17, 1].into(),
            destination: [10, 0, 18, 1].into(),
            ..Ipv4::default()
        };
        assert_eq!(Ipv4::parse(&captured), Ok(expected));
        assert_eq!(expected.to_octets(), captured);
        assert_eq!((expected.header_len(), expected.is_fragment()), (20, false));
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..Ipv4::LEN {
            let refused = Err(ParseError::short("IPv4", 0, 20, present));
            assert_eq!(Ipv4::parse(&[0x45; 20][..present]), refused);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_twenty_octets_round_trip(octets: [u8; Ipv4::LEN]) {
            let (view, header) = (Ipv4View::new(octets)?, Ipv4::parse(&octets)?);
            prop_assert_eq!(view.is_fragment(), header.is_fragment());
            prop_assert_eq!(header.to_octets(), octets);
        }
    }
}
