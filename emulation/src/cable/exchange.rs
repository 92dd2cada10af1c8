//! Frame exchange between processes: sending, receiving, buffers and their accounts.
//!
//! Two kinds: [`datagrams`], one socket for everything a process sends and receives, and [`packets`], one
//! socket for each port on an interface of its own.

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

/// Default limit of a bundle of frames, in octets: a datagram that loopback carries without fragments.
pub const DATAGRAM_MAX: usize = 60_000;

/// Reads of one socket in one call of [`Exchange::receive`], so that a flood cannot stop the worker.
const CALLS_MAX: usize = 32;

/// The account of a process's sockets at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeReport {
    /// Sizes of the kernel's buffers.
    pub buffers: Buffers,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub overflows: u64,
    /// Counts of the sending end.
    pub sending: SendCounts,
    /// Counts of refused datagrams and records.
    pub rejected: Rejected,
    /// Every line on which this process sends through sockets.
    pub sent: Vec<SentLine>,
    /// Every line on which this process receives through sockets.
    pub received: Vec<ReceivedLine>,
    /// Frames to and from attached interfaces, if there are any.
    #[serde(default)]
    pub outside: Option<OutsideTally>,
}

/// Frames that left and entered the fabric by attached interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTally {
    /// Frames handed to the kernel.
    pub sent: FrameTally,
    /// Frames given up because the interface did not accept them.
    pub unsent: FrameTally,
    /// Frames received before the stop.
    pub received: FrameTally,
    /// Frames received after the stop.
    pub drained: FrameTally,
    /// Frames that the kernel dropped because a receive buffer was full.
    pub overflows: u64,
}

/// The identity of a run on the cables.
#[derive(Clone, Debug)]
pub struct Session {
    /// Chosen anew for every run. Frames of another run are refused.
    pub epoch: u32,
    /// The address of each process's socket.
    pub peers: Vec<Peer>,
    /// Octets of the largest datagram to send.
    pub datagram_max: usize,
}

/// The sockets of a process and their buffers.
#[derive(Debug)]
pub enum Exchange {
    /// One datagram socket for all lines.
    Datagrams(Box<DatagramExchange>),
    /// A packet socket for each port.
    Packets(Box<PacketExchange>),
}

/// Calls a method that both kinds of sockets have.
macro_rules! forward {
    ($exchange:ident.$method:ident($($argument:expr),*)) => {
        match $exchange {
            Exchange::Datagrams(sockets) => sockets.$method($($argument),*),
            Exchange::Packets(sockets) => sockets.$method($($argument),*),
        }
    };
}

impl Exchange {
    /// Starts to carry the frames of `lines` through `socket` in the run `session`.
    pub fn new(socket: DatagramSocket, session: Session, lines: &Lines) -> Exchange {
        Exchange::Datagrams(Box::new(DatagramExchange::new(socket, session, lines)))
    }

    /// Whether every frame carries the instant at which its last bit left. Without stamps a frame that is sent
    /// early arrives early.
    pub(crate) const fn is_stamped(&self) -> bool {
        match self {
            Exchange::Datagrams(_) => true,
            Exchange::Packets(packets) => packets.is_stamped(),
        }
    }

    /// Queues `frame` for the next flush and keeps its buffer for reuse.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        forward!(self.send(line, frame, stamp))
    }

    /// Keeps the buffer of a frame that is not sent, for reuse.
    pub fn recycle(&mut self, frame: Frame) {
        forward!(self.recycle(frame))
    }

    /// Sends queued frames as far as the receivers accept them.
    pub fn flush(&mut self) {
        forward!(self.flush())
    }

    /// Whether queued frames could not be sent yet.
    pub fn waiting(&self) -> bool {
        forward!(self.waiting())
    }

    /// Drains the sockets. Returns the number of datagrams or packets received.
    pub fn receive(&mut self, lines: &Lines, deliver: impl FnMut(Accepted)) -> usize {
        match self {
            Exchange::Datagrams(datagrams) => datagrams.receive(lines, deliver),
            Exchange::Packets(packets) => packets.receive(deliver),
        }
    }

    /// Counts frames that arrive from now on as having been on the cables at the stop.
    pub fn begin_drain(&mut self) {
        forward!(self.begin_drain())
    }

    /// Frames known to be lost so far.
    pub fn lost(&self) -> u64 {
        forward!(self.lost())
    }

    /// Records and datagrams refused so far.
    pub fn rejected(&self) -> Rejected {
        forward!(self.rejected())
    }

    /// The whole account.
    pub fn report(&self, lines: &Lines) -> ExchangeReport {
        forward!(self.report(lines))
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        forward!(self.as_fd())
    }
}
