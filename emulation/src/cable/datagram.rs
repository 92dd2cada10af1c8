//! A non-blocking datagram socket that sends and receives whole batches in one system call and reuses its
//! buffers.
//!
//! It handles addresses and datagrams, but neither links nor frames. [`super::udp`] and [`super::unix`] open
//! it.

use super::socket_calls;
pub use super::socket_calls::{BATCH, Buffers};
use socket2::{SockAddr, Socket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// The largest datagram UDP carries, and so the size of a receive buffer.
pub const DATAGRAM_LIMIT: usize = 65_507;

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The sender's address, as [`Peer::key`] gives it; empty if it has none.
    pub source: &'a [u8],
    /// Its octets, cut to the size of the buffer.
    pub octets: &'a [u8],
    /// The datagram was longer than that.
    pub cut: bool,
}

/// The address of a process's socket.
#[derive(Clone, Debug)]
pub struct Peer(SockAddr);

impl Peer {
    /// The peer at a socket address.
    pub const fn new(address: SockAddr) -> Peer {
        Peer(address)
    }

    /// The octets by which the source of a datagram is recognised.
    pub fn key(&self) -> &[u8] {
        // SAFETY: a `SockAddr` holds `len` initialised octets behind its pointer, and is borrowed.
        // Test: a_datagram_arrives_with_its_sender.
        let octets = unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len() as usize)
        };
        socket_calls::significant(octets)
    }
}

/// The socket and its receive buffers.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
    address: String,
    /// A socket file to remove when the socket is dropped.
    file: Option<PathBuf>,
    buffers: Buffers,
    /// [`BATCH`] receive buffers of [`DATAGRAM_LIMIT`] octets.
    room: Vec<u8>,
}

impl DatagramSocket {
    /// Wraps a bound socket that peers reach at `address`.
    ///
    /// # Errors
    /// If the socket cannot be made non-blocking.
    pub(super) fn new(socket: Socket, address: String, file: Option<PathBuf>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let buffers = socket_calls::widen(&socket)?;
        Ok(DatagramSocket { socket, address, file, buffers, room: vec![0; BATCH * DATAGRAM_LIMIT] })
    }

    /// The address that peers send to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Shrinks the receive buffer, for tests of overflows. The kernel doubles `octets` and has a minimum of its
    /// own.
    ///
    /// # Errors
    /// Those of `setsockopt`.
    pub fn shrink_receive_buffer(&mut self, octets: usize) -> io::Result<()> {
        self.buffers.shrink_receive(&self.socket, octets)
    }

    /// The sizes of its buffers, as the kernel reports them.
    pub const fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Datagrams that the kernel dropped because the receive buffer was full, modulo 2^32.
    ///
    /// The same counter as SO_RXQ_OVFL, but read directly, so that it includes datagrams dropped after the last
    /// one that was received.
    pub fn overflows(&self) -> u32 {
        socket_calls::overflows(&self.socket)
    }

    /// Sends the first [`BATCH`] of `batch` in one call. Returns how many were sent.
    ///
    /// # Errors
    /// Why the first could not be sent. A later one that fails only ends the count.
    pub fn send<'a>(&self, batch: impl Iterator<Item = (&'a Peer, &'a [u8])>) -> io::Result<usize> {
        let batch = batch.map(|(peer, octets)| (Some(&peer.0), [octets]));
        socket_calls::send(&self.socket, batch)
    }

    /// Receives up to [`BATCH`] datagrams that wait in the socket. Returns how many there were.
    pub fn receive(&mut self, mut each: impl FnMut(Received<'_>)) -> usize {
        // SAFETY: a name of zeros is a valid, empty one. Test: a_datagram_arrives_with_its_sender.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { std::mem::zeroed() };
        let attach = |header: &mut libc::msghdr, name: &mut libc::sockaddr_storage| {
            header.msg_name = std::ptr::from_mut(name).cast();
            header.msg_namelen = size_of_val(name) as libc::socklen_t;
        };
        let each = |header: &libc::msghdr, name: &libc::sockaddr_storage, octets: &[u8]| {
            let cut = header.msg_flags & libc::MSG_TRUNC != 0;
            each(Received { source: socket_calls::source(header, name), octets, cut });
        };
        let room = (self.room.as_mut_slice(), DATAGRAM_LIMIT);
        // SAFETY: `attach` has each header point to its name. Test: a_datagram_arrives_with_its_sender.
        unsafe { socket_calls::receive(&self.socket, room, &mut names, attach, each) }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // The file may have been removed with its directory.
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests;
