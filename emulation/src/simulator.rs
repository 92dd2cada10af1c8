//! The simulator: all devices in one process on a virtual clock.
//!
//! ```text
//!  window      │ shard 0: a a a b b c …  ┐         │ shard 0 …
//!  after       │ shard 1: d e e e f …    ├ meeting │ shard 1 …
//!  window      │ shard 2: …              ┘         │ shard 2 …
//! ```
//!
//! Time advances in windows no longer than the shortest delay of a cable. What leaves inside one
//! arrives after it, so devices need not wait for each other there: each is served at one go, and
//! on as many threads as there are shards. Events of one device run by instant, at one instant its
//! ports before its timer, and a cable's frames in the order they were sent. So a run depends on
//! nothing but the scenario and its seed, whatever the number of threads.

mod meeting;
mod seat;
mod shard;

use crate::cable::impairment::{Impairer, Injected};
use crate::cable::is_link_local;
use crate::observer::Observer;
use crate::wiring::{End, Wiring};
use meeting::Meeting;
use proto::device::Device;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use seat::{Lead, Seat};
use shard::{Home, Member, Shard, Sight, What};
use std::ops::ControlFlow;

/// What a simulation did, apart from what its devices counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames of every kind that crossed a link.
    pub frame_hops: u64,
    /// Data, acknowledgements and notifications among them.
    pub packet_hops: u64,
    /// End-to-end frames under way on cables at the end.
    pub on_cables: u64,
    /// End-to-end frames that were fed in from outside.
    pub fed: u64,
    /// What the scenario's impairments did.
    pub injected: Injected,
    /// The last instant that was simulated.
    pub ended: Instant,
}

/// A fabric on a virtual clock.
pub struct Simulator {
    devices: Vec<Box<dyn Device>>,
    /// By device.
    seats: Vec<Seat>,
    homes: Vec<Home>,
    shards: usize,
    /// How long a window is.
    window: Duration,
    tally: Tally,
}

