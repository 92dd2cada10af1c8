//! A packet socket for every port: each cable is a pair of interfaces of its own.
//!
//! Ethernet frames are sent bare, so that any Ethernet device may be at the other end. InfiniBand packets are
//! sent behind the shim in an EtherType for local experiments, one packet a frame.
//!
//! A bare frame carries no stamp. The kernel records when the sender handed it over, which stands for the
//! instant its last bit left; the frame arrives after the cable's delay. So the lateness of this process adds
//! nothing, but that of the sender, which the sender measures, is passed on.

use super::{CALLS_MAX, ExchangeReport, OutsideTally};
use crate::cable::FrameTally;
use crate::cable::datagram::{BATCH, Buffers};
use crate::cable::inbox::{Accepted, FRAME_MAX, Inbox, Rejected};
use crate::cable::interface::address_of;
use crate::cable::lines::{Destination, Incoming, Lines, Outgoing, line_index};
use crate::cable::outbox::{SendCounts, SentLine};
use crate::cable::packet_socket::{
    HEAD_MAX, OutgoingFrame, PacketSocket, ReceiveBuffers, ReceiveError, ReceivedFrame, has_no_room,
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
pub struct PacketExchange {
    /// Frames have neither shim nor stamp.
    bare: bool,
    epoch: u32,
    clock: Clock,
    ports: Vec<Port>,
    /// By line index of what is sent: index into `ports`.
    by_line: Vec<Option<usize>>,
    ready: Epoll,
    /// Ports with frames to send.
    active: Vec<usize>,
    counts: SendCounts,
    inbox: Inbox,
    pool: FramePool,
    room: ReceiveBuffers,
}

impl PacketExchange {
    /// Starts to carry the frames of `lines` in the run `epoch`, `bare` or behind the shim.
    ///
    /// # Errors
    /// If a port has no cable, a cable no socket, or the system refuses.
    pub fn new(
        sockets: Vec<PortSocket>,
        bare: bool,
        epoch: u32,
        clock: Clock,
        lines: &Lines,
    ) -> io::Result<PacketExchange> {
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut by_line = vec![None; lines.count()];
        let mut ports = Vec::with_capacity(sockets.len());
        for PortSocket { device, port, socket } in sockets {
            let uncabled = || io::Error::other(format!("no cable at interface {}", socket.name()));
            let out = *lines.outgoing(device, port).ok_or_else(uncabled)?;
            let from = *lines.incoming(out.link, out.end.other()).ok_or_else(uncabled)?;
            ready.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, ports.len() as u64))?;
            by_line[line_index(out.link, out.end)] = Some(ports.len());
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
        let mut by_socket = lines.all_outgoing().filter(|line| by_socket(line));
        if by_socket.any(|line| by_line[line_index(line.link, line.end)].is_none()) {
            return Err(io::Error::other("a cable has no interface"));
        }
        Ok(PacketExchange {
            bare,
            epoch,
            clock,
            ports,
            by_line,
            ready,
            active: Vec::new(),
            counts: SendCounts::default(),
            inbox: Inbox::new(epoch, &[], lines.count()),
            pool: FramePool::default(),
            room: ReceiveBuffers::default(),
        })
    }

    /// Whether frames carry stamps.
    pub(crate) const fn is_stamped(&self) -> bool {
        !self.bare
    }

    /// Queues `frame` for the next flush.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, stamp: Instant) {
        let Some(place) = self.by_line[line_index(line.link, line.end)] else {
            return self.pool.recycle(frame);
        };
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
            return self.pool.recycle(frame);
        }
        if port.queue.is_empty() {
            self.active.push(place);
        }
        port.queue.push_back(Waiting { head, length, frame });
    }

    /// Keeps the buffer of a frame that is not sent, for reuse.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// Sends queued frames as far as the interfaces accept them.
    pub fn flush(&mut self) {
        let PacketExchange { ports, active, counts, pool, .. } = self;
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
    pub fn receive(&mut self, mut deliver: impl FnMut(Accepted)) -> usize {
        const EVENTS: usize = 64;
        let mut events = [EpollEvent::empty(); EVENTS];
        // An error is a signal; the next call goes on.
        let count = self.ready.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        if count == 0 {
            return 0;
        }
        let PacketExchange { bare, clock, ports, inbox, pool, room, .. } = self;
        let mut arrivals = Arrivals { clock: *clock, inbox, pool, times: Times::now() };
        let mut total = 0;
        for event in &events[..count] {
            let Port { socket, from, .. } = &ports[event.data() as usize];
            for _ in 0..CALLS_MAX {
                let count = socket.receive(room, |inward| match inward {
                    Ok(inward) if *bare => arrivals.bare(*from, inward, &mut deliver),
                    Ok(inward) => arrivals.shimmed(*from, inward, &mut deliver),
                    Err(ReceiveError::Cut) => {
                        arrivals.inbox.refuse(|rejected| &mut rejected.oversize)
                    }
                    Err(ReceiveError::Unfinished) => {
                        arrivals.inbox.refuse(|rejected| &mut rejected.unfinished);
                    }
                });
                total += count;
                if count < BATCH {
                    break;
                }
            }
        }
        total
    }

    /// Counts frames that arrive from now on as having been on the cables at the stop.
    pub fn begin_drain(&mut self) {
        self.inbox.begin_drain();
    }

    /// Frames known to be lost so far: gaps in the sequence numbers, or on bare cables the drops that the
    /// kernel counts.
    pub fn lost(&self) -> u64 {
        if self.bare { self.overflows() } else { self.inbox.lost() }
    }

    /// Refusals so far.
    pub fn rejected(&self) -> Rejected {
        self.inbox.rejected()
    }

    /// The whole account.
    pub fn report(&self, lines: &Lines) -> ExchangeReport {
        let inside = self.ports.iter().filter(|port| !port.from.outside);
        let [received, drained] = self.inbox.received_from_outside(lines);
        let mut tally = OutsideTally { received, drained, ..OutsideTally::default() };
        let overflows = self.overflows();
        let outside = || self.ports.iter().filter(|port| port.from.outside);
        for port in outside() {
            tally.overflows += port.overflows.get();
            let still = port.queue.iter().fold(port.unsent, |mut tally, waiting| {
                tally.count(&waiting.frame);
                tally
            });
            tally.unsent = tally.unsent.plus(still);
            tally.sent = tally.sent.plus(port.sent.minus(still));
        }
        ExchangeReport {
            buffers: self.ports.first().map_or(Buffers::default(), |port| port.socket.buffers()),
            overflows,
            sending: self.counts,
            rejected: self.inbox.rejected(),
            sent: inside
                .map(|port| SentLine { link: port.out.link, end: port.out.end, sent: port.sent })
                .collect(),
            received: self.inbox.received(lines).collect(),
            outside: outside().next().map(|_| tally),
        }
    }

    /// Reads the kernel's counter, which resets it.
    fn overflows(&self) -> u64 {
        let count = |port: &Port| {
            port.overflows.set(port.overflows.get() + u64::from(port.socket.overflows()));
            port.overflows.get()
        };
        self.ports.iter().map(count).sum()
    }
}

