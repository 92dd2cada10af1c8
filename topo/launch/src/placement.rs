//! The assignment of devices to processes.

use emulation::wiring::{NodeKind, Wiring};
use scenario::run::Placement;

/// The assignment of devices to processes. Each process hosts devices of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosting {
    /// The process of each node.
    pub hosts: Vec<usize>,
    /// The kind of the devices of each process.
    pub kinds: Vec<NodeKind>,
}

impl Hosting {
    /// One process for each device, or as many workers as the host has cores, with at least one of each kind.
    ///
    /// Workers take ranges of neighbouring nodes, so that the adapters of a leaf share one.
    pub fn new(wiring: &Wiring, placement: Placement, cores: usize) -> Hosting {
        let mut hosting = Hosting { hosts: vec![0; wiring.nodes.len()], kinds: Vec::new() };
        for kind in [NodeKind::Nic, NodeKind::Switch] {
            let nodes: Vec<usize> =
                (0..wiring.nodes.len()).filter(|node| wiring.nodes[*node].kind == kind).collect();
            let processes = match placement {
                Placement::Device => nodes.len(),
                Placement::Worker => (cores / 2).clamp(1, nodes.len().max(1)).min(nodes.len()),
            };
            let first = hosting.kinds.len();
            for (place, node) in nodes.iter().enumerate() {
                hosting.hosts[*node] = first + place * processes / nodes.len();
            }
            hosting.kinds.extend(std::iter::repeat_n(kind, processes));
        }
        hosting
    }

    /// The same on hosts with an unknown number of cores: one worker of each kind.
    pub fn elsewhere(wiring: &Wiring, placement: Placement) -> Hosting {
        Hosting::new(wiring, placement, 2)
    }

    /// The nodes of a process, in ascending order.
    pub fn nodes(&self, process: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.hosts.len()).filter(move |node| self.hosts[*node] == process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulation::wiring::NodeWiring;

    fn wiring(nics: usize, switches: usize) -> Wiring {
        let node = |kind| NodeWiring { name: "n".to_owned(), kind, ports: 1, level: 0 };
        let mut nodes = vec![node(NodeKind::Nic); nics];
        nodes.extend(vec![node(NodeKind::Switch); switches]);
        Wiring { nodes, ..Wiring::default() }
    }

    #[test]
    fn two_cores_get_one_worker_of_each_kind_and_more_cores_share_evenly() {
        let two = Hosting::new(&wiring(32, 12), Placement::Worker, 2);
        assert_eq!(two.kinds, [NodeKind::Nic, NodeKind::Switch]);
        assert_eq!((two.nodes(0).count(), two.nodes(1).count()), (32, 12));
        let eight = Hosting::new(&wiring(32, 12), Placement::Worker, 8);
        assert_eq!(eight.kinds.len(), 8);
        assert!((0..4).all(|process| eight.nodes(process).count() == 8));
        assert!((4..8).all(|process| eight.nodes(process).count() == 3));
    }

    #[test]
    fn one_process_a_device_and_no_process_without_one() {
        let each = Hosting::new(&wiring(3, 2), Placement::Device, 2);
        assert_eq!(each.hosts, [0, 1, 2, 3, 4]);
        let lonely = Hosting::new(&wiring(0, 1), Placement::Worker, 64);
        assert_eq!((lonely.hosts, lonely.kinds.len()), (vec![0], 1));
    }
}
