//! The bare forwarder: receives whole batches, changes one octet, sends whole batches. Its rate is the upper
//! limit for a switch over this mechanism.

use crate::neighbours::{Neighbours, drive};
use crate::{Signals, Speed, measure};
use emulation::cable::datagram::{BATCH, DatagramSocket, Peer};
use emulation::cable::shim::Shim;
use emulation::cable::udp;
use emulation::clock::monotonic_ns;
use emulation::timer;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Buffer size for one datagram, in octets.
const SLOT: usize = 4096;

/// Runs the forwarder for `length_ns` with datagrams of the same length as the switch's.
pub fn run(signals: &Signals, payload: usize, length_ns: u64) -> Speed {
    let (source, sink) = (open(), open());
    let into = connected(&source);
    let out = connected(&sink);
    let peer = udp::peer(&into.local_addr().expect("a bound socket").to_string());
    let length = Shim::LENGTH + crate::fabric::data_frame(payload).len();
    let datagram = vec![0xa5; length];
    let mut plain =
        Plain { source, sink, peer: peer.expect("the socket's address is valid"), datagram };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            signals.register_forwarder();
            forward(&into, &out, signals);
        });
        scope.spawn(|| drive(&mut plain, signals));
        measure(signals, length_ns)
    })
}

fn open() -> DatagramSocket {
    udp::open(LOOPBACK).expect("the loopback interface is up")
}

/// A socket connected to `neighbour`.
#[expect(clippy::disallowed_methods, reason = "the yardstick does without the project's sockets")]
fn connected(neighbour: &DatagramSocket) -> UdpSocket {
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("the loopback interface is up");
    socket.connect(neighbour.address()).expect("the neighbour's address is valid");
    socket.set_nonblocking(true).expect("a socket can be non-blocking");
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        let size: libc::c_int = 4 << 20;
        // SAFETY: the kernel reads one integer that outlives the call. A refusal leaves the default.
        let _ = unsafe {
            let value = std::ptr::from_ref(&size).cast();
            let length = size_of_val(&size) as libc::socklen_t;
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
        };
    }
    socket
}

/// Datagrams of one batch, in the form of `recvmmsg` and `sendmmsg`.
struct Batch {
    slots: Vec<[u8; SLOT]>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    fn new() -> Batch {
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: `mmsghdr` is plain data; all zeros means no name, no vector, no control data.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Batch {
            slots: vec![[0; SLOT]; BATCH],
            vectors: vec![vector; BATCH],
            headers: vec![header; BATCH],
        }
    }

    /// Points the headers from `from` on at their slots, each `length` long or as long as received.
    fn aim(&mut self, from: usize, length: Option<usize>) {
        for index in from..BATCH {
            let received = self.headers[index].msg_len as usize;
            self.vectors[index] = libc::iovec {
                iov_base: self.slots[index].as_mut_ptr().cast(),
                iov_len: length.unwrap_or(received),
            };
            self.headers[index].msg_hdr.msg_iov = &mut self.vectors[index];
            self.headers[index].msg_hdr.msg_iovlen = 1;
        }
    }

    fn receive(&mut self, socket: &UdpSocket) -> usize {
        self.aim(0, Some(SLOT));
        let flags = libc::MSG_DONTWAIT as _;
        // SAFETY: `aim` has pointed every header at a vector and slot of this batch, borrowed mutably.
        let count = unsafe {
            let none = std::ptr::null_mut();
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), BATCH as _, flags, none)
        };
        usize::try_from(count).unwrap_or(0)
    }

    fn send(&mut self, socket: &UdpSocket, count: usize) {
        let (mut sent, flags) = (0, libc::MSG_DONTWAIT as _);
        self.aim(0, None);
        while sent < count {
            let headers = &mut self.headers[sent..count];
            // SAFETY: as in `receive`; the kernel reads the slots and writes the lengths sent.
            let more = unsafe {
                let length = headers.len() as _;
                libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), length, flags)
            };
            sent += usize::try_from(more).unwrap_or(0);
        }
    }
}

fn forward(into: &UdpSocket, out: &UdpSocket, signals: &Signals) {
    let mut batch = Batch::new();
    while !signals.stopped() {
        let count = batch.receive(into);
        if count == 0 {
            timer::wait(Some(into.as_fd()), monotonic_ns() + 5_000_000);
            continue;
        }
        for slot in &mut batch.slots[..count] {
            slot[20] = slot[20].wrapping_sub(1);
        }
        batch.send(out, count);
    }
}

/// A source and a sink of datagrams without contents.
struct Plain {
    source: DatagramSocket,
    sink: DatagramSocket,
    peer: Peer,
    datagram: Vec<u8>,
}

impl Neighbours for Plain {
    fn send(&mut self, room: u64) -> u64 {
        if room < BATCH as u64 {
            return 0;
        }
        let datagram = (&self.peer, &self.datagram[..]);
        self.source.send(std::iter::repeat_n(datagram, BATCH)).unwrap_or(0) as u64
    }

    fn receive(&mut self) -> u64 {
        self.sink.receive(|_| {}) as u64
    }

    fn sink(&self) -> BorrowedFd<'_> {
        self.sink.as_fd()
    }
}
