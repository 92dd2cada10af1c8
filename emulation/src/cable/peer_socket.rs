//! A socket to another program of this host: each datagram is one bare Ethernet frame.
//!
//! The cable has two ends with an address each: files of Unix datagram sockets, or UDP on loopback. This end is bound
//! to the local address and sends to the remote one. QEMU's `-netdev dgram` speaks the same.

use super::datagram::Peer;
use super::packet_socket::{OutgoingFrame, ReceiveBuffers, ReceiveError, ReceivedFrame, Reception};
use super::socket_calls::{self, BATCH, Buffers, widen};
use crate::wiring::SocketPair;
use nix::sys::stat::{Mode, fchmod};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::cell::Cell;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Frames wait so long for a program that does not read, in nanoseconds; then they are dropped.
const PATIENCE_NS: u64 = 500_000_000;
/// The same for a host of the lab, in nanoseconds. A machine that gets no processor for a while is slow, not absent;
/// the kernel reports at once that it has ended.
const HOST_PATIENCE_NS: u64 = 5_000_000_000;

/// Octets of the longest path of a socket. Source: unix(7), `sun_path` without the terminating zero.
pub const PATH_MAX: usize = 107;

/// A socket to another program.
#[derive(Debug)]
pub struct PeerSocket {
    socket: Socket,
    peer: SockAddr,
    /// With UDP: the only source whose datagrams are accepted. The permissions of a file decide otherwise.
    source: Option<Peer>,
    /// The file of the socket, to be removed with it.
    file: Option<PathBuf>,
    buffers: Buffers,
    /// The kernel's count of dropped datagrams, as of the last query.
    overflows: Cell<u32>,
    /// How long frames wait for a peer that does not read, in nanoseconds.
    pub patience_ns: u64,
}

impl PeerSocket {
    /// Binds the local address of `pair`, whose other end is a host of the lab or any program. A file there is removed if it is a socket of this user to which no process
    /// is bound.
    ///
    /// # Errors
    /// If the local address is in use, or a path is longer than [`PATH_MAX`].
    pub fn open(pair: &SocketPair, is_host: bool) -> io::Result<PeerSocket> {
        let (socket, peer, source, file) = match pair {
            SocketPair::Unix { local, remote } => {
                (bind_file(local)?, file_address(remote)?, None, Some(local.clone()))
            }
            SocketPair::Udp { local, remote } => {
                let domain = Domain::for_address(*local);
                let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
                socket.bind(&SockAddr::from(*local))?;
                let peer = SockAddr::from(*remote);
                (socket, peer.clone(), Some(Peer::new(peer)), None)
            }
        };
        socket.set_nonblocking(true)?;
        let buffers = widen(&socket)?;
        let patience_ns = if is_host { HOST_PATIENCE_NS } else { PATIENCE_NS };
        Ok(PeerSocket { socket, peer, source, file, buffers, overflows: Cell::new(0), patience_ns })
    }

    /// The sizes of its buffers, as the kernel reports them.
    pub const fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Datagrams that the kernel dropped since the last call, because the receive buffer was full.
    pub fn overflows(&self) -> u32 {
        let now = socket_calls::overflows(&self.socket);
        now.wrapping_sub(self.overflows.replace(now))
    }

    /// Reads and clears the error of the socket, for example that a datagram did not arrive.
    pub(crate) fn clear_error(&self) {
        // The next call reports any other error.
        let _ = self.socket.take_error();
    }

    /// Sends the first frames of `batch`, at most [`BATCH`]. Returns how many were sent.
    ///
    /// # Errors
    /// Why the first could not be sent. A later one that fails only ends the count.
    pub fn send<'a>(&self, batch: impl Iterator<Item = OutgoingFrame<'a>>) -> io::Result<usize> {
        let datagram = |frame: OutgoingFrame<'a>| (Some(&self.peer), [frame.head, frame.octets]);
        socket_calls::send(&self.socket, batch.map(datagram))
    }

    /// Receives up to [`BATCH`] datagrams that wait in the socket. Returns how many there were.
    pub fn receive(&self, room: &mut ReceiveBuffers, mut each: impl FnMut(Reception<'_>)) -> usize {
        // SAFETY: a name of zeros is a valid, empty one. Test: udp_accepts_one_source.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { std::mem::zeroed() };
        let attach = |header: &mut libc::msghdr, name: &mut libc::sockaddr_storage| {
            header.msg_name = std::ptr::from_mut(name).cast();
            header.msg_namelen = size_of_val(name) as libc::socklen_t;
        };
        let each = |header: &libc::msghdr, name: &libc::sockaddr_storage, octets: &[u8]| {
            let source = socket_calls::source(header, name);
            let is_peer = self.source.as_ref().is_none_or(|peer| peer.key() == source);
            each(if !is_peer {
                Err(ReceiveError::Foreign)
            } else if header.msg_flags & libc::MSG_TRUNC != 0 {
                Err(ReceiveError::Cut)
            } else {
                Ok(ReceivedFrame { octets, tag: None, at_ns: None })
            });
        };
        // SAFETY: `attach` has each header point to its name. Test: udp_accepts_one_source.
        unsafe { socket_calls::receive(&self.socket, room.datagrams(), &mut names, attach, each) }
    }
}

