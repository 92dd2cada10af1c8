//! One non-blocking datagram socket: whole batches in one system call, buffers reused.
//!
//! Knows addresses and datagrams, no links and no frames. [`super::udp`] and [`super::unix`] open it.

use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use socket2::{SockAddr, Socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// Datagrams a system call: enough that its price does not count, few enough for the stack.
pub const BATCH: usize = 32;

/// The largest datagram UDP carries, and so the size of a receive buffer.
pub const DATAGRAM_LIMIT: usize = 65_507;

/// What a socket asks for; it gets that with the right to, else what `rmem_max` and `wmem_max` allow.
const BUFFER_WISH: usize = 64 << 20;

/// A datagram as it was received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The sender's address, as [`Peer::key`] gives it; empty if it has none.
    pub source: &'a [u8],
    /// Its octets, or as many as the buffer held.
    pub octets: &'a [u8],
    /// There were more octets than that.
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

    /// The octets by which a datagram's source is recognised.
    pub fn key(&self) -> &[u8] {
        // SAFETY: a `SockAddr` holds `len` initialised octets behind its pointer, and is borrowed.
        let octets = unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len() as usize)
        };
        significant(octets)
    }
}

/// A socket address without padding: the kernel and `bind` differ in what they leave there.
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

/// What the kernel granted the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Octets of SO_RCVBUF as read back (the kernel counts its own overhead in them).
    pub receive: usize,
    /// Octets of SO_SNDBUF as read back.
    pub send: usize,
}

impl Buffers {
    /// Makes the receive buffer of `socket` smaller, and reads back what it is.
    pub(super) fn narrow(&mut self, socket: &Socket, octets: usize) -> io::Result<()> {
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
    /// A socket file to remove at the end.
    file: Option<PathBuf>,
    buffers: Buffers,
    /// [`BATCH`] receive buffers of [`DATAGRAM_LIMIT`] octets.
    room: Vec<u8>,
}

impl DatagramSocket {
    /// Takes a bound socket that others reach at `address`.
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

    /// Where others send to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Makes the receive buffer smaller, to see what happens when it is full. The kernel doubles
    /// `octets` and has a minimum of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn narrow(&mut self, octets: usize) -> io::Result<()> {
        self.buffers.narrow(&self.socket, octets)
    }

    /// How large its buffers really are.
    pub const fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Datagrams the kernel has dropped because the receive buffer was full, modulo 2^32.
    ///
    /// The same counter that SO_RXQ_OVFL attaches to datagrams, but read when asked for: what was
    /// dropped after the last datagram that got through is in it too.
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

    /// Sends the first [`BATCH`] of `batch` in one call; how many left.
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
        if count == 0 {
            return Ok(0);
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the first `count` headers point to vectors, names and octets that outlive the
        // call, and `sendmmsg` writes to none of the latter.
        let sent = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Takes up to [`BATCH`] datagrams that wait in the socket; how many there were.
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
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        // What is no count is "nothing there", a signal, or an error some send has caused; the
        // last is cleared by being reported, and the next call goes on.
        let count = usize::try_from(count).unwrap_or(0);
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

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // It may be gone with its directory already.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Makes both buffers as large as the host permits and reads back what that is.
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
