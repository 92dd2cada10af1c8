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
    /// Traffic class, flow label and hop limit may change on the way and are outside the ICRC. A GID is
    /// written like an IPv6 address, and is one here. Source: IBTA Vol 1, 8.3.
    pub struct Grh[40] "GRH", view GrhView {
        /// IPVer, four bits: 6.
        pub version: u8 = 0..4,
        /// TClass.
        pub traffic_class: u8 = 4..12,
        /// FlowLabel, twenty bits.
        pub flow_label: u32 = 12..32,
        /// PayLen: first octet after the GRH to the last of the ICRC.
        ///
        /// Units: octets.
        pub payload_length: u16 = 32..48,
        /// NxtHdr: [`Grh::NEXT_HEADER_BTH`] when a BTH follows.
        pub next_header: u8 = 48..56,
        /// HopLmt.
        pub hop_limit: u8 = 56..64,
        /// SGID.
        pub sgid: Ipv6Addr = 64..192,
        /// DGID.
        pub dgid: Ipv6Addr = 192..320,
    }
}

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
}

#[cfg(test)]
mod tests;
