//! LRH, the Local Route Header: the fields by which a switch forwards a packet.

use crate::ids::{Lid, ServiceLevel, VirtualLane};
use crate::wire::header::{fields, header};

/// LNH: the header that follows the LRH.
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

fields! { LinkNextHeader: |bits: u8| LinkNextHeader::from_bits(bits), |value| value as u8; }

impl LinkNextHeader {
    /// Decodes the low two bits of `code`.
    pub const fn from_bits(code: u8) -> LinkNextHeader {
        match code & 0b11 {
            0 => LinkNextHeader::RawEthertype,
            1 => LinkNextHeader::RawIpv6,
            2 => LinkNextHeader::Local,
            _ => LinkNextHeader::Global,
        }
    }

    /// True for raw packets, which have neither BTH nor ICRC.
    pub const fn is_raw(self) -> bool {
        matches!(self, LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6)
    }
}

header! {
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
    #[derive(Default)]
    pub struct Lrh[8] "LRH", view LrhView {
        /// VL: virtual lane on the present link; it can change at each hop.
        pub virtual_lane: VirtualLane = 0..4,
        /// LVer, four bits: 0 is the only defined version.
        pub version: u8 = 4..8,
        /// SL: service level, constant on the whole path.
        pub service_level: ServiceLevel = 8..12,
        /// Two bits after the SL, sent as zero.
        pub reserved2: u8 = 12..14,
        /// LNH: what follows.
        pub next_header: LinkNextHeader = 14..16,
        /// DLID: destination LID; multicast LIDs start at 0xC000 (IBTA Vol 1, 4.1.1).
        pub dlid: Lid = 16..32,
        /// Five bits before PktLen, sent as zero.
        pub reserved5: u8 = 32..37,
        /// PktLen, eleven bits: length from the first octet of the LRH to the last before the VCRC.
        ///
        /// Units: words of four octets.
        pub packet_length: u16 = 37..48,
        /// SLID: source LID.
        pub slid: Lid = 48..64,
    }
}

impl Lrh {
    /// The largest PktLen.
    pub const PACKET_LENGTH_MAX: u16 = 0x7ff;
}

#[cfg(test)]
mod tests;
