//! `topology.json`: nodes, links, and the columns in which a picture draws them.

use crate::run_directory::{RunRecord, Sealed};
use emulation::wiring::{End, NodeKind};
use scenario::inventory::Fabric;
use serde::Serialize;
use std::io::{self, Write};

/// The fabric in the format of `topology.json`.
#[derive(Serialize)]
pub struct Topology<'a> {
    nodes: Vec<Node<'a>>,
    links: Vec<Link<'a>>,
    columns: Vec<Vec<&'a str>>,
    order: &'static str,
}

#[derive(Serialize)]
struct Node<'a> {
    name: &'a str,
    kind: Kind,
    level: u8,
}

/// A device of the fabric, or a host behind an attached interface.
#[derive(Serialize)]
#[serde(untagged)]
enum Kind {
    Device(NodeKind),
    Host(&'static str),
}

#[derive(Serialize)]
struct Link<'a> {
    a: String,
    b: String,
    rate: u64,
    delay_ps: u64,
    tech: &'a str,
}

/// Writes the file; its rows are nodes and links.
pub(super) fn write(record: &RunRecord<'_>, out: &mut Sealed) -> io::Result<u64> {
    let topology = with_hosts(record.fabric);
    serde_json::to_writer(&mut *out, &topology)?;
    out.write_all(b"\n")?;
    Ok((topology.nodes.len() + topology.links.len()) as u64)
}

/// The content of the file for a fabric.
pub fn describe(fabric: &Fabric) -> Topology<'_> {
    let nodes = fabric.wiring.nodes.iter();
    let links = fabric.wiring.links.iter().zip(&fabric.rates);
    Topology {
        nodes: nodes
            .map(|node| Node { name: &node.name, kind: Kind::Device(node.kind), level: node.level })
            .collect(),
        links: links
            .map(|(link, rate)| Link {
                a: fabric.wiring.end_name(link.a),
                b: fabric.wiring.end_name(link.b),
                rate: rate.get(),
                delay_ps: link.delay.as_ps(),
                tech: fabric.technology.name(),
            })
            .collect(),
        columns: columns(fabric),
        order: "leaf",
    }
}

/// The same with a node at level 0 for each attached interface, called as the interface is, and a link to it at port
/// 1. The rate of a port without one is the nominal rate of its pauses.
fn with_hosts(fabric: &Fabric) -> Topology<'_> {
    let mut topology = describe(fabric);
    for (at, interface, rate) in fabric.attached() {
        topology.nodes.push(Node { name: interface, kind: Kind::Host("host"), level: 0 });
        topology.links.push(Link {
            a: fabric.wiring.end_name(at),
            b: format!("{interface}:1"),
            rate: rate.get(),
            delay_ps: 0,
            tech: fabric.technology.name(),
        });
        let last = topology.columns.len() - 1;
        topology.columns[0].push(interface);
        if last > 0 {
            topology.columns[last].push(interface);
        }
    }
    topology
}

/// The unfolded picture from left to right: adapters as sources, switches up to the top and down
/// again, adapters as destinations; adapters in the order of the leaves they hang on.
fn columns(fabric: &Fabric) -> Vec<Vec<&str>> {
    let nodes = &fabric.wiring.nodes;
    let top = nodes.iter().map(|node| node.level).max().unwrap_or(0);
    let mut levels: Vec<Vec<usize>> = vec![Vec::new(); usize::from(top) + 1];
    for (index, node) in nodes.iter().enumerate() {
        levels[usize::from(node.level)].push(index);
    }
    levels[0].sort_by_key(|node| (leaf(fabric, *node), *node));
    let down = levels.iter().rev().skip(1);
    let unfolded = levels.iter().chain(down);
    unfolded.map(|level| level.iter().map(|node| nodes[*node].name.as_str()).collect()).collect()
}

/// The switch end that a node's first cable leads to.
fn leaf(fabric: &Fabric, node: usize) -> Option<End> {
    fabric.wiring.links.iter().find_map(|link| match (link.a.node, link.b.node) {
        (a, _) if a == node => Some(link.b),
        (_, b) if b == node => Some(link.a),
        _ => None,
    })
}
