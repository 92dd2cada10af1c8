//! QOS-11: every adapter to every other, on every priority.

use crate::bench::devices::ethernet::{
    FRAME, FRAME_TIME, nic, pause_of, roomy, switch, with_pause,
};
use crate::bench::devices::{MTU, burst, class};
use crate::bench::star;
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{Encapsulation, NicConfig, RoceConfig, Transport};
use nicd::nic::Nic;
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::ids::{Dscp, Lid};
use proto::units::{Bytes, Duration, Instant};
use switchd::config::{SwitchConfig, Threshold};
use switchd::switch::Switch;

const HOSTS: u8 = 6;
/// Messages of each adapter to each other on each priority.
const MESSAGES: u64 = 6;
/// Octets of each: a full frame and a short one.
const SIZE: u64 = MTU as u64 + 100;

/// An adapter that sends to all others on eight priorities; service level n goes by priority n.
fn host(number: u16) -> NicConfig {
    let dscp = (0..16).map(|level: u8| Dscp::truncate((level & 7) << 3)).collect();
    let mut config = nic(number);
    config.adapters = (1..=u16::from(HOSTS)).map(Lid::new).collect();
    config.wire = Encapsulation::Roce(RoceConfig { dscp, ..RoceConfig::default() });
    let transport = |level: u8| if level < 4 { Transport::Rc } else { Transport::Uc };
    config.classes = (0..8).map(|level| class(transport(level), level)).collect();
    let others = (1..=u16::from(HOSTS)).filter(|other| *other != number);
    let pairs = others.flat_map(|to| (0..8).map(move |class| (to, class)));
    config.traffic =
        pairs.map(|(to, class)| burst(to, class, SIZE, MESSAGES, Instant::ZERO)).collect();
    config
}

/// QOS-11: with all priorities lossless in little memory, and all lossy in enough.
pub fn full_mesh() -> Finding {
    let mut lossless = with_pause(switch(HOSTS), |pause| {
        (pause.lossless, pause.obeyed) = (0xff, 0xff);
    });
    lossless.memory.pool.threshold = Threshold::Octets(Bytes::new(2 * FRAME));
    lossless.memory.pool.hysteresis = Bytes::new(FRAME);
    let paused = mesh(lossless, 0xff)?;
    ensure(paused > 0, || "nobody was ever silenced: the case says little".to_owned())?;
    let lossy = with_pause(roomy(switch(HOSTS)), |pause| {
        (pause.lossless, pause.obeyed) = (0, 0);
    });
    same("PFC frames of a switch that is lossy", mesh(lossy, 0)?, 0)?;
    let pairs = u64::from(HOSTS) * u64::from(HOSTS - 1) * 8;
    Ok(format!(
        "{pairs} flows of {MESSAGES} messages, all delivered, every counter of both ends of every cable \
         alike; {paused} frames of PFC where all is lossless, none where nothing is"
    ))
}

/// Runs it; how many frames of PFC the switch has sent.
fn mesh(relay: SwitchConfig, priorities: u8) -> Result<u64, Failure> {
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for number in 1..=u16::from(HOSTS) {
        let mut config = host(number);
        let pause = pause_of(&mut config.link);
        (pause.lossless, pause.obeyed) = (priorities, priorities);
        devices.push(Box::new(Nic::new(config).map_err(|error| error.to_string())?));
    }
    devices.push(Box::new(Switch::new(relay).map_err(|error| error.to_string())?));
    let mut star = star::star(devices, Duration::from_ns(100));
    let frames = 2 * MESSAGES * u64::from(HOSTS - 1) * 8;
    let readings = star::run(&mut star, Instant::ZERO + FRAME_TIME * (8 * frames));
    let (relay, hosts) = readings.split_last().ok_or_else(|| "nothing was read".to_owned())?;
    for reading in &readings {
        conserves(reading)?;
    }
    for (number, host) in hosts.iter().enumerate() {
        delivered(number, host)?;
        let port = &relay.ports[number];
        for (priority, (near, far)) in host.ports[0].lanes.iter().zip(&port.lanes).enumerate() {
            let (near, far) = (near.counters, far.counters);
            let pairs = [
                ("frames in", near.tx_frames, far.rx_frames),
                ("octets in", near.tx_bytes, far.rx_bytes),
                ("frames out", far.tx_frames, near.rx_frames),
                ("octets out", far.tx_bytes, near.rx_bytes),
            ];
            for (what, sent, received) in pairs {
                same(format!("{what} of port {number}, priority {priority}"), received, sent)?;
            }
            ensure(near.tx_frames > 0, || format!("priority {priority} was not used"))?;
        }
    }
    let of = |reading: &DeviceReading, port: usize| {
        let named = &reading.ports[port].named;
        named.iter().find(|(name, _)| name == "tx_pfc").map_or(0, |(_, total)| *total)
    };
    Ok((0..hosts.len()).map(|port| of(relay, port)).sum())
}

/// Everything that was meant for a host is there, once.
fn delivered(number: usize, host: &DeviceReading) -> Result<(), Failure> {
    same(
        format!("flows received by host {number}"),
        host.receptions.len(),
        usize::from(HOSTS - 1) * 8,
    )?;
    for flow in &host.receptions {
        let what = format!("host {number}, from {} class {}", flow.flow.source, flow.flow.class);
        same(format!("{what}: messages"), flow.messages, MESSAGES)?;
        same(format!("{what}: octets"), flow.delivered_bytes, MESSAGES * SIZE)?;
        same(format!("{what}: out of order"), flow.reordered, 0)?;
    }
    Ok(())
}

/// In = out + delivered + kept + lost, and nothing was lost.
fn conserves(reading: &DeviceReading) -> Result<(), Failure> {
    let lanes = || reading.ports.iter().flat_map(|port| &port.lanes);
    let received: u64 = lanes().map(|lane| lane.counters.rx_frames).sum();
    let sent: u64 = lanes().map(|lane| lane.counters.tx_frames).sum();
    let lost: u64 = reading.ports.iter().map(|port| port.drops.total()).sum();
    let balance = reading.balance;
    same("frames lost", lost, 0)?;
    same("frames kept at the end", balance.buffered, 0)?;
    same("frames out", sent + balance.delivered, received + balance.injected)
}
