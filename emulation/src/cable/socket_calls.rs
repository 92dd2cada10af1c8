//! System calls on sockets that no crate wraps as they are needed here: batches of messages, and options and
//! addresses of any type.

use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use socket2::{SockAddr, Socket};
use std::io;
use std::os::fd::AsRawFd;

/// Datagrams a system call: enough to make the call's cost negligible, few enough for headers on the stack.
pub const BATCH: usize = 32;

/// Octets of socket buffer to request. Without CAP_NET_ADMIN the kernel grants at most `rmem_max` and
/// `wmem_max`.
const BUFFER_WISH: usize = 64 << 20;

const NO_VECTOR: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

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
    pub(super) fn shrink_receive(&mut self, socket: &Socket, octets: usize) -> io::Result<()> {
        socket.set_recv_buffer_size(octets)?;
        self.receive = socket.recv_buffer_size()?;
        Ok(())
    }
}

/// Sends the first [`BATCH`] messages of `batch` in one call: the receiver's address, if the socket needs one,
/// and the parts of the message. Returns how many were sent.
///
/// # Errors
/// Why the first could not be sent. A later one that fails only ends the count.
pub(super) fn send<'a, const PARTS: usize>(
    socket: &Socket,
    batch: impl Iterator<Item = (Option<&'a SockAddr>, [&'a [u8]; PARTS])>,
) -> io::Result<usize> {
    let mut vectors = [[NO_VECTOR; PARTS]; BATCH];
    // SAFETY: `mmsghdr` is plain data; all zeros means no name, no vector, no control data.
    // Test: a_datagram_arrives_with_its_sender.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for (((to, parts), vectors), header) in batch.zip(&mut vectors).zip(&mut headers) {
        *vectors = parts.map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        header.msg_hdr.msg_iov = vectors.as_mut_ptr();
        header.msg_hdr.msg_iovlen = PARTS as _;
        if let Some(to) = to {
            header.msg_hdr.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = to.len();
        }
        count += 1;
    }
    if count == 0 {
        return Ok(0);
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let first = headers.as_mut_ptr();
    // SAFETY: the first `count` headers point to addresses and octets of `batch`, which outlive the call, and to
    // vectors above. Test: a_datagram_arrives_with_its_sender.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, count, flags as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives as many messages as wait in the socket, one for each of `sides`, at most [`BATCH`], with at most
/// `limit` octets each in `room`. Calls `each` with the message's header, its side and its octets. Returns how
/// many there were.
///
/// # Safety
/// `attach` leaves the header as it is, or has it point into the side for names or control data.
/// Test: a_datagram_arrives_with_its_sender.
pub(super) unsafe fn receive<S>(
    socket: &Socket,
    (room, limit): (&mut [u8], usize),
    sides: &mut [S],
    attach: impl Fn(&mut libc::msghdr, &mut S),
    mut each: impl FnMut(&libc::msghdr, &S, &[u8]),
) -> usize {
    let mut vectors = [NO_VECTOR; BATCH];
    // SAFETY: plain data for which all zeros is a valid, empty value. Test: a_datagram_arrives_with_its_sender.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    let slots = vectors.iter_mut().zip(&mut headers).zip(&mut *sides);
    for (((vector, header), side), room) in slots.zip(room.chunks_mut(limit)) {
        *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        attach(&mut header.msg_hdr, side);
    }
    let (first, most) = (headers.as_mut_ptr(), sides.len().min(BATCH));
    let (flags, no_timeout) = (libc::MSG_DONTWAIT, std::ptr::null_mut());
    // SAFETY: every header points to a vector, to octets and to its side, of the sizes it states, all borrowed
    // mutably for the call. Test: a_datagram_arrives_with_its_sender.
    let count =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), first, most as _, flags as _, no_timeout) };
    // A negative count means an empty socket, a signal, an interface that went down, or an error that a former send
    // caused. Reporting clears an error, and the next call goes on.
    let count = usize::try_from(count).unwrap_or(0);
    for ((header, side), room) in headers.iter().zip(&*sides).zip(room.chunks(limit)).take(count) {
        each(&header.msg_hdr, side, &room[..(header.msg_len as usize).min(room.len())]);
    }
    count
}

/// The sender's address that the kernel put into `name`, as [`significant`].
pub(super) fn source<'a>(header: &libc::msghdr, name: &'a libc::sockaddr_storage) -> &'a [u8] {
    let length = (header.msg_namelen as usize).min(size_of_val(name));
    // SAFETY: `name` has at least `length` octets, initialised to zero or by the kernel.
    // Test: a_datagram_arrives_with_its_sender.
    let name = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(name).cast::<u8>(), length) };
    significant(name)
}

/// A socket address without padding, which the kernel and `bind` fill differently.
pub(super) fn significant(address: &[u8]) -> &[u8] {
    let Some(family) = address.first_chunk::<2>() else { return &[] };
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => &address[..address.len().min(8)],
        _ => {
            let end = address.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
            &address[..end]
        }
    }
}

/// Datagrams that the kernel dropped because the receive buffer was full, modulo 2^32.
pub(super) fn overflows(socket: &Socket) -> u32 {
    const DROPS: usize = 8;
    // SAFETY: the option is an array of 32-bit numbers. Test: what_a_full_buffer_drops_the_kernel_has_counted.
    let info: io::Result<[u32; DROPS + 1]> =
        unsafe { option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO) };
    info.map_or(0, |info| info[DROPS])
}

/// Sets an option of plain data.
///
/// # Errors
/// Those of `setsockopt`.
pub(super) fn set_option<T>(socket: &Socket, level: i32, option: i32, value: &T) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(value), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` outlives the call, which reads `size_of::<T>()` octets of plain data there.
    // Test: frames_come_out_as_they_went_in_tags_and_all.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.cast(), length) })
}

/// Reads an option of plain data.
///
/// # Errors
/// Those of `getsockopt`; [`io::ErrorKind::Unsupported`] if the kernel's value is shorter than `T`.
///
/// # Safety
/// All zeros and all values of the option are valid values of `T`.
/// Test: what_a_full_buffer_drops_the_kernel_has_counted.
pub(super) unsafe fn option<T>(socket: &Socket, level: i32, option: i32) -> io::Result<T> {
    // SAFETY: as the caller promises. Test: what_a_full_buffer_drops_the_kernel_has_counted.
    let mut value: T = unsafe { std::mem::zeroed() };
    let (place, mut length) = (std::ptr::from_mut(&mut value), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` octets into `value`, both alive for the call.
    // Test: what_a_full_buffer_drops_the_kernel_has_counted.
    done(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, place.cast(), &mut length)
    })?;
    let is_whole = length as usize == size_of::<T>();
    is_whole.then_some(value).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Binds the socket to an address of a family that `socket2` does not know.
///
/// # Errors
/// Those of `bind`.
pub(super) fn bind<T>(socket: &Socket, address: &T) -> io::Result<()> {
    let (address, length) = (std::ptr::from_ref(address), size_of::<T>() as libc::socklen_t);
    // SAFETY: `address` outlives the call, which reads `length` octets of it.
    // Test: frames_come_out_as_they_went_in_tags_and_all.
    done(unsafe { libc::bind(socket.as_raw_fd(), address.cast(), length) })
}

fn done(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
