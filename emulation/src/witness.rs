//! Who watches a run: the contract between whatever drives devices and whoever records them.

use crate::recorder::Recording;
use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;

/// Told of everything a driver or simulator sees, in the order of fabric time.
///
/// `device` is always an index into the slice of devices that the driver hosts.
pub trait Witness {
    /// The next bin edge or measuring edge not yet taken.
    fn next_due(&self) -> Option<Instant>;

    /// Takes every edge that is due at `now`. Called before anything at a later instant happens.
    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]);

    /// An event of device `device`.
    fn event(&mut self, device: usize, event: DeviceEvent);

    /// A frame whose last bit passed `port`; called only for ports that
    /// [`Witness::wants_frames`] answers true.
    fn frame(
        &mut self,
        device: usize,
        port: PortNumber,
        direction: Direction,
        frame: &Frame,
        at: Instant,
    );

    /// Somebody captures this port.
    fn wants_frames(&self, device: usize, port: PortNumber) -> bool;

    /// The run ends at `now`: last edges, last bin, all files closed.
    fn finish(self: Box<Self>, now: Instant, devices: &mut [Box<dyn Device>]) -> Recording;
}
