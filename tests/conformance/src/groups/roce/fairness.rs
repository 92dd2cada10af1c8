//! ROCE-14: two senders, one bottleneck, and what the loop makes of it.

use super::dcqcn;
use crate::bench::devices::ethernet::{LOSSLESS, nic, switch};
use crate::bench::devices::{burst, class};
use crate::bench::star;
use crate::case::{Finding, ensure, same};
use nicd::config::{NicConfig, Transport};
use nicd::nic::Nic;
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::units::{BitRate, Bytes, Duration, Instant};
use switchd::config::Threshold;
use switchd::switch::Switch;

/// Where the two meet.
const OUT: usize = 2;
/// The line that the paper's numbers are for, and frames of which a queue below Kmin holds some.
const LINE: BitRate = BitRate::gbps(40);
const PAYLOAD: u64 = 1_024;
/// How long they have to find each other, and until when is looked at then.
const FROM: Duration = Duration::from_us(10_000);
const UNTIL: Duration = Duration::from_us(60_000);
/// Kmax of the paper.
const KMAX: u64 = 200_000;

/// Octets of each of the two that have arrived.
fn arrived(receiver: &DeviceReading) -> [u64; 2] {
    let of = |source| {
        let flow = receiver.receptions.iter().find(|flow| flow.flow.source == source);
        flow.map_or(0, |flow| flow.delivered_bytes)
    };
    [of(1), of(2)]
}

fn named(reading: &DeviceReading, name: &str) -> u64 {
    let all = reading.ports.iter().flat_map(|port| &port.named);
    all.filter(|(other, _)| other == name).map(|(_, total)| *total).sum()
}

/// ROCE-14.
pub fn two_flows() -> Finding {
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for number in 1..=3 {
        let mut config = NicConfig { scheme: dcqcn("")?, ..nic(number) };
        (config.link.rate, config.link.mtu) = (LINE, Bytes::new(PAYLOAD));
        config.classes = vec![class(Transport::Uc, 0)];
        if number < 3 {
            // The second joins when the first has the line for itself.
            let start = Instant::ZERO + Duration::from_us(u64::from(number - 1) * 500);
            config.traffic = vec![burst(3, 0, PAYLOAD, 0, start)];
        }
        devices.push(Box::new(Nic::new(config).map_err(|error| error.to_string())?));
    }
    let mut relay = switch(3);
    relay.scheme = dcqcn("")?;
    relay.ports.iter_mut().for_each(|port| port.link.rate = LINE);
    relay.memory.pool.threshold = Threshold::Octets(Bytes::new(2 * KMAX));
    devices.push(Box::new(Switch::new(relay).map_err(|error| error.to_string())?));
    let mut star = star::star(devices, Duration::from_ns(500));
    let before = star::run(&mut star, Instant::ZERO + FROM);
    star.devices().iter_mut().for_each(|device| device.begin_bin(Instant::ZERO + FROM));
    let after = star::run(&mut star, Instant::ZERO + UNTIL);

    let [first, second] = [arrived(&before[2]), arrived(&after[2])];
    let shares = [second[0] - first[0], second[1] - first[1]].map(|octets| octets as f64);
    let sum = shares[0] + shares[1];
    let jain = sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1]));
    ensure(jain >= 0.95, || format!("Jain's index is {jain:.3} of {shares:?} octets"))?;
    let relay = &after[3];
    let queue = relay.ports[OUT].lanes[usize::from(LOSSLESS)].counters.out_queue;
    ensure(queue.max < KMAX, || format!("the queue reached {} octets, Kmax is {KMAX}", queue.max))?;
    let pauses = named(relay, "tx_pfc") - named(&before[3], "tx_pfc");
    same("frames of PFC after 10 ms", pauses, 0)?;
    let lost: u64 = after.iter().flat_map(|r| &r.ports).map(|port| port.drops.total()).sum();
    same("frames lost", lost, 0)?;
    // Headers, ICRC and FCS are 62 octets of each frame.
    let used =
        sum * (PAYLOAD + 62) as f64 / PAYLOAD as f64 / LINE.octets_in(UNTIL - FROM).get() as f64;
    ensure(used > 0.95, || format!("only {:.0} % of the line were used", used * 100.0))?;
    let notices = named(&after[2], "np_cnp_sent") - named(&before[2], "np_cnp_sent");
    ensure(notices > 0, || "no CNP was sent: the case says nothing".to_owned())?;
    Ok(format!(
        "Jain's index {jain:.3}, {:.1} % of the line used, queue at most {} of {KMAX} octets, {notices} CNPs, \
         no PFC, nothing lost",
        used * 100.0,
        queue.max
    ))
}
