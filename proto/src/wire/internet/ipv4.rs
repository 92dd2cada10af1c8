//! IPv4, without its options.

use crate::ids::{Dscp, Ecn};
use crate::wire::big_endian::{u16_at, u32_at};
use crate::wire::header::header_pair;
use core::net::Ipv4Addr;

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
/// DSCP, ECN, TTL and the checksum may change on the way and are outside the ICRC.
/// Source: RFC 791, 3.1; RFC 2474 (DSCP), RFC 3168 (ECN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Version, four bits: 4.
    pub version: u8,
    /// IHL, four bits: words of the header, options included.
    pub header_words: u8,
    /// DSCP.
    pub dscp: Dscp,
    /// ECN.
    pub ecn: Ecn,
    /// First octet of this header to the last of what it carries.
    ///
    /// Units: octets.
    pub total_length: u16,
    /// Identification. Inside the ICRC.
    pub identification: u16,
    /// The bit before DF, sent as zero.
    pub reserved: bool,
    /// DF.
    pub dont_fragment: bool,
    /// MF.
    pub more_fragments: bool,
    /// Fragment offset, thirteen bits.
    ///
    /// Units: eight octets.
    pub fragment_offset: u16,
    /// TTL.
    pub time_to_live: u8,
    /// What follows, [`crate::wire::ethernet::ethertype::UDP`] for RoCEv2.
    pub protocol: u8,
    /// Header checksum, as carried.
    pub checksum: u16,
    /// From whom.
    pub source: Ipv4Addr,
    /// To whom.
    pub destination: Ipv4Addr,
}

pub(super) mod field {
    use std::ops::Range;
    pub const VERSION_IHL: usize = 0;
    pub const DSCP_ECN: usize = 1;
    pub const TOTAL_LENGTH: Range<usize> = 2..4;
    pub const IDENTIFICATION: Range<usize> = 4..6;
    pub const FRAGMENT: Range<usize> = 6..8;
    pub const TIME_TO_LIVE: usize = 8;
    pub const PROTOCOL: usize = 9;
    pub const CHECKSUM: Range<usize> = 10..12;
    pub const SOURCE: Range<usize> = 12..16;
    pub const DESTINATION: Range<usize> = 16..20;
}

header_pair!(Ipv4View views Ipv4, "IPv4", 20);

impl Default for Ipv4 {
    /// Between unspecified addresses, with what RoCEv2 sends: UDP, DF, ECT(0), no options.
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
    /// The version this is.
    pub const VERSION: u8 = 4;

    /// IHL of a header without options.
    pub const WORDS_MIN: u8 = (Ipv4::LEN / 4) as u8;

    /// Octets of the header, options included, as IHL says.
    pub const fn header_len(&self) -> usize {
        self.header_words as usize * 4
    }

    /// True for part of a datagram; the first part has the ports, the others do not.
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// The header's octets; bits of plain numbers that do not fit their field are left out.
    pub fn to_octets(&self) -> [u8; Ipv4::LEN] {
        let mut octets = [0; Ipv4::LEN];
        octets[field::VERSION_IHL] = self.version << 4 | self.header_words & 0xf;
        octets[field::DSCP_ECN] = self.dscp.get() << 2 | self.ecn.bits();
        octets[field::TOTAL_LENGTH].copy_from_slice(&self.total_length.to_be_bytes());
        octets[field::IDENTIFICATION].copy_from_slice(&self.identification.to_be_bytes());
        let fragment = u16::from(self.reserved) << 15
            | u16::from(self.dont_fragment) << 14
            | u16::from(self.more_fragments) << 13
            | self.fragment_offset & 0x1fff;
        octets[field::FRAGMENT].copy_from_slice(&fragment.to_be_bytes());
        octets[field::TIME_TO_LIVE] = self.time_to_live;
        octets[field::PROTOCOL] = self.protocol;
        octets[field::CHECKSUM].copy_from_slice(&self.checksum.to_be_bytes());
        octets[field::SOURCE].copy_from_slice(&self.source.octets());
        octets[field::DESTINATION].copy_from_slice(&self.destination.octets());
        octets
    }
}

impl<T: AsRef<[u8]>> Ipv4View<T> {
    /// Version.
    pub fn version(&self) -> u8 {
        self.octets()[field::VERSION_IHL] >> 4
    }

    /// IHL, in words.
    pub fn header_words(&self) -> u8 {
        self.octets()[field::VERSION_IHL] & 0xf
    }

    /// DSCP.
    pub fn dscp(&self) -> Dscp {
        Dscp::truncate(self.octets()[field::DSCP_ECN] >> 2)
    }

    /// ECN.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.octets()[field::DSCP_ECN])
    }

    /// Total length, in octets.
    pub fn total_length(&self) -> u16 {
        u16_at(self.octets(), field::TOTAL_LENGTH)
    }

    /// Identification.
    pub fn identification(&self) -> u16 {
        u16_at(self.octets(), field::IDENTIFICATION)
    }

    fn fragment(&self) -> u16 {
        u16_at(self.octets(), field::FRAGMENT)
    }

    /// The bit before DF.
    pub fn reserved(&self) -> bool {
        self.fragment() & 0x8000 != 0
    }

    /// DF.
    pub fn dont_fragment(&self) -> bool {
        self.fragment() & 0x4000 != 0
    }

    /// MF.
    pub fn more_fragments(&self) -> bool {
        self.fragment() & 0x2000 != 0
    }

    /// Fragment offset, in units of eight octets.
    pub fn fragment_offset(&self) -> u16 {
        self.fragment() & 0x1fff
    }

    /// True for part of a datagram.
    pub fn is_fragment(&self) -> bool {
        self.fragment() & 0x3fff != 0
    }

    /// TTL.
    pub fn time_to_live(&self) -> u8 {
        self.octets()[field::TIME_TO_LIVE]
    }

    /// What follows.
    pub fn protocol(&self) -> u8 {
        self.octets()[field::PROTOCOL]
    }

    /// Header checksum, as carried.
    pub fn checksum(&self) -> u16 {
        u16_at(self.octets(), field::CHECKSUM)
    }

    /// From whom.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32_at(self.octets(), field::SOURCE))
    }

    /// To whom.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32_at(self.octets(), field::DESTINATION))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Ipv4 {
        Ipv4 {
            version: self.version(),
            header_words: self.header_words(),
            dscp: self.dscp(),
            ecn: self.ecn(),
            total_length: self.total_length(),
            identification: self.identification(),
            reserved: self.reserved(),
            dont_fragment: self.dont_fragment(),
            more_fragments: self.more_fragments(),
            fragment_offset: self.fragment_offset(),
            time_to_live: self.time_to_live(),
            protocol: self.protocol(),
            checksum: self.checksum(),
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
    fn a_captured_header_reads_as_tshark_shows_it() {
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
        fn any_twenty_octets_come_back_as_they_were(octets: [u8; Ipv4::LEN]) {
            let view = Ipv4View::new(octets)?;
            prop_assert_eq!(view.is_fragment(), view.to_owned_header().is_fragment());
            prop_assert_eq!(view.to_owned_header().to_octets(), octets);
        }
    }
}
