//! The memory of a service, which peers read, write and change by RDMA.

use proto::wire::infiniband::{AtomicEth, Reth};
use std::ops::Range;

/// A registered memory region.
#[derive(Debug)]
pub struct Region {
    /// The R_Key.
    pub key: u32,
    /// The first virtual address.
    pub start: u64,
    octets: Vec<u8>,
}

impl Region {
    /// A region of `length` zeros.
    pub fn new(key: u32, start: u64, length: usize) -> Region {
        Region { key, start, octets: vec![0; length] }
    }

    /// The place that `reth` names; `None` if key or bounds are wrong. A length of zero needs neither. Source:
    /// IBTA Vol 1, 9.7.4.1.5, and 10.6 for zero length.
    pub fn place(&self, reth: &Reth) -> Option<Range<usize>> {
        if reth.dma_length == 0 {
            return Some(0..0);
        }
        self.range(reth.remote_key, reth.virtual_address, u64::from(reth.dma_length))
    }

    fn range(&self, key: u32, address: u64, length: u64) -> Option<Range<usize>> {
        let at = address.checked_sub(self.start)?;
        let end = at.checked_add(length)?;
        let fits = key == self.key && end <= self.octets.len() as u64;
        fits.then_some(at as usize..end as usize)
    }

    /// The octets of a place that [`Region::place`] has returned.
    pub fn read(&self, place: Range<usize>) -> &[u8] {
        &self.octets[place]
    }

    /// Writes `octets` at `at`, a place that [`Region::place`] has returned.
    pub fn write(&mut self, at: usize, octets: &[u8]) {
        self.octets[at..at + octets.len()].copy_from_slice(octets);
    }

    /// Replaces the number at the place that `atomic` names by `change` of it, and returns the original; `None`
    /// if key, bounds or alignment are wrong. Numbers lie in memory with the low octet first. Source: IBTA Vol
    /// 1, 9.4.5.
    pub fn change(&mut self, atomic: &AtomicEth, change: impl FnOnce(u64) -> u64) -> Option<u64> {
        let place = self.range(atomic.remote_key, atomic.virtual_address, 8)?;
        if !atomic.virtual_address.is_multiple_of(8) {
            return None;
        }
        let octets: &mut [u8; 8] = self.octets[place].first_chunk_mut()?;
        let original = u64::from_le_bytes(*octets);
        *octets = change(original).to_le_bytes();
        Some(original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_bounds_and_alignment_are_checked() {
        let mut region = Region::new(7, 0x1000, 64);
        let reth = |virtual_address, remote_key, dma_length| Reth {
            virtual_address,
            remote_key,
            dma_length,
        };
        assert_eq!(region.place(&reth(0x1000, 7, 64)), Some(0..64));
        assert_eq!(region.place(&reth(0x103f, 7, 1)), Some(63..64));
        for wrong in [(0x1000, 7, 65), (0xfff, 7, 1), (0x1000, 8, 1), (u64::MAX, 7, 2)] {
            assert_eq!(region.place(&reth(wrong.0, wrong.1, wrong.2)), None);
        }
        assert_eq!(region.place(&reth(0, 0, 0)), Some(0..0));
        region.write(8, &5u64.to_le_bytes());
        let atomic = |virtual_address| AtomicEth {
            virtual_address,
            remote_key: 7,
            swap_or_add: 0,
            compare: 0,
        };
        assert_eq!(region.change(&atomic(0x1008), |n| n + 2), Some(5));
        assert_eq!(region.change(&atomic(0x1008), |n| n), Some(7));
        assert_eq!(region.change(&atomic(0x1004), |n| n), None, "not aligned");
        assert_eq!(region.change(&atomic(0x1040), |n| n), None, "behind the end");
    }
}
