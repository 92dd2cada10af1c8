//! A socket for every port: on an interface, where each cable is a pair of interfaces of its own, or to another
//! program.
//!
//! Ethernet frames are sent bare, so that any Ethernet device may be at the other end. InfiniBand packets are
//! sent behind the shim in an EtherType for local experiments, one packet a frame.
//!
//! A bare frame carries no stamp. The kernel records when the sender handed it over, which stands for the
//! instant its last bit left; the frame arrives after the cable's delay. So the lateness of this process adds
//! nothing, but that of the sender, which the sender measures, is passed on.

mod arrivals;
mod attached;
mod frame_socket;
mod port;

use super::{AttachedReading, ExchangeReport, OutsideTally, Session, drain};
use crate::cable::FrameTally;
use crate::cable::inbox::{Accepted, Inbox, LineCounts};
use crate::cable::interface::address_of;
use crate::cable::lines::{Destination, Lines, Outgoing};
use crate::cable::link_watch::LinkWatch;
use crate::cable::outbox::{SendCounts, SentLine};
use crate::cable::packet_socket::{HEAD_MAX, ReceiveBuffers, ReceiveError, Reception};
use crate::clock::{Clock, monotonic_ns, realtime_ns};
pub(crate) use arrivals::whole_frame;
use arrivals::{Arrivals, StepDetector};
use attached::AttachedInterface;
pub use frame_socket::FrameSocket;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use port::{Port, Waiting};
use proto::events::EventKind;
use proto::frame::{Frame, FramePool, Integrity};
use proto::ids::PortNumber;
use proto::units::Instant;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The first of the two EtherTypes for local experiments. Source: IEEE 802, 9.2.4.
pub(crate) const SHIM_ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Octets of both MAC addresses.
pub(crate) const ADDRESSES: usize = 12;
/// Octets of the addresses and the EtherType.
pub(crate) const ETHERNET: usize = 14;
/// Frames that may wait for one interface; those beyond are lost, and counted.
const BACKLOG_MAX: usize = 4096;
/// The event data of all watches; those of ports are their places.
const WATCH: u64 = u64::MAX;

/// The socket of a port.
#[derive(Debug)]
pub struct PortSocket {
    /// Index of the device among the worker's devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// The socket.
    pub socket: FrameSocket,
    /// The watch that reports the state of its interface, by its place; without it the interface is taken to be up.
    pub watch: Option<usize>,
}

/// An event of an attached interface: device, port, kind.
pub(crate) type InterfaceEvent = (usize, PortNumber, EventKind);

/// The packet sockets of a worker.
#[derive(Debug)]
pub(super) struct PortSockets {
    /// Frames have neither shim nor stamp.
    pub bare: bool,
    epoch: u32,
    /// Converts the kernel's time stamps.
    pub clock: Clock,
    steps: StepDetector,
    ports: Vec<Port>,
    /// By line index of what is sent: index into `ports`.
    by_line: Vec<Option<usize>>,
    ready: Epoll,
    /// Ports with frames to send.
    active: Vec<usize>,
    counts: SendCounts,
    room: ReceiveBuffers,
    /// Report the state of attached interfaces, each in one namespace.
    watches: Vec<LinkWatch>,
    /// Events that have not been read yet.
    events: VecDeque<InterfaceEvent>,
}

