//! The layout of the fabric's picture: sources left, receivers right, switches between, a
//! curve for each direction of a cable.
//!
//! A fabric of levels is unfolded: up to the top and down again, so each switch below the top is drawn
//! twice and a tree of congestion is a tree. Any other stands folded once: its switches from left to
//! right by how much nearer they are to the senders than to the receivers.

use super::data::Graph;
use super::leaves::Drawn;
use results::saturation::Output;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::once;

/// Width of the drawing on a page, pixels.
pub const WIDTH: f64 = 600.0;
/// Where the sources stand.
const SOURCES: f64 = 58.0;
/// Room for the bars of receivers.
const BARS: f64 = 92.0;
const TOP: f64 = 14.0;
/// About how wide a letter is.
const LETTER: f64 = 6.8;

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

/// A node at one of its places: the column and the node.
type Spot = (usize, usize);

/// Places a fabric in a picture of this width; in a folded one, adapters that neither send nor receive are left out.
pub fn place(drawn: &Drawn, senders: &[usize], receivers: &[usize], width: f64) -> Layout {
    let graph = &drawn.graph;
    let columns = &graph.columns;
    let is_layered = graph.outputs.iter().all(|output| output.level != output.far_level);
    if is_layered && columns.len() >= 3 {
        let last = columns.len() - 1;
        let stands: BTreeSet<usize> = columns.iter().flatten().copied().collect();
        let spots = |Output { from, to, level, far_level, .. }: &Output| {
            let (level, far) = (usize::from(*level), usize::from(*far_level));
            let ends = if far > level { (level, far) } else { (last - level, last - far) };
            let is_drawn = stands.contains(from) && stands.contains(to);
            is_drawn.then_some(((ends.0, *from), (ends.1, *to)))
        };
        draw(graph, (&columns[0], &columns[0]), columns[1..last].to_vec(), spots, width)
    } else {
        let switches = by_distance(graph, senders, receivers);
        let last = switches.len() + 1;
        let of_column = |(column, nodes): (usize, &Vec<usize>)| {
            nodes.iter().map(move |node| (*node, column + 1)).collect::<Vec<_>>()
        };
        let column_of: BTreeMap<usize, usize> =
            switches.iter().enumerate().flat_map(of_column).collect();
        let spot = |node: usize, adapters: &[usize], edge: usize| {
            let column = column_of.get(&node).copied();
            Some((column.or(adapters.contains(&node).then_some(edge))?, node))
        };
        let spots = |Output { from, to, .. }: &Output| {
            Some((spot(*from, senders, 0)?, spot(*to, receivers, last)?))
        };
        draw(graph, (senders, receivers), switches, spots, width)
    }
}

/// The common stem of the names of a column, as its title.
fn common_stem<'a>(graph: &'a Graph, nodes: &[usize]) -> &'a str {
    let mut stems = nodes.iter().map(|node| stem(&graph.nodes[*node].name));
    let first = stems.next().filter(|first| first.len() > 1);
    first.filter(|first| stems.all(|other| other == *first)).unwrap_or("switches")
}

/// A name without the number at its end.
pub fn stem(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// Switches in columns: those nearer to senders further left.
fn by_distance(graph: &Graph, senders: &[usize], receivers: &[usize]) -> Vec<Vec<usize>> {
    let mean = |distances: &[usize], nodes: &[usize]| {
        let sum: usize = nodes.iter().map(|node| distances[*node].min(1_000)).sum();
        sum as f64 / nodes.len().max(1) as f64
    };
    let switches = (0..graph.nodes.len()).filter(|node| !graph.nodes[*node].is_adapter());
    let ranked = switches.map(|node| {
        let distances = distances(graph, node);
        let balance = mean(&distances, senders) - mean(&distances, receivers);
        ((balance * 1_000.0).round() as i64, node)
    });
    let mut ranked: Vec<(i64, usize)> = ranked.collect();
    ranked.sort_unstable();
    let columns = ranked.chunk_by(|one, next| one.0 == next.0);
    columns.map(|column| column.iter().map(|(_, node)| *node).collect()).collect()
}

fn distances(graph: &Graph, from: usize) -> Vec<usize> {
    let mut found = vec![usize::MAX; graph.nodes.len()];
    found[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for output in graph.outputs.iter().filter(|output| output.from == node) {
            if found[output.to] == usize::MAX {
                found[output.to] = found[node] + 1;
                queue.push_back(output.to);
            }
        }
    }
    found
}

/// Draws a fabric whose adapters and switches have columns; `spots` are the ends of an output's line, if it has one.
fn draw(
    graph: &Graph,
    (sources, ports): (&[usize], &[usize]),
    switches: Vec<Vec<usize>>,
    spots: impl Fn(&Output) -> Option<(Spot, Spot)>,
    width: f64,
) -> Layout {
    let rows = sources.len().max(ports.len()).max(1);
    let row = (378.0 / rows as f64).clamp(2.0, 30.0);
    let height = (rows as f64 * row).max(130.0);
    let y_of = |nodes: &[usize]| -> Vec<(usize, f64)> {
        let step = height / nodes.len().max(1) as f64;
        let at = |place: usize| TOP + step * (place as f64 + 0.5);
        nodes.iter().enumerate().map(|(place, node)| (*node, at(place))).collect()
    };
    let (sources, ports) = (y_of(sources), y_of(ports));
    let last = switches.len() + 1;
    let bars = width - BARS;
    let letters = (((bars - SOURCES) / last as f64 - 10.0) / LETTER) as usize;
    let letters = letters.clamp(2, 9);
    let ends = [(0, &sources), (last, &ports)];
    let of_end = |(column, nodes): (usize, &Vec<(usize, f64)>)| {
        nodes.iter().map(move |(node, y)| ((column, *node), *y)).collect::<Vec<_>>()
    };
    let adapters = ends.into_iter().flat_map(of_end).collect();
    let links = graph.outputs.iter().enumerate();
    let links = links.filter_map(|(place, output)| Some((place, spots(output)?))).collect();
    let drawing = Drawing { graph, switches, links, adapters, height, bars, letters };
    let shapes = drawing.shapes();
    let curves = drawing.curves(&shapes);
    let words = drawing.switches.iter().map(|nodes| common_stem(graph, nodes));
    let words = once("sources").chain(words).chain(once("ports")).enumerate();
    let headers = words.map(|(column, word)| (drawing.x(column), word.to_owned())).collect();
    let shapes = shapes.into_values().collect();
    Layout {
        bars,
        height: TOP + height + 8.0,
        letters,
        row,
        sources,
        ports,
        shapes,
        curves,
        headers,
    }
}

/// A fabric with the places of its adapters.
struct Drawing<'a> {
    graph: &'a Graph,
    /// Switches by column, without those of adapters.
    switches: Vec<Vec<usize>>,
    /// Outputs that have a line, with its ends.
    links: Vec<(usize, (Spot, Spot))>,
    /// y of adapters on both sides.
    adapters: BTreeMap<Spot, f64>,
    height: f64,
    bars: f64,
    letters: usize,
}

