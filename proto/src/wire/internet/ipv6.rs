//! IPv6, without extension headers.

use crate::ids::{Dscp, Ecn};
use crate::wire::big_endian::{u16_at, u32_at, u128_at};
use crate::wire::header::header_pair;
use core::net::Ipv6Addr;

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
/// DSCP, ECN, flow label and hop limit may change on the way and are outside the ICRC.
/// Source: RFC 8200, 3; RFC 2474 (DSCP), RFC 3168 (ECN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Version, four bits: 6.
    pub version: u8,
    /// DSCP, the upper bits of the traffic class.
    pub dscp: Dscp,
    /// ECN, its lower two.
    pub ecn: Ecn,
    /// Flow label, twenty bits.
    pub flow_label: u32,
    /// First octet behind this header to the last of what it carries.
    ///
    /// Units: octets.
    pub payload_length: u16,
    /// What follows, [`crate::wire::ethernet::ethertype::UDP`] for RoCEv2.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// From whom.
    pub source: Ipv6Addr,
    /// To whom.
    pub destination: Ipv6Addr,
}

mod field {
    use std::ops::Range;
    pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
    pub const PAYLOAD_LENGTH: Range<usize> = 4..6;
    pub const NEXT_HEADER: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SOURCE: Range<usize> = 8..24;
    pub const DESTINATION: Range<usize> = 24..40;
}

header_pair!(Ipv6View views Ipv6, "IPv6", 40);

impl Default for Ipv6 {
    /// Between unspecified addresses, with what RoCEv2 sends: UDP, ECT(0).
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
    /// The version this is.
    pub const VERSION: u8 = 6;

    /// The header's octets; bits of plain numbers that do not fit their field are left out.
    pub fn to_octets(&self) -> [u8; Ipv6::LEN] {
        let mut octets = [0; Ipv6::LEN];
        let first = u32::from(self.version) << 28
            | u32::from(self.dscp.get()) << 22
            | u32::from(self.ecn.bits()) << 20
            | self.flow_label & 0xf_ffff;
        octets[field::VERSION_CLASS_LABEL].copy_from_slice(&first.to_be_bytes());
        octets[field::PAYLOAD_LENGTH].copy_from_slice(&self.payload_length.to_be_bytes());
        octets[field::NEXT_HEADER] = self.next_header;
        octets[field::HOP_LIMIT] = self.hop_limit;
        octets[field::SOURCE].copy_from_slice(&self.source.octets());
        octets[field::DESTINATION].copy_from_slice(&self.destination.octets());
        octets
    }
}

impl<T: AsRef<[u8]>> Ipv6View<T> {
    fn first_word(&self) -> u32 {
        u32_at(self.octets(), field::VERSION_CLASS_LABEL)
    }

    /// Version.
    pub fn version(&self) -> u8 {
        (self.first_word() >> 28) as u8
    }

    /// DSCP.
    pub fn dscp(&self) -> Dscp {
        Dscp::truncate((self.first_word() >> 22) as u8)
    }

    /// ECN.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.first_word() >> 20) as u8)
    }

    /// Flow label.
    pub fn flow_label(&self) -> u32 {
        self.first_word() & 0xf_ffff
    }

    /// Payload length, in octets.
    pub fn payload_length(&self) -> u16 {
        u16_at(self.octets(), field::PAYLOAD_LENGTH)
    }

    /// What follows.
    pub fn next_header(&self) -> u8 {
        self.octets()[field::NEXT_HEADER]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.octets()[field::HOP_LIMIT]
    }

    /// From whom.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128_at(self.octets(), field::SOURCE))
    }

    /// To whom.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128_at(self.octets(), field::DESTINATION))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Ipv6 {
        Ipv6 {
            version: self.version(),
            dscp: self.dscp(),
            ecn: self.ecn(),
            flow_label: self.flow_label(),
            payload_length: self.payload_length(),
            next_header: self.next_header(),
            hop_limit: self.hop_limit(),
            source: self.source(),
            destination: self.destination(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn class_and_label_share_a_word_without_touching() {
        let word = |ip: Ipv6| u32_at(&ip.to_octets(), 0..4);
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
        fn any_forty_octets_come_back_as_they_were(octets: [u8; Ipv6::LEN]) {
            prop_assert_eq!(Ipv6View::new(octets)?.to_owned_header().to_octets(), octets);
        }
    }
}
