//! Nodes and links written out by hand.

use crate::keyfile::fields::{Fields, meaning, words};
use crate::keyfile::problem::{Complaint, did_you_mean};
use crate::shapes::Shape;
use crate::topology::{Node, Topology};
use emulation::wiring::{End, NodeKind};
use proto::ids::{Lid, PortNumber};
use proto::params::{Key, KeyTable, Kind, Params};
use std::collections::{BTreeMap, BTreeSet};

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "listed", keys: &KEYS, build };

const KEYS: [Key; 1] =
    [Key::required("nodes", Kind::Tables(&NODE), "Every node, when shape is left out.")];

static NODE: KeyTable = KeyTable::new("one node", ListedNode::KEYS);

proto::params! {
    /// One of `fabric.nodes` as written.
    pub struct ListedNode {
        /// Its name.
        name: String = Text, Required;
        /// What it is.
        kind: String = Word(|| words(&KINDS)), Required;
        /// Its address; else the lowest free ones, adapters first.
        lid: Option<u16> = Whole(1, 0xbfff), Optional;
        /// How many ports it has; else as many as the highest one cabled.
        ports: Option<u8> = Whole(1, 254), Optional;
    }
}

const KINDS: [(&str, NodeKind); 2] = [("nic", NodeKind::Nic), ("switch", NodeKind::Switch)];

fn build(fields: &Fields<'_>) -> Option<Topology> {
    // Adapters first.
    let mut listed = fields.each::<ListedNode>("nodes");
    listed.sort_by_key(|(_, node)| meaning(&KINDS, &node.kind) == Some(NodeKind::Switch));
    let mut topology = Topology { nodes: nodes(&listed), ..Topology::default() };
    if topology.nodes.is_empty() {
        return None;
    }
    let mut used = BTreeMap::new();
    for link in fields.tables("links") {
        let a = cable_end(&link, "a", &topology, &mut used);
        let b = cable_end(&link, "b", &topology, &mut used);
        if link.text("a").is_some() && link.text("b").is_none() {
            link.error("b", "\"b\" is missing", "a listed link has two ends");
        }
        if let (Some(a), Some(b)) = (a, b) {
            topology.cable(a, b);
        }
    }
    for (node, (fields, _)) in listed.iter().enumerate() {
        set_ports(&mut topology, node, fields);
    }
    set_levels(&mut topology);
    Some(topology)
}

fn nodes(listed: &[(Fields<'_>, ListedNode)]) -> Vec<Node> {
    let mut taken: BTreeMap<u16, &str> = BTreeMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    for (fields, ListedNode { name, kind, lid, ports }) in listed {
        if nodes.iter().any(|other| other.name == *name) {
            let message = format!("{name:?} is the name of two nodes");
            fields.error("name", message, "names are unique");
        }
        if name.is_empty() || name.contains([':', '>', '*', '?', '[', ' ', '.']) {
            let hint = "letters, digits, - and _: names stand in node:port and a>b";
            fields.error("name", format!("{name:?} is not a name"), hint);
        }
        if let Some(owner) = lid.and_then(|lid| taken.insert(lid, name)) {
            fields.error("lid", format!("{owner} has this LID already"), "LIDs are unique");
        }
        nodes.push(Node {
            name: name.clone(),
            kind: meaning(&KINDS, kind).unwrap_or(NodeKind::Switch),
            lid: Lid::new(lid.unwrap_or(0)),
            ports: ports.unwrap_or(0),
            level: 0,
            spread: 1,
        });
    }
    let mut free = (1..=0xbfff).filter(|lid| !taken.contains_key(lid));
    for node in nodes.iter_mut().filter(|node| node.lid == Lid::new(0)) {
        node.lid = Lid::new(free.next().unwrap_or(0));
    }
    nodes
}

/// Reads `node:port` and claims that port.
fn cable_end(
    link: &Fields<'_>,
    key: &str,
    topology: &Topology,
    used: &mut BTreeMap<End, usize>,
) -> Option<End> {
    let end = link.accept(key, parse_end(link.text(key)?, topology))?;
    if let Some(line) = used.insert(end, link.place_of(key).line()) {
        let message = format!("port {} is used twice", topology.end_name(end));
        return link.refuse(key, message, format!("its other cable is in line {line}"));
    }
    Some(end)
}

/// `node:port` as an end of a cable.
///
/// # Errors
/// If there is no such node, or the port is not a number from 1 to 254.
pub fn parse_end(text: &str, topology: &Topology) -> Result<End, Complaint> {
    let example = "an end is written node:port, for example \"s0:1\"";
    let (name, port) = text
        .split_once(':')
        .ok_or_else(|| Complaint::new(format!("{text:?} is not an end of a cable"), example))?;
    let node = topology.find(name).ok_or_else(|| {
        let hint = did_you_mean(name, topology.nodes.iter().map(|node| node.name.as_str()));
        Complaint::new(format!("there is no node {name:?}"), hint)
    })?;
    let port = port.parse().ok().and_then(|port| PortNumber::new(port).ok()).ok_or_else(|| {
        Complaint::new(format!("{port:?} is not a port"), "ports are numbered 1 to 254")
    })?;
    Ok(End { node, port })
}

/// The ports a node has: as many as the file states, at least as many as its highest cable needs.
fn set_ports(topology: &mut Topology, node: usize, fields: &Fields<'_>) {
    let ends = topology.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let highest = ends.filter(|end| end.node == node).map(|end| end.port.get()).max().unwrap_or(1);
    let given = topology.nodes[node].ports;
    if given != 0 && given < highest {
        let message = format!("{given} ports, but port {highest} is cabled");
        fields.error("ports", message, "leave the key out");
    }
    topology.nodes[node].ports = given.max(highest);
}

/// Switches next to an adapter are level 1, those behind them level 2, and so on.
fn set_levels(topology: &mut Topology) {
    let mut reached: BTreeSet<usize> = (0..topology.adapters()).collect();
    for switch in &mut topology.nodes[reached.len()..] {
        switch.level = 1;
    }
    for level in 1u8.. {
        let cables = topology.cables.iter();
        let next: BTreeSet<usize> = cables
            .flat_map(|cable| [(cable.a.node, cable.b.node), (cable.b.node, cable.a.node)])
            .filter(|(near, far)| reached.contains(near) && !reached.contains(far))
            .map(|(_, far)| far)
            .collect();
        if next.is_empty() || level == u8::MAX {
            break;
        }
        for node in &next {
            topology.nodes[*node].level = level;
        }
        reached.extend(next);
    }
}
