//! A device's seat: what comes towards each of its ports, and when it wants to be called.

use crate::cable::impairment::Impairer;
use crate::wiring::End;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// The far end of a cable, seen from the sender.
pub(super) struct Lead {
    pub to: End,
    pub delay: Duration,
    pub impairer: Option<Impairer>,
}

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

/// What is due at a seat.
pub(super) enum Due {
    /// The first frame on its way to this port.
    Frame(PortNumber),
    /// The device's own timer.
    Timer,
}

/// All that the simulator keeps about one device.
pub(super) struct Seat {
    /// When the first frame reaches each port; the device's timer behind the last.
    due: Vec<Instant>,
    approaches: Vec<Approach>,
    /// By port: where its cable leads. A port without one talks to nobody.
    pub leads: Vec<Option<Lead>>,
    /// By port: frames passing here are shown to the observer.
    pub watched: Vec<bool>,
}

impl Seat {
    /// The seat of a device with so many ports, which wants to be called at the start.
    pub fn new(ports: usize) -> Seat {
        let mut due = vec![Instant::NEVER; ports + 1];
        due[ports] = Instant::ZERO;
        Seat {
            due,
            approaches: (0..ports).map(|_| Approach::default()).collect(),
            leads: (0..ports).map(|_| None).collect(),
            watched: vec![false; ports],
        }
    }

    /// How much there is to look after: the ports and the timer.
    pub fn weight(&self) -> usize {
        self.due.len()
    }

    /// When the next thing is due here, and what. At one instant ports go in order, and before the
    /// timer.
    pub fn next(&self) -> (Instant, Due) {
        let (at, slot) = Instant::earliest(&self.due);
        let is_frame = slot < self.approaches.len();
        (at, if is_frame { Due::Frame(PortNumber::from_index(slot)) } else { Due::Timer })
    }

    /// When the device wants to be called.
    pub fn set_timer(&mut self, at: Instant) {
        let timer = self.approaches.len();
        self.due[timer] = at;
    }

    /// Takes the frame that has reached `port`.
    ///
    /// # Panics
    /// If there is none: [`Seat::next`] says whether there is.
    pub fn land(&mut self, port: PortNumber) -> Frame {
        let frames = &mut self.approaches[port.index()].frames;
        let (_, frame) = frames.pop_front().expect("a port with an instant has a frame");
        self.due[port.index()] = frames.front().map_or(Instant::NEVER, |(arrives, _)| *arrives);
        frame
    }

    /// A frame is on the cable to `port`, behind those that are there. Gives its arrival.
    pub fn fly(&mut self, port: PortNumber, arrives: Instant, frame: Frame) -> Instant {
        let last = &mut self.approaches[port.index()].last;
        *last = arrives.max(*last);
        let arrives = *last;
        self.approach(port, arrives, frame);
        arrives
    }

    /// A frame from outside will reach `port`, not before those fed there earlier. It does not hold
    /// up what comes on the cable.
    pub fn feed(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let last = &mut self.approaches[port.index()].last_fed;
        *last = arrives.max(*last);
        let arrives = *last;
        self.approach(port, arrives, frame);
    }

    /// Puts a frame in its place among those that reach a port.
    fn approach(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let frames = &mut self.approaches[port.index()].frames;
        if frames.back().is_none_or(|(last, _)| *last <= arrives) {
            frames.push_back((arrives, frame));
        } else {
            // Only frames from outside, put in long before they are due, are ever overtaken.
            let place = frames.partition_point(|(at, _)| *at <= arrives);
            frames.insert(place, (arrives, frame));
        }
        self.due[port.index()] = self.due[port.index()].min(arrives);
    }

    /// Everything that has not arrived yet.
    pub fn flying(&self) -> impl Iterator<Item = &Frame> {
        self.approaches.iter().flat_map(|approach| &approach.frames).map(|(_, frame)| frame)
    }
}