impl Drawing<'_> {
    fn x(&self, column: usize) -> f64 {
        SOURCES + (self.bars - SOURCES) * column as f64 / (self.switches.len() + 1) as f64
    }

    /// Boxes: a switch with adapters in their middle, others spread evenly.
    fn shapes(&self) -> BTreeMap<Spot, Shape> {
        let mut shapes = BTreeMap::new();
        for (column, nodes) in (1..).zip(&self.switches) {
            let step = self.height / nodes.len() as f64;
            let has_stem = common_stem(self.graph, nodes) != "switches" && nodes.len() > 1;
            for (place, node) in nodes.iter().enumerate() {
                let own = (column, *node);
                let far = |(from, to): &(Spot, Spot)| match (*from == own, *to == own) {
                    (true, _) => Some(*to),
                    (_, true) => Some(*from),
                    _ => None,
                };
                let ends = || self.links.iter().map(|(_, ends)| ends);
                let near = ends().filter_map(far).filter_map(|spot| self.adapters.get(&spot));
                let near: Vec<f64> = near.copied().collect();
                let is_spread = near.is_empty() || self.switches.len() == 1 || !has_stem;
                let even = TOP + step * (place as f64 + 0.5);
                let y = if is_spread { even } else { near.iter().sum::<f64>() / near.len() as f64 };
                let name = &self.graph.nodes[*node].name;
                let label = if has_stem { &name[stem(name).len()..] } else { name.as_str() };
                let into = ends().filter(|(_, to)| *to == own).count();
                let ways = ends().filter(|(from, _)| *from == own).count().max(into) as f64;
                let half = (ways * 7.0 / 2.0 + 4.0).min(step / 2.0 - 1.5);
                let half = half.clamp(3.0, self.height * 0.42);
                let shown = label.chars().count().min(self.letters) as f64;
                let wide = (shown * LETTER / 2.0 + 5.0).max(11.0);
                let shape = Shape { x: self.x(column), y, half, wide, label: label.to_owned() };
                shapes.insert(own, shape);
            }
        }
        shapes
    }

    fn curves(&self, shapes: &BTreeMap<Spot, Shape>) -> Vec<Curve> {
        let y_of =
            |spot: &Spot| self.adapters.get(spot).or(shapes.get(spot).map(|s| &s.y)).copied();
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
                return Some((self.x(spot.0), *self.adapters.get(spot)?));
            };
            let ends = edges.get(&(*spot, right))?;
            let place = ends.iter().position(|(_, other)| *other == link)?;
            let pitch = (2.0 * shape.half - 4.0).max(0.0) / ends.len() as f64;
            let offset = (place as f64 - (ends.len() as f64 - 1.0) / 2.0) * pitch.min(14.0);
            let x = if right { shape.x + shape.wide } else { shape.x - shape.wide };
            Some((x, shape.y + offset))
        };
        let curve = |(link, (output, (from, to))): (usize, &(usize, (Spot, Spot)))| {
            let backwards = to.0 <= from.0;
            let (x1, y1) = end(from, !backwards, link)?;
            let (x2, y2) = end(to, backwards, link)?;
            // Against the direction of reading: around below.
            let low = y1.max(y2) + 26.0;
            let middle = (x1 + x2) / 2.0;
            let (a, b) = match backwards {
                true => ((x1 - 16.0, low), (x2 + 16.0, low)),
                false => ((middle, y1), (middle, y2)),
            };
            let bend = format!("C{:.1} {:.1} {:.1} {:.1}", a.0, a.1, b.0, b.1);
            let path = format!("M{x1:.1} {y1:.1}{bend} {x2:.1} {y2:.1}");
            Some(Curve { output: *output, path, start: (x1, y1) })
        };
        self.links.iter().enumerate().filter_map(curve).collect()
    }
}
