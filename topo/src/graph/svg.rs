//! The graph as SVG: adapters in a row at the bottom, a row for each level of switches above.
//!
//! Every line carries its two ports and what is special about it as a tooltip; up to a size at
//! which they can be read, port numbers are written beside their ends too.

use super::{levels, special};
use crate::topology::Topology;
use emulation::wiring::NodeKind;
use std::fmt::Write;

/// Pixels between two adapters, between two rows, and around everything.
const COLUMN: f64 = 46.0;
const ROW: f64 = 150.0;
const MARGIN: f64 = 40.0;
/// A node's box.
const HEIGHT: f64 = 24.0;
/// Past this many cables port numbers would cover each other.
const LABELLED_MAX: usize = 80;

const STYLE: &str = "text{font:11px system-ui,sans-serif;text-anchor:middle;fill:#191d24}\
    .p{font-size:9px;fill:#5b6370}line{stroke:#5b6370;stroke-width:1}line:hover{stroke:#c8500a;\
    stroke-width:3}.apart{stroke:#99397a}rect{stroke:#191d24;fill:#fff}.nic{fill:#f3efe4}\
    @media(prefers-color-scheme:dark){text{fill:#e9ebee}.p{fill:#9aa3b0}line{stroke:#9aa3b0}\
    rect{stroke:#e9ebee;fill:#191d24}.nic{fill:#242a32}}";

/// The picture.
pub fn svg(name: &str, topology: &Topology) -> String {
    let rows = levels(topology);
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let width = widest * COLUMN.max(name_width(topology) + 10.0) + 2.0 * MARGIN;
    let height = (rows.len().max(1) - 1) as f64 * ROW + HEIGHT + 2.0 * MARGIN;
    let places = places(topology, &rows, width, height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n",
        escaped(name)
    );
    for cable in &topology.cables {
        let (from, to) = (places[cable.a.node], places[cable.b.node]);
        let ends = format!("{} — {}", topology.end_name(cable.a), topology.end_name(cable.b));
        let special = special(cable);
        let class = if special.is_some() { " class=\"apart\"" } else { "" };
        let note = special.map_or(String::new(), |text| format!(", {text}"));
        let _ = writeln!(
            out,
            "<line{class} x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\">\
             <title>{}</title></line>",
            from.0,
            from.1,
            to.0,
            to.1,
            escaped(&format!("{ends}{note}"))
        );
        if topology.cables.len() <= LABELLED_MAX {
            port_label(&mut out, from, to, cable.a.port.get());
            port_label(&mut out, to, from, cable.b.port.get());
        }
    }
    for (node, place) in topology.nodes.iter().zip(&places) {
        let half = (name_width(topology) / 2.0).max(14.0);
        let class =
            if node.kind == NodeKind::Nic { " class=\"nic\" rx=\"12\"" } else { " rx=\"3\"" };
        let _ = writeln!(
            out,
            "<rect{class} x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            place.0 - half,
            place.1 - HEIGHT / 2.0,
            2.0 * half,
            place.0,
            place.1 + 4.0,
            escaped(&node.name)
        );
    }
    out += "</svg>\n";
    out
}

/// Roughly how wide the longest name is.
fn name_width(topology: &Topology) -> f64 {
    let longest = topology.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(1);
    longest as f64 * 6.5 + 8.0
}

/// The middle of every node: rows spread over the whole width, so that a switch of a tree stands
/// above what hangs below it.
fn places(topology: &Topology, rows: &[Vec<usize>], width: f64, height: f64) -> Vec<(f64, f64)> {
    let mut places = vec![(0.0, 0.0); topology.nodes.len()];
    for (level, row) in rows.iter().enumerate() {
        let step = (width - 2.0 * MARGIN) / row.len() as f64;
        for (column, node) in row.iter().enumerate() {
            let x = MARGIN + step * (column as f64 + 0.5);
            let y = height - MARGIN - HEIGHT / 2.0 - level as f64 * ROW;
            places[*node] = (x, y);
        }
    }
    places
}

/// A port's number a little way along the cable.
fn port_label(out: &mut String, from: (f64, f64), to: (f64, f64), port: u8) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let share = 26.0 / dx.hypot(dy).max(52.0);
    let _ = writeln!(
        out,
        "<text class=\"p\" x=\"{:.1}\" y=\"{:.1}\">{port}</text>",
        from.0 + dx * share,
        from.1 + dy * share
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
