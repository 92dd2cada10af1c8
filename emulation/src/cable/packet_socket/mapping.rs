//! Memory mappings, private or shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, unmapped when dropped. Its owner knows the layout of the data in it.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to the mapping alone, and its owner may use it on any one thread.
// Test: frames_come_out_as_they_went_in_tags_and_all.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps memory that a socket shares with the kernel, from `offset` on.
    ///
    /// # Errors
    /// Those of `mmap`.
    pub fn of(socket: BorrowedFd<'_>, offset: i64, length: usize) -> io::Result<Mapping> {
        Mapping::new(socket.as_raw_fd(), offset, length, libc::MAP_SHARED)
    }

    /// Maps private memory, all zeros.
    ///
    /// # Errors
    /// Those of `mmap`.
    pub fn own(length: usize) -> io::Result<Mapping> {
        Mapping::new(-1, 0, length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn new(file: i32, offset: i64, length: usize, flags: i32) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        // Test: frames_come_out_as_they_went_in_tags_and_all.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file, offset) };
        match NonNull::new(memory.cast::<u8>()) {
            Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Mapping { memory, length })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first octet, aligned to a page. Valid as long as the mapping.
    pub const fn start(&self) -> NonNull<u8> {
        self.memory
    }

    /// Length in octets.
    pub const fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping has that length, and no reference into it outlives its owner.
        // Test: frames_come_out_as_they_went_in_tags_and_all.
        let _ = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}
