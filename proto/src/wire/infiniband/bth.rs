//! BTH, the Base Transport Header, with the two bits of congestion notification.

use crate::ids::{Psn, QueuePairNumber};
use crate::wire::header::header;
use crate::wire::infiniband::opcode::Opcode;

header! {
    /// Base Transport Header.
    ///
    /// ```text
    ///  0               8               16                             32
    /// |    OpCode     |S|M|Pad|  TVer  |             P_Key            |
    /// |F|B|  resv6    |                  DestQP                       |
    /// |A|    resv7    |                    PSN                        |
    /// ```
    ///
    /// Switches may change the octet of F, B and resv6, which the ICRC does not cover.
    /// Source: IBTA Vol 1, 9.2; F and B from annex A10.
    pub struct Bth[12] "BTH", view BthView {
        /// OpCode: service, operation and place in the message.
        pub opcode: Opcode = 0..8,
        /// SE: the responder raises a solicited event.
        pub solicited: bool = 8..9,
        /// M: the path migration state. Adapters send different values, and receivers accept both.
        pub migration_request: bool = 9..10,
        /// PadCnt, two bits: number of octets that pad the payload to a multiple of four.
        pub pad_count: u8 = 10..12,
        /// TVer, four bits: 0 is the only defined version.
        pub version: u8 = 12..16,
        /// P_Key: partition key.
        pub partition_key: u16 = 16..32,
        /// F: forward explicit congestion notification, set by a switch.
        pub fecn: bool = 32..33,
        /// B: backward explicit congestion notification, set by the receiver of an F.
        pub becn: bool = 33..34,
        /// Six bits after F and B, sent as zero.
        pub reserved6: u8 = 34..40,
        /// DestQP: destination queue pair.
        pub destination: QueuePairNumber = 40..64,
        /// A: the requester requests an acknowledgement.
        pub ack_request: bool = 64..65,
        /// Seven bits after A, sent as zero.
        pub reserved7: u8 = 65..72,
        /// PSN: packet sequence number.
        pub psn: Psn = 72..96,
    }
}

/// The octet of F, B and the six reserved bits.
pub(super) const F_B_RESV6: usize = 4;
/// F in its octet.
pub(super) const FECN: u8 = 0x80;

impl Bth {
    /// The default partition, in which every port is a full member.
    ///
    /// Source: IBTA Vol 1, 10.9.1.2.
    pub const DEFAULT_PARTITION: u16 = 0xffff;

    /// A header for the default partition with every flag clear.
    pub const fn new(opcode: Opcode, destination: QueuePairNumber, psn: Psn) -> Bth {
        Bth {
            opcode,
            solicited: false,
            migration_request: false,
            pad_count: 0,
            version: 0,
            partition_key: Bth::DEFAULT_PARTITION,
            fecn: false,
            becn: false,
            reserved6: 0,
            destination,
            ack_request: false,
            reserved7: 0,
            psn,
        }
    }
}

#[cfg(test)]
mod tests;
