//! Frame exchange between processes: sending, receiving, buffers and their accounts.
//!
//! A process has one datagram socket for everything it sends and receives, or one packet socket for each port
//! on an interface of its own ([`packets`]).

pub mod packets;
mod parting;

use super::FrameTally;
use super::datagram::{BATCH, Buffers, DatagramSocket, Peer};
use super::inbox::{Accepted, BELIEVED_AHEAD, Inbox, ReceivedLine, Rejected};
use super::lines::{Destination, Lines, Outgoing};
use super::link_watch::LinkWatch;
use super::outbox::{Outbox, SendCounts, SentLine};
use crate::clock::{Clock, ClockChange};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use packets::{InterfaceEvent, PortSocket, PortSockets};
pub use parting::Ended;
use proto::events::CarrierLoss;
use proto::frame::{Frame, FramePool};
use proto::ids::PortNumber;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

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
    /// Frames to and from processes that have ended.
    #[serde(default)]
    pub ended: Ended,
}

/// Frames that left and entered the fabric by attached interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTally {
    /// Frames handed to the kernel.
    pub sent: FrameTally,
    /// Frames given up because the interface did not accept them.
    pub unsent: FrameTally,
    /// Frames dropped because the interface was down, without a carrier or removed.
    #[serde(default)]
    pub away: FrameTally,
    /// Frames dropped because they are longer than the interface's MTU permits.
    #[serde(default)]
    pub too_long: FrameTally,
    /// Frames received before the stop.
    pub received: FrameTally,
    /// Frames received after the stop.
    pub drained: FrameTally,
    /// Frames that the kernel dropped because a receive buffer was full.
    pub overflows: u64,
}

/// The state of an attached interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedReading {
    /// Index of the device among the worker's devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// Why the interface cannot send; `None` if it can.
    pub loss: Option<CarrierLoss>,
    /// Its MTU in octets, if known.
    pub mtu: Option<usize>,
    /// Frames dropped because it could not send.
    pub away: FrameTally,
    /// Frames dropped because they are longer than its MTU permits.
    pub too_long: FrameTally,
}

/// The identity of a run on the cables, and how frames cross them.
#[derive(Clone, Debug)]
pub struct Session {
    /// Chosen anew for every run. Frames of another run are refused.
    pub epoch: u32,
    /// The address of each process's socket; empty with packet sockets.
    pub peers: Vec<Peer>,
    /// Octets of the largest datagram to send.
    pub datagram_max: usize,
    /// Frames on packet sockets have neither shim nor stamp.
    pub bare: bool,
    /// Converts the kernel's time stamps of bare frames.
    pub clock: Clock,
}

/// The open sockets of a process before its run begins.
#[derive(Debug)]
pub enum Sockets {
    /// One datagram socket for all lines.
    Datagrams(DatagramSocket),
    /// One datagram socket for all lines of the fabric, and one socket for each port with another program.
    Mixed(DatagramSocket, Vec<PortSocket>),
    /// One packet socket for each port, and what reports the state of attached interfaces, for each of their namespaces.
    Packets(Vec<PortSocket>, Vec<LinkWatch>),
    /// One packet socket for each port, and a datagram socket for promises, as exact pace needs them.
    Beside(DatagramSocket, Vec<PortSocket>),
}

impl Sockets {
    /// The address that peers send to; packet sockets need none.
    pub fn address(&self) -> String {
        match self {
            Sockets::Datagrams(socket) | Sockets::Mixed(socket, _) | Sockets::Beside(socket, _) => {
                socket.address().to_owned()
            }
            Sockets::Packets(ports, _) => format!("{} interfaces", ports.len()),
        }
    }

    /// The sockets that are bound again when an attached interface is made again.
    pub fn rebound(&self) -> Vec<RawFd> {
        match self {
            Sockets::Packets(ports, _) => {
                let attached = ports.iter().filter(|port| port.watch.is_some());
                attached.map(|port| port.socket.as_fd().as_raw_fd()).collect()
            }
            Sockets::Mixed(..) | Sockets::Datagrams(_) | Sockets::Beside(..) => Vec::new(),
        }
    }
}

/// The sockets of a process, the state of their lines and their buffers.
#[derive(Debug)]
pub struct Exchange {
    sender: Sender,
    inbox: Inbox,
    pool: FramePool,
    ended: Ended,
    /// Processes that have ended and have no successor yet.
    away: Vec<usize>,
}

/// The sockets, and the frames that wait to be sent.
#[derive(Debug)]
enum Sender {
    Datagrams {
        socket: DatagramSocket,
        outbox: Outbox,
        /// The kernel's count of dropped datagrams when the run began.
        overflows_before: u32,
        /// The sockets to other programs, if there are any.
        outside: Option<Box<Outside>>,
    },
    Packets(PortSockets),
}

