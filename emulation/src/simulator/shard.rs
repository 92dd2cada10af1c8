//! A shard: some of the devices, and the thread that runs them from window to window.
//!
//! A frame that leaves inside a window arrives after it, because no window is longer than the shortest delay of
//! a cable. The order in which devices run inside a window therefore makes no difference, and each device
//! handles all its input of the window at once, while its state is in the cache.

use super::Tally;
use super::barrier::{CrossFrame, PanicGuard, WindowBarrier};
use super::inputs::{DeviceInputs, Due};
use crate::cable::is_link_local;
use crate::observer::Passage;
use proto::device::{Departure, Device};
use proto::events::{DeviceEvent, Direction};
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

/// A device and its inputs.
pub(super) struct Member<'a> {
    pub node: usize,
    pub device: &'a mut dyn Device,
    pub inputs: &'a mut DeviceInputs,
}

/// An event or frame for the observer; replayed by instant, then by node.
pub(super) struct Observation {
    /// The instant at which the device produced it.
    pub at: Instant,
    pub node: usize,
    pub what: Observed,
}

/// What the observer sees.
pub(super) enum Observed {
    Event(DeviceEvent),
    Frame(Frame, Passage),
}

/// Some of the devices of a fabric, for up to [`WINDOWS_MAX`] windows.
pub(super) struct Shard<'a> {
    number: usize,
    members: Vec<Member<'a>>,
    /// By member: the instant of its next input.
    next: Vec<Instant>,
    /// By node.
    places: &'a [ShardIndex],
    /// By shard: frames for its devices.
    outgoing: Vec<Vec<CrossFrame>>,
    pub observations: Vec<Observation>,
    pub tally: Tally,
}

impl<'a> Shard<'a> {
    pub fn new(
        number: usize,
        members: Vec<Member<'a>>,
        places: &'a [ShardIndex],
        shards: usize,
    ) -> Shard<'a> {
        Shard {
            number,
            next: members.iter().map(|member| member.inputs.next().0).collect(),
            members,
            places,
            outgoing: (0..shards).map(|_| Vec::new()).collect(),
            observations: Vec::new(),
            tally: Tally::default(),
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
            for CrossFrame { member, port, arrives, frame } in outgoing.drain(..) {
                self.push_arrival(member as usize, port, arrives, frame);
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
        let Member { node, device, inputs } = &mut self.members[member];
        match due {
            Due::Frame(port) => {
                let frame = inputs.pop_arrival(port);
                self.tally.frame_hops += 1;
                self.tally.packet_hops += u64::from(!is_link_local(frame.kind, &frame.octets));
                if inputs.watched[port.index()] {
                    let passage = Passage { device: *node, port, direction: Direction::Rx, at };
                    let what = Observed::Frame(frame.clone(), passage);
                    self.observations.push(Observation { at, node: *node, what });
                }
                device.handle_frame(port, frame, at, at);
            }
            Due::Timer => device.handle_timeout(at),
        }
        while let Some(departure) = self.members[member].device.poll_transmit(at) {
            self.depart(member, at, departure);
        }
        let Member { node, device, inputs } = &mut self.members[member];
        while let Some(event) = device.poll_event() {
            self.observations.push(Observation { at, node: *node, what: Observed::Event(event) });
        }
        inputs.set_timer(device.poll_timeout().unwrap_or(Instant::NEVER).max(at));
    }

    /// Puts a frame on its cable.
    fn depart(&mut self, member: usize, now: Instant, departure: Departure) {
        let Departure { port, frame, at } = departure;
        let Member { node, inputs, .. } = &mut self.members[member];
        if inputs.watched[port.index()] {
            let passage = Passage { device: *node, port, direction: Direction::Tx, at };
            let what = Observed::Frame(frame.clone(), passage);
            self.observations.push(Observation { at: now, node: *node, what });
        }
        let Some(cable) = &mut inputs.cables[port.index()] else { return };
        let (to, delay) = (cable.to, cable.delay);
        let Some(impairer) = &mut cable.impairer else {
            return self.deliver(to.node, to.port, at + delay, frame);
        };
        let impaired = impairer.apply(frame, at);
        for frame in impaired.frames.into_iter().flatten() {
            self.deliver(to.node, to.port, impaired.at + delay, frame);
        }
    }

    fn deliver(&mut self, node: usize, port: PortNumber, arrives: Instant, frame: Frame) {
        let ShardIndex { shard, member } = self.places[node];
        if shard as usize == self.number {
            self.push_arrival(member as usize, port, arrives, frame);
        } else {
            self.outgoing[shard as usize].push(CrossFrame { member, port, arrives, frame });
        }
    }

    fn push_arrival(&mut self, member: usize, port: PortNumber, arrives: Instant, frame: Frame) {
        let arrives = self.members[member].inputs.push_arrival(port, arrives, frame);
        self.next[member] = self.next[member].min(arrives);
    }
}
