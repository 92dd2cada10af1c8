//! The graph as SVG: adapters in a row at the bottom, a row for each level of switches above.
//!
//! A cable begins at its port, a place of its own on the edge of its node's box with the port's
//! number beside it, so that numbers never meet. Its tooltip names both ends and what is special
//! about it.

use super::{levels, special};
use emulation::wiring::{End, NodeKind};
use maud::{Markup, PreEscaped, html};
use scenario::topology::{Cable, Node, Topology};
use std::collections::BTreeMap;

/// Pixels between two ports of a node, between two boxes of a row, and around everything.
const PITCH: f64 = 15.0;
const GAP: f64 = 10.0;
const MARGIN: f64 = 20.0;
/// Height of a box; one with port numbers along an edge is higher by a line for each such edge.
const HEIGHT: f64 = 24.0;
const NUMBERS: f64 = 11.0;
/// Between the middles of two rows: a share of the width, lest cables lie flat, within bounds.
const ROW_SHARE: f64 = 0.11;
const ROW_MIN: f64 = 120.0;
const ROW_MAX: f64 = 220.0;
/// How far a cable between two nodes of one row rises above them.
const ARC: f64 = 46.0;

const STYLE: &str = "text{font:11px system-ui,sans-serif;text-anchor:middle;fill:#191d24}\
    .p{font-size:9px;fill:#5b6370}path{fill:none;stroke:#5b6370;stroke-width:1}\
    path:hover{stroke:#c8500a;stroke-width:3}.apart{stroke:#99397a;stroke-width:2}\
    rect{stroke:#191d24;fill:#fff}.nic{fill:#f3efe4}\
    @media(prefers-color-scheme:dark){text{fill:#e9ebee}.p{fill:#9aa3b0}path{stroke:#9aa3b0}\
    .apart{stroke:#d77bb8}rect{stroke:#e9ebee;fill:#191d24}.nic{fill:#242a32}}";

/// The edges of a box with ports: the places of their lists in a shape.
const TOP: usize = 0;
const BOTTOM: usize = 1;

/// A node's box: its middle, half its width, and the ports along its edges.
#[derive(Clone, Debug, Default)]
struct Shape {
    x: f64,
    y: f64,
    half_width: f64,
    /// By edge, the ports from left to right.
    ports: [Vec<End>; 2],
    numbered: bool,
}

impl Shape {
    /// y of an edge.
    fn edge(&self, edge: usize) -> f64 {
        let numbers = if self.numbered && !self.ports[edge].is_empty() { NUMBERS } else { 0.0 };
        let below = if edge == TOP { -1.0 } else { 1.0 };
        self.y + below * (HEIGHT / 2.0 + numbers)
    }

    /// The place of a port, and its edge.
    fn port(&self, end: End) -> (f64, f64, usize) {
        let place = |edge: usize| self.ports[edge].iter().position(|port| *port == end);
        let (edge, place) = match place(TOP) {
            Some(place) => (TOP, place),
            None => (BOTTOM, place(BOTTOM).unwrap_or(0)),
        };
        let middle = (self.ports[edge].len().max(1) - 1) as f64 / 2.0;
        (self.x + (place as f64 - middle) * PITCH, self.edge(edge), edge)
    }
}

/// The picture.
pub fn svg(name: &str, topology: &Topology) -> String {
    let mut shapes = shapes(topology);
    let (width, height) = place(topology, &mut shapes);
    let (width, height) = (format!("{width:.0}"), format!("{height:.0}"));
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" {
            title { (name) }
            style { (PreEscaped(STYLE)) }
            @for cable in &topology.cables { (draw_cable(cable, topology, &shapes)) }
            @for (node, shape) in topology.nodes.iter().zip(&shapes) { (draw_node(node, shape)) }
        }
    };
    picture.into_string() + "\n"
}

/// Every node's box with its ports, not yet placed. Cables upwards and sidewards begin at the top.
fn shapes(topology: &Topology) -> Vec<Shape> {
    let mut shapes = vec![Shape::default(); topology.nodes.len()];
    for cable in &topology.cables {
        for (own, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let down = topology.nodes[far.node].level < topology.nodes[own.node].level;
            shapes[own.node].ports[usize::from(down)].push(own);
        }
    }
    for (node, shape) in topology.nodes.iter().zip(&mut shapes) {
        // A node with one port needs no number there.
        shape.numbered = node.ports > 1;
        let ports = shape.ports[TOP].len().max(shape.ports[BOTTOM].len()) as f64 * PITCH + 4.0;
        let name = node.name.chars().count() as f64 * 6.5 + 12.0;
        shape.half_width = ports.max(name).max(30.0) / 2.0;
    }
    shapes
}

