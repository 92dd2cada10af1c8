//! The memory region that RDMA WRITEs address.

use proto::wire::infiniband::Reth;

/// One region per queue pair, known to both ends in advance.
///
/// Nothing is stored; only key and bounds are checked.
pub struct MemoryRegion;

impl MemoryRegion {
    /// The R_Key.
    pub const KEY: u32 = 0x7062_0001;
    /// The first virtual address.
    pub const START: u64 = 0x1_0000_0000;
    /// Octets of the region: one message of the largest size. Source: IBTA Vol 1, 9.7.7 (2^31 octets).
    pub const LENGTH: u64 = 1 << 31;

    /// Whether the RETH has the right key and lies within the region.
    pub fn admits(reth: &Reth) -> bool {
        let offset = reth.virtual_address.checked_sub(Self::START);
        reth.remote_key == Self::KEY
            && offset.is_some_and(|offset| {
                offset.saturating_add(u64::from(reth.dma_length)) <= Self::LENGTH
            })
    }
}
