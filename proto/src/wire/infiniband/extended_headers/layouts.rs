//! The extended headers whose fields are plain numbers: datagrams, remote memory, atomics and immediate data.

use crate::ids::QueuePairNumber;
use crate::wire::header::header;

header! {
    /// Datagram Extended Transport Header.
    ///
    /// ```text
    /// |                             Q_Key                             |
    /// |    resv8      |                     SrcQP                     |
    /// ```
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Deth[8] "DETH" {
        /// Q_Key: the destination's queue pair accepts only packets with its own Q_Key.
        pub queue_key: u32 = 0..32,
        /// Eight bits before SrcQP, sent as zero.
        pub reserved8: u8 = 32..40,
        /// SrcQP: the queue pair that receives the answer.
        pub source: QueuePairNumber = 40..64,
    }

    /// Reliable Datagram Extended Transport Header: eight reserved bits, then the EE context.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Rdeth[4] "RDETH" {
        /// Eight bits before the context, sent as zero.
        pub reserved8: u8 = 0..8,
        /// End-to-end context, 24 bits.
        pub context: u32 = 8..32,
    }

    /// XRC Extended Transport Header: eight reserved bits, then the shared receive queue.
    ///
    /// Source: IBTA Vol 1, annex A14.
    pub struct XrcEth[4] "XRCETH" {
        /// Eight bits before the queue, sent as zero.
        pub reserved8: u8 = 0..8,
        /// Shared receive queue, 24 bits.
        pub receive_queue: u32 = 8..32,
    }

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

    /// Atomic Acknowledge Extended Transport Header.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct AtomicAckEth[8] "AtomicAckETH" {
        /// Value of the word before the operation.
        pub original: u64 = 0..64,
    }

    /// Immediate data: four octets that the verbs consumer defines.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct ImmDt[4] "ImmDt" {
        /// The octets, as sent.
        pub data: [u8; 4] = 0..32,
    }

    /// Invalidate Extended Transport Header.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Ieth[4] "IETH" {
        /// R_Key that the receiver makes invalid.
        pub remote_key: u32 = 0..32,
    }
}
