//! A process's whole dealings with its sockets: sending, receiving, buffers and the account of them.
//!
//! Two rows: [`datagrams`], one socket for everything a process sends and receives, and [`packets`], a
//! socket for every port on an interface of its own.

mod datagrams;
pub mod packets;
pub mod sockets;

use super::FrameTally;
use super::datagram::{Buffers, DatagramSocket, Peer};
use super::inbox::{Accepted, ReceivedLine, Rejected};
use super::lines::{Lines, Outgoing};
use super::outbox::{SendCounts, SentLine};
use datagrams::DatagramExchange;
use packets::PacketExchange;
use proto::frame::Frame;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};

/// The default size up to which frames are bundled: what loopback carries without fragments.
pub const DATAGRAM_MAX: usize = 60_000;

/// How often one call of [`Exchange::receive`] asks a socket, so that a flood cannot hold the worker.
const CALLS_MAX: usize = 32;

/// What the socket reports at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeReport {
    /// Sizes of the kernel's buffers.
    pub buffers: Buffers,
    /// Datagrams the kernel dropped because the receive buffer was full.
    pub overflows: u64,
    /// How sending went.
    pub sending: SendCounts,
    /// What was refused.
    pub rejected: Rejected,
    /// Every line this process sends on through the socket.
    pub sent: Vec<SentLine>,
    /// Every line this process receives by through the socket.
    pub received: Vec<ReceivedLine>,
    /// Frames to and from interfaces that are no cable of the fabric, if there are such.
    #[serde(default)]
    pub outside: Option<OutsideTally>,
}

/// Frames that left the fabric and came into it by attached interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTally {
    /// Handed to the kernel.
    pub sent: FrameTally,
    /// Given up, since the interface did not take them.
    pub unsent: FrameTally,
    /// Taken from the kernel before the stop.
    pub received: FrameTally,
    /// And after it.
    pub drained: FrameTally,
    /// Frames from outside that the kernel dropped because a receive buffer was full.
    pub overflows: u64,
}

/// What identifies a run on the cables.
#[derive(Clone, Debug)]
pub struct Session {
    /// Chosen anew for every run; frames of another are refused.
    pub epoch: u32,
    /// The socket of each process.
    pub peers: Vec<Peer>,
    /// Octets of the largest datagram to send.
    pub datagram_max: usize,
}

/// The sockets with everything around them.
#[derive(Debug)]
pub enum Exchange {
    /// One socket for datagrams.
    Datagrams(Box<DatagramExchange>),
    /// A packet socket for every port.
    Packets(Box<PacketExchange>),
}

impl Exchange {
    /// Begins to carry the frames of `lines` through `socket` in the run `session`.
    pub fn new(socket: DatagramSocket, session: Session, lines: &Lines) -> Exchange {
        Exchange::Datagrams(Box::new(DatagramExchange::new(socket, session, lines)))
    }

    /// Every frame that arrives carries the instant at which its last bit left. Without, a frame that
    /// is sent early arrives early.
    pub(crate) const fn is_stamped(&self) -> bool {
        match self {
            Exchange::Datagrams(_) => true,
            Exchange::Packets(packets) => packets.is_stamped(),
        }
    }

    /// Puts `frame` into what is sent next; its buffer is kept for reuse.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.send(line, frame, stamp),
            Exchange::Packets(packets) => packets.send(line, frame, stamp),
        }
    }

    /// Takes back the buffer of a frame that went no further.
    pub fn recycle(&mut self, frame: Frame) {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.recycle(frame),
            Exchange::Packets(packets) => packets.recycle(frame),
        }
    }

    /// Sends what has been put in, as far as the receivers take it.
    pub fn flush(&mut self) {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.flush(),
            Exchange::Packets(packets) => packets.flush(),
        }
    }

    /// True if something could not be sent yet.
    pub fn waiting(&self) -> bool {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.waiting(),
            Exchange::Packets(packets) => packets.waiting(),
        }
    }

    /// Drains the sockets; how many datagrams or packets there were.
    pub fn receive(&mut self, lines: &Lines, deliver: impl FnMut(Accepted)) -> usize {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.receive(lines, deliver),
            Exchange::Packets(packets) => packets.receive(deliver),
        }
    }

    /// From now on what arrives is counted as having been on the cables.
    pub fn begin_drain(&mut self) {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.begin_drain(),
            Exchange::Packets(packets) => packets.begin_drain(),
        }
    }

    /// Frames known to be lost so far.
    pub fn lost(&self) -> u64 {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.lost(),
            Exchange::Packets(packets) => packets.lost(),
        }
    }

    /// Records and datagrams refused so far.
    pub fn rejected(&self) -> Rejected {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.rejected(),
            Exchange::Packets(packets) => packets.rejected(),
        }
    }

    /// The whole account.
    pub fn report(&self, lines: &Lines) -> ExchangeReport {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.report(lines),
            Exchange::Packets(packets) => packets.report(lines),
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.as_fd(),
            Exchange::Packets(packets) => packets.as_fd(),
        }
    }
}
