//! One datagram socket for all cables of a process: outbox, inbox, and their account.

use super::{CALLS_MAX, ExchangeReport, Session};
use crate::cable::datagram::{BATCH, DatagramSocket};
use crate::cable::inbox::{Accepted, Inbox, Rejected};
use crate::cable::lines::{Destination, Lines, Outgoing};
use crate::cable::outbox::Outbox;
use proto::frame::{Frame, FramePool};
use proto::units::Instant;
use std::os::fd::{AsFd, BorrowedFd};

/// The socket with its outbox and inbox.
#[derive(Debug)]
pub struct DatagramExchange {
    socket: DatagramSocket,
    outbox: Outbox,
    inbox: Inbox,
    pool: FramePool,
    /// The kernel's count of dropped datagrams when the run began.
    overflows_before: u32,
}

impl DatagramExchange {
    /// Starts to carry the frames of `lines` in the run `session`.
    pub fn new(socket: DatagramSocket, session: Session, lines: &Lines) -> DatagramExchange {
        let Session { epoch, peers, datagram_max } = session;
        let inbox = Inbox::new(epoch, &peers, lines.count());
        let outbox = Outbox::new(epoch, datagram_max, peers, lines.count());
        let overflows_before = socket.overflows();
        DatagramExchange { socket, outbox, inbox, pool: FramePool::default(), overflows_before }
    }

    /// Queues `frame` in the next datagram for the far end of `line`, and keeps its buffer for reuse.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        if let Destination::Process(process) = line.to {
            self.outbox.put(line, process, &frame, stamp);
        }
        self.pool.recycle(frame);
    }

    /// Keeps the buffer of a frame that is not sent, for reuse.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// Sends queued frames as far as the receivers accept them.
    pub fn flush(&mut self) {
        if self.outbox.waiting() {
            self.outbox.flush(&self.socket);
        }
    }

    /// Whether queued frames could not be sent yet.
    pub fn waiting(&self) -> bool {
        self.outbox.waiting()
    }

    /// Drains the socket. Returns the number of datagrams.
    pub fn receive(&mut self, lines: &Lines, mut deliver: impl FnMut(Accepted)) -> usize {
        let DatagramExchange { socket, inbox, pool, .. } = self;
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

    /// Counts frames that arrive from now on as having been on the cables at the stop.
    pub fn begin_drain(&mut self) {
        self.inbox.begin_drain();
    }

    /// Frames known to be lost so far: sequence numbers missing between those that arrived.
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
            outside: None,
        }
    }
}

impl AsFd for DatagramExchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
