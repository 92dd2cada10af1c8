//! Observers of a run: they see edges, events and frames, and cannot change the run.

use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;

/// Where and when the last bit of a frame passed a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Index into the worker's own devices.
    pub device: usize,
    /// The port.
    pub port: PortNumber,
    /// Whether the device sent or received it.
    pub direction: Direction,
    /// When.
    pub at: Instant,
    /// The instant of the step in which the device sent or received it. A frame is handed over when its transmission
    /// begins, so a frame sent has an earlier one than `at`. Observers see frames in this order.
    pub handled: Instant,
}

impl Passage {
    /// A passage that is handled when it happens.
    pub const fn at_once(
        device: usize,
        port: PortNumber,
        direction: Direction,
        at: Instant,
    ) -> Passage {
        Passage { device, port, direction, at, handled: at }
    }
}

/// An observer of the devices of one worker. `device` is an index into the worker's own devices. By default it
/// observes nothing.
pub trait Observer {
    /// The next bin edge or measuring edge that has not been sampled yet; `None` after the last.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Samples every edge that is due at `now`. Called before anything at a later instant happens.
    fn sample(&mut self, _now: Instant, _devices: &mut [Box<dyn Device>]) {}

    /// Something happened in a device, in its step at `handled`.
    fn event(&mut self, _device: usize, _event: DeviceEvent, _handled: Instant) {}

    /// Whether [`Observer::frame`] is to be called for frames at this port.
    fn wants_frames(&self, _device: usize, _port: PortNumber) -> bool {
        false
    }

    /// A frame passed a port.
    fn frame(&mut self, _frame: &Frame, _passage: &Passage) {}
}

/// Observes nothing: for a simulator whose devices are read after the run, or that is only timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
