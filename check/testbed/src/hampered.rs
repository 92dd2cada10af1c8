//! Devices that miss some of what reaches them, misread it, wake late or send early.

use bytes::BytesMut;
use proto::counters::{BinReading, DeviceReading};
use proto::device::{Control, Departure, Device, Instrumented};
use proto::events::DeviceEvent;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::FlowControlPacket;

/// Whether a frame that reaches a port is discarded before the device.
pub type Misses = Box<dyn FnMut(PortNumber, &Frame) -> bool + Send>;

/// A device with one of these faults.
pub struct Hampered {
    device: Box<dyn Device>,
    misses: Misses,
    /// It wakes only at whole multiples of this.
    every: Duration,
    /// Of every other frame the last bit leaves so much sooner.
    sooner: Duration,
    departures: u64,
    /// Blocks that it reads into every limit of credit.
    extra: u16,
}

impl Hampered {
    /// Without a fault.
    fn new(device: Box<dyn Device>) -> Hampered {
        let (misses, every): (Misses, _) = (Box::new(|_, _| false), Duration::from_ps(1));
        Hampered { device, misses, every, sooner: Duration::ZERO, departures: 0, extra: 0 }
    }
}

/// `device`, which misses what `misses` picks.
pub fn deaf(device: Box<dyn Device>, misses: Misses) -> Box<dyn Device> {
    Box::new(Hampered { misses, ..Hampered::new(device) })
}

/// `device`, which wakes only at whole multiples of `every`.
pub fn sleepy(device: Box<dyn Device>, every: Duration) -> Box<dyn Device> {
    Box::new(Hampered { every, ..Hampered::new(device) })
}

/// `device`, of whose frames every other leaves `sooner` than its line permits if the line is busy.
pub fn hasty(device: Box<dyn Device>, sooner: Duration) -> Box<dyn Device> {
    Box::new(Hampered { sooner, ..Hampered::new(device) })
}

/// `device`, which takes each limit of credit for `extra` blocks more.
pub fn credulous(device: Box<dyn Device>, extra: u16) -> Box<dyn Device> {
    Box::new(Hampered { extra, ..Hampered::new(device) })
}

impl Device for Hampered {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        let mut frame = frame;
        if self.extra > 0
            && let Ok(packet) = FlowControlPacket::parse_intact(&frame.octets)
        {
            let fccl = (packet.fccl + self.extra) % 4096;
            let octets = FlowControlPacket { fccl, ..packet }.to_octets();
            frame = Frame::unchecked(FrameKind::InfinibandLink, BytesMut::from(&octets[..]));
        }
        if !(self.misses)(port, &frame) {
            self.device.handle_frame(port, frame, arrived, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.device.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        let mut departure = self.device.poll_transmit(now)?;
        self.departures += 1;
        if self.departures.is_multiple_of(2) {
            departure.at = Instant::from_ps(departure.at.as_ps() - self.sooner.as_ps());
        }
        Some(departure)
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
