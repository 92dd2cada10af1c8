//! The fabric as a sweep finds it, and shortest routes through it.

use management::attribute::subnet::node_info;
use proto::ids::Lid;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The LIDs of nodes without a planned one begin here.
const FREE: u16 = 100;

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its GUID.
    pub guid: u64,
    /// It is a switch.
    pub is_switch: bool,
    /// Number of ports.
    pub ports: u8,
    /// A directed route from the manager.
    pub path: Vec<u8>,
    /// Its LID, once it is assigned.
    pub lid: Lid,
    /// By port: the node at the far end, and its port.
    pub peers: BTreeMap<u8, (usize, u8)>,
}

impl Node {
    /// The ports with a cable, or that may have one.
    pub fn cabled_ports(&self) -> Vec<u8> {
        (1..=self.ports).collect()
    }
}

/// All nodes, the manager's own first.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// In the order in which they were found.
    pub nodes: Vec<Node>,
}

impl Fabric {
    /// A node answered with this NodeInfo, behind a port of a known node. Returns its index, and whether it is new.
    pub fn meet(&mut self, from: Option<(usize, u8)>, path: Vec<u8>, info: &[u8]) -> (usize, bool) {
        let guid = node_info::NODE_GUID.get(info);
        let known = self.nodes.iter().position(|node| node.guid == guid);
        let index = known.unwrap_or(self.nodes.len());
        if known.is_none() {
            self.nodes.push(Node {
                guid,
                is_switch: node_info::NODE_TYPE.get(info) == 2,
                ports: node_info::NUM_PORTS.get(info) as u8,
                path,
                lid: Lid::default(),
                peers: BTreeMap::new(),
            });
        }
        if let Some((node, port)) = from {
            let arrival = node_info::LOCAL_PORT.get(info) as u8;
            self.nodes[node].peers.insert(port, (index, arrival));
            self.nodes[index].peers.insert(arrival, (node, port));
        }
        (index, known.is_none())
    }

    /// The node with this GUID.
    pub fn node(&self, guid: u64) -> Option<&Node> {
        self.nodes.iter().find(|node| node.guid == guid)
    }

    /// Gives each node the LID of the plan, or a free one.
    pub fn assign(&mut self, plan: &BTreeMap<u64, Lid>) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let free = Lid::new(FREE + index as u16);
            node.lid = plan.get(&node.guid).copied().unwrap_or(free);
        }
    }

    /// Hops from every node to node `to`; `None` without a way.
    fn distances(&self, to: usize) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.nodes.len()];
        distances[to] = Some(0);
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            // An adapter passes nothing on.
            if node != to && !self.nodes[node].is_switch {
                continue;
            }
            let next = distances[node].map(|hops| hops + 1);
            for (peer, _) in self.nodes[node].peers.values() {
                if distances[*peer].is_none() {
                    distances[*peer] = next;
                    queue.push_back(*peer);
                }
            }
        }
        distances
    }

    /// The ports of switch `at` that lead a group's packets to its members, along a tree that begins at the first switch.
    /// Ports that only send are not members, but theirs may be the way to the tree.
    pub fn tree(&self, at: usize, members: &BTreeMap<u64, u64>) -> BTreeSet<u8> {
        let root = self.nodes.iter().position(|node| node.is_switch).expect("a switch");
        let distances = self.distances(root);
        let mut ports = BTreeSet::new();
        for (guid, state) in members {
            let Some(mut node) = self.nodes.iter().position(|node| node.guid == *guid) else {
                continue;
            };
            while node != root && distances[node].is_some() {
                let hops = distances[node].map(|hops| hops - 1);
                let nearer = |(_, (peer, _)): &(&u8, &(usize, u8))| distances[*peer] == hops;
                let (up, (next, down)) =
                    self.nodes[node].peers.iter().find(nearer).expect("a way to the root");
                ports.extend((node == at).then_some(*up));
                ports.extend((*next == at && state & 1 == 1).then_some(*down));
                node = *next;
            }
        }
        ports
    }

    /// The forwarding table of switch `at`: a shortest way to each LID, port 0 for its own. Equal ways share the LIDs, of
    /// which an adapter has as many as its LMC says.
    pub fn routes(&self, at: usize, lid_mask_bits: u8) -> BTreeMap<Lid, u8> {
        let mut table = BTreeMap::new();
        for (to, target) in self.nodes.iter().enumerate() {
            if to == at {
                table.insert(target.lid, 0);
                continue;
            }
            let distances = self.distances(to);
            let Some(here) = distances[at] else { continue };
            let nearer = |(_, (peer, _)): &(&u8, &(usize, u8))| distances[*peer] == Some(here - 1);
            let ways: Vec<u8> =
                self.nodes[at].peers.iter().filter(nearer).map(|(port, _)| *port).collect();
            let bits = if target.is_switch { 0 } else { lid_mask_bits };
            for lid in (0..1 << bits).map(|bits| target.lid.get() + bits) {
                if !ways.is_empty() {
                    table.insert(Lid::new(lid), ways[usize::from(lid) % ways.len()]);
                }
            }
        }
        table
    }
}