/// Sockets to other programs beside the datagram socket.
#[derive(Debug)]
struct Outside {
    ports: PortSockets,
    /// Ready when one of all sockets is.
    ready: Epoll,
}

impl Outside {
    fn new(
        sockets: Vec<PortSocket>,
        datagrams: &DatagramSocket,
        session: &Session,
        lines: &Lines,
    ) -> io::Result<Outside> {
        let session = Session { bare: true, ..session.clone() };
        let ports = PortSockets::new(sockets, Vec::new(), &session, lines)?;
        ports.check(lines.all_outgoing().filter(|line| line.to == Destination::Outside))?;
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for socket in [datagrams.as_fd(), ports.as_fd()] {
            ready.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        Ok(Outside { ports, ready })
    }
}

impl Sender {
    /// The sockets with one port each.
    fn ports(&self) -> Option<&PortSockets> {
        match self {
            Sender::Packets(packets) => Some(packets),
            Sender::Datagrams { outside, .. } => outside.as_ref().map(|outside| &outside.ports),
        }
    }

    /// The same, to change them.
    fn ports_mut(&mut self) -> Option<&mut PortSockets> {
        match self {
            Sender::Packets(packets) => Some(packets),
            Sender::Datagrams { outside, .. } => outside.as_mut().map(|outside| &mut outside.ports),
        }
    }
}

impl Exchange {
    /// Starts to carry the frames of `lines` through `sockets` in the run `session`.
    ///
    /// # Errors
    /// If interfaces and cables do not match, or the system refuses.
    pub fn new(sockets: Sockets, session: Session, lines: &Lines) -> io::Result<Exchange> {
        let inbox = Inbox::new(session.epoch, &session.peers, lines.count());
        let sender = match sockets {
            Sockets::Packets(ports, watches) => {
                let ports = PortSockets::new(ports, watches, &session, lines)?;
                ports.check(lines.all_outgoing().filter(|line| line.is_by_socket()))?;
                Sender::Packets(ports)
            }
            Sockets::Datagrams(socket) => Exchange::datagrams(socket, None, session, lines),
            Sockets::Beside(..) => {
                return Err(io::Error::other("sockets of a run with exact pace"));
            }
            Sockets::Mixed(socket, ports) => {
                let outside = Outside::new(ports, &socket, &session, lines)?;
                Exchange::datagrams(socket, Some(Box::new(outside)), session, lines)
            }
        };
        let (pool, ended, away) = Default::default();
        Ok(Exchange { sender, inbox, pool, ended, away })
    }

    fn datagrams(
        socket: DatagramSocket,
        outside: Option<Box<Outside>>,
        session: Session,
        lines: &Lines,
    ) -> Sender {
        let Session { epoch, peers, datagram_max, .. } = session;
        let outbox = Outbox::new(epoch, datagram_max, peers, lines.count());
        Sender::Datagrams { overflows_before: socket.overflows(), socket, outbox, outside }
    }

    /// Whether every frame carries the instant at which its last bit left. Without stamps a frame that is sent
    /// early arrives early.
    pub(crate) const fn is_stamped(&self) -> bool {
        match &self.sender {
            Sender::Datagrams { outside, .. } => outside.is_none(),
            Sender::Packets(packets) => !packets.bare,
        }
    }

