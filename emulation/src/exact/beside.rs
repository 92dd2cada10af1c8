//! Cables of their own: frames travel by packet sockets, as they are, and the channel announces them.
//!
//! ```text
//!   channel (Unix datagrams) ── announcement: line, stamp, length, digest ──┐
//!                                                                           ├─ paired, first in, first out ─▶ device
//!   cable (veth pair) ──────── the frame, bare or behind the shim ──────────┘
//! ```
//!
//! A frame whose length or digest is not that of its line's next announcement is foreign, or a repeat, and is dropped. A frame
//! that was lost is missing at the head of its line: this process then waits, asks, and gets everything again that its
//! peer does not know to be complete.

use super::channel::{Announced, Channel};
use super::digest::digest;
use crate::cable::datagram::DatagramSocket;
use crate::cable::exchange::packets::{
    ADDRESSES, ETHERNET, FrameSocket, PortSocket, SHIM_ETHERTYPE, whole_frame,
};
use crate::cable::inbox::{FRAME_MAX, Rejected};
use crate::cable::interface::address_of;
use crate::cable::lines::{Incoming, Lines, Outgoing};
use crate::cable::outbox::SendCounts;
use crate::cable::packet_socket::{
    HEAD_MAX, OutgoingFrame, ReceiveBuffers, ReceiveError, ReceivedFrame, has_no_room,
};
use crate::cable::shim::Shim;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use proto::frame::{Frame, FrameKind, FramePool};
use proto::units::Instant;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Frames that wait for their announcement on one line; further ones are foreign.
const ARRIVED_MAX: usize = 4096;

/// A frame that is kept until the peer has it, and the header before it.
#[derive(Debug)]
struct Kept {
    number: u64,
    head: [u8; HEAD_MAX],
    length: usize,
    frame: Frame,
}

/// Both ends of a cable's two lines that this process has.
#[derive(Debug)]
struct Cable {
    socket: FrameSocket,
    from: Incoming,
    /// The place of its channel, once an announcement has named it.
    channel: usize,
    kept: VecDeque<Kept>,
    /// How many of `kept` the kernel has.
    handed: usize,
    announced: VecDeque<Announced>,
    arrived: VecDeque<Frame>,
}

/// The cables of a process, by packet sockets.
#[derive(Debug)]
pub(super) struct Beside {
    bare: bool,
    epoch: u32,
    cables: Vec<Cable>,
    /// By index of the line that is sent: index into `cables`.
    sends: Vec<Option<usize>>,
    /// The same by index of the line that is received. Both ends of a cable may be here.
    receives: Vec<Option<usize>>,
    ready: Epoll,
    room: ReceiveBuffers,
}

