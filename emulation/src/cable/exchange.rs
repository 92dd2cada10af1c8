//! A process's whole dealings with its socket: outbox, inbox, buffers and the account of them.

use super::datagram::{BATCH, Buffers, DatagramSocket, Peer};
use super::inbox::{Accepted, Inbox, ReceivedLine, Rejected};
use super::lines::{Destination, Lines, Outgoing};
use super::outbox::{Outbox, SendCounts, SentLine};
use proto::frame::{Frame, FramePool};
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};

/// The default size up to which frames are bundled: what loopback carries without fragments.
pub const DATAGRAM_MAX: usize = 60_000;

/// How often one call of [`Exchange::receive`] asks the socket, so that a flood cannot hold the worker.
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

/// The socket with everything around it.
#[derive(Debug)]
pub struct Exchange {
    socket: DatagramSocket,
    outbox: Outbox,
    inbox: Inbox,
    pool: FramePool,
    /// The kernel's count of dropped datagrams when the run began.
    overflows_before: u32,
}

impl Exchange {
    /// Begins to carry the frames of `lines` in the run `session`.
    pub fn new(socket: DatagramSocket, session: Session, lines: &Lines) -> Exchange {
        let Session { epoch, peers, datagram_max } = session;
        let inbox = Inbox::new(epoch, &peers, lines.count());
        let outbox = Outbox::new(epoch, datagram_max, peers, lines.count());
        let overflows_before = socket.overflows();
        Exchange { socket, outbox, inbox, pool: FramePool::default(), overflows_before }
    }

    /// Puts `frame` into the next datagram for `process`; the frame's buffer is kept for reuse.
    pub fn send(&mut self, line: &Outgoing, process: usize, frame: Frame, stamp: Instant) {
        self.outbox.put(line, process, &frame, stamp);
        self.pool.recycle(frame);
    }

    /// Takes back the buffer of a frame that went no further.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// Sends what has been put in, as far as the receivers take it.
    pub fn flush(&mut self) {
        if self.outbox.waiting() {
            self.outbox.flush(&self.socket);
        }
    }

    /// True if something could not be sent yet.
    pub fn waiting(&self) -> bool {
        self.outbox.waiting()
    }

    /// Drains the socket; how many datagrams there were.
    pub fn receive(&mut self, lines: &Lines, mut deliver: impl FnMut(Accepted)) -> usize {
        let Exchange { socket, inbox, pool, .. } = self;
        let mut total = 0;
        for _ in 0..CALLS_MAX {
            let count = socket.receive(|datagram| {
                inbox.accept(datagram, lines, pool, &mut deliver);
            });
            total += count;
            if count < BATCH {
                break;
            }
        }
        total
    }

    /// From now on what arrives is counted as having been on the cables.
    pub fn begin_drain(&mut self) {
        self.inbox.begin_drain();
    }

    /// Frames known to be lost so far: sequence numbers missing between those that came.
    pub fn lost(&self) -> u64 {
        self.inbox.lost()
    }

    /// Records and datagrams refused so far.
    pub fn rejected(&self) -> Rejected {
        self.inbox.rejected()
    }

    /// The whole account.
    pub fn report(&self, lines: &Lines) -> ExchangeReport {
        let by_socket = |line: &&Outgoing| matches!(line.to, Destination::Process(_));
        let overflows = self.socket.overflows().wrapping_sub(self.overflows_before);
        ExchangeReport {
            buffers: self.socket.buffers(),
            overflows: u64::from(overflows),
            sending: self.outbox.counts(),
            rejected: self.inbox.rejected(),
            sent: self.outbox.sent(lines.all_outgoing().filter(by_socket)).collect(),
            received: self.inbox.received(lines).collect(),
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
