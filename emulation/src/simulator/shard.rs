//! A shard: some of the devices, and the thread that runs them from window to window.
//!
//! A frame that leaves inside a window arrives after it, because no window is longer than the shortest delay of
//! a cable. The order in which devices run inside a window therefore makes no difference, and each device
//! handles all its input of the window at once, while its state is in the cache.

use super::CableEnd;
use super::barrier::{CrossFrame, PanicGuard, WindowBarrier};
use crate::inputs::{Due, Times};
use crate::station::{Seen, Station};
use crate::wiring::End;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};

/// Windows that are run before the simulator samples and reports progress.
pub(super) const WINDOWS_MAX: u32 = 256;

/// The shard of a device, and its index there.
#[derive(Clone, Copy)]
pub(super) struct ShardIndex {
    pub shard: u32,
    pub member: u32,
}

/// Some of the devices of a fabric, for up to [`WINDOWS_MAX`] windows.
pub(super) struct Shard<'a> {
    number: usize,
    members: Vec<Station<'a, CableEnd>>,
    /// By member: the instant of its next input.
    next: Vec<Instant>,
    /// By node.
    places: &'a [ShardIndex],
    /// By shard: frames for its devices.
    outgoing: Vec<Vec<CrossFrame>>,
    /// What left in the present step: where it goes to, when its last bit left, and when it arrives.
    sent: Vec<(End, Times, Frame)>,
    pub seen: Seen,
}

impl<'a> Shard<'a> {
    pub fn new(
        number: usize,
        members: Vec<Station<'a, CableEnd>>,
        places: &'a [ShardIndex],
        shards: usize,
    ) -> Shard<'a> {
        Shard {
            number,
            next: members.iter().map(|member| member.inputs.next().0).collect(),
            members,
            places,
            outgoing: (0..shards).map(|_| Vec::new()).collect(),
            sent: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// Runs windows until nothing is due before `until`, [`WINDOWS_MAX`] at most. Returns the instant up to
    /// which everything has happened.
    pub fn run(&mut self, until: Instant, window: Duration, barrier: &WindowBarrier) -> Instant {
        let _guard = PanicGuard(barrier);
        let mut done = Instant::ZERO;
        for _ in 0..WINDOWS_MAX {
            let earliest = self.next.iter().fold(Instant::NEVER, |first, next| first.min(*next));
            let begin = barrier.agree(self.number, earliest);
            if begin >= until {
                return until;
            }
            done = until.min(begin + window);
            for member in 0..self.members.len() {
                if self.next[member] < done {
                    self.serve(member, done);
                }
            }
            self.exchange(barrier);
        }
        done
    }

    /// Puts frames for other shards into their mailboxes and collects those from them.
    fn exchange(&mut self, barrier: &WindowBarrier) {
        let own = self.number;
        let others = (0..self.outgoing.len()).filter(|shard| *shard != own);
        for to in others.clone() {
            barrier.exchange(own, to, &mut self.outgoing[to]);
        }
        barrier.wait();
        for from in others {
            let mut outgoing = std::mem::take(&mut self.outgoing[from]);
            barrier.exchange(from, own, &mut outgoing);
            for CrossFrame { member, port, times, frame } in outgoing.drain(..) {
                self.push_arrival(member as usize, port, times, frame);
            }
            self.outgoing[from] = outgoing;
        }
    }

    /// Handles all input of one device before `end`.
    fn serve(&mut self, member: usize, end: Instant) {
        loop {
            let (at, due) = self.members[member].inputs.next();
            if at >= end {
                self.next[member] = at;
                return;
            }
            self.step(member, at, due);
        }
    }

    fn step(&mut self, member: usize, at: Instant, due: Due) {
        let Shard { members, seen, sent, .. } = self;
        members[member].step(at, due, seen, |cable, frame, stamp| {
            sent.push((cable.to, (stamp, stamp + cable.delay), frame));
        });
        let mut sent = std::mem::take(&mut self.sent);
        for (to, times, frame) in sent.drain(..) {
            self.deliver(to, times, frame);
        }
        self.sent = sent;
    }

    fn deliver(&mut self, to: End, times: Times, frame: Frame) {
        let ShardIndex { shard, member } = self.places[to.node];
        let port = to.port;
        if shard as usize == self.number {
            self.push_arrival(member as usize, port, times, frame);
        } else {
            self.outgoing[shard as usize].push(CrossFrame { member, port, times, frame });
        }
    }

    fn push_arrival(&mut self, member: usize, port: PortNumber, times: Times, frame: Frame) {
        let arrives = self.members[member].inputs.push_arrival(port, times, frame);
        self.next[member] = self.next[member].min(arrives);
    }
}