impl AsFd for PeerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PeerSocket {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // The file may have been removed with its folder.
            let _ = fs::remove_file(file);
        }
    }
}

/// The address of a socket file.
fn file_address(path: &Path) -> io::Result<SockAddr> {
    let length = path.as_os_str().len();
    if length > PATH_MAX {
        let reason = format!(
            "{} has {length} octets, and the path of a socket has at most {PATH_MAX}",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    SockAddr::unix(path)
}

/// A socket bound to a file that only this user can write to.
pub(super) fn bind_file(path: &Path) -> io::Result<Socket> {
    let address = file_address(path)?;
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    // The file gets the permissions that the socket has when it is bound.
    fchmod(socket.as_fd(), Mode::S_IRUSR | Mode::S_IWUSR)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path, &address)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    Ok(socket)
}

/// Removes a socket file of this user to which no process is bound.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let refuse = |why: &str| {
        let reason = format!("{} {why}: remove it, or choose another path", path.display());
        Err(io::Error::new(io::ErrorKind::AddrInUse, reason))
    };
    let found = fs::symlink_metadata(path)?;
    if !found.file_type().is_socket() {
        return refuse("exists and is not a socket");
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return refuse("is a socket of another user");
    }
    match Socket::new(Domain::UNIX, Type::DGRAM, None)?.connect(address) {
        Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => fs::remove_file(path),
        _ => refuse("is a socket that a process uses"),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "these tests play the other program")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixDatagram;

    fn pair(folder: &Path) -> SocketPair {
        SocketPair::Unix { local: folder.join("lab"), remote: folder.join("peer") }
    }

    fn received(socket: &PeerSocket) -> Vec<Result<Vec<u8>, ReceiveError>> {
        let (mut room, mut all) = (ReceiveBuffers::default(), Vec::new());
        socket.receive(&mut room, |frame| all.push(frame.map(|frame| frame.octets.to_vec())));
        all
    }

    #[test]
    fn a_datagram_is_a_frame_in_both_directions_and_the_file_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = PeerSocket::open(&pair(folder.path()), false).expect("a free path");
        let file = folder.path().join("lab");
        let mode = fs::metadata(&file).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let frame = OutgoingFrame { head: &[], octets: b"frame" };
        let absent = socket.send([frame].into_iter()).expect_err("no peer is bound");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        let peer = UnixDatagram::bind(folder.path().join("peer")).expect("a free path");
        assert_eq!(socket.send([frame; 2].into_iter()).expect("the peer is there"), 2);
        let mut room = [0; 9];
        assert_eq!(peer.recv(&mut room).expect("a datagram"), 5);
        peer.send_to(b"reply", &file).expect("the lab is there");
        assert_eq!(received(&socket), [Ok(b"reply".to_vec())]);
        drop(socket);
        assert!(!file.exists());
    }

    #[test]
    fn only_a_stale_socket_of_this_user_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lab");
        drop(UnixDatagram::bind(&file).expect("a free path"));
        drop(PeerSocket::open(&pair(folder.path()), false).expect("the stale socket is removed"));
        let used = UnixDatagram::bind(&file).expect("a free path");
        let error = PeerSocket::open(&pair(folder.path()), false).expect_err("a process uses it");
        assert!(error.to_string().contains("a process uses"), "{error}");
        drop(used);
        fs::remove_file(&file).expect("the file is there");
        fs::write(&file, "kept").expect("a free path");
        let error = PeerSocket::open(&pair(folder.path()), false).expect_err("no socket");
        assert!(error.to_string().contains("is not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&file).expect("the file is there"), "kept");
    }

    #[test]
    fn a_path_above_107_octets_is_refused_by_its_length() {
        let long = PathBuf::from(format!("/{}", "x".repeat(PATH_MAX)));
        let pair = SocketPair::Unix { local: long, remote: "/peer".into() };
        let error = PeerSocket::open(&pair, false).expect_err("too long");
        assert!(error.to_string().contains("108 octets"), "{error}");
    }

    #[test]
    fn udp_accepts_one_source() {
        let [peer, other] = [(); 2]
            .map(|()| std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports"));
        let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let local = free.expect("loopback has free ports");
        let remote = peer.local_addr().expect("it is bound");
        let socket =
            PeerSocket::open(&SocketPair::Udp { local, remote }, false).expect("a free port");
        other.send_to(b"forged", local).expect("loopback");
        peer.send_to(b"frame", local).expect("loopback");
        assert_eq!(received(&socket), [Err(ReceiveError::Foreign), Ok(b"frame".to_vec())]);
    }
}