    /// Queues `frame` for the next flush and keeps its buffer for reuse.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        if self.leads_nowhere(line) {
            self.ended.taken.count(&frame);
            return self.pool.recycle(frame);
        }
        match &mut self.sender {
            Sender::Packets(packets) => packets.send(line, frame, stamp, &mut self.pool),
            Sender::Datagrams { outbox, outside, .. } => {
                match (line.to, outside) {
                    (Destination::Process(process), _) => {
                        outbox.put(line, process, &frame, stamp);
                    }
                    (Destination::Outside, Some(outside)) => {
                        return outside.ports.send(line, frame, stamp, &mut self.pool);
                    }
                    _ => {}
                }
                self.pool.recycle(frame);
            }
        }
    }

    /// Keeps the buffer of a frame that is not sent, for reuse.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// Sends queued frames as far as the receivers accept them.
    pub fn flush(&mut self) {
        match &mut self.sender {
            Sender::Datagrams { socket, outbox, outside, .. } => {
                outbox.flush(socket);
                if let Some(outside) = outside {
                    outside.ports.flush(&mut self.pool);
                }
            }
            Sender::Packets(packets) => packets.flush(&mut self.pool),
        }
    }

    /// Whether queued frames could not be sent yet.
    pub fn waiting(&self) -> bool {
        match &self.sender {
            Sender::Datagrams { outbox, outside, .. } => {
                outbox.waiting() || outside.as_ref().is_some_and(|outside| outside.ports.waiting())
            }
            Sender::Packets(packets) => packets.waiting(),
        }
    }

    /// Fabric time is `now`: stamps far ahead of it are not believed.
    pub fn pass_time(&mut self, now: Instant) {
        self.inbox.latest_stamp = now + BELIEVED_AHEAD;
    }

    /// The clock by which packet sockets convert the kernel's time stamps gets another piece.
    pub fn change_clock(&mut self, change: ClockChange) {
        match &mut self.sender {
            Sender::Packets(packets) => packets.clock.change(change),
            // Ports with programs outside have none: their clock does not change.
            Sender::Datagrams { .. } => {}
        }
    }

    /// Drains the sockets. Returns the number of datagrams or packets received.
    pub fn receive(&mut self, lines: &Lines, mut deliver: impl FnMut(Accepted)) -> usize {
        let Exchange { sender, inbox, pool, .. } = self;
        match sender {
            Sender::Packets(packets) => packets.receive(inbox, pool, deliver),
            Sender::Datagrams { socket, outside, .. } => {
                let count = drain(|| {
                    socket.receive(|datagram| inbox.accept(datagram, lines, pool, &mut deliver))
                });
                let ports = outside.as_mut().map(|outside| &mut outside.ports);
                count + ports.map_or(0, |ports| ports.receive(inbox, pool, deliver))
            }
        }
    }

    /// The oldest event of an attached interface that has not been read: device, port, kind.
    pub(crate) fn poll_event(&mut self) -> Option<InterfaceEvent> {
        self.sender.ports_mut()?.poll_event()
    }

    /// Replaces `readings` by the state of all attached interfaces.
    pub(crate) fn read_attached(&self, readings: &mut Vec<AttachedReading>) {
        readings.clear();
        readings.extend(self.sender.ports().into_iter().flat_map(PortSockets::attached));
    }

    /// Counts frames that arrive from now on as having been on the cables at the stop.
    pub fn begin_drain(&mut self) {
        self.inbox.draining = true;
    }

    /// Frames known to be lost so far: gaps in the sequence numbers, or without stamps the drops that the kernel
    /// counts.
    pub fn lost(&self) -> u64 {
        match &self.sender {
            Sender::Packets(packets) if packets.bare => packets.overflows(),
            Sender::Packets(_) => self.inbox.lost,
            Sender::Datagrams { outside, .. } => {
                self.inbox.lost + outside.as_ref().map_or(0, |outside| outside.ports.overflows())
            }
        }
    }

    /// Frames given up so far, because a socket did not take them.
    pub fn unsent(&self) -> u64 {
        match &self.sender {
            Sender::Packets(packets) => packets.unsent(),
            Sender::Datagrams { outbox, outside, .. } => {
                outbox.counts.unsent + outside.as_ref().map_or(0, |outside| outside.ports.unsent())
            }
        }
    }

    /// Records and datagrams refused so far.
    pub fn rejected(&self) -> Rejected {
        self.inbox.rejected
    }

    /// The kernel's count of frames dropped for lack of room since the run began.
    fn overflows(&self) -> u64 {
        match &self.sender {
            Sender::Packets(packets) => packets.overflows(),
            Sender::Datagrams { socket, overflows_before, .. } => {
                socket.overflows().wrapping_sub(*overflows_before).into()
            }
        }
    }

    /// The whole account.
    pub fn report(&self, lines: &Lines) -> ExchangeReport {
        let report = ExchangeReport {
            overflows: self.overflows(),
            rejected: self.inbox.rejected,
            received: self.inbox.received(lines).collect(),
            ended: self.ended,
            ..ExchangeReport::default()
        };
        let by_socket = |line: &&Outgoing| matches!(line.to, Destination::Process(_));
        match &self.sender {
            Sender::Packets(packets) => packets.account(&self.inbox, report),
            Sender::Datagrams { socket, outbox, outside, .. } => {
                let report = match outside {
                    None => report,
                    Some(outside) => {
                        outside.ports.overflows();
                        outside.ports.account(&self.inbox, report)
                    }
                };
                let sent = lines.all_outgoing().filter(by_socket).map(|line| outbox.sent(line));
                ExchangeReport {
                    buffers: socket.buffers(),
                    sending: outbox.counts,
                    sent: sent.collect(),
                    ..report
                }
            }
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.sender {
            Sender::Datagrams { outside: Some(outside), .. } => outside.ready.0.as_fd(),
            Sender::Datagrams { socket, .. } => socket.as_fd(),
            Sender::Packets(packets) => packets.as_fd(),
        }
    }
}

/// Calls `read` until a socket is empty, at most [`CALLS_MAX`] times. Returns the sum of its results.
fn drain(mut read: impl FnMut() -> usize) -> usize {
    let mut total = 0;
    for _ in 0..CALLS_MAX {
        let count = read();
        total += count;
        if count < BATCH {
            break;
        }
    }
    total
}
