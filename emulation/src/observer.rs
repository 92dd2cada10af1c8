//! Observers of a run: they see edges, events and frames, and cannot change the run.

use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;

/// An observer of the devices of one worker. `device` is an index into the worker's own devices.
pub trait Observer {
    /// The next bin edge or measuring edge that has not been sampled yet; `None` after the last.
    fn next_due(&self) -> Option<Instant>;

    /// Samples every edge that is due at `now`. Called before anything at a later instant happens.
    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]);

    /// Something happened in a device.
    fn event(&mut self, device: usize, event: DeviceEvent);

    /// Whether [`Observer::frame`] is to be called for frames at this port.
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
}

/// Observes nothing: for a simulator whose devices are read after the run, or that is only timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn next_due(&self) -> Option<Instant> {
        None
    }

    fn sample(&mut self, _: Instant, _: &mut [Box<dyn Device>]) {}

    fn event(&mut self, _: usize, _: DeviceEvent) {}

    fn wants_frames(&self, _: usize, _: PortNumber) -> bool {
        false
    }

    fn frame(&mut self, _: usize, _: PortNumber, _: Direction, _: &Frame, _: Instant) {}
}
