//! AtomicETH and AtomicAckETH: an atomic operation on one remote word, and what the word held.

use crate::wire::header::header;

header! {
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
    pub struct AtomicEth[28] "AtomicETH" {
        /// VA: which word.
        pub virtual_address: u64 = 0..64,
        /// R_Key: admits to that memory.
        pub remote_key: u32 = 64..96,
        /// What to swap in, or to add.
        pub swap_or_add: u64 = 96..160,
        /// What the word must hold for the swap.
        pub compare: u64 = 160..224,
    }
}

header! {
    /// Atomic Acknowledge Extended Transport Header.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct AtomicAckEth[8] "AtomicAckETH" {
        /// What the word held before.
        pub original: u64 = 0..64,
    }
}