impl AsFd for PacketExchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }
}

/// Whether the line leaves this process through a socket.
fn by_socket(line: &Outgoing) -> bool {
    !matches!(line.to, Destination::Device { .. })
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

/// A reading of both clocks at the same moment.
struct Times {
    monotonic_ns: u64,
    realtime_ns: u64,
}

impl Times {
    fn now() -> Times {
        Times { monotonic_ns: monotonic_ns(), realtime_ns: realtime_ns() }
    }

    /// The instant `at_ns` of the kernel on `CLOCK_MONOTONIC`.
    fn monotonic(&self, at_ns: Option<u64>) -> u64 {
        let age = at_ns.map_or(0, |at_ns| self.realtime_ns.saturating_sub(at_ns));
        if age > AGE_MAX_NS { self.monotonic_ns } else { self.monotonic_ns - age }
    }
}

/// Frames on the way from sockets to devices.
struct Arrivals<'a> {
    clock: Clock,
    inbox: &'a mut Inbox,
    pool: &'a mut FramePool,
    times: Times,
}

impl Arrivals<'_> {
    fn bare(
        &mut self,
        line: Incoming,
        inward: ReceivedFrame<'_>,
        deliver: &mut impl FnMut(Accepted),
    ) {
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
        let left = self.clock.at_wall_ns(self.times.monotonic(at_ns));
        deliver(Accepted { line, frame, arrived: left + line.delay });
    }

    fn shimmed(
        &mut self,
        line: Incoming,
        inward: ReceivedFrame<'_>,
        deliver: &mut impl FnMut(Accepted),
    ) {
        let octets = inward.octets;
        if inward.tag.is_some() || octets.get(ADDRESSES..ETHERNET) != Some(&SHIM_ETHERTYPE) {
            return self.inbox.refuse(|rejected| &mut rejected.foreign);
        }
        self.inbox.accept_from(line, &octets[ETHERNET..], self.pool, deliver);
    }
}
