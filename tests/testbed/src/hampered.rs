//! Devices that miss some of what reaches them, or wake late.

use proto::counters::{BinReading, DeviceReading};
use proto::device::{Control, Departure, Device, Instrumented};
use proto::events::DeviceEvent;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};

/// Whether a frame that reaches a port is discarded before the device.
pub type Misses = Box<dyn FnMut(PortNumber, &Frame) -> bool + Send>;

/// A device that misses some of what reaches it, or whose timers are late.
pub struct Hampered {
    device: Box<dyn Device>,
    misses: Misses,
    /// It wakes only at whole multiples of this.
    every: Duration,
}

/// `device`, which misses what `misses` picks.
pub fn deaf(device: Box<dyn Device>, misses: Misses) -> Box<dyn Device> {
    Box::new(Hampered { device, misses, every: Duration::from_ps(1) })
}

/// `device`, which wakes only at whole multiples of `every`.
pub fn sleepy(device: Box<dyn Device>, every: Duration) -> Box<dyn Device> {
    Box::new(Hampered { device, misses: Box::new(|_, _| false), every })
}

impl Device for Hampered {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        if !(self.misses)(port, &frame) {
            self.device.handle_frame(port, frame, arrived, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.device.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.device.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let every = self.every.as_ps();
        let late =
            |due: Instant| Instant::from_ps(due.as_ps().div_ceil(every).saturating_mul(every));
        self.device.poll_timeout().map(late)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.device.poll_event()
    }

    fn ports(&self) -> usize {
        self.device.ports()
    }
}

impl Instrumented for Hampered {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.device.read(now, reading);
    }

    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.device.read_ports(now, reading);
    }

    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        self.device.read_bin(now, reading);
    }

    fn begin_bin(&mut self, now: Instant) {
        self.device.begin_bin(now);
    }
}

impl Control for Hampered {}
