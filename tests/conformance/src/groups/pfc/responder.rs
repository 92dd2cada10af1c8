//! PFC-15 and PFC-23: a neighbour that obeys late, and a line five times slower than the one before.

use crate::bench::devices::ethernet::{FRAME, LOSSLESS, QUANTUM, nic, pause_of, switch};
use crate::bench::devices::{MTU, RATE, burst, class};
use crate::bench::star;
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{Encapsulation, NicConfig, RoceConfig, StormConfig, Transport};
use nicd::nic::Nic;
use proto::counters::{DeviceReading, DropReason};
use proto::device::Device;
use proto::units::{BitRate, Bytes, Duration, Instant};
use switchd::config::SwitchConfig;
use switchd::switch::Switch;

/// What the cable takes, one way.
const DELAY: Duration = Duration::from_ns(500);
/// What the line carries in a quantum.
const OCTETS_OF_A_QUANTUM: u64 = 64;
/// Headroom of each port and priority, in full frames.
const HEADROOM: u64 = 40;

/// A NIC that sends `messages` of a full frame each to adapter 2, 0 for no end, and one that receives.
fn pair(messages: u64) -> [NicConfig; 2] {
    let mut sender = nic(1);
    sender.classes = vec![class(Transport::Uc, LOSSLESS)];
    let mut receiver = nic(2);
    receiver.classes = sender.classes.clone();
    sender.traffic = vec![burst(2, 0, MTU as u64, messages, Instant::ZERO)];
    [sender, receiver]
}

/// The counters of both NICs and the switch between them after so long.
fn through(
    nics: [NicConfig; 2],
    relay: SwitchConfig,
    until: Instant,
) -> Result<Vec<DeviceReading>, Failure> {
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for nic in nics {
        devices.push(Box::new(Nic::new(nic).map_err(|error| error.to_string())?));
    }
    devices.push(Box::new(Switch::new(relay).map_err(|error| error.to_string())?));
    Ok(star::run(&mut star::star(devices, DELAY), until))
}

/// Steps of the sweep, in quanta: a quarter of a frame.
const STEP: usize = 8;

/// PFC-15: late by up to twice the headroom; what the switch loses, and where that begins.
pub fn slow_responder() -> Finding {
    // rate * (delay both ways + N) + 2 frames = headroom
    let octets = (HEADROOM - 2) * FRAME - RATE.octets_in(DELAY * 2).get();
    let computed = octets / OCTETS_OF_A_QUANTUM;
    let mut harmless = 0;
    let mut harmful = None;
    for late in (0..2 * computed).step_by(STEP) {
        let lost = lost_if_late(late)?;
        match harmful {
            None if lost > 0 => harmful = Some(late),
            None => harmless = late,
            Some(first) => ensure(lost > 0, || {
                format!("frames are lost {first} quanta late, and none {late} quanta late")
            })?,
        }
    }
    let harmful = harmful.ok_or_else(|| "nothing is ever lost".to_owned())?;
    let mut first = harmless + 1;
    while first < harmful && lost_if_late(first)? == 0 {
        first += 1;
    }
    ensure(first > computed, || {
        format!("frames are lost {first} quanta late, {computed} should do no harm")
    })?;
    let later = first * OCTETS_OF_A_QUANTUM - octets;
    ensure(later <= 2 * FRAME, || {
        format!("loss begins {first} quanta late, {later} octets later than computed")
    })?;
    Ok(format!(
        "no loss up to {computed} quanta late, as computed; it begins at {first}, {later} octets later \
         ({} are allowed); every loss counted",
        2 * FRAME
    ))
}

/// Frames that a switch loses whose output is blocked and whose neighbour obeys so many quanta late.
fn lost_if_late(late: u64) -> Result<u64, Failure> {
    let [mut sender, mut receiver] = pair(0);
    pause_of(&mut sender.link).response = QUANTUM * late;
    let storm = StormConfig { start: Instant::ZERO, priorities: 1 << LOSSLESS };
    receiver.wire = Encapsulation::Roce(RoceConfig { storm: Some(storm), ..RoceConfig::default() });
    let mut relay = switch(2);
    relay.memory.headroom = Bytes::new(HEADROOM * FRAME);
    relay.ports.iter_mut().for_each(|port| port.delay = DELAY);
    let readings = through([sender, receiver], relay, Instant::ZERO + Duration::from_us(300))?;
    let [sender, _, relay] = &readings[..] else { unreachable!("three devices were read") };
    let sent = sender.ports[0].lanes[usize::from(LOSSLESS)].counters.tx_frames;
    let lost = relay.ports[0].drops.get(DropReason::HeadroomOverrun);
    same("frames sent", sent, relay.balance.buffered + lost)?;
    let all: u64 = relay.ports.iter().map(|port| port.drops.total()).sum();
    same("all losses", all, lost)?;
    Ok(lost)
}

/// Full frames of a burst of ten megabytes.
const MESSAGES: u64 = 10_000_000 / MTU as u64;

/// PFC-23: ten megabytes of one priority from a line of 40 Gb/s into one of 8 Gb/s.
pub fn byte_exact() -> Finding {
    let fast = BitRate::gbps(5 * RATE.get() / 1_000_000_000);
    let [mut sender, receiver] = pair(MESSAGES);
    sender.link.rate = fast;
    let mut relay = switch(2);
    relay.ports[0].link.rate = fast;
    relay.memory.headroom = Bytes::new(HEADROOM * FRAME);
    let slow = Bytes::new((MESSAGES + 10) * FRAME).time_at(RATE);
    let readings = through([sender, receiver], relay, Instant::ZERO + slow)?;
    let [sender, receiver, relay] = &readings[..] else { unreachable!("three devices were read") };
    let lane = |reading: &DeviceReading, port: usize| {
        reading.ports[port].lanes[usize::from(LOSSLESS)].counters
    };
    let octets = MESSAGES * FRAME;
    for (what, found) in [
        ("sent", lane(sender, 0).tx_bytes),
        ("into the switch", lane(relay, 0).rx_bytes),
        ("out of it", lane(relay, 1).tx_bytes),
        ("received", lane(receiver, 0).rx_bytes),
    ] {
        same(format!("octets {what}"), found, octets)?;
    }
    let payload = receiver.receptions.iter().map(|flow| flow.delivered_bytes).sum::<u64>();
    same("octets delivered", payload, MESSAGES * MTU as u64)?;
    let lost: u64 = readings.iter().flat_map(|r| &r.ports).map(|port| port.drops.total()).sum();
    same("frames lost", lost, 0)?;
    let named = &relay.ports[0].named;
    let paused = named.iter().find(|(name, _)| name == "tx_prio3_pause").map_or(0, |(_, n)| *n);
    ensure(paused > 0, || "nobody was paused: the case says nothing".to_owned())?;
    Ok(format!("{octets} octets in and out at the slow line's full rate, {paused} frames of PFC"))
}
