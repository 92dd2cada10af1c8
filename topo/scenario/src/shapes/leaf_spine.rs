//! Leaves `leaf1`, `leaf2`, …, each with hosts and a cable to every spine `spine1`, `spine2`, ….
//!
//! Hosts are `h1`, `h2`, … in the order of the leaves; `hosts_per_leaf = [4, 4, 1]` gives each leaf its own
//! number. A leaf's ports 1, 2, … lead to its hosts and then to the spines in order; port n of a
//! spine leads to leaf n. Addresses count as everywhere: hosts, leaves, spines.

use crate::keyfile::fields::Fields;
use crate::shapes::Shape;
use crate::topology::{Topology, end};
use proto::params::{FromValue, Params, Value};
use proto::units::BitRate;

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "leaf-spine", keys: LeafSpine::KEYS, build };

proto::params! {
    /// The keys of leaves and spines.
    pub struct LeafSpine {
        /// Leaf switches.
        leaves: usize = Whole(1, 254), Required;
        /// Spine switches, each with a cable to every leaf.
        spines: usize = Whole(1, 253), Default("1");
        /// Adapters on each leaf, or a list with the number on each.
        hosts_per_leaf: Hosts = Either(&[Whole(1, 253), List(&Whole(0, 253))]), Required;
        /// Rate of the cables between leaves and spines; that of the default link if left out.
        uplink: Option<BitRate> = Rate, Optional;
    }
}

/// Adapters on the leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// So many on each.
    Each(usize),
    /// The number on each.
    Listed(Vec<usize>),
}

impl FromValue for Hosts {
    fn from_value(value: &Value) -> Option<Hosts> {
        Vec::from_value(value)
            .map(Hosts::Listed)
            .or_else(|| usize::from_value(value).map(Hosts::Each))
    }
}

fn build(fields: &Fields<'_>) -> Option<Topology> {
    let LeafSpine { leaves, spines, hosts_per_leaf, uplink } = fields.params()?;
    let hosts = match hosts_per_leaf {
        Hosts::Each(each) => vec![each; leaves],
        Hosts::Listed(hosts) => hosts,
    };
    let (message, hint) = if hosts.len() != leaves {
        (format!("{} numbers for {leaves} leaves", hosts.len()), "one for each")
    } else if hosts.iter().any(|hosts| hosts + spines > 254) {
        ("a leaf would have more than 254 ports".to_owned(), "fewer hosts or spines")
    } else if hosts.iter().sum::<usize>() == 0 {
        ("there is no host".to_owned(), "at least one host")
    } else {
        return Some(leaf_spine(&hosts, spines, uplink));
    };
    fields.refuse("hosts_per_leaf", message, hint)
}

/// The graph of leaves with so many hosts each, below `spines` spines.
pub fn leaf_spine(hosts: &[usize], spines: usize, uplink: Option<BitRate>) -> Topology {
    let mut topology = Topology { is_tree: true, ..Topology::default() };
    let adapters: usize = hosts.iter().sum();
    let counts = [("h", adapters), ("leaf", hosts.len()), ("spine", spines)];
    for (level, (name, count)) in (0u8..).zip(counts) {
        for number in 1..=count {
            let ports = match level {
                0 => 1,
                1 => hosts[number - 1] + spines,
                _ => hosts.len(),
            };
            topology.add(format!("{name}{number}"), level, ports, 1);
        }
    }
    let mut host = 0;
    for (leaf, count) in hosts.iter().enumerate() {
        for port in 0..*count {
            topology.cable(end(host, 0), end(adapters + leaf, port));
            host += 1;
        }
        for spine in 0..spines {
            let above = end(adapters + hosts.len() + spine, leaf);
            topology.cable(end(adapters + leaf, count + spine), above);
            if let Some(cable) = topology.cables.last_mut() {
                cable.rate = uplink;
            }
        }
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_have_hosts_of_their_own_and_a_cable_to_every_spine() {
        let graph = leaf_spine(&[4, 4, 1], 2, Some(BitRate::gbps(800)));
        let far = graph.neighbours();
        let names = |node: &str| -> Vec<String> {
            let node = graph.find(node).expect("it is there");
            far[node].iter().map(|end| graph.end_name(end.expect("cabled"))).collect()
        };
        assert_eq!(names("leaf2"), ["h5:1", "h6:1", "h7:1", "h8:1", "spine1:2", "spine2:2"]);
        assert_eq!(names("leaf3"), ["h9:1", "spine1:3", "spine2:3"]);
        assert_eq!(names("spine2"), ["leaf1:6", "leaf2:6", "leaf3:3"]);
        let fast = graph.cables.iter().filter(|cable| cable.rate.is_some()).count();
        assert_eq!((graph.cables.len(), fast), (9 + 6, 6));
        assert_eq!(graph.nodes.iter().map(|node| node.level).max(), Some(2));
    }
}
