//! Who watches a run: what a driver tells the recorder, and when.

use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use serde::Serialize;

/// An observer of one worker's devices. A device's index is its place among that worker's own.
///
/// The driver calls [`Witness::sample`] at every due instant before anything else that happens at
/// that instant, so a window is closed on the left and open on the right.
pub trait Witness {
    /// What is left when the run is over.
    type Recording: Serialize;

    /// When the next sample is due; it must move on with every [`Witness::sample`].
    fn next_due(&self) -> Option<Instant>;

    /// The due instant has come; `now` is it, or later where the worker was already past it.
    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]);

    /// A device told its shell something.
    fn event(&mut self, device: usize, event: DeviceEvent);

    /// A frame left `port` at `at`, or reached it then.
    fn frame(
        &mut self,
        device: usize,
        port: PortNumber,
        direction: Direction,
        frame: &Frame,
        at: Instant,
    );

    /// The run is over at `now`.
    fn finish(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) -> Self::Recording;
}

/// Sees nothing and keeps nothing: for calibration and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwitnessed;

impl Witness for Unwitnessed {
    type Recording = ();

    fn next_due(&self) -> Option<Instant> {
        None
    }

    fn sample(&mut self, _: Instant, _: &mut [Box<dyn Device>]) {}

    fn event(&mut self, _: usize, _: DeviceEvent) {}

    fn frame(&mut self, _: usize, _: PortNumber, _: Direction, _: &Frame, _: Instant) {}

    fn finish(&mut self, _: Instant, _: &mut [Box<dyn Device>]) {}
}
