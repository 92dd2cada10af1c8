//! Nodes and links written out by hand.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems, did_you_mean};
use crate::shapes::Shape;
use crate::topology::{Node, Topology};
use emulation::wiring::{End, NodeKind};
use proto::ids::{Lid, PortNumber};
use proto::params::{Key, KeyTable, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "listed", keys: &KEYS, build };

const KEYS: [Key; 1] =
    [Key::required("nodes", Kind::Tables(&NODE), "every node, when shape is left out")];

static NODE: KeyTable = KeyTable::new(
    "one node",
    &[
        Key::required("name", Kind::Text, "its name"),
        Key::required("kind", Kind::Word(|| vec!["nic", "switch"]), "what it is"),
        Key::optional(
            "lid",
            Kind::Whole(1, 0xbfff),
            "its address; else the lowest free ones, adapters first",
        ),
        Key::optional(
            "ports",
            Kind::Whole(1, 254),
            "how many ports it has; else as many as the highest one cabled",
        ),
    ],
);

fn build(fields: &Fields<'_>, problems: &mut Problems) -> Option<Topology> {
    let mut topology = Topology { nodes: nodes(fields, problems), ..Topology::default() };
    if topology.nodes.is_empty() {
        return None;
    }
    let mut used = BTreeMap::new();
    for link in fields.tables("links") {
        let a = cable_end(&link, "a", &topology, &mut used, problems);
        let b = cable_end(&link, "b", &topology, &mut used, problems);
        if link.text("a").is_some() && !link.has("b") {
            let complaint = Complaint::new("\"b\" is missing", "a listed link has two ends");
            link.report(problems, "b", complaint);
        }
        if let (Some(a), Some(b)) = (a, b) {
            topology.cable(a, b);
        }
    }
    for (node, fields) in in_adapter_order(fields).enumerate() {
        settle_ports(&mut topology, node, &fields, problems);
    }
    set_levels(&mut topology);
    Some(topology)
}

/// The node tables, adapters first, those without name or kind left out.
fn in_adapter_order<'a>(fields: &Fields<'a>) -> impl Iterator<Item = Fields<'a>> {
    let is = |wanted: &'static str| {
        move |node: &Fields<'_>| node.text("kind") == Some(wanted) && node.has("name")
    };
    let all = fields.tables("nodes");
    let adapters: Vec<_> = all.iter().filter(|node| is("nic")(node)).cloned().collect();
    let switches: Vec<_> = all.into_iter().filter(is("switch")).collect();
    adapters.into_iter().chain(switches)
}

fn nodes(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Node> {
    let mut taken: BTreeMap<u16, String> = BTreeMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    for node in in_adapter_order(fields) {
        let name = node.text("name").unwrap_or_default();
        if nodes.iter().any(|other| other.name == name) {
            let message = format!("{name:?} is the name of two nodes");
            node.report(problems, "name", Complaint::new(message, "names are unique"));
        }
        if name.is_empty() || name.contains([':', '>', '*', '?', '[', ' ', '.']) {
            let hint = "letters, digits, - and _: names stand in node:port and a>b";
            node.report(problems, "name", Complaint::new(format!("{name:?} is no name"), hint));
        }
        let lid: Option<u16> = node.whole("lid");
        if let Some(owner) = lid.and_then(|lid| taken.insert(lid, name.to_owned())) {
            let message = format!("{owner} has this LID already");
            node.report(problems, "lid", Complaint::new(message, "LIDs are unique"));
        }
        nodes.push(Node {
            name: name.to_owned(),
            kind: if node.text("kind") == Some("nic") { NodeKind::Nic } else { NodeKind::Switch },
            lid: Lid::new(lid.unwrap_or(0)),
            ports: node.whole("ports").unwrap_or(0),
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

/// Reads `node:port`, claims it and makes sure the node has that many ports.
fn cable_end(
    link: &Fields<'_>,
    key: &str,
    topology: &Topology,
    used: &mut BTreeMap<End, usize>,
    problems: &mut Problems,
) -> Option<End> {
    let end = match parse_end(link.text(key)?, topology) {
        Ok(end) => end,
        Err(complaint) => {
            link.report(problems, key, complaint);
            return None;
        }
    };
    if let Some(line) = used.insert(end, link.place_of(key).line()) {
        let message = format!("port {} is used twice", topology.end_name(end));
        let hint = format!("its other cable is in line {line}");
        link.report(problems, key, Complaint::new(message, hint));
        return None;
    }
    Some(end)
}

/// `node:port` as an end of a cable.
///
/// # Errors
/// If there is no such node, or the port is no number from 1 to 254.
pub fn parse_end(text: &str, topology: &Topology) -> Result<End, Complaint> {
    let example = "an end is written node:port, for example \"s0:1\"";
    let (name, port) = text
        .split_once(':')
        .ok_or_else(|| Complaint::new(format!("{text:?} is no end of a cable"), example))?;
    let node = topology.find(name).ok_or_else(|| {
        let hint = did_you_mean(name, topology.nodes.iter().map(|node| node.name.as_str()));
        Complaint::new(format!("there is no node {name:?}"), hint)
    })?;
    let port = port.parse().ok().and_then(|port| PortNumber::new(port).ok()).ok_or_else(|| {
        Complaint::new(format!("{port:?} is no port"), "ports are numbered 1 to 254")
    })?;
    Ok(End { node, port })
}

/// The ports a node has: as many as it says, at least as many as its highest cable needs.
fn settle_ports(
    topology: &mut Topology,
    node: usize,
    fields: &Fields<'_>,
    problems: &mut Problems,
) {
    let ends = topology.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let highest = ends.filter(|end| end.node == node).map(|end| end.port.get()).max().unwrap_or(1);
    let said = topology.nodes[node].ports;
    if said != 0 && said < highest {
        let message = format!("{said} ports, but port {highest} is cabled");
        fields.report(problems, "ports", Complaint::new(message, "leave the key out"));
    }
    topology.nodes[node].ports = said.max(highest);
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
