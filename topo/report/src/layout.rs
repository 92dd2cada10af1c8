//! The layout of the fabric's picture: sources left, receivers right, switches between, a
//! curve for each direction of a cable.
//!
//! A fabric of levels is unfolded: up to the top and down again, so each switch below the top is drawn
//! twice and a tree of congestion is a tree. Any other stands folded once: its switches from left to
//! right by how much nearer they are to the senders than to the receivers.

use super::data::Node;
use super::leaves::Drawn;
use results::saturation::Output;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Width of the drawing on a page, pixels.
pub const WIDTH: f64 = 600.0;
/// Where the sources stand.
const SOURCES: f64 = 58.0;
/// Room for the bars of receivers.
const BARS: f64 = 92.0;
const TOP: f64 = 14.0;
/// About how wide a letter is.
const LETTER: f64 = 6.8;

/// A fabric to place.
#[derive(Clone, Copy, Debug)]
pub struct Net<'a> {
    nodes: &'a [Node],
    columns: &'a [Vec<usize>],
    outputs: &'a [Output],
}

impl<'a> From<&'a Drawn> for Net<'a> {
    fn from(drawn: &'a Drawn) -> Net<'a> {
        Net { nodes: &drawn.nodes, columns: &drawn.columns, outputs: &drawn.outputs }
    }
}

/// A switch's box.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its middle.
    pub x: f64,
    /// Its middle.
    pub y: f64,
    /// Half its height.
    pub half: f64,
    /// Half its width.
    pub wide: f64,
    /// What stands in it.
    pub label: String,
}

/// One direction of a cable.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Which output.
    pub output: usize,
    /// Path data.
    pub path: String,
    /// Where it begins.
    pub start: (f64, f64),
}

/// Everything placed.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Width of the drawing.
    pub width: f64,
    /// Where the lines to receivers end and their bars begin.
    pub bars: f64,
    /// Height of the drawing.
    pub height: f64,
    /// How many letters of a switch's name have room.
    pub letters: usize,
    /// From one row of adapters to the next.
    pub row: f64,
    /// Adapters on the left with their places.
    pub sources: Vec<(usize, f64)>,
    /// Adapters on the right with theirs.
    pub ports: Vec<(usize, f64)>,
    /// Switches.
    pub shapes: Vec<Shape>,
    /// Lines.
    pub curves: Vec<Curve>,
    /// Headers: place and word.
    pub headers: Vec<(f64, String)>,
}

/// A switch at one of its places: the column and the node.
type Spot = (usize, usize);

/// Places a fabric in a picture of this width; in a folded one, adapters that neither send nor receive are left out.
pub fn place(net: &Net<'_>, senders: &[usize], receivers: &[usize], width: f64) -> Layout {
    let is_layered = net.outputs.iter().all(|o| net.nodes[o.from].level != net.nodes[o.to].level);
    let has_switches = net.columns.len() >= 3;
    if is_layered && has_switches {
        unfolded(net, width)
    } else {
        folded(net, senders, receivers, width)
    }
}

fn unfolded(net: &Net<'_>, width: f64) -> Layout {
    let columns = &net.columns;
    let last = columns.len() - 1;
    let adapters = columns[0].clone();
    let spot = |output: usize| {
        let output = &net.outputs[output];
        let (level, far) = (usize::from(output.level), usize::from(output.far_level));
        if far > level {
            ((level, output.from), (far, output.to))
        } else {
            ((last - level, output.from), (last - far, output.to))
        }
    };
    let stands: BTreeSet<usize> = columns.iter().flatten().copied().collect();
    let links = (0..net.outputs.len())
        .filter(|output| {
            let Output { from, to, .. } = &net.outputs[*output];
            stands.contains(from) && stands.contains(to)
        })
        .map(|output| (output, spot(output)))
        .collect();
    let switches: Vec<Vec<usize>> = (1..last).map(|column| columns[column].clone()).collect();
    let headers = (0..=last).map(|column| header(net, columns, column)).collect();
    Drawing { net, sources: &adapters, ports: &adapters, switches: &switches, links, headers }
        .draw(width)
}

/// The title of a column: the common stem of its nodes' names.
fn header(net: &Net<'_>, columns: &[Vec<usize>], column: usize) -> String {
    if column == 0 {
        return "sources".to_owned();
    }
    if column == columns.len() - 1 {
        return "ports".to_owned();
    }
    common_stem(net, &columns[column])
}

fn common_stem(net: &Net<'_>, nodes: &[usize]) -> String {
    let stems: Vec<&str> = nodes.iter().map(|node| stem(&net.nodes[*node].name)).collect();
    match stems.split_first() {
        Some((first, rest)) if first.len() > 1 && rest.iter().all(|other| other == first) => {
            (*first).to_owned()
        }
        _ => "switches".to_owned(),
    }
}

