//! RETH: which memory a READ or WRITE means.

use crate::wire::big_endian::{u32_at, u64_at};
use crate::wire::header::header_pair;

/// RDMA Extended Transport Header.
///
/// ```text
/// |                        virtual address                        |
/// |                       (lower 32 bits)                         |
/// |                             R_Key                             |
/// |                             DMALen                            |
/// ```
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// VA: where in the responder's memory.
    pub virtual_address: u64,
    /// R_Key: admits to that memory.
    pub remote_key: u32,
    /// DMALen: length of the whole message, in octets.
    pub dma_length: u32,
}

mod field {
    use std::ops::Range;
    pub const VIRTUAL_ADDRESS: Range<usize> = 0..8;
    pub const R_KEY: Range<usize> = 8..12;
    pub const DMA_LENGTH: Range<usize> = 12..16;
}

header_pair!(RethView views Reth, "RETH", 16);

impl Reth {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; Reth::LEN] {
        let mut octets = [0; Reth::LEN];
        octets[field::VIRTUAL_ADDRESS].copy_from_slice(&self.virtual_address.to_be_bytes());
        octets[field::R_KEY].copy_from_slice(&self.remote_key.to_be_bytes());
        octets[field::DMA_LENGTH].copy_from_slice(&self.dma_length.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> RethView<T> {
    /// VA.
    pub fn virtual_address(&self) -> u64 {
        u64_at(self.octets(), field::VIRTUAL_ADDRESS)
    }

    /// R_Key.
    pub fn remote_key(&self) -> u32 {
        u32_at(self.octets(), field::R_KEY)
    }

    /// DMALen.
    pub fn dma_length(&self) -> u32 {
        u32_at(self.octets(), field::DMA_LENGTH)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Reth {
        Reth {
            virtual_address: self.virtual_address(),
            remote_key: self.remote_key(),
            dma_length: self.dma_length(),
        }
    }
}