impl Beside {
    /// The cables at `ports`; frames are sent bare, or behind the shim of run `epoch`. `channels` carries announcements.
    pub fn new(
        ports: Vec<PortSocket>,
        bare: bool,
        epoch: u32,
        lines: &Lines,
        channels: &DatagramSocket,
    ) -> io::Result<Beside> {
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        ready.add(channels, EpollEvent::new(EpollFlags::EPOLLIN, u64::MAX))?;
        let (mut sends, mut receives) = (vec![None; lines.count()], vec![None; lines.count()]);
        let mut cables = Vec::with_capacity(ports.len());
        for PortSocket { device, port, socket, .. } in ports {
            let uncabled = || io::Error::other("no cable at an interface");
            let out = *lines.outgoing(device, port).ok_or_else(uncabled)?;
            let from = *lines.incoming(out.link, out.end.other()).ok_or_else(uncabled)?;
            ready.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, cables.len() as u64))?;
            sends[out.index()] = Some(cables.len());
            receives[from.index()] = Some(cables.len());
            cables.push(Cable {
                socket,
                from,
                channel: 0,
                kept: VecDeque::new(),
                handed: 0,
                announced: VecDeque::new(),
                arrived: VecDeque::new(),
            });
        }
        let mut by_socket = lines.all_outgoing().filter(|line| line.is_by_socket());
        if by_socket.any(|line| sends[line.index()].is_none()) {
            return Err(io::Error::other("a cable has no interface"));
        }
        let room = ReceiveBuffers::default();
        Ok(Beside { bare, epoch, cables, sends, receives, ready, room })
    }

    /// Queues a frame, which datagram `number` of its channel announces.
    pub fn send(&mut self, line: &Outgoing, frame: Frame, number: u64, stamp: Instant) {
        let Some(place) = self.sends[line.index()] else { return };
        let mut head = [0; HEAD_MAX];
        let length = if self.bare { 0 } else { HEAD_MAX };
        if !self.bare {
            head[..6].copy_from_slice(&address_of(line.link, line.end.other()));
            head[6..ADDRESSES].copy_from_slice(&address_of(line.link, line.end));
            head[ADDRESSES..ETHERNET].copy_from_slice(&SHIM_ETHERTYPE);
            let shim = line.shim(&frame, self.epoch, number as u32, stamp);
            head[ETHERNET..].copy_from_slice(&shim.emit());
        }
        self.cables[place].kept.push_back(Kept { number, head, length, frame });
    }

    /// Sends what the kernel has not got yet.
    pub fn flush(&mut self, counts: &mut SendCounts) {
        for cable in &mut self.cables {
            while cable.handed < cable.kept.len() {
                let unsent = cable.kept.range(cable.handed..);
                let batch = unsent.map(|kept| OutgoingFrame {
                    head: &kept.head[..kept.length],
                    octets: &kept.frame.octets,
                });
                match cable.socket.send(batch) {
                    Ok(sent) => cable.handed += sent,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if has_no_room(&error) => {
                        counts.deferred += 1;
                        break;
                    }
                    // If it is lost, the peer asks.
                    Err(_) => {
                        counts.errors += 1;
                        cable.handed += 1;
                    }
                }
            }
        }
    }

    /// Whether a cable had no room.
    pub fn waiting(&self) -> bool {
        self.cables.iter().any(|cable| cable.handed < cable.kept.len())
    }

    /// The peer at the other end of `process`'s cables has everything before datagram `first`: only the rest is kept.
    pub fn forget(&mut self, process: usize, first: u64, pool: &mut FramePool) {
        for cable in self.cables.iter_mut().filter(|cable| cable.from.process == process) {
            while cable.kept.front().is_some_and(|kept| kept.number < first) {
                cable.kept.pop_front().into_iter().for_each(|kept| pool.recycle(kept.frame));
                cable.handed = cable.handed.saturating_sub(1);
            }
        }
    }

    /// Whether announced frames have not arrived.
    pub fn is_short(&self) -> bool {
        self.cables.iter().any(|cable| !cable.announced.is_empty())
    }

    /// Sends everything again that `process` has not completed.
    pub fn repeat(&mut self, process: usize) {
        let cables = self.cables.iter_mut().filter(|cable| cable.from.process == process);
        cables.for_each(|cable| cable.handed = 0);
    }

    /// A datagram of the channel at `channel` announces a frame on `line`.
    pub fn expect(&mut self, line: &Incoming, channel: usize, frame: Announced) {
        if let Some(place) = self.receives[line.index()] {
            let cable = &mut self.cables[place];
            cable.channel = channel;
            cable.announced.push_back(frame);
        }
    }

    /// Reads the cables. `each` gets every announced frame that has arrived, its line and stamp. Returns whether there was
    /// one.
    pub fn receive(
        &mut self,
        channels: &mut [Channel],
        pool: &mut FramePool,
        rejected: &mut Rejected,
        mut each: impl FnMut(&Incoming, Frame, Instant),
    ) -> bool {
        let Beside { bare, epoch, cables, room, .. } = self;
        let mut has_news = false;
        for cable in cables {
            let Cable { socket, from, arrived, announced, channel, .. } = cable;
            // Without an announcement nothing is due, and the kernel keeps what has come.
            if announced.len() > arrived.len() {
                let mut take = |inward: Result<ReceivedFrame<'_>, ReceiveError>| {
                    let frame = inward.map_err(|_| ()).and_then(|inward| match *bare {
                        true => bare_frame(&inward, pool),
                        false => shimmed_frame(&inward, *epoch, from, pool),
                    });
                    match frame {
                        Ok(frame) if arrived.len() < ARRIVED_MAX => arrived.push_back(frame),
                        Ok(_) | Err(()) => rejected.foreign += 1,
                    }
                };
                while socket.receive(room, &mut take) > 0 {}
            }
            while let (Some(due), Some(_)) = (announced.front(), arrived.front()) {
                let Some(mut frame) = arrived.pop_front() else { break };
                if due.shim.length as usize != frame.octets.len()
                    || due.digest != digest(&frame.octets)
                {
                    rejected.foreign += 1;
                    pool.recycle(frame);
                    continue;
                }
                (frame.kind, frame.integrity) = (due.shim.kind, due.shim.integrity());
                each(from, frame, due.shim.stamp);
                channels[*channel].arrived(due.number, from, due.shim.stamp);
                announced.pop_front();
                has_news = true;
            }
        }
        has_news
    }
}

impl AsFd for Beside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }
}

fn bare_frame(inward: &ReceivedFrame<'_>, pool: &mut FramePool) -> Result<Frame, ()> {
    let is_frame = (ETHERNET..=FRAME_MAX).contains(&inward.octets.len());
    is_frame.then(|| Frame::unchecked(FrameKind::Ethernet, whole_frame(inward, pool))).ok_or(())
}

/// The frame behind a shim of this run and line.
fn shimmed_frame(
    inward: &ReceivedFrame<'_>,
    epoch: u32,
    from: &Incoming,
    pool: &mut FramePool,
) -> Result<Frame, ()> {
    let (head, record) = inward.octets.split_at_checked(ETHERNET).ok_or(())?;
    let shim = Shim::parse(record).map_err(|_| ())?;
    let octets = record[Shim::LENGTH..].get(..shim.length as usize).ok_or(())?;
    let is_of_line = (shim.link, shim.end, shim.epoch) == (from.link, from.end, epoch);
    if head[ADDRESSES..] != SHIM_ETHERTYPE || inward.tag.is_some() || !is_of_line {
        return Err(());
    }
    let mut copy = pool.take();
    copy.extend_from_slice(octets);
    Ok(Frame::unchecked(shim.kind, copy))
}
