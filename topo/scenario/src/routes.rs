//! Forwarding tables: shortest paths, one by d-mod-k or all of them by preference, and proof that they
//! lead home.
//!
//! One rule serves every shape. A switch sends what is for adapter d by the ports that lie on a shortest
//! path; of k such ports, in port order, it prefers number ⌊d / spread⌋ mod k. In an XGFT a switch of
//! level l has spread Π w_i (i ≤ l), all its up ports are equally short while the common ancestor is
//! above, and the way down is the only one: that is d-mod-k. Source: Zahavi, "D-Mod-K Routing" (2009).
//! Elsewhere the spread is 1. With d-mod-k a switch has the preferred port alone; any other policy
//! chooses among all of them ([docs/reference/routing.md](../../docs/reference/routing.md)).

use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::ids::{Lid, PortNumber};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use switchd::config::Route;
use switchd::routing::policies::{POLICIES, Policy, Ports};

pub mod colored;
pub mod proof;

/// How a path is chosen among shortest ones: a row of the switches' registry of policies.
#[derive(Clone, Copy)]
pub struct Routing(pub &'static Policy);

impl Routing {
    /// The policy called `name`.
    pub fn named(name: &str) -> Option<Routing> {
        POLICIES.iter().find(|policy| policy.name == name).map(Routing)
    }

    /// The names of all policies, the default first.
    pub fn names() -> Vec<&'static str> {
        let names = POLICIES.iter().map(|policy| policy.name);
        let others = names.filter(|name| *name != Routing::DEFAULT);
        std::iter::once(Routing::DEFAULT).chain(others).collect()
    }

    /// One path for each destination, on both technologies.
    pub const DEFAULT: &str = "d-mod-k";
}

impl PartialEq for Routing {
    fn eq(&self, other: &Routing) -> bool {
        self.0.name == other.0.name
    }
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// The forwarding table of every switch, by number of the switch: LID to its ports, by preference.
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
                let turn = destination as u64 / topology.nodes[switch].spread;
                let preferred = (turn % nearer.len() as u64) as usize;
                match routing.0.ports {
                    Ports::Preferred => nearer = vec![nearer[preferred]],
                    Ports::ByPreference => nearer.rotate_left(preferred),
                    Ports::ByNumber => {}
                }
                table.insert(topology.nodes[destination].lid, nearer);
            }
        }
        Forwarding { adapters, tables }
    }

    /// Sends `lid` by `ports` of node `switch`, the first preferred, whatever was chosen before.
    pub fn set(&mut self, switch: usize, lid: Lid, ports: &[PortNumber]) {
        self.tables[switch - self.adapters].insert(lid, ports.to_vec());
    }

    /// The ports by which node `switch` sends `lid`.
    pub fn ports(&self, switch: usize, lid: Lid) -> &[PortNumber] {
        let table = switch.checked_sub(self.adapters).and_then(|number| self.tables.get(number));
        table.and_then(|table| table.get(&lid)).map_or(&[], Vec::as_slice)
    }

    /// The table of node `switch` as runs of LIDs that leave by one port. A LID with several ports stands
    /// in several runs, that of the preferred port first.
    pub fn runs(&self, switch: usize) -> Vec<Route> {
        let table = &self.tables[switch - self.adapters];
        let most = table.values().map(Vec::len).max().unwrap_or(0);
        let mut runs: Vec<Route> = Vec::new();
        for place in 0..most {
            let first = runs.len();
            for (lid, ports) in table {
                let Some(port) = ports.get(place).copied() else { continue };
                match runs[first..].last_mut() {
                    Some(run) if run.port == port && run.last.get() + 1 == lid.get() => {
                        run.last = *lid;
                    }
                    _ => runs.push(Route { first: *lid, last: *lid, port }),
                }
            }
        }
        runs
    }
}

/// Hops from every node to `destination`, through switches only.
pub fn distances(
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
