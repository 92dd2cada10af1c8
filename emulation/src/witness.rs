//! Whoever watches a run: told of edges, events and frames, and never able to disturb it.

use crate::capture::Capture;
use crate::recorder::Recording;
use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;

/// A watcher of the devices of one worker. `device` is an index into the worker's own devices.
pub trait Witness {
    /// The next bin edge or measuring edge not yet taken.
    fn next_due(&self) -> Option<Instant>;

    /// Takes every edge that is due at `now`. Called before anything at a later instant happens.
    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]);

    /// Something happened in a device.
    fn event(&mut self, device: usize, event: DeviceEvent);

    /// Whether frames at this port are to be shown to [`Witness::frame`].
    fn wants_frames(&self, device: usize, port: PortNumber) -> bool;

    /// A frame's last bit passed a port at `at`.
    fn frame(
        &mut self,
        device: usize,
        port: PortNumber,
        direction: Direction,
        frame: &Frame,
        at: Instant,
    );

    /// From now on frames go to `capture`, which was made for the same devices, or to none; to which they
    /// went before. Who captures nothing gives it back.
    fn capture(&mut self, capture: Option<Box<Capture>>) -> Option<Box<Capture>> {
        capture
    }

    /// What is on its way to a file gets there, for whoever reads it meanwhile. Called a few times a second of wall time.
    fn pour(&mut self) {}

    /// The run ends at `now`: last edges, last bin, all files closed.
    fn finish(self: Box<Self>, now: Instant, devices: &mut [Box<dyn Device>]) -> Recording;
}

/// Watches nothing and keeps nothing: for a simulator whose devices are asked afterwards, or that is
/// only timed.
///
/// # Panics
/// If it is asked for a recording, which only the driver of a daemon does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Witness for Unwatched {
    fn next_due(&self) -> Option<Instant> {
        None
    }

    fn sample(&mut self, _: Instant, _: &mut [Box<dyn Device>]) {}

    fn event(&mut self, _: usize, _: DeviceEvent) {}

    fn wants_frames(&self, _: usize, _: PortNumber) -> bool {
        false
    }

    fn frame(&mut self, _: usize, _: PortNumber, _: Direction, _: &Frame, _: Instant) {}

    fn finish(self: Box<Self>, _: Instant, _: &mut [Box<dyn Device>]) -> Recording {
        unreachable!("a simulator asks nobody for a recording, and no driver gets this witness")
    }
}