impl PortSockets {
    /// Starts to carry the frames of `lines` in the run `session`. The state of attached interfaces comes from
    /// `watches`.
    ///
    /// # Errors
    /// If a port has no cable, or the system refuses.
    pub fn new(
        sockets: Vec<PortSocket>,
        watches: Vec<LinkWatch>,
        session: &Session,
        lines: &Lines,
    ) -> io::Result<Self> {
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for watch in &watches {
            ready.add(watch, EpollEvent::new(EpollFlags::EPOLLIN, WATCH))?;
        }
        let mut by_line = vec![None; lines.count()];
        let mut ports = Vec::with_capacity(sockets.len());
        for PortSocket { device, port, socket, watch } in sockets {
            let uncabled = || {
                let name = socket.interface().unwrap_or("of another program");
                io::Error::other(format!("no cable at interface {name}"))
            };
            let out = *lines.outgoing(device, port).ok_or_else(uncabled)?;
            let from = *lines.incoming(out.link, out.end.other()).ok_or_else(uncabled)?;
            ready.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, ports.len() as u64))?;
            by_line[out.index()] = Some(ports.len());
            socket.overflows();
            let is_outside = out.to == Destination::Outside;
            ports.push(Port {
                attached: is_outside.then(|| AttachedInterface::new(&socket)),
                socket,
                watch,
                out,
                from,
                next_sequence: 0,
                sent: FrameTally::default(),
                unsent: FrameTally::default(),
                queue: VecDeque::new(),
                overflows: Cell::new(0),
            });
        }
        Ok(PortSockets {
            bare: session.bare,
            epoch: session.epoch,
            clock: session.clock.clone(),
            steps: StepDetector::default(),
            ports,
            by_line,
            ready,
            active: Vec::new(),
            counts: SendCounts::default(),
            room: ReceiveBuffers::default(),
            watches,
            events: VecDeque::new(),
        })
    }

    /// Checks that each of these lines has a socket.
    ///
    /// # Errors
    /// If one has none.
    pub fn check<'a>(&self, mut lines: impl Iterator<Item = &'a Outgoing>) -> io::Result<()> {
        let has_none = lines.any(|line| self.by_line[line.index()].is_none());
        if has_none { Err(io::Error::other("a cable has no interface")) } else { Ok(()) }
    }

    /// Queues `frame` for the next flush.
    pub fn send(
        &mut self,
        line: &Outgoing,
        mut frame: Frame,
        stamp: Instant,
        pool: &mut FramePool,
    ) {
        let Some(place) = self.by_line[line.index()] else { return pool.recycle(frame) };
        let port = &mut self.ports[place];
        frame.materialise();
        port.sent.count(&frame);
        if port.attached.as_mut().is_some_and(|interface| interface.refuses(&frame)) {
            return pool.recycle(frame);
        }
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
        let PortSockets { ports, active, counts, clock, events, .. } = self;
        active.retain(|place| {
            let port = &mut ports[*place];
            port.flush(counts, clock, events, pool);
            !port.queue.is_empty()
        });
    }

    /// Forgets what waits for a process. Returns what its cables have taken.
    pub fn forget(&mut self, process: usize, pool: &mut FramePool) -> FrameTally {
        let PortSockets { ports, active, .. } = self;
        let mut taken = FrameTally::default();
        for (place, port) in ports.iter_mut().enumerate() {
            if port.out.to != Destination::Process(process) {
                continue;
            }
            taken = taken.plus(std::mem::take(&mut port.sent));
            port.next_sequence = 0;
            port.queue.drain(..).for_each(|waiting| pool.recycle(waiting.frame));
            active.retain(|other| *other != place);
        }
        taken
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
        if events[..count].iter().any(|event| event.data() == WATCH) {
            self.follow(pool);
        }
        let PortSockets { bare, clock, steps, ports, room, events: reports, .. } = self;
        let (monotonic_ns, realtime_ns) = (monotonic_ns(), realtime_ns());
        let is_stepped = steps.is_stepped(realtime_ns, monotonic_ns);
        let mut arrivals = Arrivals {
            clock,
            inbox,
            pool,
            deliver,
            monotonic_ns,
            realtime_ns: (!is_stepped).then_some(realtime_ns),
        };
        let mut total = 0;
        for event in &events[..count] {
            let Some(port) = ports.get_mut(event.data() as usize) else { continue };
            let Port { socket, from, .. } = port;
            if event.events().contains(EpollFlags::EPOLLERR) {
                // An error that stays keeps the socket ready, and a receive ring never reads it.
                socket.clear_error();
            }
            let mut each = |inward: Reception<'_>| match inward {
                Ok(inward) if *bare => arrivals.bare(*from, inward),
                Ok(inward) => arrivals.shimmed(*from, inward),
                Err(ReceiveError::Cut) => arrivals.inbox.refuse(|rejected| &mut rejected.oversize),
                Err(ReceiveError::Foreign) => {
                    arrivals.inbox.refuse(|rejected| &mut rejected.foreign);
                }
                Err(ReceiveError::Unfinished) => {
                    arrivals.inbox.refuse(|rejected| &mut rejected.unfinished);
                }
            };
            let count = match socket {
                FrameSocket::Interface(_) => drain(|| socket.receive(room, &mut each)),
                // A program that floods its port gets one batch a turn, so that others get their turns.
                FrameSocket::Peer(_) => socket.receive(room, &mut each),
            };
            total += count;
            if count > 0
                && let Some(attached) = &mut port.attached
            {
                let consequence = attached.find_peer(clock);
                port.report(&consequence, reports);
            }
        }
        total
    }

    /// Frames given up so far.
    pub fn unsent(&self) -> u64 {
        self.counts.unsent
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
            let (away, too_long) = port
                .attached
                .as_ref()
                .map_or_else(Default::default, |interface| (interface.away, interface.too_long));
            tally.away = tally.away.plus(away);
            tally.too_long = tally.too_long.plus(too_long);
            tally.sent = tally.sent.plus(port.sent.minus(unsent.plus(away).plus(too_long)));
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

    /// The oldest event of an attached interface that has not been read.
    pub fn poll_event(&mut self) -> Option<InterfaceEvent> {
        self.events.pop_front()
    }

    /// The state of all attached interfaces.
    pub fn attached(&self) -> impl Iterator<Item = AttachedReading> + '_ {
        self.ports.iter().filter_map(|port| {
            let interface = port.attached.as_ref()?;
            Some(AttachedReading {
                device: port.from.device,
                port: port.from.port,
                loss: interface.loss(),
                mtu: interface.mtu(),
                away: interface.away,
                too_long: interface.too_long,
            })
        })
    }

    /// Takes the messages of all watches.
    fn follow(&mut self, pool: &mut FramePool) {
        let PortSockets { ports, active, clock, events, watches, .. } = self;
        let now = clock.now();
        for (number, watch) in watches.iter_mut().enumerate() {
            watch.read(|news| {
                let there = ports.iter_mut().enumerate();
                for (place, port) in there.filter(|(_, port)| port.watch == Some(number)) {
                    let consequence = port.follow(news, now, pool);
                    port.report(&consequence, events);
                    active.retain(|other| !consequence.drops || *other != place);
                }
            });
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

#[cfg(test)]
mod tests;
