//! IPv6, without extension headers.

use crate::ids::{Dscp, Ecn};
use crate::wire::header::header;
use core::net::Ipv6Addr;

header! {
    /// Internet Protocol, version 6.
    ///
    /// ```text
    ///  0         4          10  12                                    32
    /// | version |   DSCP    |ECN|             flow label               |
    /// |         payload length         |  next header  |   hop limit   |
    /// |                       source, four words                       |
    /// |                     destination, four words                    |
    /// ```
    ///
    /// Routers may change DSCP, ECN, flow label and hop limit, which the ICRC does not cover.
    /// Source: RFC 8200, 3; RFC 2474 (DSCP), RFC 3168 (ECN).
    pub struct Ipv6[40] "IPv6", view Ipv6View {
        /// Version, four bits: 6.
        pub version: u8 = 0..4,
        /// DSCP, the upper bits of the traffic class.
        pub dscp: Dscp = 4..10,
        /// ECN, the lower two bits of the traffic class.
        pub ecn: Ecn = 10..12,
        /// Flow label, twenty bits.
        pub flow_label: u32 = 12..32,
        /// Payload length, without this header.
        ///
        /// Units: octets.
        pub payload_length: u16 = 32..48,
        /// Next header; [`crate::wire::ethernet::ethertype::UDP`] for RoCEv2.
        pub next_header: u8 = 48..56,
        /// Hop limit.
        pub hop_limit: u8 = 56..64,
        /// Source address.
        pub source: Ipv6Addr = 64..192,
        /// Destination address.
        pub destination: Ipv6Addr = 192..320,
    }
}

impl Default for Ipv6 {
    /// A header with unspecified addresses and the values of RoCEv2: UDP, ECT(0).
    fn default() -> Ipv6 {
        Ipv6 {
            version: Ipv6::VERSION,
            dscp: Dscp::default(),
            ecn: Ecn::Capable0,
            flow_label: 0,
            payload_length: 0,
            next_header: crate::wire::ethernet::ethertype::UDP,
            hop_limit: 64,
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
        }
    }
}

impl Ipv6 {
    /// The version of this header.
    pub const VERSION: u8 = 6;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn traffic_class_and_flow_label_do_not_overlap() {
        let word =
            |ip: Ipv6| u32::from_be_bytes(*ip.to_octets().first_chunk().expect("forty octets"));
        let zero = Ipv6 { ecn: Ecn::NotCapable, ..Ipv6::default() };
        assert_eq!(word(Ipv6 { dscp: Dscp::truncate(63), ..zero }), 0x6fc0_0000);
        assert_eq!(word(Ipv6 { ecn: Ecn::CongestionExperienced, ..zero }), 0x6030_0000);
        assert_eq!(word(Ipv6 { flow_label: u32::MAX, ..zero }), 0x600f_ffff);
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..Ipv6::LEN {
            let refused = Err(ParseError::short("IPv6", 0, 40, present));
            assert_eq!(Ipv6::parse(&[0x60; 40][..present]), refused);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_forty_octets_round_trip(octets: [u8; Ipv6::LEN]) {
            prop_assert_eq!(Ipv6::parse(&octets)?.to_octets(), octets);
        }
    }
}
