//! The fabric as a graph: nodes, cables, and the neighbours of each node. Adapters come first.

use emulation::wiring::{End, NodeKind};
use proto::ids::{Lid, PortNumber};
use proto::units::{BitRate, Duration};

/// A fabric's graph. A node is its index in `nodes` everywhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes, adapters first.
    pub nodes: Vec<Node>,
    /// The cables.
    pub cables: Vec<Cable>,
    /// Ports of switches with an interface of the host in a cable's place.
    pub attached: Vec<End>,
    /// Paths go up and then down, so that credits cannot wait in a circle.
    pub is_tree: bool,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Switch or NIC.
    pub kind: NodeKind,
    /// Its address.
    pub lid: Lid,
    /// How many ports it has, cabled or not.
    pub ports: u8,
    /// 0 for adapters, then switches upwards.
    pub level: u8,
    /// What d-mod-k divides a destination's number by before it chooses a port here.
    pub spread: u64,
}

/// A full-duplex cable, with what sets it apart from the default link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Its own rate.
    pub rate: Option<BitRate>,
    /// Its own delay.
    pub delay: Option<Duration>,
}

impl Topology {
    /// How many adapters there are; they are the nodes below that index.
    pub fn adapters(&self) -> usize {
        self.nodes.iter().filter(|node| node.kind == NodeKind::Nic).count()
    }

    /// Adds a node: a NIC at level 0, a switch above. Its LID is one more than its index.
    ///
    /// # Panics
    /// If there are more nodes than unicast LIDs, or more than 254 ports.
    pub fn add(&mut self, name: String, level: u8, ports: usize, spread: u64) {
        let lid = Lid::new(u16::try_from(self.nodes.len() + 1).expect("at most 0xBFFF nodes"));
        let kind = if level == 0 { NodeKind::Nic } else { NodeKind::Switch };
        let ports = u8::try_from(ports).expect("at most 254 ports");
        self.nodes.push(Node { name, kind, lid, ports, level, spread });
    }

    /// Adds a cable with nothing special.
    pub fn cable(&mut self, a: End, b: End) {
        self.cables.push(Cable { a, b, rate: None, delay: None });
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The cable at `end`.
    pub fn cable_at(&self, end: End) -> Option<usize> {
        self.cables.iter().position(|cable| cable.a == end || cable.b == end)
    }

    /// By node and port index: the far end of the cable there.
    pub fn neighbours(&self) -> Vec<Vec<Option<End>>> {
        let mut all: Vec<_> =
            self.nodes.iter().map(|node| vec![None; usize::from(node.ports)]).collect();
        for cable in &self.cables {
            all[cable.a.node][cable.a.port.index()] = Some(cable.b);
            all[cable.b.node][cable.b.port.index()] = Some(cable.a);
        }
        all
    }

    /// `node:port`, the name users see.
    pub fn end_name(&self, end: End) -> String {
        format!("{}:{}", self.nodes[end.node].name, end.port)
    }
}

/// Port `index` (from 0) of node `node`.
///
/// # Panics
/// If `index` is above 253.
pub fn end(node: usize, index: usize) -> End {
    End { node, port: PortNumber::from_index(index) }
}
