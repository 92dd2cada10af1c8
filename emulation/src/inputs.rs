//! The inputs of a device: frames on the way to each of its ports, and its timer.

use crate::physics::{Line, lines_of};
use proto::device::Device;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::collections::VecDeque;

/// When the last bit of a frame left its sender, and when it reaches the receiver.
pub(crate) type Times = (Instant, Instant);

/// A port: the frames on the way to it, and where those that leave it go.
pub(crate) struct Port<C> {
    /// The laws that its frames obey.
    pub line: Line,
    /// The far end of its cable; `None` without a cable.
    pub cable: Option<C>,
    /// Its frames are shown to the observer.
    pub is_watched: bool,
    /// In the order of arrival.
    frames: VecDeque<(Instant, Frame)>,
    /// Arrival of the last frame put on the cable. A cable keeps order, so a delayed frame delays those behind
    /// it.
    last: Instant,
    /// The same for frames from outside.
    last_fed: Instant,
}

impl<C> Port<C> {
    fn new(line: Line) -> Port<C> {
        let (last, last_fed) = (Instant::ZERO, Instant::ZERO);
        Port { line, cable: None, is_watched: false, frames: VecDeque::new(), last, last_fed }
    }
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
    /// By port.
    pub ports: Vec<Port<C>>,
}

impl<C> DeviceInputs<C> {
    /// The inputs of `device`, whose timer is due at instant zero.
    pub fn new(device: &dyn Device) -> DeviceInputs<C> {
        let ports: Vec<Port<C>> = lines_of(device).into_iter().map(Port::new).collect();
        let mut due = vec![Instant::NEVER; ports.len() + 1];
        due[ports.len()] = Instant::ZERO;
        DeviceInputs { due, ports }
    }

    /// The load of this device, for assigning it to a shard: its ports and its timer.
    pub fn weight(&self) -> usize {
        self.due.len()
    }

    /// The instant of the next input, and which it is. At one instant ports go in order and before the timer.
    pub fn next(&self) -> (Instant, Due) {
        let (at, slot) = Instant::earliest(&self.due);
        let is_frame = slot < self.ports.len();
        (at, if is_frame { Due::Frame(PortNumber::from_index(slot)) } else { Due::Timer })
    }

    /// Sets the instant of the device's timer; [`Instant::NEVER`] for none.
    pub(crate) fn set_timer(&mut self, at: Instant) {
        let timer = self.ports.len();
        self.due[timer] = at;
    }

    /// Removes the first frame on the way to `port`. Returns when it arrives, and the frame.
    ///
    /// # Panics
    /// If there is none; [`DeviceInputs::next`] returns whether there is one.
    pub(crate) fn pop_arrival(&mut self, port: PortNumber) -> (Instant, Frame) {
        let frames = &mut self.ports[port.index()].frames;
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
        let to = &mut self.ports[port.index()];
        to.line.approaches(left, arrives);
        to.last = arrives.max(to.last);
        let arrives = to.last;
        self.insert(port, arrives, frame);
        arrives
    }

    /// Adds a frame from outside, which arrives not before those fed to `port` earlier. It does not delay
    /// frames on the cable.
    pub fn feed(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let to = &mut self.ports[port.index()];
        to.last_fed = arrives.max(to.last_fed);
        let arrives = to.last_fed;
        self.insert(port, arrives, frame);
    }

    /// Inserts a frame by its arrival.
    fn insert(&mut self, port: PortNumber, arrives: Instant, frame: Frame) {
        let frames = &mut self.ports[port.index()].frames;
        if frames.back().is_none_or(|(last, _)| *last <= arrives) {
            frames.push_back((arrives, frame));
        } else {
            // Only frames from outside, which are added long before they are due, are overtaken.
            let place = frames.partition_point(|(at, _)| *at <= arrives);
            frames.insert(place, (arrives, frame));
        }
        self.due[port.index()] = self.due[port.index()].min(arrives);
    }

    /// The cables that the device has.
    pub fn cables(&self) -> impl Iterator<Item = &C> {
        self.ports.iter().filter_map(|port| port.cable.as_ref())
    }

    /// All frames that have not arrived yet.
    pub fn in_flight(&self) -> impl Iterator<Item = &Frame> {
        self.ports.iter().flat_map(|port| &port.frames).map(|(_, frame)| frame)
    }
}
