//! Leaves `leaf1`, `leaf2`, …, each with hosts and a cable to every spine `spine1`, `spine2`, ….
//!
//! Hosts are `h1`, `h2`, … in the order of the leaves; `hosts_per_leaf = [4, 4, 1]` gives each leaf its own
//! number. A leaf's ports 1, 2, … lead to its hosts and then to the spines in order; port n of a
//! spine leads to leaf n. Addresses count as everywhere: hosts, leaves, spines.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::shapes::Shape;
use crate::topology::{Node, Topology, end};
use emulation::wiring::NodeKind;
use proto::ids::Lid;
use proto::params::{Key, Kind};
use proto::units::BitRate;

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "leaf-spine", keys: &KEYS, build };

const KEYS: [Key; 4] = [
    Key::required("leaves", Kind::Whole(1, 254), "leaf switches"),
    Key::new("spines", Kind::Whole(1, 253), "1", "spine switches, each with a cable to every leaf"),
    Key::required(
        "hosts_per_leaf",
        Kind::Either(&[Kind::Whole(1, 253), Kind::List(&Kind::Whole(0, 253))]),
        "adapters on each leaf, or a list with the number on each",
    ),
    Key::optional(
        "uplink",
        Kind::Rate,
        "rate of the cables between leaves and spines; that of the default link if left out",
    ),
];

fn build(fields: &Fields<'_>, problems: &mut Problems) -> Option<Topology> {
    let (leaves, spines): (usize, usize) = (fields.whole("leaves")?, fields.whole("spines")?);
    let hosts: Vec<usize> = match fields.whole("hosts_per_leaf") {
        Some(each) => vec![each; leaves],
        None => fields.wholes("hosts_per_leaf"),
    };
    let complaint = if hosts.len() != leaves {
        Complaint::new(format!("{} numbers for {leaves} leaves", hosts.len()), "one for each")
    } else if hosts.iter().any(|hosts| hosts + spines > 254) {
        Complaint::new("a leaf would have more than 254 ports", "fewer hosts or spines")
    } else if hosts.iter().sum::<usize>() == 0 {
        Complaint::new("nobody is there", "at least one host")
    } else {
        return Some(leaf_spine(&hosts, spines, fields.rate("uplink")));
    };
    fields.report(problems, "hosts_per_leaf", complaint);
    None
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
            let lid = topology.nodes.len() + 1;
            topology.nodes.push(Node {
                name: format!("{name}{number}"),
                kind: if level == 0 { NodeKind::Nic } else { NodeKind::Switch },
                lid: Lid::new(
                    u16::try_from(lid).expect("254 leaves of 253 hosts and as many spines"),
                ),
                ports: u8::try_from(ports).expect("the caller has counted the ports"),
                level,
                spread: 1,
            });
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
