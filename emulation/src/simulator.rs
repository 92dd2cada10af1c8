//! The simulator: all devices in one process on a virtual clock, one event after another.
//!
//! Every cable end and every device timer has a fixed slot in a [`Calendar`]. Events at
//! one instant run by slot: device by device, a device's ports before its timer, and a cable's
//! frames in the order they were sent. So a run depends on nothing but the scenario and its seed.

use crate::cable::impairment::{Impairer, Injected};
use crate::calendar::Calendar;
use crate::wiring::{End, Wiring};
use crate::witness::Witness;
use proto::device::Device;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// A cable end as the frames that reach it, in the order in which they do.
#[derive(Default)]
struct Approach {
    frames: VecDeque<(Instant, Frame)>,
    /// When the last that was put on the cable arrives: a cable keeps order, so what is delayed
    /// delays what follows.
    last: Instant,
    /// The same for those from outside.
    last_fed: Instant,
}

/// The far end of a cable, seen from the sender.
struct Lead {
    to: End,
    delay: Duration,
    impairer: Option<Impairer>,
}

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
    calendar: Calendar,
    /// By device: the slot of its first port; its timer's slot is behind its last port.
    first_slot: Vec<u32>,
    /// By slot: which device, and which port unless it is a timer.
    slots: Vec<(usize, Option<PortNumber>)>,
    /// By slot.
    approaches: Vec<Approach>,
    /// By slot of the sending end.
    leads: Vec<Option<Lead>>,
    /// By slot: frames passing here are shown to the witness.
    watched: Vec<bool>,
    tally: Tally,
}

