//! The fabric as a picture, from the scenario file alone: DOT, Mermaid and SVG.

use emulation::wiring::NodeKind;
use scenario::topology::{Cable, Topology};
use std::collections::BTreeMap;
use std::fmt::Write;

pub mod svg;

/// The graph in the language of Graphviz: one rank a level, adapters at the bottom.
pub fn dot(name: &str, topology: &Topology) -> String {
    let mut out = format!("graph {name:?} {{\n  rankdir = BT;\n  ranksep = 1.2;\n");
    out += "  node [fontname = \"sans-serif\", fontsize = 11];\n";
    out += "  edge [fontname = \"sans-serif\", fontsize = 8, color = \"#5b6370\"];\n";
    for level in levels(topology) {
        out += "  { rank = same;\n";
        for node in level {
            let device = &topology.nodes[node];
            let shape = if device.kind == NodeKind::Nic { "ellipse" } else { "box" };
            let _ = writeln!(out, "    {:?} [shape = {shape}];", device.name);
        }
        out += "  }\n";
    }
    for cable in &topology.cables {
        let (a, b) = (&topology.nodes[cable.a.node].name, &topology.nodes[cable.b.node].name);
        let (pa, pb) = (cable.a.port, cable.b.port);
        let label = special(cable).map_or(String::new(), |text| format!(", label = {text:?}"));
        let _ =
            writeln!(out, "  {a:?} -- {b:?} [taillabel = \"{pa}\", headlabel = \"{pb}\"{label}];");
    }
    out += "}\n";
    out
}

/// The graph in the language of Mermaid, which README files show as a picture.
pub fn mermaid(topology: &Topology) -> String {
    let mut out = String::from("flowchart BT\n");
    for node in &topology.nodes {
        let (open, close) = if node.kind == NodeKind::Nic { ("([", "])") } else { ("[", "]") };
        let _ = writeln!(out, "  {}{open}\"{}\"{close}", mermaid_id(&node.name), node.name);
    }
    for cable in &topology.cables {
        let a = mermaid_id(&topology.nodes[cable.a.node].name);
        let b = mermaid_id(&topology.nodes[cable.b.node].name);
        let special = special(cable).map_or(String::new(), |text| format!(" {text}"));
        let _ = writeln!(out, "  {a} ---|\"{}–{}{special}\"| {b}", cable.a.port, cable.b.port);
    }
    out
}

/// A name that Mermaid takes as an identifier; "end" is a word of its own there.
fn mermaid_id(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("n_{}", name.chars().map(safe).collect::<String>())
}

/// What sets a cable apart from the default link.
fn special(cable: &Cable) -> Option<String> {
    let (rate, delay) = (cable.rate.map(|r| r.to_string()), cable.delay.map(|d| d.to_string()));
    let parts: Vec<String> = rate.into_iter().chain(delay).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The nodes by level, adapters first.
fn levels(topology: &Topology) -> Vec<Vec<usize>> {
    let mut levels: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (place, node) in topology.nodes.iter().enumerate() {
        levels.entry(node.level).or_default().push(place);
    }
    levels.into_values().collect()
}

#[cfg(test)]
mod tests;
