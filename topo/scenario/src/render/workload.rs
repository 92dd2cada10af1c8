//! What one NIC sends.

use crate::Scenario;
use crate::frames;
use crate::render::rate_at;
use crate::topology::end;
use crate::traffic::{Offer, Receivers, Traffic};
use nicd::config::{Target, TrafficConfig};
use proto::ids::Lid;
use proto::random::Random;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::infiniband::Grh;

/// The traffic items of adapter `node`.
pub fn of(scenario: &Scenario, node: usize, adapters: &[Lid]) -> Vec<TrafficConfig> {
    let items = scenario.traffic.items.iter().enumerate();
    items
        .filter(|(_, item)| item.from.contains(&node))
        .filter_map(|(number, item)| {
            let to = target(scenario, item, node, adapters)?;
            Some(one(scenario, node, item, number, to))
        })
        .collect()
}

fn one(
    scenario: &Scenario,
    node: usize,
    item: &Traffic,
    number: usize,
    to: Target,
) -> TrafficConfig {
    let settings = &scenario.fabric;
    let class = scenario.traffic.classes[usize::from(item.class)];
    let mut on_wire = frames::message(
        item.size,
        settings.mtu,
        class.transport,
        class.operation,
        &settings.nic.wire,
    );
    if matches!(item.to, Receivers::Group(_)) {
        on_wire += Bytes::new(Grh::LEN as u64);
    }
    let line = rate_at(settings, end(node, 0));
    TrafficConfig {
        name: item.name.clone(),
        item: u16::try_from(number).unwrap_or(u16::MAX),
        class: item.class,
        to,
        arrivals: item.arrivals,
        interval: interval(on_wire, item.offer, line),
        slot: on_wire.time_at(line),
        size: item.size,
        start: item.start,
        stop: item.stop,
        messages: item.messages,
    }
}

/// Mean time between messages of `on_wire` octets; zero for a backlog.
///
/// Loads are decimal fractions, so this is the one place where a float meets a time: rounded once,
/// to the nearest picosecond, before the run.
fn interval(on_wire: Bytes, offer: Offer, line: BitRate) -> Duration {
    match offer {
        Offer::Load(load) => {
            let ps = on_wire.get() as f64 * 8e12 / (line.get() as f64 * load);
            Duration::from_ps((ps.round() as u64).max(1))
        }
        Offer::Rate(rate) => on_wire.time_at(rate),
        Offer::Backlog => Duration::ZERO,
    }
}

/// The destinations of `node`; `None` if no node but itself is left.
fn target(scenario: &Scenario, item: &Traffic, node: usize, adapters: &[Lid]) -> Option<Target> {
    let seed = scenario.run.seed;
    match &item.to {
        Receivers::Script(replay) => replay.steps.get(&node).cloned().map(Target::Script),
        Receivers::Uniform => Some(Target::Uniform),
        Receivers::Group(group) => Some(Target::Lids(vec![scenario.fabric.groups[*group].lid])),
        Receivers::Foreign(hosts) => {
            let number = |host: &usize| scenario.fabric.foreign[*host].number;
            Some(Target::Lids(hosts.iter().map(number).collect()))
        }
        Receivers::Permutation => {
            let place = item.from.iter().position(|source| *source == node)?;
            let partner = item.from[one_cycle(item.from.len(), seed, &item.name)[place]];
            Some(Target::Lids(vec![adapters[partner]]))
        }
        Receivers::Dealt(to) => {
            let place = item.from.iter().position(|source| *source == node)?;
            Some(Target::Lids(vec![adapters[to[place % to.len()]]]))
        }
        Receivers::Nodes(to) => {
            let others: Vec<Lid> =
                to.iter().filter(|to| **to != node).map(|to| adapters[*to]).collect();
            (!others.is_empty()).then_some(Target::Lids(others))
        }
    }
}

/// A random permutation of `n` that is one cycle, so that no node is its own partner.
/// Source: Sattolo, "An algorithm to generate a random cyclic permutation" (1986).
fn one_cycle(n: usize, seed: u64, item: &str) -> Vec<usize> {
    let mut random = Random::stream(seed, item, "permutation");
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, random.below(last as u64) as usize);
    }
    order
}
