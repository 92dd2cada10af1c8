//! A star of real devices on the virtual clock: adapters at ports 1, 2, … of one switch, and devices
//! that miss some of what reaches them or wake late.

use crate::bench::devices::FRAME_TIME;
use emulation::observer::NoObserver;
use emulation::simulator::Simulator;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::counters::{BinReading, DeviceReading};
use proto::device::{Departure, Device};
use proto::events::DeviceEvent;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::ops::ControlFlow;

/// Says whether a frame that reaches a port never gets in.
pub type Misses = Box<dyn FnMut(PortNumber, &Frame) -> bool + Send>;

/// A device that misses some of what reaches it, or whose timers are late.
pub struct Hampered<D> {
    device: D,
    misses: Misses,
    /// It is woken only at whole multiples of this.
    every: Duration,
}

/// `device`, which misses what `misses` picks.
pub fn deaf(device: impl Device + 'static, misses: Misses) -> Box<dyn Device> {
    Box::new(Hampered { device, misses, every: Duration::from_ps(1) })
}

/// `device`, woken only at whole multiples of `every`.
pub fn sleepy<D>(device: D, every: Duration) -> Hampered<D> {
    Hampered { device, misses: Box::new(|_, _| false), every }
}

impl<D: Device> Device for Hampered<D> {
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

    fn ports(&self) -> usize {
        self.device.ports()
    }
}

/// Adapters with cables of `delay` to a switch, the last of `devices`.
pub fn star(devices: Vec<Box<dyn Device>>, delay: Duration) -> Simulator {
    let hosts = devices.len() - 1;
    let node = |name: String, kind, ports| NodeWiring { name, kind, ports, level: 0 };
    let mut nodes: Vec<_> = (0..hosts).map(|h| node(format!("h{h}"), NodeKind::Nic, 1)).collect();
    nodes.push(node("s0".to_owned(), NodeKind::Switch, hosts as u8));
    let cable = |host: usize| LinkWiring {
        a: End { node: host, port: PortNumber::from_index(0) },
        b: End { node: hosts, port: PortNumber::from_index(host) },
        delay,
        frame_time: FRAME_TIME,
    };
    let links = (0..hosts).map(cable).collect();
    Simulator::new(&Wiring { nodes, links, ..Wiring::default() }, devices, 1)
}

/// Lets the star run until `until`; the counters of all its devices then.
pub fn run(star: &mut Simulator, until: Instant) -> Vec<DeviceReading> {
    star.run(until, &mut NoObserver, |_| ControlFlow::Continue(()));
    let read = |device: &mut Box<dyn Device>| {
        let mut reading = DeviceReading::default();
        device.read(until, &mut reading);
        reading
    };
    star.devices().iter_mut().map(read).collect()
}
