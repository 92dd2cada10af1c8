//! LRH, the Local Route Header: all that a switch needs to pass a packet on.

use crate::ids::{Lid, ServiceLevel, VirtualLane};
use crate::wire::big_endian::u16_at;
use crate::wire::header::header_pair;

/// What follows the LRH.
///
/// Source: IBTA Vol 1, 7.7.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkNextHeader {
    /// A raw packet with its own Ethertype header.
    RawEthertype = 0,
    /// A raw packet that begins with an IPv6 header.
    RawIpv6 = 1,
    /// A BTH: the packet stays inside its subnet.
    #[default]
    Local = 2,
    /// A GRH, then a BTH.
    Global = 3,
}

impl LinkNextHeader {
    /// The value of the two bits `code`; higher bits are ignored.
    pub const fn from_bits(code: u8) -> LinkNextHeader {
        match code & 0b11 {
            0 => LinkNextHeader::RawEthertype,
            1 => LinkNextHeader::RawIpv6,
            2 => LinkNextHeader::Local,
            _ => LinkNextHeader::Global,
        }
    }

    /// True where there is neither BTH nor ICRC.
    pub const fn is_raw(self) -> bool {
        matches!(self, LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6)
    }
}

/// Local Route Header.
///
/// ```text
///  0       4       8      12  14  16                              32
/// |  VL   | LVer  |  SL   |rsv|LNH|             DLID              |
/// |  rsv    |       PktLen        |             SLID              |
///  0        5                     16                              32
/// ```
///
/// Source: IBTA Vol 1, 7.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lrh {
    /// VL: the lane on the link the packet is on; changes from link to link.
    pub virtual_lane: VirtualLane,
    /// LVer, four bits: 0 is the only version there is.
    pub version: u8,
    /// SL: the service level, the same all the way.
    pub service_level: ServiceLevel,
    /// Two bits after the SL, sent as zero.
    pub reserved2: u8,
    /// LNH: what follows.
    pub next_header: LinkNextHeader,
    /// DLID: to whom.
    pub dlid: Lid,
    /// Five bits before PktLen, sent as zero.
    pub reserved5: u8,
    /// PktLen, eleven bits: first octet of the LRH to the last before the VCRC.
    ///
    /// Units: words of four octets.
    pub packet_length: u16,
    /// SLID: from whom.
    pub slid: Lid,
}

mod field {
    use std::ops::Range;
    pub const VL_LVER: usize = 0;
    pub const SL_LNH: usize = 1;
    pub const DLID: Range<usize> = 2..4;
    pub const LENGTH: Range<usize> = 4..6;
    pub const SLID: Range<usize> = 6..8;
}

header_pair!(LrhView views Lrh, "LRH", 8);

impl Lrh {
    /// The largest PktLen.
    pub const PACKET_LENGTH_MAX: u16 = 0x7ff;

    /// The header's octets; bits of plain numbers that do not fit their field are left out.
    pub fn to_octets(&self) -> [u8; Lrh::LEN] {
        let mut octets = [0; Lrh::LEN];
        octets[field::VL_LVER] = self.virtual_lane.get() << 4 | self.version & 0xf;
        octets[field::SL_LNH] =
            self.service_level.get() << 4 | (self.reserved2 & 0b11) << 2 | self.next_header as u8;
        octets[field::DLID].copy_from_slice(&self.dlid.get().to_be_bytes());
        let length = u16::from(self.reserved5) << 11 | self.packet_length & Self::PACKET_LENGTH_MAX;
        octets[field::LENGTH].copy_from_slice(&length.to_be_bytes());
        octets[field::SLID].copy_from_slice(&self.slid.get().to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> LrhView<T> {
    /// VL.
    pub fn virtual_lane(&self) -> VirtualLane {
        VirtualLane::truncate(self.octets()[field::VL_LVER] >> 4)
    }

    /// LVer.
    pub fn version(&self) -> u8 {
        self.octets()[field::VL_LVER] & 0xf
    }

    /// SL.
    pub fn service_level(&self) -> ServiceLevel {
        ServiceLevel::truncate(self.octets()[field::SL_LNH] >> 4)
    }

    /// The two bits after the SL.
    pub fn reserved2(&self) -> u8 {
        self.octets()[field::SL_LNH] >> 2 & 0b11
    }

    /// LNH.
    pub fn next_header(&self) -> LinkNextHeader {
        LinkNextHeader::from_bits(self.octets()[field::SL_LNH])
    }

    /// DLID.
    pub fn dlid(&self) -> Lid {
        Lid::new(u16_at(self.octets(), field::DLID))
    }

    /// The five bits before PktLen.
    pub fn reserved5(&self) -> u8 {
        self.octets()[field::LENGTH.start] >> 3
    }

    /// PktLen, in words of four octets.
    pub fn packet_length(&self) -> u16 {
        u16_at(self.octets(), field::LENGTH) & Lrh::PACKET_LENGTH_MAX
    }

    /// SLID.
    pub fn slid(&self) -> Lid {
        Lid::new(u16_at(self.octets(), field::SLID))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Lrh {
        Lrh {
            virtual_lane: self.virtual_lane(),
            version: self.version(),
            service_level: self.service_level(),
            reserved2: self.reserved2(),
            next_header: self.next_header(),
            dlid: self.dlid(),
            reserved5: self.reserved5(),
            packet_length: self.packet_length(),
            slid: self.slid(),
        }
    }
}

#[cfg(test)]
mod tests;
