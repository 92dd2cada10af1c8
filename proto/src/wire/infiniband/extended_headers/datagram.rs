//! DETH, RDETH and XRCETH: the extended headers that identify queues beyond the destination QP.

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
}

header! {
    /// Reliable Datagram Extended Transport Header: eight reserved bits, then the EE context.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Rdeth[4] "RDETH" {
        /// Eight bits before the context, sent as zero.
        pub reserved8: u8 = 0..8,
        /// End-to-end context, 24 bits.
        pub context: u32 = 8..32,
    }
}

header! {
    /// XRC Extended Transport Header: eight reserved bits, then the shared receive queue.
    ///
    /// Source: IBTA Vol 1, annex A14.
    pub struct XrcEth[4] "XRCETH" {
        /// Eight bits before the queue, sent as zero.
        pub reserved8: u8 = 0..8,
        /// Shared receive queue, 24 bits.
        pub receive_queue: u32 = 8..32,
    }
}
