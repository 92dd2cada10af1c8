//! A packet socket for every port: each cable is a pair of interfaces of its own.
//!
//! Ethernet frames are sent bare, so that any Ethernet device may be at the other end. InfiniBand packets are
//! sent behind the shim in an EtherType for local experiments, one packet a frame.
//!
//! A bare frame carries no stamp. The kernel records when the sender handed it over, which stands for the
//! instant its last bit left; the frame arrives after the cable's delay. So the lateness of this process adds
//! nothing, but that of the sender, which the sender measures, is passed on.

use super::{ExchangeReport, OutsideTally, Session, drain};
use crate::cable::FrameTally;
use crate::cable::inbox::{Accepted, FRAME_MAX, Inbox, LineCounts};
use crate::cable::interface::address_of;
use crate::cable::lines::{Incoming, Lines, Outgoing};
use crate::cable::outbox::{SendCounts, SentLine};
use crate::cable::packet_socket::{
    HEAD_MAX, OutgoingFrame, PacketSocket, ReceiveBuffers, ReceiveError, ReceivedFrame, Reception,
    has_no_room,
};
use crate::clock::{Clock, monotonic_ns, realtime_ns};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use proto::frame::{Frame, FrameKind, FramePool, Integrity};
use proto::ids::PortNumber;
use proto::units::Instant;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The first of the two EtherTypes for local experiments. Source: IEEE 802, 9.2.4.
const SHIM_ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Octets of both MAC addresses.
const ADDRESSES: usize = 12;
/// Octets of the addresses and the EtherType.
const ETHERNET: usize = 14;
/// Frames that may wait for one interface; those beyond are lost, and counted.
const BACKLOG_MAX: usize = 4096;
/// Age above which a time stamp of the kernel is not used.
const AGE_MAX_NS: u64 = 1_000_000_000;

/// A socket on the interface of a port.
#[derive(Debug)]
pub struct PortSocket {
    /// Index of the device among the worker's devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// The socket.
    pub socket: PacketSocket,
}

/// A frame that waits to be sent, and the header before it.
#[derive(Debug)]
struct Waiting {
    head: [u8; HEAD_MAX],
    length: usize,
    frame: Frame,
}

#[derive(Debug)]
struct Port {
    socket: PacketSocket,
    out: Outgoing,
    from: Incoming,
    next_sequence: u32,
    sent: FrameTally,
    unsent: FrameTally,
    queue: VecDeque<Waiting>,
    /// Frames that the kernel dropped, as of the last query.
    overflows: Cell<u64>,
}

/// The packet sockets of a worker.
#[derive(Debug)]
pub(super) struct PortSockets {
    /// Frames have neither shim nor stamp.
    pub bare: bool,
    epoch: u32,
    clock: Clock,
    ports: Vec<Port>,
    /// By line index of what is sent: index into `ports`.
    by_line: Vec<Option<usize>>,
    ready: Epoll,
    /// Ports with frames to send.
    active: Vec<usize>,
    counts: SendCounts,
    room: ReceiveBuffers,
}

