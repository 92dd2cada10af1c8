//! RETH: the remote memory of a READ or WRITE.

use crate::wire::header::header;

header! {
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
    pub struct Reth[16] "RETH" {
        /// VA: virtual address in the responder's memory.
        pub virtual_address: u64 = 0..64,
        /// R_Key: remote key of the memory.
        pub remote_key: u32 = 64..96,
        /// DMALen: length of the whole message, in octets.
        pub dma_length: u32 = 96..128,
    }
}
