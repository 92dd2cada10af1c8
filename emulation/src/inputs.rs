//! The inputs of a device: frames on the way to each of its ports, and its timer.

use crate::physics::{Line, lines_of};
use proto::device::Device;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::collections::VecDeque;

/// When the last bit of a frame left its sender, and when it reaches the receiver.
pub(crate) type Times = (Instant, Instant);

/// Frames on the way to one port, in the order of arrival.
#[derive(Default)]
struct PortQueue {
    frames: VecDeque<(Instant, Frame)>,
    /// Arrival of the last frame put on the cable. A cable keeps order, so a delayed frame delays those behind
    /// it.
    last: Instant,
    /// The same for frames from outside.
    last_fed: Instant,
}

/// The next input of a device.
pub(crate) enum Due {
    /// The first frame on the way to this port.
    Frame(PortNumber),
    /// The device's own timer.
    Timer,
}

/// Everything the simulator, or an exact worker, keeps about one device. `C` is what it knows of a cable.
pub(crate) struct DeviceInputs<C> {
    /// Arrival of the first frame at each port; the timer is behind the last port.
    due: Vec<Instant>,
    queues: Vec<PortQueue>,
    /// By port: the far end of its cable; `None` without a cable.
    pub cables: Vec<Option<C>>,
    /// By port: frames here are shown to the observer.
    pub watched: Vec<bool>,
    /// By port: the laws that frames obey.
    pub lines: Vec<Line>,
}

impl<C> DeviceInputs<C> {
    /// The inputs of `device`, whose timer is due at instant zero.
    pub fn new(device: &dyn Device) -> DeviceInputs<C> {
        let ports = device.ports();
        let mut due = vec![Instant::NEVER; ports + 1];
        due[ports] = Instant::ZERO;
        DeviceInputs {
            due,
            queues: (0..ports).map(|_| PortQueue::default()).collect(),
            cables: (0..ports).map(|_| None).collect(),
            watched: vec![false; ports],
            lines: lines_of(device),
        }
    }

    /// The load of this device, for assigning it to a shard: its ports and its timer.
    pub fn weight(&self) -> usize {
        self.due.len()
    }

    /// The instant of the next input, and which it is. At one instant ports go in order and before the timer.
    pub fn next(&self) -> (Instant, Due) {
        let (at, slot) = Instant::earliest(&self.due);
        let is_frame = slot < self.queues.len();
        (at, if is_frame { Due::Frame(PortNumber::from_index(slot)) } else { Due::Timer })
    }

    /// Sets the instant of the device's timer; [`Instant::NEVER`] for none.
    pub(crate) fn set_timer(&mut self, at: Instant) {
        let timer = self.queues.len();
        self.due[timer] = at;
    }

    /// Removes the first frame on the way to `port`. Returns when it arrives, and the frame.
    ///
    /// # Panics
    /// If there is none; [`DeviceInputs::next`] returns whether there is one.
    pub(crate) fn pop_arrival(&mut self, port: PortNumber) -> (Instant, Frame) {
        let frames = &mut self.queues[port.index()].frames;
        let first = frames.pop_front().expect("a port with a pending instant has a frame");
        self.due[port.index()] = frames.front().map_or(Instant::NEVER, |(arrives, _)| *arrives);
        first
    }

    /// Adds a frame that the cable to `port` carries, behind those on it; its last bit left at `left`. Returns its
    /// arrival, which those in front may delay.
    pub fn push_arrival(
        &mut self,
        port: PortNumber,
        (left, arrives): Times,
        frame: Frame,
    ) -> Instant {
        self.lines[port.index()].approaches(left, arrives);
        let last = &mut self.queues[port.index()].last;
        *last = arrives.max(*last);
        let arrives = *last;
        self.insert(port, arrives, frame);
        arrives
    }

    /// Adds a frame from outside, which arrives not before those fed to `port` earlier. It does not delay
    /// frames on the cable.
    pub fn feed(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let last = &mut self.queues[port.index()].last_fed;
        *last = arrives.max(*last);
        let arrives = *last;
        self.insert(port, arrives, frame);
    }

    /// Inserts a frame by its arrival.
    fn insert(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let frames = &mut self.queues[port.index()].frames;
        if frames.back().is_none_or(|(last, _)| *last <= arrives) {
            frames.push_back((arrives, frame));
        } else {
            // Only frames from outside, which are added long before they are due, are overtaken.
            let place = frames.partition_point(|(at, _)| *at <= arrives);
            frames.insert(place, (arrives, frame));
        }
        self.due[port.index()] = self.due[port.index()].min(arrives);
    }

    /// All frames that have not arrived yet.
    pub fn in_flight(&self) -> impl Iterator<Item = &Frame> {
        self.queues.iter().flat_map(|insert| &insert.frames).map(|(_, frame)| frame)
    }
}
