//! GRH, the Global Route Header: addresses beyond the subnet, shaped like an IPv6 header.

use crate::wire::header::header;
use core::net::Ipv6Addr;

header! {
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
    /// Routers may change traffic class, flow label and hop limit, which the ICRC does not cover. A GID has
    /// the format of an IPv6 address and is represented as one. Source: IBTA Vol 1, 8.3.
    pub struct Grh[40] "GRH", view GrhView {
        /// IPVer, four bits: 6.
        pub version: u8 = 0..4,
        /// TClass: traffic class.
        pub traffic_class: u8 = 4..12,
        /// FlowLabel: flow label, twenty bits.
        pub flow_label: u32 = 12..32,
        /// PayLen: length from the first octet after the GRH to the last of the ICRC.
        ///
        /// Units: octets.
        pub payload_length: u16 = 32..48,
        /// NxtHdr: [`Grh::NEXT_HEADER_BTH`] when a BTH follows.
        pub next_header: u8 = 48..56,
        /// HopLmt: hop limit.
        pub hop_limit: u8 = 56..64,
        /// SGID: source GID.
        pub sgid: Ipv6Addr = 64..192,
        /// DGID: destination GID.
        pub dgid: Ipv6Addr = 192..320,
    }
}

impl Default for Grh {
    /// A header with unspecified addresses and hop limit 0, so the packet stays in its subnet.
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
}

#[cfg(test)]
mod tests;