impl PortSockets {
    /// Starts to carry the frames of `lines` in the run `session`.
    ///
    /// # Errors
    /// If a port has no cable, a cable no socket, or the system refuses.
    pub fn new(sockets: Vec<PortSocket>, session: &Session, lines: &Lines) -> io::Result<Self> {
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut by_line = vec![None; lines.count()];
        let mut ports = Vec::with_capacity(sockets.len());
        for PortSocket { device, port, socket } in sockets {
            let uncabled = || io::Error::other(format!("no cable at interface {}", socket.name()));
            let out = *lines.outgoing(device, port).ok_or_else(uncabled)?;
            let from = *lines.incoming(out.link, out.end.other()).ok_or_else(uncabled)?;
            ready.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, ports.len() as u64))?;
            by_line[out.index()] = Some(ports.len());
            socket.overflows();
            ports.push(Port {
                socket,
                out,
                from,
                next_sequence: 0,
                sent: FrameTally::default(),
                unsent: FrameTally::default(),
                queue: VecDeque::new(),
                overflows: Cell::new(0),
            });
        }
        let mut by_socket = lines.all_outgoing().filter(|line| line.is_by_socket());
        if by_socket.any(|line| by_line[line.index()].is_none()) {
            return Err(io::Error::other("a cable has no interface"));
        }
        Ok(PortSockets {
            bare: session.bare,
            epoch: session.epoch,
            clock: session.clock,
            ports,
            by_line,
            ready,
            active: Vec::new(),
            counts: SendCounts::default(),
            room: ReceiveBuffers::default(),
        })
    }

    /// Queues `frame` for the next flush.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant, pool: &mut FramePool) {
        let Some(place) = self.by_line[line.index()] else { return pool.recycle(frame) };
        let port = &mut self.ports[place];
        port.sent.count(&frame);
        let mut head = [0; HEAD_MAX];
        let length = if self.bare {
            0
        } else {
            head[..6].copy_from_slice(&address_of(line.link, line.end.other()));
            head[6..ADDRESSES].copy_from_slice(&address_of(line.link, line.end));
            head[ADDRESSES..ETHERNET].copy_from_slice(&SHIM_ETHERTYPE);
            let shim = line.shim(&frame, self.epoch, port.next_sequence, stamp);
            port.next_sequence = port.next_sequence.wrapping_add(1);
            head[ETHERNET..].copy_from_slice(&shim.emit());
            HEAD_MAX
        };
        // A bare frame has no flag for an aborted packet, so such a frame is not sent.
        let unfit = self.bare && frame.integrity == Integrity::Aborted;
        if unfit || port.queue.len() >= BACKLOG_MAX {
            self.counts.unsent += 1;
            port.unsent.count(&frame);
            return pool.recycle(frame);
        }
        if port.queue.is_empty() {
            self.active.push(place);
        }
        port.queue.push_back(Waiting { head, length, frame });
    }

    /// Sends queued frames as far as the interfaces accept them.
    pub fn flush(&mut self, pool: &mut FramePool) {
        let PortSockets { ports, active, counts, .. } = self;
        active.retain(|place| {
            let port = &mut ports[*place];
            port.flush(counts, pool);
            !port.queue.is_empty()
        });
    }

    /// Whether an interface did not accept all frames.
    pub fn waiting(&self) -> bool {
        !self.active.is_empty()
    }

    /// Drains the sockets. Returns the number of packets.
    pub fn receive(
        &mut self,
        inbox: &mut Inbox,
        pool: &mut FramePool,
        deliver: impl FnMut(Accepted),
    ) -> usize {
        const EVENTS: usize = 64;
        let mut events = [EpollEvent::empty(); EVENTS];
        // An error is a signal; the next call goes on.
        let count = self.ready.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        if count == 0 {
            return 0;
        }
        let PortSockets { bare, clock, ports, room, .. } = self;
        let mut arrivals = Arrivals {
            clock: *clock,
            inbox,
            pool,
            deliver,
            monotonic_ns: monotonic_ns(),
            realtime_ns: realtime_ns(),
        };
        let mut total = 0;
        for event in &events[..count] {
            let Port { socket, from, .. } = &ports[event.data() as usize];
            let mut each = |inward: Reception<'_>| match inward {
                Ok(inward) if *bare => arrivals.bare(*from, inward),
                Ok(inward) => arrivals.shimmed(*from, inward),
                Err(ReceiveError::Cut) => arrivals.inbox.refuse(|rejected| &mut rejected.oversize),
                Err(ReceiveError::Unfinished) => {
                    arrivals.inbox.refuse(|rejected| &mut rejected.unfinished);
                }
            };
            total += drain(|| socket.receive(room, &mut each));
        }
        total
    }

    /// Completes `report` with the counts of these sockets.
    pub fn account(&self, inbox: &Inbox, report: ExchangeReport) -> ExchangeReport {
        let (outside, inside): (Vec<&Port>, _) =
            self.ports.iter().partition(|port| port.from.outside);
        let account = |port: &Port| SentLine::new(&port.out, port.sent);
        let tally = |mut tally: OutsideTally, port: &&Port| {
            let LineCounts { received, drained, .. } = inbox.counts(port.from.index());
            let mut unsent = port.unsent;
            port.queue.iter().for_each(|waiting| unsent.count(&waiting.frame));
            tally.sent = tally.sent.plus(port.sent.minus(unsent));
            tally.unsent = tally.unsent.plus(unsent);
            tally.received = tally.received.plus(received);
            tally.drained = tally.drained.plus(drained);
            tally.overflows += port.overflows.get();
            tally
        };
        ExchangeReport {
            buffers: self.ports.first().map(|port| port.socket.buffers()).unwrap_or_default(),
            sending: self.counts,
            sent: inside.into_iter().map(account).collect(),
            outside: (!outside.is_empty())
                .then(|| outside.iter().fold(OutsideTally::default(), tally)),
            ..report
        }
    }

    /// Reads the kernel's counters, which resets them.
    pub fn overflows(&self) -> u64 {
        let count = |port: &Port| {
            port.overflows.set(port.overflows.get() + u64::from(port.socket.overflows()));
            port.overflows.get()
        };
        self.ports.iter().map(count).sum()
    }
}

