//! Memory that is registered with a device: pages of their own, so that the device and peers write nothing else.

use std::ptr::NonNull;
use verbs::answer::Refusal;

/// Most octets of a region.
pub const REGION_MAX: u64 = 1 << 30;

/// Pages of zeros.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    length: usize,
}

impl Pages {
    /// Maps `length` octets.
    ///
    /// # Errors
    /// If the length is 0 or too large, or there is no memory.
    pub fn map(length: u64) -> Result<Pages, Refusal> {
        if length == 0 || length > REGION_MAX {
            return Err(Refusal::limit(format!("a region has 1 to {REGION_MAX} octets")));
        }
        let length = length as usize;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        // Test: pages_hold_what_was_asked_for_and_begin_with_zeros.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Pages { start, length }),
            None => Err(Refusal::limit("there is not that much memory")),
        }
    }

    /// The address, which is also the virtual address for peers.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The octets.
    pub fn octets(&mut self) -> &mut [u8] {
        // SAFETY: the mapping lives as long as `self`. The device may write there meanwhile; what is read is then old
        // or new octets, and any value of an octet is valid. Test: pages_hold_what_was_asked_for_and_begin_with_zeros.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// How many.
    pub fn length(&self) -> u64 {
        self.length as u64
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no slice of it outlives the value.
        // Test: pages_hold_what_was_asked_for_and_begin_with_zeros.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_what_was_asked_for_and_begin_with_zeros() {
        let mut pages = Pages::map(10_000).expect("memory");
        assert_eq!(pages.octets(), vec![0; 10_000]);
        assert!(Pages::map(0).is_err() && Pages::map(REGION_MAX + 1).is_err());
    }
}
