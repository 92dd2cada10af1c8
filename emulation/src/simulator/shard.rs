//! A shard: some of the devices, and the thread that runs them from window to window.
//!
//! No frame that leaves inside a window arrives inside it: the window is no longer than the
//! shortest delay of a cable. So inside one the devices cannot tell in which order they are served,
//! and each gets all that is due to it in one go, while it is in the cache.

use super::Tally;
use super::meeting::{Meeting, Parcel, Presence};
use super::seat::{Due, Seat};
use crate::cable::is_link_local;
use proto::device::{Departure, Device};
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};

/// Windows that are run before the simulator looks up.
pub(super) const WINDOWS_MAX: u32 = 256;

/// In which shard a device is, and its number there.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub shard: u32,
    pub member: u32,
}

/// A device in its seat.
pub(super) struct Member<'a> {
    pub node: usize,
    pub device: &'a mut dyn Device,
    pub seat: &'a mut Seat,
}

/// Something to tell the observer, in the order of its instants.
pub(super) struct Sight {
    /// When the device showed it.
    pub at: Instant,
    pub node: usize,
    pub what: What,
}

/// What there was to see.
pub(super) enum What {
    Event(DeviceEvent),
    Frame { port: PortNumber, way: Direction, frame: Frame, at: Instant },
}

/// Some of the devices of a fabric, for a stretch of windows.
pub(super) struct Shard<'a> {
    number: usize,
    members: Vec<Member<'a>>,
    /// By member: when it has something to do.
    next: Vec<Instant>,
    /// By node.
    homes: &'a [Home],
    /// By shard: frames for its devices.
    parcels: Vec<Vec<Parcel>>,
    pub sights: Vec<Sight>,
    pub tally: Tally,
}

impl<'a> Shard<'a> {
    pub fn new(
        number: usize,
        members: Vec<Member<'a>>,
        homes: &'a [Home],
        shards: usize,
    ) -> Shard<'a> {
        Shard {
            number,
            next: members.iter().map(|member| member.seat.next().0).collect(),
            members,
            homes,
            parcels: (0..shards).map(|_| Vec::new()).collect(),
            sights: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Runs windows until nothing is due before `until`, or until it is time to look up. Gives the
    /// instant up to which everything has happened.
    pub fn run(&mut self, until: Instant, window: Duration, meeting: &Meeting) -> Instant {
        let _presence = Presence(meeting);
        let mut done = Instant::ZERO;
        for _ in 0..WINDOWS_MAX {
            let earliest = self.next.iter().fold(Instant::NEVER, |first, next| first.min(*next));
            let begin = meeting.agree(self.number, earliest);
            if begin >= until {
                return until;
            }
            done = until.min(begin + window);
            for member in 0..self.members.len() {
                if self.next[member] < done {
                    self.serve(member, done);
                }
            }
            self.exchange(meeting);
        }
        done
    }

    /// Frames for others are left, and those from others fetched.
    fn exchange(&mut self, meeting: &Meeting) {
        let own = self.number;
        let others = (0..self.parcels.len()).filter(|shard| *shard != own);
        for to in others.clone() {
            meeting.exchange(own, to, &mut self.parcels[to]);
        }
        meeting.wait();
        for from in others {
            let mut parcels = std::mem::take(&mut self.parcels[from]);
            meeting.exchange(from, own, &mut parcels);
            for Parcel { member, port, arrives, frame } in parcels.drain(..) {
                self.fly(member as usize, port, arrives, frame);
            }
            self.parcels[from] = parcels;
        }
    }

    /// All that is due to one device before `end`.
    fn serve(&mut self, member: usize, end: Instant) {
        loop {
            let (at, due) = self.members[member].seat.next();
            if at >= end {
                self.next[member] = at;
                return;
            }
            self.step(member, at, due);
        }
    }

    fn step(&mut self, member: usize, at: Instant, due: Due) {
        let Member { node, device, seat } = &mut self.members[member];
        match due {
            Due::Frame(port) => {
                let frame = seat.land(port);
                self.tally.frame_hops += 1;
                self.tally.packet_hops += u64::from(!is_link_local(frame.kind, &frame.octets));
                if seat.watched[port.index()] {
                    let (way, frame) = (Direction::Rx, frame.clone());
                    let what = What::Frame { port, way, frame, at };
                    self.sights.push(Sight { at, node: *node, what });
                }
                device.handle_frame(port, frame, at, at);
            }
            Due::Timer => device.handle_timeout(at),
        }
        while let Some(departure) = self.members[member].device.poll_transmit(at) {
            self.depart(member, at, departure);
        }
        let Member { node, device, seat } = &mut self.members[member];
        while let Some(event) = device.poll_event() {
            self.sights.push(Sight { at, node: *node, what: What::Event(event) });
        }
        seat.set_timer(device.poll_timeout().unwrap_or(Instant::NEVER).max(at));
    }

    /// Puts a frame on its cable.
    fn depart(&mut self, member: usize, now: Instant, departure: Departure) {
        let Departure { port, frame, at } = departure;
        let Member { node, seat, .. } = &mut self.members[member];
        if seat.watched[port.index()] {
            let what = What::Frame { port, way: Direction::Tx, frame: frame.clone(), at };
            self.sights.push(Sight { at: now, node: *node, what });
        }
        let Some(lead) = &mut seat.leads[port.index()] else { return };
        let (to, delay) = (lead.to, lead.delay);
        let Some(impairer) = &mut lead.impairer else {
            return self.convey(to.node, to.port, at + delay, frame);
        };
        let impaired = impairer.apply(frame, at);
        for frame in impaired.frames.into_iter().flatten() {
            self.convey(to.node, to.port, impaired.at + delay, frame);
        }
    }

    fn convey(&mut self, node: usize, port: PortNumber, arrives: Instant, frame: Frame) {
        let Home { shard, member } = self.homes[node];
        if shard as usize == self.number {
            self.fly(member as usize, port, arrives, frame);
        } else {
            self.parcels[shard as usize].push(Parcel { member, port, arrives, frame });
        }
    }

    fn fly(&mut self, member: usize, port: PortNumber, arrives: Instant, frame: Frame) {
        let arrives = self.members[member].seat.fly(port, arrives, frame);
        self.next[member] = self.next[member].min(arrives);
    }
}