impl AsFd for PortSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }
}

impl Port {
    fn flush(&mut self, counts: &mut SendCounts, pool: &mut FramePool) {
        while !self.queue.is_empty() {
            let batch = self.queue.iter().map(|waiting| OutgoingFrame {
                head: &waiting.head[..waiting.length],
                octets: &waiting.frame.octets,
            });
            match self.socket.send(batch) {
                Ok(sent) => {
                    counts.datagrams += sent as u64;
                    self.queue.drain(..sent).for_each(|waiting| pool.recycle(waiting.frame));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if has_no_room(&error) => {
                    counts.deferred += 1;
                    return;
                }
                Err(_) => {
                    counts.errors += 1;
                    counts.unsent += 1;
                    if let Some(Waiting { frame, .. }) = self.queue.pop_front() {
                        self.unsent.count(&frame);
                        pool.recycle(frame);
                    }
                }
            }
        }
    }
}

/// Frames on the way from sockets to devices.
struct Arrivals<'a, D> {
    clock: Clock,
    inbox: &'a mut Inbox,
    pool: &'a mut FramePool,
    deliver: D,
    /// Both clocks at the same moment.
    monotonic_ns: u64,
    realtime_ns: u64,
}

impl<D: FnMut(Accepted)> Arrivals<'_, D> {
    fn bare(&mut self, line: Incoming, inward: ReceivedFrame<'_>) {
        let ReceivedFrame { octets, tag, at_ns } = inward;
        if octets.len() < ETHERNET {
            return self.inbox.refuse(|rejected| &mut rejected.truncated);
        }
        if octets.len() > FRAME_MAX {
            return self.inbox.refuse(|rejected| &mut rejected.oversize);
        }
        let mut whole = self.pool.take();
        let (addresses, rest) = octets.split_at(ADDRESSES);
        whole.extend_from_slice(addresses);
        if let Some(tag) = tag {
            whole.extend_from_slice(&tag.octets());
        }
        whole.extend_from_slice(rest);
        let frame = Frame::unchecked(FrameKind::Ethernet, whole);
        self.inbox.accept_bare(line, &frame);
        let age = at_ns.map_or(0, |at_ns| self.realtime_ns.saturating_sub(at_ns));
        let age = if age > AGE_MAX_NS { 0 } else { age };
        let left = self.clock.at_wall_ns(self.monotonic_ns - age);
        (self.deliver)(Accepted { line, frame, arrived: left + line.delay });
    }

    fn shimmed(&mut self, line: Incoming, inward: ReceivedFrame<'_>) {
        let octets = inward.octets;
        if inward.tag.is_some() || octets.get(ADDRESSES..ETHERNET) != Some(&SHIM_ETHERTYPE) {
            return self.inbox.refuse(|rejected| &mut rejected.foreign);
        }
        self.inbox.accept_from(line, &octets[ETHERNET..], self.pool, &mut self.deliver);
    }
}