/// Gives every box its place and brings its ports into the order of what they lead to; the size of
/// the picture. Each row is spread over the whole width, so that a switch of a tree stands above
/// what hangs below it.
fn place(topology: &Topology, shapes: &mut [Shape]) -> (f64, f64) {
    let rows = levels(topology);
    let widest = |row: &Vec<usize>| {
        row.iter().map(|node| 2.0 * shapes[*node].half_width).fold(0.0, f64::max) + GAP
    };
    let wide = rows.iter().map(|row| row.len() as f64 * widest(row)).fold(0.0, f64::max);
    let row_height = (wide * ROW_SHARE).clamp(ROW_MIN, ROW_MAX);
    let level = |end: End| topology.nodes[end.node].level;
    let has_arc = topology.cables.iter().any(|cable| level(cable.a) == level(cable.b));
    let arc = if has_arc { ARC } else { 0.0 };
    let box_height = HEIGHT + 2.0 * NUMBERS;
    let rows_below = rows.len().max(1) - 1;
    let height = rows_below as f64 * row_height + box_height + 2.0 * MARGIN + arc;
    for (row, nodes) in rows.iter().enumerate() {
        let step = wide / nodes.len() as f64;
        for (column, node) in nodes.iter().enumerate() {
            shapes[*node].x = MARGIN + step * (column as f64 + 0.5);
            shapes[*node].y = height - MARGIN - box_height / 2.0 - row as f64 * row_height;
        }
    }
    let far: BTreeMap<End, End> =
        topology.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]).collect();
    let x: Vec<f64> = shapes.iter().map(|shape| shape.x).collect();
    let order = |a: &End, b: &End| x[far[a].node].total_cmp(&x[far[b].node]).then(a.cmp(b));
    for ports in shapes.iter_mut().flat_map(|shape| &mut shape.ports) {
        ports.sort_by(order);
    }
    (wide + 2.0 * MARGIN, height)
}

fn draw_cable(cable: &Cable, topology: &Topology, shapes: &[Shape]) -> Markup {
    let ((x1, y1, from), (x2, y2, to)) =
        (shapes[cable.a.node].port(cable.a), shapes[cable.b.node].port(cable.b));
    // Between two nodes of a row it is an arc above those between them.
    let way = match (from, to) {
        (TOP, TOP) => format!("Q{:.1} {:.1} ", (x1 + x2) / 2.0, y1.min(y2) - 2.0 * ARC),
        _ => "L".to_owned(),
    };
    let special = special(cable);
    html! {
        "\n"
        path class=[special.as_ref().map(|_| "apart")] d=(format!("M{x1:.1} {y1:.1}{way}{x2:.1} {y2:.1}")) {
            title { (topology.end_name(cable.a)) " — " (topology.end_name(cable.b)) @if let Some(text) = special { ", " (text) } }
        }
    }
}

/// The box of a node with its name, and the numbers of its ports just inside its edges.
fn draw_node(node: &Node, shape: &Shape) -> Markup {
    let (top, bottom) = (shape.edge(TOP), shape.edge(BOTTOM));
    let (class, radius) = if node.kind == NodeKind::Nic { (Some("nic"), 12) } else { (None, 3) };
    html! {
        "\n"
        rect class=[class] rx=(radius) x=(format!("{:.1}", shape.x - shape.half_width)) y=(format!("{top:.1}"))
            width=(format!("{:.1}", 2.0 * shape.half_width)) height=(format!("{:.1}", bottom - top)) {}
        text x=(format!("{:.1}", shape.x)) y=(format!("{:.1}", shape.y + 4.0)) { (node.name) }
        @for end in shape.ports.iter().flatten().filter(|_| shape.numbered) {
            @let (x, edge, side) = shape.port(*end);
            @let y = if side == TOP { edge + NUMBERS } else { edge - 4.0 };
            "\n" text class="p" x=(format!("{x:.1}")) y=(format!("{y:.1}")) { (end.port) }
        }
    }
}
