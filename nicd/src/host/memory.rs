//! Memory that peers read, write and change by RDMA.

use proto::wire::infiniband::{AtomicEth, Reth};
use std::ops::Range;
use verbs::attributes::Access;

/// The memory regions of a protection domain.
#[derive(Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
}

/// A registered memory region.
#[derive(Debug)]
pub struct Region {
    /// The R_Key.
    pub key: u32,
    /// The first virtual address.
    pub start: u64,
    /// What peers may do.
    pub access: Access,
    /// The content.
    pub octets: Vec<u8>,
}

/// A place within a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The R_Key of the region.
    pub key: u32,
    /// Its octets, from the start of the region.
    pub range: Range<usize>,
}

impl Place {
    /// The part of this place that `range`, counted from its start, names.
    pub fn part(&self, range: Range<usize>) -> Place {
        let at = self.range.start;
        Place { key: self.key, range: at + range.start..at + range.end }
    }
}

impl Memory {
    /// Adds a region of zeros.
    pub fn register(&mut self, key: u32, start: u64, length: usize, access: Access) {
        self.regions.push(Region { key, start, access, octets: vec![0; length] });
    }

    /// Removes a region.
    pub fn deregister(&mut self, key: u32) {
        self.regions.retain(|region| region.key != key);
    }

    /// The region with this R_Key.
    pub fn region(&mut self, key: u32) -> Option<&mut Region> {
        self.regions.iter_mut().find(|region| region.key == key)
    }

    /// The place that `reth` names; `None` if key or bounds are wrong, or the region does not permit it. A length of
    /// zero needs neither. Source: IBTA Vol 1, 9.7.4.1.5, and 10.6 for zero length.
    pub fn place(&self, reth: &Reth, permits: impl Fn(&Access) -> bool) -> Option<Place> {
        if reth.dma_length == 0 {
            return Some(Place::default());
        }
        let (key, address) = (reth.remote_key, reth.virtual_address);
        self.range(key, address, u64::from(reth.dma_length), permits)
    }

    fn range(
        &self,
        key: u32,
        address: u64,
        length: u64,
        permits: impl Fn(&Access) -> bool,
    ) -> Option<Place> {
        let region = self.regions.iter().find(|region| region.key == key)?;
        let at = address.checked_sub(region.start)?;
        let end = at.checked_add(length)?;
        let fits = end <= region.octets.len() as u64 && permits(&region.access);
        fits.then_some(Place { key, range: at as usize..end as usize })
    }

    /// The octets of a place; none if its region is no longer registered.
    pub fn read(&self, place: &Place) -> &[u8] {
        let region = self.regions.iter().find(|region| region.key == place.key);
        region.and_then(|region| region.octets.get(place.range.clone())).unwrap_or(&[])
    }

    /// Writes `octets` to the front of a place, as far as its region is registered.
    pub fn write(&mut self, place: &Place, octets: &[u8]) {
        let (start, key) = (place.range.start, place.key);
        let region = self.region(key);
        if let Some(to) =
            region.and_then(|region| region.octets.get_mut(start..start + octets.len()))
        {
            to.copy_from_slice(octets);
        }
    }

    /// Replaces the number at the place that `atomic` names by `change` of it, and returns the original; `None`
    /// if key or bounds are wrong. Numbers lie in memory with the low octet first. Source: IBTA Vol 1, 9.4.5.
    pub fn change(&mut self, atomic: &AtomicEth, change: impl FnOnce(u64) -> u64) -> Option<u64> {
        let (key, address) = (atomic.remote_key, atomic.virtual_address);
        let place = self.range(key, address, 8, |access| access.atomic)?;
        let octets: &mut [u8; 8] = self.region(key)?.octets[place.range].first_chunk_mut()?;
        let original = u64::from_le_bytes(*octets);
        *octets = change(original).to_le_bytes();
        Some(original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_bounds_and_access_are_checked() {
        let mut memory = Memory::default();
        memory.register(7, 0x1000, 64, Access::ALL);
        memory.register(9, 0x1000, 64, Access::default());
        let reth = |virtual_address, remote_key, dma_length| Reth {
            virtual_address,
            remote_key,
            dma_length,
        };
        let writes = |access: &Access| access.write;
        let found = |memory: &Memory, (address, key, length)| {
            memory.place(&reth(address, key, length), writes).map(|place| place.range)
        };
        assert_eq!(found(&memory, (0x1000, 7, 64)), Some(0..64));
        assert_eq!(found(&memory, (0x103f, 7, 1)), Some(63..64));
        for wrong in
            [(0x1000, 7, 65), (0xfff, 7, 1), (0x1000, 8, 1), (u64::MAX, 7, 2), (0x1000, 9, 1)]
        {
            assert_eq!(found(&memory, wrong), None);
        }
        assert_eq!(found(&memory, (0, 0, 0)), Some(0..0));
        let place = memory.place(&reth(0x1008, 7, 8), writes).expect("it fits");
        memory.write(&place, &5u64.to_le_bytes());
        let atomic = |virtual_address, remote_key| AtomicEth {
            virtual_address,
            remote_key,
            swap_or_add: 0,
            compare: 0,
        };
        assert_eq!(memory.change(&atomic(0x1008, 7), |n| n + 2), Some(5));
        assert_eq!(memory.change(&atomic(0x1008, 7), |n| n), Some(7));
        for wrong in [atomic(0x1040, 7), atomic(0x1008, 9)] {
            assert_eq!(memory.change(&wrong, |n| n), None);
        }
        memory.deregister(7);
        assert_eq!(memory.read(&place), [0; 0], "a response to a region that is gone is empty");
        memory.write(&place, &[1]);
    }
}
