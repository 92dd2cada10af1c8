//! What programs that manage a fabric must print of it, from the scenario, and the parts of their output.

use crate::laboratory::in_repository;
use emulation::wiring::NodeKind;
use scenario::render::{Lab, render};
use std::collections::{BTreeMap, BTreeSet};

/// A port: its node's GUID, and its number.
pub type Port = (u64, u8);

/// A node of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub guid: u64,
    pub lid: u16,
    pub ports: u8,
    pub is_switch: bool,
}

/// The fabric as the scenario describes it.
pub struct Oracle {
    pub nodes: Vec<Node>,
    pub cables: BTreeSet<[Port; 2]>,
}

impl Oracle {
    pub fn of(file: &str) -> Oracle {
        let sets = ["lab.managed=true".to_owned()];
        let scenario =
            scenario::files::load(&in_repository(file), &sets).expect("it is valid").scenario;
        let Lab { fabric, nics, switches, .. } = render(&scenario);
        let nics = nics.iter().map(|nic| (nic.lid, nic.management));
        let switches = switches.iter().map(|switch| (switch.lid, switch.management));
        let plan = nics.chain(switches).zip(&fabric.wiring.nodes);
        let nodes = plan.map(|((lid, management), wiring)| Node {
            name: wiring.name.clone(),
            guid: management.expect("a managed fabric").guid,
            lid: lid.get(),
            ports: wiring.ports,
            is_switch: wiring.kind == NodeKind::Switch,
        });
        let nodes: Vec<Node> = nodes.collect();
        let ends = fabric.wiring.links.iter().map(|link| [link.a, link.b]);
        let cables = ends.map(|ends| cable(ends.map(|end| (nodes[end.node].guid, end.port.get()))));
        let cables = cables.collect();
        Oracle { nodes, cables }
    }

    /// The node of that name; s0, s1 … are the switches in the order of the plan, whatever they are called.
    pub fn node(&self, name: &str) -> &Node {
        let place = name.strip_prefix('s').and_then(|number| number.parse().ok());
        let switch = place.and_then(|place| self.switches().nth(place));
        let named = self.nodes.iter().find(|node| node.name == name);
        named.or(switch).expect("a node of the plan")
    }

    pub fn nics(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_switch)
    }

    pub fn switches(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_switch)
    }

    /// The far end of the cable at a port.
    pub fn far(&self, port: Port) -> Port {
        let far = self.cables.iter().find_map(|[a, b]| match port {
            _ if port == *a => Some(*b),
            _ if port == *b => Some(*a),
            _ => None,
        });
        far.unwrap_or_else(|| panic!("no cable at {port:x?}"))
    }

    /// The switches between two NICs by these tables.
    pub fn route(&self, tables: &Tables, from: &Node, to: &Node) -> Vec<u64> {
        let (mut at, mut passed) = (self.far((from.guid, 1)).0, Vec::new());
        while at != to.guid {
            passed.push(at);
            assert!(passed.len() < 8, "{} to {} ends nowhere", from.name, to.name);
            at = self.far((at, tables[&at][&to.lid])).0;
        }
        passed
    }
}

/// A cable, whatever end is named first.
pub fn cable(mut ends: [Port; 2]) -> [Port; 2] {
    ends.sort_unstable();
    ends
}

/// The first hexadecimal number after `mark`.
pub fn hex_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    let rest = rest.strip_prefix("0x").unwrap_or(rest);
    let end = rest.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(rest.len());
    u64::from_str_radix(&rest[..end], 16).ok()
}

/// The first decimal number after `mark`.
pub fn number_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    let rest = rest.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The value of a line `Name:.....value`.
pub fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let line = lines.find(|(key, _)| *key == name);
    line.unwrap_or_else(|| panic!("no {name} in {text}")).1.trim_start_matches(['.', ' ', '\t'])
}

/// The cables that ibnetdiscover prints, each at both ends.
pub fn discovered(text: &str) -> Vec<[Port; 2]> {
    let mut own = 0;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("Switch") || line.starts_with("Ca") {
            own = guid_in_quotes(line).expect("the node of a section");
        } else if let (true, Some(far)) = (line.starts_with('['), guid_in_quotes(line)) {
            let port = number_after(line, "[").expect("a port") as u8;
            let (_, rest) = line.split_once('"').expect("quotes");
            let far_port = number_after(rest, "\"[").expect("the port of the far end") as u8;
            found.push(cable([(own, port), (far, far_port)]));
        }
    }
    found
}

fn guid_in_quotes(line: &str) -> Option<u64> {
    hex_after(line, "\"S-").or_else(|| hex_after(line, "\"H-"))
}

/// The cables on the way that ibtracert prints. The GUIDs of the plan end in the number of the port.
pub fn traced(text: &str) -> Vec<[Port; 2]> {
    let node = |guid: u64| guid & !0xff;
    let mut at = node(hex_after(text, "{").expect("the first node"));
    let hop = |line: &str| {
        let out = number_after(line, "[").expect("a port") as u8;
        let far = node(hex_after(line, "{").expect("the next node"));
        let into = number_after(line, "}[").expect("its port") as u8;
        let from = std::mem::replace(&mut at, far);
        cable([(from, out), (far, into)])
    };
    text.lines().filter(|line| line.starts_with('[')).map(hop).collect()
}

/// By GUID of a switch: the output by LID.
pub type Tables = BTreeMap<u64, BTreeMap<u16, u8>>;

/// The tables that dump_fts prints, or ibroute for one switch.
pub fn tables(text: &str) -> Tables {
    let mut tables = Tables::new();
    let mut own = 0;
    for line in text.lines() {
        if line.starts_with("Unicast lids") {
            own = hex_after(line, "guid ").expect("the GUID of a switch");
        } else if let Some(lid) = line.strip_prefix("0x").and_then(|_| hex_after(line, "")) {
            let port = number_after(line, " ").expect("an output");
            tables.entry(own).or_default().insert(lid as u16, port as u8);
        }
    }
    tables
}
