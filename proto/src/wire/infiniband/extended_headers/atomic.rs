//! AtomicETH and AtomicAckETH: an atomic operation on one remote word, and what the word held.

use crate::wire::big_endian::{u32_at, u64_at};
use crate::wire::header::header_pair;

/// Atomic Extended Transport Header.
///
/// ```text
/// |                   virtual address, two words                  |
/// |                             R_Key                             |
/// |                  swap or add data, two words                  |
/// |                    compare data, two words                    |
/// ```
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// VA: which word.
    pub virtual_address: u64,
    /// R_Key: admits to that memory.
    pub remote_key: u32,
    /// What to swap in, or to add.
    pub swap_or_add: u64,
    /// What the word must hold for the swap.
    pub compare: u64,
}

/// Atomic Acknowledge Extended Transport Header.
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicAckEth {
    /// What the word held before.
    pub original: u64,
}

mod field {
    use std::ops::Range;
    pub const VIRTUAL_ADDRESS: Range<usize> = 0..8;
    pub const R_KEY: Range<usize> = 8..12;
    pub const SWAP_OR_ADD: Range<usize> = 12..20;
    pub const COMPARE: Range<usize> = 20..28;
    pub const ORIGINAL: Range<usize> = 0..8;
}

header_pair!(AtomicEthView views AtomicEth, "AtomicETH", 28);
header_pair!(AtomicAckEthView views AtomicAckEth, "AtomicAckETH", 8);

impl AtomicEth {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; AtomicEth::LEN] {
        let mut octets = [0; AtomicEth::LEN];
        octets[field::VIRTUAL_ADDRESS].copy_from_slice(&self.virtual_address.to_be_bytes());
        octets[field::R_KEY].copy_from_slice(&self.remote_key.to_be_bytes());
        octets[field::SWAP_OR_ADD].copy_from_slice(&self.swap_or_add.to_be_bytes());
        octets[field::COMPARE].copy_from_slice(&self.compare.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> AtomicEthView<T> {
    /// VA.
    pub fn virtual_address(&self) -> u64 {
        u64_at(self.octets(), field::VIRTUAL_ADDRESS)
    }

    /// R_Key.
    pub fn remote_key(&self) -> u32 {
        u32_at(self.octets(), field::R_KEY)
    }

    /// What to swap in, or to add.
    pub fn swap_or_add(&self) -> u64 {
        u64_at(self.octets(), field::SWAP_OR_ADD)
    }

    /// What the word must hold for the swap.
    pub fn compare(&self) -> u64 {
        u64_at(self.octets(), field::COMPARE)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> AtomicEth {
        AtomicEth {
            virtual_address: self.virtual_address(),
            remote_key: self.remote_key(),
            swap_or_add: self.swap_or_add(),
            compare: self.compare(),
        }
    }
}

impl AtomicAckEth {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; AtomicAckEth::LEN] {
        self.original.to_be_bytes()
    }
}

impl<T: AsRef<[u8]>> AtomicAckEthView<T> {
    /// What the word held before.
    pub fn original(&self) -> u64 {
        u64_at(self.octets(), field::ORIGINAL)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> AtomicAckEth {
        AtomicAckEth { original: self.original() }
    }
}
