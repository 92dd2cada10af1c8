//! Hostile frames at each kind of port, beside a lossless flow through the same switch: the neighbours lose nothing, and
//! each hostile frame is in a counter.

#[path = "frames/bed.rs"]
mod bed;
#[path = "frames/cables.rs"]
mod cables;
#[path = "frames/cost.rs"]
mod cost;
#[path = "frames/forge.rs"]
mod forge;

use super::Campaign;
use super::laboratory;
use bed::{Attacked, Carrier, HOSTILE_LINK};
use emulation::cable::FrameTally;
use emulation::cable::reconcile::reconcile;
use proto::counters::{DeviceReading, DropReason};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Parts of each kind of port, and hostile frames of each.
const PARTS: u64 = 10;
const OF_EACH: u64 = 100_000;

/// The most that the median frame of a class of faults may cost, in percent of a good frame.
const COST_MAX: u64 = 300;

/// A thread that does not run for so long was stopped from outside, with all others of this process. Then pauses expire,
/// buffers fill and a stop is not waited for, so an attempt that failed is made again.
const STILL_NS: u64 = 400_000_000;
const ATTEMPTS: usize = 20;

/// All parts of the campaign.
pub fn frames(campaign: &mut Campaign) {
    for carrier in Carrier::ALL {
        for seed in 1..=PARTS {
            campaign.part(&format!("{} {seed}", carrier.name()), || part(carrier, seed, OF_EACH));
        }
        campaign.part(&format!("{} cost", carrier.name()), || cost(carrier));
    }
}

/// A sample for the quick tests.
pub fn sample() {
    for carrier in Carrier::ALL {
        println!("{}: {}", carrier.name(), part(carrier, 1, 1_000));
    }
}

/// The costs of frames by class of fault, in percent of a good one, the highest first.
fn cost(carrier: Carrier) -> String {
    match cost::ratios(carrier) {
        Ok(ratios) => {
            let each: Vec<_> =
                ratios.iter().map(|(class, ratio)| format!("{ratio} {class}")).collect();
            let said = each.join(", ");
            assert!(ratios.iter().all(|(_, ratio)| *ratio <= COST_MAX), "{said}");
            said
        }
        Err(error) => {
            skip::because!("network namespaces require CAP_SYS_ADMIN: {error}");
            "skipped".to_owned()
        }
    }
}

/// One attack on one kind of port.
fn part(carrier: Carrier, seed: u64, frames: u64) -> String {
    for _ in 0..ATTEMPTS {
        let attacked = match bed::attack(carrier, seed, frames) {
            Ok(attacked) => attacked,
            Err(error) => {
                skip::because!("network namespaces require CAP_SYS_ADMIN: {error}");
                return "skipped".to_owned();
            }
        };
        let still_ns = attacked.sent.still_ns;
        match catch_unwind(AssertUnwindSafe(|| judge(&attacked))) {
            Ok(result) => return result,
            Err(why) if still_ns < STILL_NS => resume_unwind(why),
            Err(_) => println!("the host stood still for {} ms: once more", still_ns / 1_000_000),
        }
    }
    panic!("the host stood still in each of {ATTEMPTS} attempts");
}

/// Asserts that all is accounted for and the neighbours have lost nothing.
fn judge(attacked: &Attacked) -> String {
    let Attacked { reports, sent, .. } = attacked;
    let [switch, neighbours] = reports;
    let exchange = &switch.exchange;
    let at_port = at_port(attacked);
    let (rejected, overflows) = (exchange.rejected.total(), exchange.overflows);
    let outside = exchange.outside.unwrap_or_default();
    let said = || format!("{:#?}\n{outside:#?}\n{at_port:?}", exchange.rejected);
    assert_eq!(overflows + outside.overflows, 0, "the attack waits for the worker\n{}", said());
    assert_eq!(sent.due, rejected + at_port.handed.total() + at_port.others, "{}", said());
    assert_conserved(attacked, at_port.handed);
    assert_eq!(neighbours.exchange.rejected.total(), 0, "{:?}", neighbours.exchange.rejected);
    let delivered = assert_lossless(attacked);
    let mut dropped = BTreeMap::new();
    for (reason, count) in devices(attacked).flat_map(drops) {
        *dropped.entry(reason.name()).or_insert(0u64) += count;
    }
    dropped.retain(|_, count| *count > 0);
    let dropped: Vec<String> =
        dropped.iter().map(|(why, count)| format!("{why} {count}")).collect();
    format!(
        "{} frames, {} more refused by the kernel; {rejected} rejected at the socket, {} outdated, {} at the port; neighbours: {delivered} messages, 0 lost; dropped: {}",
        sent.taken,
        sent.refused,
        at_port.others,
        at_port.handed.total(),
        dropped.join(", ")
    )
}

