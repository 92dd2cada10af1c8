//! Forwarding tables: shortest paths, among equals one by d-mod-k or all of them by flow, and proof
//! that they lead home.
//!
//! One rule serves every shape. A switch sends what is for adapter d by one of the ports that lie
//! on a shortest path; of k such ports, in port order, it takes number ⌊d / spread⌋ mod k. In an
//! XGFT a switch of level l has spread Π w_i (i ≤ l), all its up ports are equally short while the
//! common ancestor is above, and the way down is the only one: that is d-mod-k. Source: Zahavi,
//! "D-Mod-K Routing" (2009). Elsewhere the spread is 1. With ECMP a switch has all such ports and
//! keeps each flow on one of them.

use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::ids::{Lid, PortNumber};
use std::collections::{BTreeMap, VecDeque};
use switchd::config::Route;

pub mod proof;

/// How a path is chosen among shortest ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// One for each destination.
    DModK,
    /// All of them, one for each flow.
    Ecmp,
}

/// The words for [`Routing`].
pub const ROUTINGS: [(&str, Routing); 2] = [("d-mod-k", Routing::DModK), ("ecmp", Routing::Ecmp)];

/// The forwarding table of every switch, by number of the switch: LID to its ports, in port order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// How many nodes come before the first switch.
    adapters: usize,
    tables: Vec<BTreeMap<Lid, Vec<PortNumber>>>,
}

impl Forwarding {
    /// The tables of `topology` by the rule of this file.
    pub fn new(topology: &Topology, routing: Routing) -> Forwarding {
        let adapters = topology.adapters();
        let mut tables = vec![BTreeMap::new(); topology.nodes.len() - adapters];
        let neighbours = topology.neighbours();
        for destination in 0..adapters {
            let distance = distances(topology, &neighbours, destination);
            for (number, table) in tables.iter_mut().enumerate() {
                let switch = adapters + number;
                let mut nearer: Vec<PortNumber> = ports_towards(&neighbours[switch], |far| {
                    distance[far.node].is_some_and(|d| Some(d + 1) == distance[switch])
                });
                if nearer.is_empty() {
                    continue;
                }
                if routing == Routing::DModK {
                    let turn = destination as u64 / topology.nodes[switch].spread;
                    nearer = vec![nearer[(turn % nearer.len() as u64) as usize]];
                }
                table.insert(topology.nodes[destination].lid, nearer);
            }
        }
        Forwarding { adapters, tables }
    }

    /// Sends `lid` by `port` of node `switch`, whatever was chosen before.
    pub fn set(&mut self, switch: usize, lid: Lid, port: PortNumber) {
        self.tables[switch - self.adapters].insert(lid, vec![port]);
    }

    /// The ports by which node `switch` sends `lid`.
    pub fn ports(&self, switch: usize, lid: Lid) -> &[PortNumber] {
        let table = switch.checked_sub(self.adapters).and_then(|number| self.tables.get(number));
        table.and_then(|table| table.get(&lid)).map_or(&[], Vec::as_slice)
    }

    /// The table of node `switch` as runs of LIDs that leave by one port; where flows are spread, a
    /// LID stands in several.
    pub fn runs(&self, switch: usize) -> Vec<Route> {
        let mut runs: Vec<Route> = Vec::new();
        for (lid, ports) in &self.tables[switch - self.adapters] {
            for port in ports {
                let continues =
                    |run: &&mut Route| run.port == *port && run.last.get() + 1 == lid.get();
                // No more runs are open than there are ports for one LID.
                match runs.iter_mut().rev().take(usize::from(u8::MAX)).find(continues) {
                    Some(run) => run.last = *lid,
                    None => runs.push(Route { first: *lid, last: *lid, port: *port }),
                }
            }
        }
        runs
    }
}

/// Hops from every node to `destination`, through switches only.
fn distances(
    topology: &Topology,
    neighbours: &[Vec<Option<End>>],
    destination: usize,
) -> Vec<Option<u32>> {
    let mut distance = vec![None; topology.nodes.len()];
    distance[destination] = Some(0);
    let mut queue = VecDeque::from([(destination, 0)]);
    while let Some((node, hops)) = queue.pop_front() {
        if node != destination && topology.nodes[node].kind == NodeKind::Nic {
            continue;
        }
        for far in neighbours[node].iter().flatten() {
            if distance[far.node].is_none() {
                distance[far.node] = Some(hops + 1);
                queue.push_back((far.node, hops + 1));
            }
        }
    }
    distance
}

fn ports_towards(ports: &[Option<End>], mut wanted: impl FnMut(&End) -> bool) -> Vec<PortNumber> {
    let cabled = ports.iter().enumerate().filter_map(|(index, far)| Some((index, far.as_ref()?)));
    cabled.filter(|(_, far)| wanted(far)).map(|(index, _)| PortNumber::from_index(index)).collect()
}

#[cfg(test)]
mod tests;
