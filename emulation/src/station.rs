//! A device with its inputs: one step of it, and what an observer is to see of that step.
//!
//! The simulator and the exact worker ([`crate::exact`]) drive devices by this code. Their runs are equal because a
//! device computes from the order and the instants of its inputs alone, and both come from [`DeviceInputs`].

use crate::cable::impairment::Impairer;
use crate::cable::is_link_local;
use crate::inputs::{DeviceInputs, Due};
use crate::observer::{Observer, Passage};
use proto::device::{Departure, Device, Step};
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;

/// A cable as its sending end knows it.
pub(crate) trait Cable {
    /// The impairments of its frames.
    fn impairer(&mut self) -> Option<&mut Impairer>;
}

/// A device and its inputs.
pub(crate) struct Station<'a, C> {
    /// The index by which the observer knows the device.
    pub node: usize,
    pub device: &'a mut dyn Device,
    pub inputs: &'a mut DeviceInputs<C>,
}

/// An event or frame for the observer.
pub(crate) struct Observation {
    /// The instant of the step that produced it.
    at: Instant,
    node: usize,
    what: Observed,
}

/// What the observer sees.
enum Observed {
    Event(DeviceEvent),
    Frame(Frame, Passage),
}

/// What happened in some steps.
#[derive(Default)]
pub(crate) struct Seen {
    /// For the observer, in the order in which it happened.
    pub observations: Vec<Observation>,
    /// Frames of every kind that crossed a link.
    pub frame_hops: u64,
    /// The same without credits, PAUSE and PFC.
    pub packet_hops: u64,
}

impl Seen {
    fn event(&mut self, node: usize, event: DeviceEvent, at: Instant) {
        let what = Observed::Event(event);
        self.observations.push(Observation { at, node, what });
    }

    fn frame(&mut self, node: usize, frame: &Frame, passage: Passage) {
        let what = Observed::Frame(frame.clone(), passage);
        self.observations.push(Observation { at: passage.handled, node, what });
    }
}

impl<C: Cable> Station<'_, C> {
    /// Handles the input `due` at `at`. `send` gets each frame that leaves, its cable, and when its last bit leaves.
    pub fn step(
        &mut self,
        at: Instant,
        due: Due,
        seen: &mut Seen,
        mut send: impl FnMut(&C, Frame, Instant),
    ) {
        let Station { node, device, inputs } = self;
        match due {
            Due::Frame(port) => {
                let (arrived, frame) = inputs.pop_arrival(port);
                let is_local = is_link_local(frame.kind, &frame.octets);
                seen.frame_hops += 1;
                seen.packet_hops += u64::from(!is_local);
                let at_port = &mut inputs.ports[port.index()];
                if let Some(event) = at_port.line.arrives(&frame, is_local, arrived, Step::at(at)) {
                    seen.event(*node, *event, at);
                }
                if at_port.is_watched {
                    let direction = Direction::Rx;
                    let passage = Passage { device: *node, port, direction, at, handled: at };
                    seen.frame(*node, &frame, passage);
                }
                device.handle_frame(port, frame, at, at);
            }
            Due::Timer => device.handle_timeout(at),
        }
        while let Some(departure) = device.poll_transmit(at) {
            depart(*node, inputs, at, departure, seen, &mut send);
        }
        while let Some(event) = device.poll_event() {
            seen.event(*node, event, at);
        }
        inputs.set_timer(device.poll_timeout().unwrap_or(Instant::NEVER).max(at));
    }
}

/// Puts a frame on its cable.
fn depart<C: Cable>(
    node: usize,
    inputs: &mut DeviceInputs<C>,
    now: Instant,
    departure: Departure,
    seen: &mut Seen,
    send: &mut impl FnMut(&C, Frame, Instant),
) {
    let port = departure.port;
    let from = &mut inputs.ports[port.index()];
    if let Some(event) = from.line.departs(&departure.frame, departure.at, Step::at(now)) {
        seen.event(node, *event, now);
    }
    // Neither a neighbour that runs in another thread nor one in another process can go back.
    let at = departure.at.max(now);
    if from.is_watched {
        let direction = Direction::Tx;
        let passage = Passage { device: node, port, direction, at, handled: now };
        seen.frame(node, &departure.frame, passage);
    }
    let Some(cable) = &mut from.cable else { return };
    let Some(impairer) = cable.impairer() else { return send(cable, departure.frame, at) };
    let impaired = impairer.apply(departure.frame, at);
    for frame in impaired.frames.into_iter().flatten() {
        send(cable, frame, impaired.at);
    }
}

/// Notes at which ports of the devices the observer wants frames.
pub(crate) fn watch<C>(inputs: &mut [DeviceInputs<C>], observer: &dyn Observer) {
    for (node, inputs) in inputs.iter_mut().enumerate() {
        for (port, state) in inputs.ports.iter_mut().enumerate() {
            state.is_watched = observer.wants_frames(node, PortNumber::from_index(port));
        }
    }
}

/// Replays observations in the order of their instants, and at one instant by device. Empties the list.
pub(crate) fn replay(observer: &mut dyn Observer, observations: &mut Vec<Observation>) {
    observations.sort_by_key(|sight| (sight.at, sight.node));
    for Observation { at, node, what } in observations.drain(..) {
        match what {
            Observed::Event(event) => observer.event(node, event, at),
            Observed::Frame(frame, passage) => observer.frame(&frame, &passage),
        }
    }
}
