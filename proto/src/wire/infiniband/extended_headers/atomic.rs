//! AtomicETH and AtomicAckETH: an atomic operation on a remote 64-bit word, and its original value.

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
        /// VA: virtual address of the word.
        pub virtual_address: u64 = 0..64,
        /// R_Key: remote key of the memory.
        pub remote_key: u32 = 64..96,
        /// Value to swap in or to add.
        pub swap_or_add: u64 = 96..160,
        /// Value that the word must have for the swap.
        pub compare: u64 = 160..224,
    }
}

header! {
    /// Atomic Acknowledge Extended Transport Header.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct AtomicAckEth[8] "AtomicAckETH" {
        /// Value of the word before the operation.
        pub original: u64 = 0..64,
    }
}
