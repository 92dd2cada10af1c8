//! The simulator: all devices in one process on a virtual clock.
//!
//! ```text
//!  window      │ shard 0: a a a b b c …  ┐         │ shard 0 …
//!  after       │ shard 1: d e e e f …    ├ barrier │ shard 1 …
//!  window      │ shard 2: …              ┘         │ shard 2 …
//! ```
//!
//! Time advances in windows no longer than the shortest delay of a cable. A frame that leaves inside a window
//! arrives after it, so devices do not wait for each other inside a window: each handles all its input in one
//! go, on as many threads as there are shards. The events of one device run by instant; at one instant its
//! ports go in order and before its timer, and the frames of a cable in the order they were sent. The result
//! depends on the scenario and its seed only, not on the number of threads.

mod barrier;
mod shard;

use crate::cable::impairment::{Impairer, Injected};
use crate::cable::is_link_local;
use crate::inputs::DeviceInputs;
use crate::observer::Observer;
use crate::station::{Cable, Station, replay, watch};
use crate::wiring::{End, Wiring};
use barrier::WindowBarrier;
use proto::device::Device;
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use shard::{Shard, ShardIndex};
use std::ops::ControlFlow;

/// Counts of a finished simulation, beside those of its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames of every kind that crossed a link.
    pub frame_hops: u64,
    /// Data, acknowledgements and notifications among them; no credits, PAUSE or PFC.
    pub packet_hops: u64,
    /// End-to-end frames still on cables at the end.
    pub on_cables: u64,
    /// End-to-end frames that [`Simulator::inject`] added.
    pub fed: u64,
    /// Frames that the scenario's impairments lost, corrupted, duplicated or delayed.
    pub injected: Injected,
    /// The last instant that was simulated.
    pub ended: Instant,
}

/// The far end of a cable, seen from the sender.
struct CableEnd {
    to: End,
    delay: Duration,
    impairer: Option<Impairer>,
}

impl Cable for CableEnd {
    fn impairer(&mut self) -> Option<&mut Impairer> {
        self.impairer.as_mut()
    }
}

/// A fabric on a virtual clock.
pub struct Simulator {
    devices: Vec<Box<dyn Device>>,
    /// By device.
    inputs: Vec<DeviceInputs<CableEnd>>,
    places: Vec<ShardIndex>,
    shards: usize,
    /// Length of a window: the shortest delay of a cable, at least 1 ps.
    window: Duration,
    tally: Tally,
}

impl Simulator {
    /// Builds the fabric of `wiring` on one thread. `devices` are in node order; `seed` seeds the impairments.
    ///
    /// # Panics
    /// If there are not exactly as many devices as nodes.
    pub fn new(wiring: &Wiring, devices: Vec<Box<dyn Device>>, seed: u64) -> Simulator {
        assert_eq!(wiring.nodes.len(), devices.len(), "there is one device for each node");
        let mut inputs: Vec<DeviceInputs<CableEnd>> =
            devices.iter().map(|device| DeviceInputs::new(&**device)).collect();
        for link in &wiring.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let impairer = Impairer::new(wiring, from, seed);
                let cable = CableEnd { to, delay: link.delay, impairer };
                inputs[from.node].ports[from.port.index()].cable = Some(cable);
                inputs[to.node].ports[to.port.index()].line.delay = link.delay;
            }
        }
        // Cables without delay make the window one instant, which is then run again for each round of frames at
        // it.
        let instant = Duration::from_ps(1);
        let shortest = wiring.links.iter().map(|link| link.delay).min().unwrap_or(instant);
        Simulator {
            places: assign_shards(&inputs, 1),
            inputs,
            devices,
            shards: 1,
            window: shortest.max(instant),
            tally: Tally::default(),
        }
    }

    /// Uses `threads` threads, between 1 and the number of devices. The result does not depend on it.
    pub fn on_threads(mut self, threads: usize) -> Simulator {
        self.shards = threads.clamp(1, self.inputs.len().max(1));
        self.places = assign_shards(&self.inputs, self.shards);
        self
    }

    /// Adds a frame that arrives at a port from outside the fabric, not before those added there earlier.
    /// Frames on the cable are not delayed by it.
    pub fn inject(&mut self, end: End, frame: Frame, arrives: Instant) {
        self.tally.fed += u64::from(!is_link_local(frame.kind, &frame.octets));
        self.inputs[end.node].feed(end.port, arrives, frame);
    }

    /// Runs until `stop`, or until `progress` returns `Break`. `progress` is called every 256 windows at most,
    /// with the instant reached.
    pub fn run(
        &mut self,
        stop: Instant,
        observer: &mut dyn Observer,
        mut progress: impl FnMut(Instant) -> ControlFlow<()>,
    ) -> Tally {
        watch(&mut self.inputs, observer);
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

    /// Runs at most 256 windows, none beyond `until`, and replays their observations to the observer. Returns
    /// the instant up to which everything has happened.
    fn stretch(&mut self, until: Instant, observer: &mut dyn Observer) -> Instant {
        let mut members: Vec<Vec<Station<'_, CableEnd>>> =
            (0..self.shards).map(|_| Vec::new()).collect();
        let seated = self.devices.iter_mut().zip(&mut self.inputs).zip(&self.places).enumerate();
        for (node, ((device, inputs), home)) in seated {
            members[home.shard as usize].push(Station { node, device: &mut **device, inputs });
        }
        let (places, count, window) = (&self.places, self.shards, self.window);
        let shard = |(number, members)| Shard::new(number, members, places, count);
        let mut shards: Vec<Shard<'_>> = members.into_iter().enumerate().map(shard).collect();
        let barrier = WindowBarrier::new(count);
        let (first, others) = shards.split_first_mut().expect("there is at least one shard");
        let now = std::thread::scope(|scope| {
            for shard in others {
                scope.spawn(|| shard.run(until, window, &barrier));
            }
            first.run(until, window, &barrier)
        });
        let mut observations = Vec::new();
        for shard in &mut shards {
            self.tally.frame_hops += shard.seen.frame_hops;
            self.tally.packet_hops += shard.seen.packet_hops;
            observations.append(&mut shard.seen.observations);
        }
        drop(shards);
        replay(observer, &mut observations);
        now
    }

    fn finish(&mut self, at: Instant) -> Tally {
        self.tally.ended = at;
        let in_flight = self.inputs.iter().flat_map(DeviceInputs::in_flight);
        let travels = |frame: &&Frame| !is_link_local(frame.kind, &frame.octets);
        self.tally.on_cables = in_flight.filter(travels).count() as u64;
        let cables = self.inputs.iter().flat_map(DeviceInputs::cables);
        self.tally.injected = Injected::by(cables.filter_map(|cable| cable.impairer.as_ref()));
        self.tally
    }

    /// The devices in node order, for reading their counters after the run.
    pub fn devices(&mut self) -> &mut Vec<Box<dyn Device>> {
        &mut self.devices
    }
}

/// Assigns devices to `shards` shards, each device to the shard with the smallest load so far.
fn assign_shards(inputs: &[DeviceInputs<CableEnd>], shards: usize) -> Vec<ShardIndex> {
    let mut weights = vec![0; shards];
    let mut members = vec![0; shards];
    let assign_shards = inputs.iter().map(|inputs| {
        let lightest = (0..shards).min_by_key(|shard| weights[*shard]).unwrap_or_default();
        weights[lightest] += inputs.weight();
        members[lightest] += 1;
        ShardIndex { shard: lightest as u32, member: members[lightest] - 1 }
    });
    assign_shards.collect()
}

#[cfg(test)]
mod tests;
