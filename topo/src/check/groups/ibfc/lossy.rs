//! A fabric of real devices, each of which is deaf to every k-th flow-control packet at every port.

use crate::check::bench::devices::{FRAME_TIME, MTU, burst, class, link, nic, switch};
use crate::check::case::Failure;
use emulation::simulator::Simulator;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use emulation::witness::Unwatched;
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::counters::DeviceReading;
use proto::device::{Departure, Device};
use proto::events::DeviceEvent;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switchd::switch::Switch;

/// A device that is deaf to every k-th flow-control packet that reaches a port.
struct Deaf<D> {
    device: D,
    every: Option<u64>,
    /// By port.
    arrived: Vec<u64>,
    lost: Arc<AtomicU64>,
}

impl<D: Device> Deaf<D> {
    fn boxed(device: D, every: Option<u64>, lost: &Arc<AtomicU64>) -> Box<dyn Device>
    where
        D: 'static,
    {
        let arrived = vec![0; device.ports()];
        Box::new(Deaf { device, every, arrived, lost: Arc::clone(lost) })
    }
}

impl<D: Device> Device for Deaf<D> {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        if frame.kind == FrameKind::InfinibandLink {
            let count = &mut self.arrived[port.index()];
            *count += 1;
            if self.every.is_some_and(|every| count.is_multiple_of(every)) {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.device.handle_frame(port, frame, arrived, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.device.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.device.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.device.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.device.poll_event()
    }

    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.device.read(now, reading);
    }

    fn restart_watermarks(&mut self) {
        self.device.restart_watermarks();
    }

    fn ports(&self) -> usize {
        self.device.ports()
    }
}

/// What became of the packets of three senders into one receiver.
pub struct Fabric {
    /// Messages delivered.
    pub delivered: u64,
    /// Those among them in the second half.
    pub delivered_late: u64,
    /// Packets lost anywhere, for any reason.
    pub dropped: u64,
    /// Packets out of sequence.
    pub reordered: u64,
    /// Flow-control packets that were not heard.
    pub flow_control_lost: u64,
}

const SENDERS: usize = 3;
/// Fabric time of one run.
const LENGTH: Duration = Duration::from_us(5_000);

/// Three NICs with endless UC traffic to a fourth by way of one switch whose buffers hold four full
/// frames, so that credit decides everything.
pub fn run_incast(every: Option<u64>) -> Result<Fabric, Failure> {
    let lost = Arc::new(AtomicU64::new(0));
    let mut narrow = link(1);
    narrow.buffer = proto::units::Bytes::new(4 * 33 * 64);
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for lid in 1..=SENDERS as u16 + 1 {
        let mut config = nic(lid, 1);
        config.link = narrow.clone();
        config.classes = vec![class(Transport::Uc, 0)];
        if usize::from(lid) <= SENDERS {
            config.traffic.push(burst(SENDERS as u16 + 1, 0, MTU as u64, 0, Instant::ZERO));
        }
        let device = Nic::new(config).map_err(|error| error.to_string())?;
        devices.push(Deaf::boxed(device, every, &lost));
    }
    let mut config = switch(SENDERS as u8 + 1, 1);
    config.ports.iter_mut().for_each(|port| port.link = narrow.clone());
    let device = Switch::new(config).map_err(|error| error.to_string())?;
    devices.push(Deaf::boxed(device, every, &lost));

    let mut simulator = Simulator::new(&wiring(), devices, 1);
    let half = Instant::ZERO + Duration::from_ps(LENGTH.as_ps() / 2);
    let end = Instant::ZERO + LENGTH;
    let halfway = run(&mut simulator, half);
    let mut fabric = run(&mut simulator, end);
    fabric.delivered_late = fabric.delivered - halfway.delivered;
    fabric.flow_control_lost = lost.load(Ordering::Relaxed);
    Ok(fabric)
}

fn run(simulator: &mut Simulator, until: Instant) -> Fabric {
    simulator.run(until, &mut Unwatched, |_| ControlFlow::Continue(()));
    let mut fabric =
        Fabric { delivered: 0, delivered_late: 0, dropped: 0, reordered: 0, flow_control_lost: 0 };
    for device in simulator.devices() {
        let mut reading = DeviceReading::default();
        device.read(until, &mut reading);
        fabric.dropped += reading.ports.iter().map(|port| port.drops.total()).sum::<u64>();
        fabric.delivered += reading.receptions.iter().map(|flow| flow.messages).sum::<u64>();
        fabric.reordered += reading.receptions.iter().map(|flow| flow.reordered).sum::<u64>();
    }
    fabric
}

fn wiring() -> Wiring {
    let hosts = SENDERS + 1;
    let node = |name: String, kind, ports| NodeWiring { name, kind, ports, level: 0 };
    let mut nodes: Vec<_> = (0..hosts).map(|h| node(format!("h{h}"), NodeKind::Nic, 1)).collect();
    nodes.push(node("s0".to_owned(), NodeKind::Switch, hosts as u8));
    let cable = |host: usize| LinkWiring {
        a: End { node: host, port: PortNumber::from_index(0) },
        b: End { node: hosts, port: PortNumber::from_index(host) },
        delay: Duration::from_ns(100),
        frame_time: FRAME_TIME,
    };
    Wiring { nodes, links: (0..hosts).map(cable).collect(), impairments: Vec::new() }
}
