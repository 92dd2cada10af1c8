//! DETH, RDETH and XRCETH: whose queue a packet is meant for when the destination QP is not enough.

use crate::ids::QueuePairNumber;
use crate::wire::big_endian::{u24, u24_at, u32_at};
use crate::wire::header::header_pair;

/// Datagram Extended Transport Header.
///
/// ```text
/// |                             Q_Key                             |
/// |    resv8      |                     SrcQP                     |
/// ```
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    /// Q_Key: admits the packet to the destination's queue pair.
    pub queue_key: u32,
    /// Eight bits before SrcQP, sent as zero.
    pub reserved8: u8,
    /// SrcQP: to whom an answer goes.
    pub source: QueuePairNumber,
}

/// Reliable Datagram Extended Transport Header: eight reserved bits, then the EE context.
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rdeth {
    /// Eight bits before the context, sent as zero.
    pub reserved8: u8,
    /// End-to-end context, 24 bits.
    pub context: u32,
}

/// XRC Extended Transport Header: eight reserved bits, then the shared receive queue.
///
/// Source: IBTA Vol 1, annex A14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XrcEth {
    /// Eight bits before the queue, sent as zero.
    pub reserved8: u8,
    /// Shared receive queue, 24 bits.
    pub receive_queue: u32,
}

mod field {
    use std::ops::Range;
    pub const Q_KEY: Range<usize> = 0..4;
    pub const DETH_RESV8: usize = 4;
    pub const SRC_QP: Range<usize> = 5..8;
    pub const RESV8: usize = 0;
    pub const NUMBER: Range<usize> = 1..4;
}

header_pair!(DethView views Deth, "DETH", 8);
header_pair!(RdethView views Rdeth, "RDETH", 4);
header_pair!(XrcEthView views XrcEth, "XRCETH", 4);

impl Deth {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; Deth::LEN] {
        let mut octets = [0; Deth::LEN];
        octets[field::Q_KEY].copy_from_slice(&self.queue_key.to_be_bytes());
        octets[field::DETH_RESV8] = self.reserved8;
        octets[field::SRC_QP].copy_from_slice(&u24(self.source.get()));
        octets
    }
}

impl<T: AsRef<[u8]>> DethView<T> {
    /// Q_Key.
    pub fn queue_key(&self) -> u32 {
        u32_at(self.octets(), field::Q_KEY)
    }

    /// The eight bits before SrcQP.
    pub fn reserved8(&self) -> u8 {
        self.octets()[field::DETH_RESV8]
    }

    /// SrcQP.
    pub fn source(&self) -> QueuePairNumber {
        QueuePairNumber::truncate(u24_at(self.octets(), field::SRC_QP))
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Deth {
        Deth { queue_key: self.queue_key(), reserved8: self.reserved8(), source: self.source() }
    }
}

impl Rdeth {
    /// The header's octets; bits of the context above 24 are left out.
    pub fn to_octets(&self) -> [u8; Rdeth::LEN] {
        let [high, middle, low] = u24(self.context);
        [self.reserved8, high, middle, low]
    }
}

impl<T: AsRef<[u8]>> RdethView<T> {
    /// The eight bits before the context.
    pub fn reserved8(&self) -> u8 {
        self.octets()[field::RESV8]
    }

    /// End-to-end context.
    pub fn context(&self) -> u32 {
        u24_at(self.octets(), field::NUMBER)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Rdeth {
        Rdeth { reserved8: self.reserved8(), context: self.context() }
    }
}

impl XrcEth {
    /// The header's octets; bits of the queue above 24 are left out.
    pub fn to_octets(&self) -> [u8; XrcEth::LEN] {
        let [high, middle, low] = u24(self.receive_queue);
        [self.reserved8, high, middle, low]
    }
}

impl<T: AsRef<[u8]>> XrcEthView<T> {
    /// The eight bits before the queue.
    pub fn reserved8(&self) -> u8 {
        self.octets()[field::RESV8]
    }

    /// Shared receive queue.
    pub fn receive_queue(&self) -> u32 {
        u24_at(self.octets(), field::NUMBER)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> XrcEth {
        XrcEth { reserved8: self.reserved8(), receive_queue: self.receive_queue() }
    }
}
