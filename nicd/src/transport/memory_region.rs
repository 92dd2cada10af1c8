//! The memory behind RDMA WRITE.

use proto::wire::infiniband::Reth;

/// What a peer may write to: one region a queue pair, known to both ends beforehand.
///
/// Nothing is stored; key and bounds are checked as if it were.
pub struct MemoryRegion;

impl MemoryRegion {
    /// R_Key.
    pub const KEY: u32 = 0x7062_0001;
    /// First virtual address.
    pub const START: u64 = 0x1_0000_0000;
    /// Octets: one message of the largest size. Source: IBTA Vol 1, 9.7.7 (2^31 octets).
    pub const LENGTH: u64 = 1 << 31;

    /// Whether a RETH names a place inside.
    pub fn admits(reth: &Reth) -> bool {
        let offset = reth.virtual_address.checked_sub(Self::START);
        reth.remote_key == Self::KEY
            && offset.is_some_and(|offset| {
                offset.saturating_add(u64::from(reth.dma_length)) <= Self::LENGTH
            })
    }
}