impl Simulator {
    /// The fabric of `wiring`, its devices in node order, on one thread.
    ///
    /// # Panics
    /// If there are not exactly as many devices as nodes.
    pub fn new(wiring: &Wiring, devices: Vec<Box<dyn Device>>, seed: u64) -> Simulator {
        assert_eq!(wiring.nodes.len(), devices.len(), "a node is a device");
        let mut seats: Vec<Seat> = devices.iter().map(|device| Seat::new(device.ports())).collect();
        for link in &wiring.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let impairer = Impairer::new(wiring, from, seed);
                let lead = Lead { to, delay: link.delay, impairer };
                seats[from.node].leads[from.port.index()] = Some(lead);
            }
        }
        // Without any delay a window is one instant, run as often as anything happens at it.
        let instant = Duration::from_ps(1);
        let shortest = wiring.links.iter().map(|link| link.delay).min().unwrap_or(instant);
        Simulator {
            homes: deal(&seats, 1),
            seats,
            devices,
            shards: 1,
            window: shortest.max(instant),
            tally: Tally::default(),
        }
    }

    /// The same on so many threads. Nothing that comes out depends on it.
    pub fn on_threads(mut self, threads: usize) -> Simulator {
        self.shards = threads.clamp(1, self.seats.len().max(1));
        self.homes = deal(&self.seats, self.shards);
        self
    }

    /// Lets a frame from outside arrive at a port, not before those injected there earlier. It
    /// does not hold up what comes on the cable.
    pub fn inject(&mut self, end: End, frame: Frame, arrives: Instant) {
        self.tally.fed += u64::from(!is_link_local(frame.kind, &frame.octets));
        self.seats[end.node].feed(end.port, arrives, frame);
    }

    /// Runs until `stop`, or until `progress` breaks off; it is asked every few hundred windows.
    pub fn run(
        &mut self,
        stop: Instant,
        observer: &mut dyn Observer,
        mut progress: impl FnMut(Instant) -> ControlFlow<()>,
    ) -> Tally {
        for (node, seat) in self.seats.iter_mut().enumerate() {
            for (port, watched) in seat.watched.iter_mut().enumerate() {
                *watched = observer.wants_frames(node, PortNumber::from_index(port));
            }
        }
        let mut now = Instant::ZERO;
        while now < stop {
            let due = observer.next_due().unwrap_or(Instant::NEVER);
            if due <= now {
                observer.sample(now, &mut self.devices);
                continue;
            }
            now = self.stretch(due.min(stop), observer);
            if progress(now).is_break() {
                break;
            }
        }
        self.finish(now)
    }

    /// Runs some windows, up to `until` at most, and tells the observer what there was to see. Gives
    /// the instant up to which everything has happened.
    fn stretch(&mut self, until: Instant, observer: &mut dyn Observer) -> Instant {
        let mut members: Vec<Vec<Member<'_>>> = (0..self.shards).map(|_| Vec::new()).collect();
        let seated = self.devices.iter_mut().zip(&mut self.seats).zip(&self.homes).enumerate();
        for (node, ((device, seat), home)) in seated {
            members[home.shard as usize].push(Member { node, device: &mut **device, seat });
        }
        let (homes, count, window) = (&self.homes, self.shards, self.window);
        let shard = |(number, members)| Shard::new(number, members, homes, count);
        let mut shards: Vec<Shard<'_>> = members.into_iter().enumerate().map(shard).collect();
        let meeting = Meeting::new(count);
        let (first, others) = shards.split_first_mut().expect("there is at least one shard");
        let now = std::thread::scope(|scope| {
            for shard in others {
                scope.spawn(|| shard.run(until, window, &meeting));
            }
            first.run(until, window, &meeting)
        });
        let mut sights = Vec::new();
        for shard in &mut shards {
            self.tally.frame_hops += shard.tally.frame_hops;
            self.tally.packet_hops += shard.tally.packet_hops;
            sights.append(&mut shard.sights);
        }
        drop(shards);
        tell(observer, sights);
        now
    }

    fn finish(&mut self, at: Instant) -> Tally {
        self.tally.ended = at;
        let flying = self.seats.iter().flat_map(Seat::flying);
        let travels = |frame: &&Frame| !is_link_local(frame.kind, &frame.octets);
        self.tally.on_cables = flying.filter(travels).count() as u64;
        let leads = self.seats.iter().flat_map(|seat| seat.leads.iter().flatten());
        self.tally.injected = Injected::default();
        for impairer in leads.filter_map(|lead| lead.impairer.as_ref()) {
            self.tally.injected.merge(&impairer.injected);
        }
        self.tally
    }

    /// The devices, to be read at the end.
    pub fn devices(&mut self) -> &mut [Box<dyn Device>] {
        &mut self.devices
    }
}

/// Deals the devices out to `shards`, each to the one that has least to look after.
fn deal(seats: &[Seat], shards: usize) -> Vec<Home> {
    let mut weights = vec![0; shards];
    let mut members = vec![0; shards];
    let deal = seats.iter().map(|seat| {
        let lightest = (0..shards).min_by_key(|shard| weights[*shard]).unwrap_or_default();
        weights[lightest] += seat.weight();
        members[lightest] += 1;
        Home { shard: lightest as u32, member: members[lightest] - 1 }
    });
    deal.collect()
}

/// Shows the observer everything in the order of instants, at one instant device by device.
fn tell(observer: &mut dyn Observer, mut sights: Vec<Sight>) {
    sights.sort_by_key(|sight| (sight.at, sight.node));
    for Sight { node, what, .. } in sights {
        match what {
            What::Event(event) => observer.event(node, event),
            What::Frame { port, way, frame, at } => observer.frame(node, port, way, &frame, at),
        }
    }
}

#[cfg(test)]
mod tests;
