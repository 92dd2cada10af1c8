//! GRH, the Global Route Header: addresses beyond the subnet, shaped like an IPv6 header.

use crate::wire::big_endian::{u16_at, u32_at, u128_at};
use crate::wire::header::header_pair;
use core::net::Ipv6Addr;

/// Global Route Header.
///
/// ```text
///  0       4              12                  16      24          32
/// | IPVer |    TClass      |             FlowLabel                |
/// |            PayLen              |    NxtHdr     |    HopLmt    |
/// |                        SGID, four words                       |
/// |                        DGID, four words                       |
/// ```
///
/// Traffic class, flow label and hop limit may change on the way and are outside the ICRC. A GID is
/// written like an IPv6 address, and is one here. Source: IBTA Vol 1, 8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh {
    /// IPVer, four bits: 6.
    pub version: u8,
    /// TClass.
    pub traffic_class: u8,
    /// FlowLabel, twenty bits.
    pub flow_label: u32,
    /// PayLen: first octet after the GRH to the last of the ICRC.
    ///
    /// Units: octets.
    pub payload_length: u16,
    /// NxtHdr: [`Grh::NEXT_HEADER_BTH`] when a BTH follows.
    pub next_header: u8,
    /// HopLmt.
    pub hop_limit: u8,
    /// SGID.
    pub sgid: Ipv6Addr,
    /// DGID.
    pub dgid: Ipv6Addr,
}

mod field {
    use std::ops::Range;
    pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
    pub const PAYLOAD_LENGTH: Range<usize> = 4..6;
    pub const NEXT_HEADER: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SGID: Range<usize> = 8..24;
    pub const DGID: Range<usize> = 24..40;
}

header_pair!(GrhView views Grh, "GRH", 40);

impl Default for Grh {
    /// Between unspecified addresses, hop limit 0: the packet leaves no subnet.
    fn default() -> Grh {
        Grh {
            version: Grh::VERSION,
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: Grh::NEXT_HEADER_BTH,
            hop_limit: 0,
            sgid: Ipv6Addr::UNSPECIFIED,
            dgid: Ipv6Addr::UNSPECIFIED,
        }
    }
}

impl Grh {
    /// The only version, as in IPv6.
    pub const VERSION: u8 = 6;

    /// "IBA transport": a BTH follows.
    ///
    /// Source: IBTA Vol 1, 8.3.
    pub const NEXT_HEADER_BTH: u8 = 0x1b;

    /// The header's octets; bits of plain numbers that do not fit their field are left out.
    pub fn to_octets(&self) -> [u8; Grh::LEN] {
        let mut octets = [0; Grh::LEN];
        let first = u32::from(self.version) << 28
            | u32::from(self.traffic_class) << 20
            | self.flow_label & 0xf_ffff;
        octets[field::VERSION_CLASS_LABEL].copy_from_slice(&first.to_be_bytes());
        octets[field::PAYLOAD_LENGTH].copy_from_slice(&self.payload_length.to_be_bytes());
        octets[field::NEXT_HEADER] = self.next_header;
        octets[field::HOP_LIMIT] = self.hop_limit;
        octets[field::SGID].copy_from_slice(&self.sgid.octets());
        octets[field::DGID].copy_from_slice(&self.dgid.octets());
        octets
    }
}

impl<T: AsRef<[u8]>> GrhView<T> {
    fn first_word(&self) -> u32 {
        u32_at(self.octets(), field::VERSION_CLASS_LABEL)
    }

    /// IPVer.
    pub fn version(&self) -> u8 {
        (self.first_word() >> 28) as u8
    }

    /// TClass.
    pub fn traffic_class(&self) -> u8 {
        (self.first_word() >> 20) as u8
    }

    /// FlowLabel.
    pub fn flow_label(&self) -> u32 {
        self.first_word() & 0xf_ffff
    }

    /// PayLen, in octets.
    pub fn payload_length(&self) -> u16 {
        u16_at(self.octets(), field::PAYLOAD_LENGTH)
    }

    /// NxtHdr.
    pub fn next_header(&self) -> u8 {
        self.octets()[field::NEXT_HEADER]
    }

    /// HopLmt.
    pub fn hop_limit(&self) -> u8 {
        self.octets()[field::HOP_LIMIT]
    }

    /// SGID.
    pub fn sgid(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128_at(self.octets(), field::SGID))
    }

    /// DGID.
    pub fn dgid(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128_at(self.octets(), field::DGID))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Grh {
        Grh {
            version: self.version(),
            traffic_class: self.traffic_class(),
            flow_label: self.flow_label(),
            payload_length: self.payload_length(),
            next_header: self.next_header(),
            hop_limit: self.hop_limit(),
            sgid: self.sgid(),
            dgid: self.dgid(),
        }
    }
}

#[cfg(test)]
mod tests;
