//! Event loops of threads that wait for several sockets.

use std::io;
use std::os::unix::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// Pairs of descriptors that must be free: an event loop opens five.
const PAIRS: usize = 3;

/// An event loop for the calling thread.
///
/// # Errors
/// If the process has no descriptors left.
pub fn on_this_thread() -> io::Result<Runtime> {
    check_descriptors()?;
    Builder::new_current_thread().enable_all().build()
}

/// Fails where an event loop would panic instead: tokio expects descriptors for signals.
///
/// # Errors
/// If the process has too few descriptors left.
pub fn check_descriptors() -> io::Result<()> {
    let spare: io::Result<Vec<_>> = (0..PAIRS).map(|_| UnixStream::pair()).collect();
    spare.map(drop)
}
