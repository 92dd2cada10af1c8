//! Colored routes: the traffic between adapters is given, so each pair of adapters gets the way on which it
//! meets the fewest others.
//!
//! Pairs are taken by what they send, most first; each gets the way whose busiest link is the least busy
//! with it. Two more passes over all pairs mend what the order has spoilt. Pairs of different phases do not
//! meet. Source: docs/spec/algorithms.md 9.2 (the slides name the routing and not its algorithm).

use crate::routes::Forwarding;
use crate::routes::proof::ways;
use crate::topology::Topology;
use emulation::wiring::End;
use std::collections::HashMap;
use switchd::config::PairRoute;

/// What one adapter sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Demands of different phases are never under way at one time.
    pub phase: u32,
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// How much, in any unit that all share.
    pub weight: u64,
}

/// Passes over all demands after the first.
const MORE_PASSES: usize = 2;

/// How much leaves by an end in a phase.
type Loads = HashMap<(u32, End), u64>;

/// Ports for the pairs of `demands`, with the node of the switch; none where a switch has one port only.
pub fn assign(
    topology: &Topology,
    forwarding: &Forwarding,
    demands: &[Demand],
) -> Vec<(usize, PairRoute)> {
    let neighbours = topology.neighbours();
    let mut demands = merged(demands);
    demands.sort_by_key(|demand| (std::cmp::Reverse(demand.weight), demand.from, demand.to));
    // A pair that sends in several phases has one way in all of them: they are placed together.
    let mut pairs: Vec<((usize, usize), Vec<Demand>)> = Vec::new();
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    for demand in demands {
        let pair = (demand.from, demand.to);
        let place = *places.entry(pair).or_insert_with(|| {
            pairs.push((pair, Vec::new()));
            pairs.len() - 1
        });
        pairs[place].1.push(demand);
    }
    let choices: Vec<Vec<Vec<End>>> = pairs
        .iter()
        .map(|((from, to), _)| {
            ways(topology, &neighbours, forwarding, *from, *to).unwrap_or_default()
        })
        .collect();
    let mut loads = Loads::new();
    let mut chosen: Vec<Option<usize>> = vec![None; pairs.len()];
    for _ in 0..=MORE_PASSES {
        for (place, (_, demands)) in pairs.iter().enumerate() {
            if let Some(old) = chosen[place] {
                load(&mut loads, &choices[place][old], demands, u64::wrapping_sub);
            }
            let best = (0..choices[place].len())
                .min_by_key(|way| busiest(&loads, &choices[place][*way], demands));
            if let Some(best) = best {
                load(&mut loads, &choices[place][best], demands, u64::wrapping_add);
            }
            chosen[place] = best;
        }
    }
    let mut routes = Vec::new();
    for (place, ((from, to), _)) in pairs.iter().enumerate() {
        let Some(way) = chosen[place].map(|chosen| &choices[place][chosen]) else { continue };
        for end in &way[1..] {
            let [source, destination] = [*from, *to].map(|node| topology.nodes[node].lid);
            if forwarding.ports(end.node, destination).len() > 1 {
                routes.push((end.node, PairRoute { source, destination, port: end.port }));
            }
        }
    }
    routes
}

/// One demand for each pair and phase.
fn merged(demands: &[Demand]) -> Vec<Demand> {
    let mut all: Vec<Demand> = Vec::new();
    let mut places = HashMap::new();
    for demand in demands.iter().filter(|demand| demand.from != demand.to) {
        let key = (demand.phase, demand.from, demand.to);
        let place = *places.entry(key).or_insert(all.len());
        match all.get_mut(place) {
            Some(known) => known.weight = known.weight.saturating_add(demand.weight),
            None => all.push(*demand),
        }
    }
    all
}

/// Changes the load of every link along a way. The ends of a way, at its adapters, it has no choice about.
fn load(loads: &mut Loads, way: &[End], demands: &[Demand], change: fn(u64, u64) -> u64) {
    for demand in demands {
        for end in inner(way) {
            let load = loads.entry((demand.phase, *end)).or_default();
            *load = change(*load, demand.weight);
        }
    }
}

/// The busiest link of a way as it would be, then all of them together.
fn busiest(loads: &Loads, way: &[End], demands: &[Demand]) -> (u64, u64) {
    let all = demands.iter().flat_map(|demand| {
        let load = |end: &End| loads.get(&(demand.phase, *end)).copied().unwrap_or(0);
        inner(way).iter().map(move |end| load(end) + demand.weight)
    });
    all.fold((0, 0), |(most, sum), load| (most.max(load), sum + load))
}

fn inner(way: &[End]) -> &[End] {
    way.get(1..way.len().saturating_sub(1)).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Routing;
    use crate::shapes::xgft::{Tree, tree};
    use proto::ids::PortNumber;
    use std::collections::BTreeSet;

    fn demand(phase: u32, from: usize, to: usize) -> Demand {
        Demand { phase, from, to, weight: 1000 }
    }

    /// A shift by one leaf needs every spine once a leaf: there is a way without any meeting.
    #[test]
    fn a_permutation_that_fits_meets_nowhere() {
        let topology = tree(&Tree { m: vec![4, 4], w: vec![1, 4] });
        let forwarding = Forwarding::new(&topology, Routing::named("colored").expect("a row"));
        let shift: Vec<Demand> = (0..16).map(|from| demand(0, from, (from + 4) % 16)).collect();
        let routes = assign(&topology, &forwarding, &shift);
        let ups: BTreeSet<(usize, PortNumber)> =
            routes.iter().map(|(at, pair)| (*at, pair.port)).collect();
        assert_eq!((routes.len(), ups.len()), (16, 16), "each by a cable of its own");
    }

    #[test]
    fn phases_do_not_meet_and_a_pair_has_one_way() {
        let topology = tree(&Tree { m: vec![2, 2], w: vec![1, 2] });
        let forwarding = Forwarding::new(&topology, Routing::named("colored").expect("a row"));
        let demands = [demand(0, 0, 2), demand(1, 1, 2), demand(0, 1, 3), demand(2, 0, 2)];
        let routes = assign(&topology, &forwarding, &demands);
        assert_eq!(routes.len(), 3, "{routes:?}");
        let port = |from: u16, to: u16| {
            let is_it =
                |pair: &&PairRoute| (pair.source.get(), pair.destination.get()) == (from, to);
            routes.iter().map(|(_, pair)| pair).find(is_it).map(|pair| pair.port)
        };
        assert_ne!(port(1, 3), port(2, 4), "these two are under way together");
    }
}