/// Hostile frames that the socket did not reject.
#[derive(Debug, Default)]
struct AtPort {
    /// Handed to the port, or under way to it at the end.
    handed: FrameTally,
    /// Duplicates, and link packets that came too late.
    others: u64,
    /// Frames that the switch sent to the hostile end, or tried to.
    left: FrameTally,
}

fn at_port(attacked: &Attacked) -> AtPort {
    let exchange = &attacked.reports[0].exchange;
    let (inward, outward) = ((HOSTILE_LINK, attacked.end), (HOSTILE_LINK, attacked.end.other()));
    let received = exchange.received.iter().find(|line| (line.link, line.end) == inward);
    let sent = exchange.sent.iter().find(|line| (line.link, line.end) == outward);
    if let (Some(received), Some(sent)) = (received, sent) {
        let counts = received.counts;
        let handed = counts.received.plus(counts.drained);
        return AtPort { handed, others: counts.duplicates + counts.stale, left: sent.sent };
    }
    let outside = exchange.outside.expect("the third port is in the fabric or attached");
    let handed = outside.received.plus(outside.drained);
    let left = outside.sent.plus(outside.unsent).plus(outside.away).plus(outside.too_long);
    AtPort { handed, others: 0, left }
}

fn devices(attacked: &Attacked) -> impl Iterator<Item = &DeviceReading> {
    attacked.reports.iter().flat_map(|report| &report.recording.last)
}

fn drops(device: &DeviceReading) -> impl Iterator<Item = (DropReason, u64)> + '_ {
    device.ports.iter().flat_map(|port| port.drops.iter())
}

/// Frames injected, hostile ones included = delivered + buffered + under way + dropped + left by the hostile port.
fn assert_conserved(attacked: &Attacked, hostile: FrameTally) {
    let (mut begun, mut ended) = (hostile.end_to_end, at_port(attacked).left.end_to_end);
    for device in devices(attacked) {
        begun += device.balance.injected;
        ended += device.balance.delivered + device.balance.buffered;
        let counted = drops(device).filter(|(reason, _)| reason.is_end_to_end());
        ended += counted.map(|(_, count)| count).sum::<u64>();
    }
    for report in &attacked.reports {
        ended += report.in_flight.on_the_line.plus(report.in_flight.on_cables).end_to_end;
    }
    let readings: Vec<_> = devices(attacked).collect();
    let flying: Vec<_> = attacked.reports.iter().map(|report| report.in_flight).collect();
    assert!(begun == ended, "{begun} begun, {ended} ended: {hostile:?} {flying:?} {readings:?}");
}

/// No frame of the neighbours is lost. Returns the messages that they delivered.
fn assert_lossless(attacked: &Attacked) -> u64 {
    let [switch, neighbours] = &attacked.reports;
    let mut accounts = [switch.exchange.clone(), neighbours.exchange.clone()];
    for account in &mut accounts {
        account.sent.retain(|line| line.link < HOSTILE_LINK);
        account.received.retain(|line| line.link < HOSTILE_LINK);
    }
    assert_eq!(reconcile(accounts.iter()).lost, FrameTally::default(), "on the neighbours' cables");
    for port in &switch.recording.last[0].ports[..2] {
        let of_neighbours: Vec<_> = port.drops.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(of_neighbours, [], "at the neighbours' ports");
    }
    for device in &neighbours.recording.last {
        for reason in [DropReason::OutOfSequence, DropReason::Duplicate, DropReason::ReceiveBuffer]
        {
            let count: u64 = device.ports.iter().map(|port| port.drops.get(reason)).sum();
            assert_eq!(count, 0, "{reason:?} at a neighbour");
        }
    }
    let receptions = neighbours.recording.last.iter().flat_map(|device| &device.receptions);
    let messages: u64 = receptions.map(|reception| reception.messages).sum();
    assert!(messages > 0, "the neighbours talk");
    messages
}
