//! One port with a socket of its own: sending, and what happens when the far end is away.

use super::attached::{AttachedInterface, Consequence};
use super::{FrameSocket, InterfaceEvent};
use crate::cable::FrameTally;
use crate::cable::lines::{Incoming, Outgoing};
use crate::cable::link_watch::LinkNews;
use crate::cable::outbox::SendCounts;
use crate::cable::packet_socket::{HEAD_MAX, OutgoingFrame, has_no_room};
use crate::clock::Clock;
use proto::frame::{Frame, FramePool};
use proto::units::Instant;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;

/// Events that may wait to be read.
const EVENTS_MAX: usize = 64;

/// A frame that waits to be sent, and the header before it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub head: [u8; HEAD_MAX],
    pub length: usize,
    pub frame: Frame,
}

/// A port, its socket and the frames that wait to be sent.
#[derive(Debug)]
pub(super) struct Port {
    pub socket: FrameSocket,
    /// The watch of its interface, by its place.
    pub watch: Option<usize>,
    /// The state of the interface or program, if it is outside the fabric.
    pub attached: Option<AttachedInterface>,
    pub out: Outgoing,
    pub from: Incoming,
    pub next_sequence: u32,
    pub sent: FrameTally,
    pub unsent: FrameTally,
    pub queue: VecDeque<Waiting>,
    /// Frames that the kernel dropped, as of the last query.
    pub overflows: Cell<u64>,
}

impl Port {
    /// Takes a message of the watch.
    pub fn follow(
        &mut self,
        news: LinkNews<'_>,
        now: Instant,
        pool: &mut FramePool,
    ) -> Consequence {
        let (Some(interface), FrameSocket::Interface(socket)) =
            (&mut self.attached, &mut self.socket)
        else {
            return Consequence::default();
        };
        let mut consequence = interface.observe(news, now);
        if let Some(index) = consequence.bind
            && socket.rebind(index).is_err()
        {
            // The interface is gone again, which the next messages confirm.
            consequence = Consequence { drops: true, ..interface.lose(now) };
        }
        if let Some(mtu) = consequence.mtu {
            socket.set_mtu(mtu);
        }
        if consequence.drops {
            self.drop_waiting(pool);
        }
        consequence
    }

    /// Keeps the events of a consequence until they are read.
    pub fn report(&self, consequence: &Consequence, events: &mut VecDeque<InterfaceEvent>) {
        for event in consequence.events.into_iter().flatten() {
            if events.len() < EVENTS_MAX {
                events.push_back((self.from.device, self.from.port, event));
            }
        }
    }

    /// The program at the other end did not take a frame.
    fn miss_peer(&mut self, is_full: bool, clock: &Clock, pool: &mut FramePool) -> Consequence {
        let Some(attached) = &mut self.attached else { return Consequence::default() };
        let consequence = attached.miss_peer(is_full, clock.now());
        if consequence.drops {
            self.drop_waiting(pool);
        }
        consequence
    }

    /// Drops the frames that wait, because the interface cannot send them.
    fn drop_waiting(&mut self, pool: &mut FramePool) {
        let Some(interface) = &mut self.attached else { return };
        if let FrameSocket::Interface(socket) = &mut self.socket {
            socket.forget_unsent();
        }
        for Waiting { frame, .. } in self.queue.drain(..) {
            interface.drop(&frame);
            pool.recycle(frame);
        }
    }

    /// Sends the frames that wait as far as they are accepted.
    pub fn flush(
        &mut self,
        counts: &mut SendCounts,
        clock: &Clock,
        events: &mut VecDeque<InterfaceEvent>,
        pool: &mut FramePool,
    ) {
        while !self.queue.is_empty() {
            let batch = self.queue.iter().map(|waiting| OutgoingFrame {
                head: &waiting.head[..waiting.length],
                octets: &waiting.frame.octets,
            });
            match self.socket.send(batch) {
                Ok(sent) => {
                    counts.datagrams += sent as u64;
                    self.queue.drain(..sent).for_each(|waiting| pool.recycle(waiting.frame));
                    if let Some(attached) = &mut self.attached {
                        let found = attached.find_peer(clock);
                        self.report(&found, events);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if has_no_room(&error) => {
                    counts.deferred += 1;
                    let missed = self.miss_peer(true, clock, pool);
                    return self.report(&missed, events);
                }
                Err(error) if self.attached.is_some() && is_away(&error) => {
                    // The watch reports the state of an interface a little later.
                    let missed = self.miss_peer(false, clock, pool);
                    self.report(&missed, events);
                    self.drop_waiting(pool);
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

/// Whether the interface is down or gone, or no program is at the other end.
fn is_away(error: &io::Error) -> bool {
    use libc::{EACCES, ECONNREFUSED, ENETDOWN, ENODEV, ENOENT, ENOTSOCK, ENXIO, EPROTOTYPE};
    match error.raw_os_error() {
        // The interface.
        Some(ENETDOWN | ENXIO | ENODEV) => true,
        // The program.
        Some(ENOENT | ECONNREFUSED | EACCES | EPROTOTYPE | ENOTSOCK) => true,
        _ => false,
    }
}