impl Simulator {
    /// The fabric of `wiring`, its devices in node order.
    ///
    /// # Panics
    /// If there are not exactly as many devices as nodes.
    pub fn new(wiring: &Wiring, devices: Vec<Box<dyn Device>>, seed: u64) -> Simulator {
        assert_eq!(wiring.nodes.len(), devices.len(), "a node is a device");
        let mut slots = Vec::new();
        let mut first_slot = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            first_slot.push(slots.len() as u32);
            slots.extend((0..device.ports()).map(|p| (index, Some(PortNumber::from_index(p)))));
            slots.push((index, None));
        }
        let mut simulator = Simulator {
            calendar: Calendar::new(slots.len()),
            approaches: slots.iter().map(|_| Approach::default()).collect(),
            leads: slots.iter().map(|_| None).collect(),
            watched: vec![false; slots.len()],
            first_slot,
            slots,
            devices,
            tally: Tally::default(),
        };
        for link in &wiring.links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let impairer = Impairer::new(wiring, from, seed);
                let slot = simulator.slot(from);
                simulator.leads[slot] = Some(Lead { to, delay: link.delay, impairer });
            }
        }
        simulator
    }

    fn slot(&self, end: End) -> usize {
        self.first_slot[end.node] as usize + end.port.index()
    }

    fn timer_slot(&self, device: usize) -> usize {
        self.first_slot[device] as usize + self.devices[device].ports()
    }

    /// Lets a frame from outside arrive at a port, not before those injected there earlier. It
    /// does not hold up what comes on the cable.
    pub fn inject(&mut self, end: End, frame: Frame, arrives: Instant) {
        self.tally.fed += u64::from(frame.kind != FrameKind::InfinibandLink);
        let slot = self.slot(end);
        let last_fed = &mut self.approaches[slot].last_fed;
        *last_fed = arrives.max(*last_fed);
        let arrives = *last_fed;
        self.approach(slot, arrives, frame);
    }

    /// Runs until `stop`, or until `progress` breaks off; it is asked every few thousand events.
    pub fn run(
        &mut self,
        stop: Instant,
        witness: &mut dyn Witness,
        mut progress: impl FnMut(Instant) -> ControlFlow<()>,
    ) -> Tally {
        const EVENTS_BETWEEN_PROGRESS: u32 = 8192;
        self.begin(witness);
        let mut due = witness.next_due().unwrap_or(Instant::NEVER);
        let mut until_progress = EVENTS_BETWEEN_PROGRESS;
        loop {
            let (at, slot) = self.calendar.first();
            if at >= stop || at >= due {
                let edge = due.min(stop);
                if edge >= stop {
                    break;
                }
                witness.sample(edge, &mut self.devices);
                due = witness.next_due().unwrap_or(Instant::NEVER);
                continue;
            }
            self.step(at, slot, witness);
            until_progress -= 1;
            if until_progress == 0 {
                until_progress = EVENTS_BETWEEN_PROGRESS;
                self.tally.ended = at;
                if progress(at).is_break() {
                    return self.finish(at);
                }
            }
        }
        self.finish(stop)
    }

    fn begin(&mut self, witness: &dyn Witness) {
        for (slot, (device, port)) in self.slots.iter().enumerate() {
            self.watched[slot] = port.is_some_and(|port| witness.wants_frames(*device, port));
        }
        for device in 0..self.devices.len() {
            self.calendar.set(self.timer_slot(device), Instant::ZERO);
        }
    }

    fn finish(&mut self, at: Instant) -> Tally {
        self.tally.ended = at;
        let flying = self.approaches.iter().flat_map(|approach| &approach.frames);
        self.tally.on_cables =
            flying.filter(|(_, frame)| frame.kind != FrameKind::InfinibandLink).count() as u64;
        let impairers = self.leads.iter().flatten().filter_map(|lead| lead.impairer.as_ref());
        self.tally.injected = Injected::default();
        impairers.for_each(|impairer| self.tally.injected.merge(&impairer.injected));
        self.tally
    }

    /// The devices, to be read at the end.
    pub fn devices(&mut self) -> &mut [Box<dyn Device>] {
        &mut self.devices
    }

    fn step(&mut self, at: Instant, slot: usize, witness: &mut dyn Witness) {
        let (device, port) = self.slots[slot];
        match port {
            Some(port) => {
                let frame = self.land(slot);
                if self.watched[slot] {
                    witness.frame(device, port, Direction::Rx, &frame, at);
                }
                self.devices[device].handle_frame(port, frame, at, at);
            }
            None => self.devices[device].handle_timeout(at),
        }
        while let Some(departure) = self.devices[device].poll_transmit(at) {
            let from = self.first_slot[device] as usize + departure.port.index();
            if self.watched[from] {
                let frame = &departure.frame;
                witness.frame(device, departure.port, Direction::Tx, frame, departure.at);
            }
            self.launch(from, departure.at, departure.frame);
        }
        while let Some(event) = self.devices[device].poll_event() {
            witness.event(device, event);
        }
        let wake = self.devices[device].poll_timeout().unwrap_or(Instant::NEVER);
        self.calendar.set(self.timer_slot(device), wake.max(at));
    }

    /// Takes the frame that has reached the end `slot`.
    fn land(&mut self, slot: usize) -> Frame {
        let frames = &mut self.approaches[slot].frames;
        let (_, frame) = frames.pop_front().expect("a slot with an instant has a frame");
        let next = frames.front().map_or(Instant::NEVER, |(arrives, _)| *arrives);
        self.calendar.set(slot, next);
        self.tally.frame_hops += 1;
        self.tally.packet_hops += u64::from(frame.kind != FrameKind::InfinibandLink);
        frame
    }

    /// Puts a frame on the cable at the end `from`.
    fn launch(&mut self, from: usize, left: Instant, frame: Frame) {
        // A port without a cable talks to nobody.
        let Some(lead) = &mut self.leads[from] else { return };
        let (to, delay) = (lead.to, lead.delay);
        let slot = self.first_slot[to.node] as usize + to.port.index();
        let Some(impairer) = &mut lead.impairer else {
            return self.fly(slot, left + delay, frame);
        };
        let impaired = impairer.apply(frame, left);
        for frame in impaired.frames.into_iter().flatten() {
            self.fly(slot, impaired.at + delay, frame);
        }
    }

    /// A frame is on its cable.
    fn fly(&mut self, slot: usize, arrives: Instant, frame: Frame) {
        let last = &mut self.approaches[slot].last;
        *last = arrives.max(*last);
        let arrives = *last;
        self.approach(slot, arrives, frame);
    }

    /// Puts a frame in its place among those that reach an end.
    fn approach(&mut self, slot: usize, arrives: Instant, frame: Frame) {
        let frames = &mut self.approaches[slot].frames;
        let place = if frames.back().is_none_or(|(last, _)| *last <= arrives) {
            frames.push_back((arrives, frame));
            frames.len() - 1
        } else {
            // Only frames from outside, put in long before they are due, are ever overtaken.
            let place = frames.partition_point(|(at, _)| *at <= arrives);
            frames.insert(place, (arrives, frame));
            place
        };
        if place == 0 {
            self.calendar.set(slot, arrives);
        }
    }
}

#[cfg(test)]
mod tests;
