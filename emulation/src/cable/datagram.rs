//! A non-blocking datagram socket that sends and receives whole batches in one system call and reuses its
//! buffers.
//!
//! It handles addresses and datagrams, but neither links nor frames. [`super::udp`] and [`super::unix`] open
//! it.

use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use socket2::{SockAddr, Socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// Datagrams a system call: enough to make the call's cost negligible, few enough for headers on the stack.
pub const BATCH: usize = 32;

/// The largest datagram UDP carries, and so the size of a receive buffer.
pub const DATAGRAM_LIMIT: usize = 65_507;

/// Octets of socket buffer to request. Without CAP_NET_ADMIN the kernel grants at most `rmem_max` and
/// `wmem_max`.
const BUFFER_WISH: usize = 64 << 20;

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
        let octets = unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len() as usize)
        };
        significant(octets)
    }
}

/// A socket address without padding, which the kernel and `bind` fill differently.
fn significant(address: &[u8]) -> &[u8] {
    let Some(family) = address.first_chunk::<2>() else { return &[] };
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => &address[..address.len().min(8)],
        _ => {
            let end = address.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
            &address[..end]
        }
    }
}

/// The buffer sizes that the kernel granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Octets of SO_RCVBUF as read back (the kernel counts its own overhead in them).
    pub receive: usize,
    /// Octets of SO_SNDBUF as read back.
    pub send: usize,
}

impl Buffers {
    /// Shrinks the receive buffer of `socket`, and reads its size back.
    pub(super) fn shrink_receive_buffer(
        &mut self,
        socket: &Socket,
        octets: usize,
    ) -> io::Result<()> {
        socket.set_recv_buffer_size(octets)?;
        self.receive = socket.recv_buffer_size()?;
        Ok(())
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
    pub(super) fn new(
        socket: Socket,
        address: String,
        file: Option<PathBuf>,
    ) -> io::Result<DatagramSocket> {
        socket.set_nonblocking(true)?;
        let buffers = widen(&socket)?;
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
        self.buffers.shrink_receive_buffer(&self.socket, octets)
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
        const DROPS: usize = 8;
        let mut info = [0u32; DROPS + 1];
        let mut length = size_of_val(&info) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` octets into `info`, both alive for the call.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                info.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if result == 0 { info[DROPS] } else { 0 }
    }

    /// Sends the first [`BATCH`] of `batch` in one call. Returns how many were sent.
    ///
    /// # Errors
    /// Why the first could not be sent. A later one that fails only ends the count.
    pub fn send<'a>(&self, batch: impl Iterator<Item = (&'a Peer, &'a [u8])>) -> io::Result<usize> {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: `mmsghdr` is plain data; all zeros means no name, no vector, no control data.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        for ((peer, octets), (vector, header)) in
            batch.zip(vectors.iter_mut().zip(headers.iter_mut()))
        {
            *vector =
                libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = peer.0.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = peer.0.len();
            count += 1;
        }
        // SAFETY: the first `count` headers point to vectors, names and octets that outlive the call.
        unsafe { send_messages(&self.socket, &mut headers[..count]) }
    }

    /// Receives up to [`BATCH`] datagrams that wait in the socket. Returns how many there were.
    pub fn receive(&mut self, mut each: impl FnMut(Received<'_>)) -> usize {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: both are plain data for which all zeros is a valid, empty value.
        let (mut headers, mut names): ([libc::mmsghdr; BATCH], [libc::sockaddr_storage; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let slots = vectors.iter_mut().zip(headers.iter_mut()).zip(names.iter_mut());
        for (((vector, header), name), room) in slots.zip(self.room.chunks_mut(DATAGRAM_LIMIT)) {
            *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of_val(name) as libc::socklen_t;
        }
        // SAFETY: every header points to a name and a vector of the sizes it states, all alive and
        // borrowed mutably for the call.
        let count = unsafe { receive_messages(&self.socket, &mut headers) };
        let filled = headers.iter().zip(&names).zip(self.room.chunks(DATAGRAM_LIMIT));
        for ((header, name), room) in filled.take(count) {
            let length = (header.msg_hdr.msg_namelen as usize).min(size_of_val(name));
            // SAFETY: `name` is borrowed, initialised, and at least `length` octets long.
            let name = unsafe {
                std::slice::from_raw_parts(std::ptr::from_ref(name).cast::<u8>(), length)
            };
            each(Received {
                source: significant(name),
                octets: &room[..(header.msg_len as usize).min(room.len())],
                cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        count
    }
}

/// Sends messages in one call. Returns how many were sent.
///
/// # Errors
/// Why the first could not be sent.
///
/// # Safety
/// Each header points to valid names and vectors, whose octets outlive the call. The kernel writes to none of them.
pub(super) unsafe fn send_messages(
    socket: &Socket,
    headers: &mut [libc::mmsghdr],
) -> io::Result<usize> {
    if headers.is_empty() {
        return Ok(0);
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let (first, count) = (headers.as_mut_ptr(), headers.len());
    // SAFETY: the caller vouches for what the headers point to, and there are `count` of them.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, count as _, flags as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives as many messages as wait in the socket, one a header. Returns how many there were.
///
/// # Safety
/// Each header points to names, vectors and control data of the sizes it states, borrowed mutably for the call.
pub(super) unsafe fn receive_messages(socket: &Socket, headers: &mut [libc::mmsghdr]) -> usize {
    let flags = libc::MSG_DONTWAIT;
    let (first, count) = (headers.as_mut_ptr(), headers.len());
    let no_timeout = std::ptr::null_mut();
    // SAFETY: the caller vouches for what the headers point to, and there are `count` of them.
    let count =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), first, count as _, flags as _, no_timeout) };
    // A negative count means an empty socket, a signal, an interface that went down, or an error that a former send
    // caused. Reporting clears an error, and the next call goes on.
    usize::try_from(count).unwrap_or(0)
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

/// Enlarges both buffers as far as the host permits, and reads their sizes back.
pub(super) fn widen(socket: &Socket) -> io::Result<Buffers> {
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER_WISH).is_err() {
        socket.set_recv_buffer_size(BUFFER_WISH)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &BUFFER_WISH).is_err() {
        socket.set_send_buffer_size(BUFFER_WISH)?;
    }
    Ok(Buffers { receive: socket.recv_buffer_size()?, send: socket.send_buffer_size()? })
}

#[cfg(test)]
mod tests;