/// A name without the number at its end.
pub fn stem(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

fn folded(net: &Net<'_>, senders: &[usize], receivers: &[usize], width: f64) -> Layout {
    let columns = by_distance(net, senders, receivers);
    let column_of: BTreeMap<usize, usize> = columns
        .iter()
        .enumerate()
        .flat_map(|(column, nodes)| nodes.iter().map(move |node| (*node, column + 1)))
        .collect();
    let last = columns.len() + 1;
    let mut links = Vec::new();
    for (index, output) in net.outputs.iter().enumerate() {
        let from = match column_of.get(&output.from) {
            Some(column) => *column,
            None if senders.contains(&output.from) => 0,
            None => continue,
        };
        let to = match column_of.get(&output.to) {
            Some(column) => *column,
            None if receivers.contains(&output.to) => last,
            None => continue,
        };
        links.push((index, ((from, output.from), (to, output.to))));
    }
    let mut headers = vec!["sources".to_owned()];
    headers.extend(columns.iter().map(|column| common_stem(net, column)));
    headers.push("ports".to_owned());
    Drawing { net, sources: senders, ports: receivers, switches: &columns, links, headers }
        .draw(width)
}

/// Switches in columns: those nearer to senders further left.
fn by_distance(net: &Net<'_>, senders: &[usize], receivers: &[usize]) -> Vec<Vec<usize>> {
    let mean = |distances: &[usize], nodes: &[usize]| {
        let sum: usize = nodes.iter().map(|node| distances[*node].min(1_000)).sum();
        sum as f64 / nodes.len().max(1) as f64
    };
    let mut ranked: Vec<(i64, usize)> = (0..net.nodes.len())
        .filter(|node| !net.nodes[*node].is_adapter())
        .map(|node| {
            let distances = distances(net, node);
            let balance = mean(&distances, senders) - mean(&distances, receivers);
            ((balance * 1_000.0).round() as i64, node)
        })
        .collect();
    ranked.sort_unstable();
    let mut columns: Vec<Vec<usize>> = Vec::new();
    let mut before = None;
    for (rank, node) in ranked {
        match columns.last_mut() {
            Some(column) if before == Some(rank) => column.push(node),
            _ => columns.push(vec![node]),
        }
        before = Some(rank);
    }
    columns
}

fn distances(net: &Net<'_>, from: usize) -> Vec<usize> {
    let mut found = vec![usize::MAX; net.nodes.len()];
    found[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for output in net.outputs.iter().filter(|output| output.from == node) {
            if found[output.to] == usize::MAX {
                found[output.to] = found[node] + 1;
                queue.push_back(output.to);
            }
        }
    }
    found
}

struct Drawing<'a> {
    net: &'a Net<'a>,
    sources: &'a [usize],
    ports: &'a [usize],
    switches: &'a [Vec<usize>],
    links: Vec<(usize, (Spot, Spot))>,
    headers: Vec<String>,
}

