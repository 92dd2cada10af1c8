//! MAD, the management datagram: the header that all management classes share.

use crate::wire::header::header;

header! {
    /// The common header of a management datagram, which has 256 octets.
    ///
    /// ```text
    /// | base version | class | class version | R | method |
    /// |        status        |    class specific          |
    /// |          transaction ID, eight octets             |
    /// |     attribute ID     |        reserved            |
    /// |               attribute modifier                  |
    /// ```
    ///
    /// Source: IBTA Vol 1, 13.4.2 and 13.4.3.
    pub struct Mad[24] "MAD" {
        /// Version of this header: 1.
        pub base_version: u8 = 0..8,
        /// Management class.
        pub class: u8 = 8..16,
        /// Version of the class.
        pub class_version: u8 = 16..24,
        /// The datagram is a response.
        pub response: bool = 24..25,
        /// Method, seven bits.
        pub method: u8 = 25..32,
        /// Status.
        pub status: u16 = 32..48,
        /// Meaning depends on the class.
        pub class_specific: u16 = 48..64,
        /// Identifies the exchange to its initiator.
        pub transaction: u64 = 64..128,
        /// What the datagram is about.
        pub attribute: u16 = 128..144,
        /// Reserved.
        pub reserved16: u16 = 144..160,
        /// Refines the attribute.
        pub attribute_modifier: u32 = 160..192,
    }
}

impl Mad {
    /// Octets of every management datagram. Source: IBTA Vol 1, 13.4.2.
    pub const DATAGRAM: usize = 256;
    /// The class of communication management. Source: IBTA Vol 1, 16.7.
    pub const COMMUNICATION_MANAGEMENT: u8 = 0x07;
    /// The method Send. Source: IBTA Vol 1, 13.4.5.
    pub const SEND: u8 = 0x03;
    /// The Q_Key of QP1. Source: IBTA Vol 1, 3.5.3 (well-known Q_Key).
    pub const QUEUE_KEY: u32 = 0x8001_0000;

    /// The header of a connection message. Source: IBTA Vol 1, 12.6 and 16.7.
    pub const fn connection(attribute: u16, transaction: u64) -> Mad {
        Mad {
            base_version: 1,
            class: Mad::COMMUNICATION_MANAGEMENT,
            class_version: 2,
            response: false,
            method: Mad::SEND,
            status: 0,
            class_specific: 0,
            transaction,
            attribute,
            reserved16: 0,
            attribute_modifier: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_octets_round_trip(octets: [u8; Mad::LEN]) {
            prop_assert_eq!(Mad::parse(&octets)?.to_octets(), octets);
        }
    }
}
