//! A fabric of real devices, each of which is deaf to every k-th flow-control packet at every port.

use crate::bench::devices::{MTU, burst, class, link, nic, switch};
use crate::bench::star;
use crate::case::Failure;
use emulation::simulator::Simulator;
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switchd::switch::Switch;

/// `device`, which misses every k-th flow-control packet that reaches a port; `lost` counts them.
fn missing(
    device: impl Device + 'static,
    every: Option<u64>,
    lost: &Arc<AtomicU64>,
) -> Box<dyn Device> {
    let (mut arrived, lost) = (vec![0u64; device.ports()], Arc::clone(lost));
    let misses = move |port: PortNumber, frame: &Frame| {
        let count = &mut arrived[port.index()];
        *count += u64::from(frame.kind == FrameKind::InfinibandLink);
        let missed = frame.kind == FrameKind::InfinibandLink
            && every.is_some_and(|every| count.is_multiple_of(every));
        lost.fetch_add(u64::from(missed), Ordering::Relaxed);
        missed
    };
    star::deaf(device, Box::new(misses))
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
        devices.push(missing(device, every, &lost));
    }
    let mut config = switch(SENDERS as u8 + 1, 1);
    config.ports.iter_mut().for_each(|port| port.link = narrow.clone());
    let device = Switch::new(config).map_err(|error| error.to_string())?;
    devices.push(missing(device, every, &lost));

    let mut fabric = star::star(devices, Duration::from_ns(100));
    let half = Instant::ZERO + Duration::from_ps(LENGTH.as_ps() / 2);
    let end = Instant::ZERO + LENGTH;
    let halfway = run(&mut fabric, half);
    let mut fabric = run(&mut fabric, end);
    fabric.delivered_late = fabric.delivered - halfway.delivered;
    fabric.flow_control_lost = lost.load(Ordering::Relaxed);
    Ok(fabric)
}

fn run(star: &mut Simulator, until: Instant) -> Fabric {
    let mut fabric =
        Fabric { delivered: 0, delivered_late: 0, dropped: 0, reordered: 0, flow_control_lost: 0 };
    for reading in star::run(star, until) {
        fabric.dropped += reading.ports.iter().map(|port| port.drops.total()).sum::<u64>();
        fabric.delivered += reading.receptions.iter().map(|flow| flow.messages).sum::<u64>();
        fabric.reordered += reading.receptions.iter().map(|flow| flow.reordered).sum::<u64>();
    }
    fabric
}