impl Drawing<'_> {
    fn draw(self, width: f64) -> Layout {
        let rows = self.sources.len().max(self.ports.len()).max(1);
        let row = (378.0 / rows as f64).clamp(2.0, 30.0);
        let height = (rows as f64 * row).max(130.0);
        let y_of = |nodes: &[usize]| -> Vec<(usize, f64)> {
            let step = height / nodes.len().max(1) as f64;
            let at = |place: usize| TOP + step * (place as f64 + 0.5);
            nodes.iter().enumerate().map(|(place, node)| (*node, at(place))).collect()
        };
        let (sources, ports) = (y_of(self.sources), y_of(self.ports));
        let last = self.switches.len() + 1;
        let bars = width - BARS;
        let pitch = (bars - SOURCES) / last as f64;
        let x_of = |column: usize| SOURCES + (bars - SOURCES) * column as f64 / last as f64;
        let letters = (((pitch - 10.0) / LETTER) as usize).clamp(2, 9);
        let shapes = self.shapes(&sources, &ports, (height, letters), x_of);
        let curves = self.curves(&sources, &ports, &shapes, x_of);
        let headers = self.headers.iter().enumerate();
        let headers = headers.map(|(column, word)| (x_of(column), word.clone())).collect();
        let shapes = shapes.into_values().collect();
        let height = TOP + height + 8.0;
        Layout { width, bars, height, letters, row, sources, ports, shapes, curves, headers }
    }

    /// The vertical places of adapters, on both sides.
    fn rows(&self, sources: &[(usize, f64)], ports: &[(usize, f64)]) -> BTreeMap<Spot, f64> {
        let last = self.switches.len() + 1;
        let left = sources.iter().map(|(node, y)| ((0, *node), *y));
        left.chain(ports.iter().map(|(node, y)| ((last, *node), *y))).collect()
    }

    /// Boxes: a switch with adapters in their middle, others spread evenly.
    fn shapes(
        &self,
        sources: &[(usize, f64)],
        ports: &[(usize, f64)],
        (height, letters): (f64, usize),
        x_of: impl Fn(usize) -> f64,
    ) -> BTreeMap<Spot, Shape> {
        let mut shapes = BTreeMap::new();
        let adapters = self.rows(sources, ports);
        for (index, nodes) in self.switches.iter().enumerate() {
            let column = index + 1;
            let step = height / nodes.len() as f64;
            let has_stem = common_stem(self.net, nodes) != "switches" && nodes.len() > 1;
            for (place, node) in nodes.iter().enumerate() {
                let own = (column, *node);
                let even = TOP + step * (place as f64 + 0.5);
                let near: Vec<f64> = (self.links.iter())
                    .filter_map(|(_, (from, to))| match (*from == own, *to == own) {
                        (true, _) => adapters.get(to),
                        (_, true) => adapters.get(from),
                        _ => None,
                    })
                    .copied()
                    .collect();
                let is_spread = near.is_empty() || self.switches.len() == 1 || !has_stem;
                let y = if is_spread { even } else { near.iter().sum::<f64>() / near.len() as f64 };
                let name = &self.net.nodes[*node].name;
                let label = if has_stem { &name[stem(name).len()..] } else { name.as_str() };
                let side = |left: bool| {
                    let ends =
                        self.links.iter().map(|(_, (from, to))| if left { to } else { from });
                    ends.filter(|spot| **spot == own).count()
                };
                let ways = side(true).max(side(false)) as f64;
                let half = (ways * 7.0 / 2.0 + 4.0).min(step / 2.0 - 1.5).clamp(3.0, height * 0.42);
                let shown = label.chars().count().min(letters) as f64;
                let wide = (shown * LETTER / 2.0 + 5.0).max(11.0);
                let shape = Shape { x: x_of(column), y, half, wide, label: label.to_owned() };
                shapes.insert(own, shape);
            }
        }
        shapes
    }

    fn curves(
        &self,
        sources: &[(usize, f64)],
        ports: &[(usize, f64)],
        shapes: &BTreeMap<Spot, Shape>,
        x_of: impl Fn(usize) -> f64,
    ) -> Vec<Curve> {
        let rows = self.rows(sources, ports);
        let y_of = |spot: &Spot| rows.get(spot).copied().or(shapes.get(spot).map(|s| s.y));
        // On each edge of a box, links in the order of what they lead to, spread over its height.
        let mut edges: BTreeMap<(Spot, bool), Vec<(f64, usize)>> = BTreeMap::new();
        for (link, (_, (from, to))) in self.links.iter().enumerate() {
            let (Some(y_from), Some(y_to)) = (y_of(from), y_of(to)) else { continue };
            let backwards = to.0 <= from.0;
            edges.entry((*from, !backwards)).or_default().push((y_to, link));
            edges.entry((*to, backwards)).or_default().push((y_from, link));
        }
        for ends in edges.values_mut() {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        let end = |spot: &Spot, right: bool, link: usize| -> Option<(f64, f64)> {
            let Some(shape) = shapes.get(spot) else {
                return Some((x_of(spot.0), *rows.get(spot)?));
            };
            let ends = edges.get(&(*spot, right))?;
            let place = ends.iter().position(|(_, other)| *other == link)?;
            let pitch = (2.0 * shape.half - 4.0).max(0.0) / ends.len() as f64;
            let pitch = pitch.min(14.0);
            let offset = (place as f64 - (ends.len() as f64 - 1.0) / 2.0) * pitch;
            let x = if right { shape.x + shape.wide } else { shape.x - shape.wide };
            Some((x, shape.y + offset))
        };
        let curve = |(link, (output, (from, to))): (usize, &(usize, (Spot, Spot)))| {
            let backwards = to.0 <= from.0;
            let (x1, y1) = end(from, !backwards, link)?;
            let (x2, y2) = end(to, backwards, link)?;
            let path = if backwards {
                // Against the direction of reading: around below.
                let low = y1.max(y2) + 26.0;
                format!(
                    "M{x1:.1} {y1:.1}C{:.1} {low:.1} {:.1} {low:.1} {x2:.1} {y2:.1}",
                    x1 - 16.0,
                    x2 + 16.0
                )
            } else {
                let middle = (x1 + x2) / 2.0;
                format!("M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}")
            };
            Some(Curve { output: *output, path, start: (x1, y1) })
        };
        self.links.iter().enumerate().filter_map(curve).collect()
    }
}
