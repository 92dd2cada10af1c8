//! One step of a device: its input, and what it sends and reports afterwards.

use super::Worker;
use crate::cable::is_link_local;
use crate::cable::memory::Flight;
use crate::observer::{Observer, Passage};
use proto::device::Step;
use proto::events::Direction;
use proto::units::Instant;

impl Worker {
    /// Hands the arrival that is due to its device.
    pub(super) fn arrive(&mut self) {
        let Some(Flight { at, device, port, frame, .. }) = self.arrivals.pop() else { return };
        if at < self.now {
            let line = self.run.lines.outgoing(device, port);
            self.meter.handled_late(
                &self.run.clock,
                at,
                self.now,
                line.map(|line| line.frame_time),
            );
        }
        let (direction, handled) = (Direction::Rx, self.now);
        self.observe_frame(&frame, Passage { device, port, direction, at, handled });
        let step = Step::late(at, self.now);
        let is_local = is_link_local(frame.kind, &frame.octets);
        let law = &mut self.laws[device][port.index()];
        if let Some(event) = law.arrives(&frame, is_local, at, step) {
            self.run.recorder.event(device, *event, self.now);
        }
        self.run.devices[device].handle_frame(port, frame, at, self.now);
        self.collect_outputs(device, step);
    }

    /// Collects departures, events and the timer of a device after a call to it in `step`.
    pub(super) fn collect_outputs(&mut self, index: usize, step: Step) {
        let device = &mut self.run.devices[index];
        while let Some(departure) = device.poll_transmit(self.now) {
            let line = &mut self.laws[index][departure.port.index()];
            if let Some(event) = line.departs(&departure.frame, departure.at, step) {
                self.run.recorder.event(index, *event, self.now);
            }
            self.departures.push(departure.at, index, departure.port, departure.frame);
        }
        while let Some(event) = device.poll_event() {
            self.run.recorder.event(index, event, self.now);
        }
        self.wakes.set(index, device.poll_timeout().unwrap_or(Instant::NEVER));
    }
}
