//! BTH, the Base Transport Header, with the two bits of congestion notification.

use crate::ids::{Psn, QueuePairNumber};
use crate::wire::big_endian::{u16_at, u24, u24_at};
use crate::wire::header::header_pair;
use crate::wire::infiniband::opcode::Opcode;

/// Base Transport Header.
///
/// ```text
///  0               8               16                             32
/// |    OpCode     |S|M|Pad|  TVer  |             P_Key            |
/// |F|B|  resv6    |                  DestQP                       |
/// |A|    resv7    |                    PSN                        |
/// ```
///
/// The octet of F, B and resv6 may change on the way and is outside the ICRC.
/// Source: IBTA Vol 1, 9.2; F and B from annex A10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// OpCode: service, operation and place in the message.
    pub opcode: Opcode,
    /// SE: the receiver should raise a solicited event.
    pub solicited: bool,
    /// M: the state of path migration; harmless, and real adapters differ in it.
    pub migration_request: bool,
    /// PadCnt, two bits: octets that fill the payload up to a word.
    pub pad_count: u8,
    /// TVer, four bits: 0 is the only version there is.
    pub version: u8,
    /// P_Key.
    pub partition_key: u16,
    /// F: forward explicit congestion notification, set by a switch.
    pub fecn: bool,
    /// B: backward explicit congestion notification, set by the receiver of an F.
    pub becn: bool,
    /// Six bits after F and B, sent as zero.
    pub reserved6: u8,
    /// DestQP.
    pub destination: QueuePairNumber,
    /// A: the requester wants an acknowledgement.
    pub ack_request: bool,
    /// Seven bits after A, sent as zero.
    pub reserved7: u8,
    /// PSN.
    pub psn: Psn,
}

pub(super) mod field {
    use std::ops::Range;
    pub const OPCODE: usize = 0;
    pub const SE_M_PAD_TVER: usize = 1;
    pub const P_KEY: Range<usize> = 2..4;
    pub const F_B_RESV6: usize = 4;
    pub const DEST_QP: Range<usize> = 5..8;
    pub const A_RESV7: usize = 8;
    pub const PSN: Range<usize> = 9..12;
}

/// F in its octet.
pub(super) const FECN: u8 = 0x80;
/// B in the same octet.
pub(super) const BECN: u8 = 0x40;

header_pair!(BthView views Bth, "BTH", 12);

impl Bth {
    /// The partition that every port is a full member of.
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

    /// The header's octets; bits of plain numbers that do not fit their field are left out.
    pub fn to_octets(&self) -> [u8; Bth::LEN] {
        let mut octets = [0; Bth::LEN];
        octets[field::OPCODE] = self.opcode.0;
        octets[field::SE_M_PAD_TVER] = u8::from(self.solicited) << 7
            | u8::from(self.migration_request) << 6
            | (self.pad_count & 0b11) << 4
            | self.version & 0xf;
        octets[field::P_KEY].copy_from_slice(&self.partition_key.to_be_bytes());
        octets[field::F_B_RESV6] =
            u8::from(self.fecn) << 7 | u8::from(self.becn) << 6 | self.reserved6 & 0x3f;
        octets[field::DEST_QP].copy_from_slice(&u24(self.destination.get()));
        octets[field::A_RESV7] = u8::from(self.ack_request) << 7 | self.reserved7 & 0x7f;
        octets[field::PSN].copy_from_slice(&u24(self.psn.get()));
        octets
    }
}

impl<T: AsRef<[u8]>> BthView<T> {
    /// OpCode.
    pub fn opcode(&self) -> Opcode {
        Opcode(self.octets()[field::OPCODE])
    }

    /// SE.
    pub fn solicited(&self) -> bool {
        self.octets()[field::SE_M_PAD_TVER] & 0x80 != 0
    }

    /// M.
    pub fn migration_request(&self) -> bool {
        self.octets()[field::SE_M_PAD_TVER] & 0x40 != 0
    }

    /// PadCnt.
    pub fn pad_count(&self) -> u8 {
        self.octets()[field::SE_M_PAD_TVER] >> 4 & 0b11
    }

    /// TVer.
    pub fn version(&self) -> u8 {
        self.octets()[field::SE_M_PAD_TVER] & 0xf
    }

    /// P_Key.
    pub fn partition_key(&self) -> u16 {
        u16_at(self.octets(), field::P_KEY)
    }

    /// F.
    pub fn fecn(&self) -> bool {
        self.octets()[field::F_B_RESV6] & FECN != 0
    }

    /// B.
    pub fn becn(&self) -> bool {
        self.octets()[field::F_B_RESV6] & BECN != 0
    }

    /// The six bits after F and B.
    pub fn reserved6(&self) -> u8 {
        self.octets()[field::F_B_RESV6] & 0x3f
    }

    /// DestQP.
    pub fn destination(&self) -> QueuePairNumber {
        QueuePairNumber::truncate(u24_at(self.octets(), field::DEST_QP))
    }

    /// A.
    pub fn ack_request(&self) -> bool {
        self.octets()[field::A_RESV7] & 0x80 != 0
    }

    /// The seven bits after A.
    pub fn reserved7(&self) -> u8 {
        self.octets()[field::A_RESV7] & 0x7f
    }

    /// PSN.
    pub fn psn(&self) -> Psn {
        Psn::truncate(u24_at(self.octets(), field::PSN))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Bth {
        Bth {
            opcode: self.opcode(),
            solicited: self.solicited(),
            migration_request: self.migration_request(),
            pad_count: self.pad_count(),
            version: self.version(),
            partition_key: self.partition_key(),
            fecn: self.fecn(),
            becn: self.becn(),
            reserved6: self.reserved6(),
            destination: self.destination(),
            ack_request: self.ack_request(),
            reserved7: self.reserved7(),
            psn: self.psn(),
        }
    }
}

#[cfg(test)]
mod tests;
