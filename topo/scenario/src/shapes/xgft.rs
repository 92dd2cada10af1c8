//! Extended generalized fat trees XGFT(h; m1..mh; w1..wh), and those of the paper by name.
//!
//! Level 0 holds the adapters, levels 1 to h the switches. A node of level i has m_i children; a
//! node of level i−1 has w_i parents. Nodes of a level are numbered so that arithmetic finds them:
//! node (x_h … x_{l+1}; y_l … y_1) of level l has number X · Πw + Y, X the mixed-radix number of
//! its x digits (x_{l+1} least), Y that of its y digits (y_1 least). So leaf k of a two-level tree
//! holds adapters k·m1 …, and top switch t takes the traffic for adapters d ≡ t.
//!
//! Names: adapters `h0`…; switches `leaf` and `spine` with two levels, `edge`, `agg` and `core`
//! with three, `leaf` with one, `l1_0`, `l2_0`… with more. Ports: down ports 1…m_l by child, then
//! up ports by parent. LIDs: adapter i has i+1, then the switches, level by level.
//! Source: Öhring et al., "On Generalized Fat Trees" (1995).

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::shapes::Shape;
use crate::topology::{Topology, end};
use proto::params::Params;

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "xgft", keys: FatTree::KEYS, build };

proto::params! {
    /// The keys of a fat tree.
    pub struct FatTree {
        /// A fat tree by name, instead of m and w.
        net: Option<String> = Word(|| NETS.iter().map(|net| net.0).collect()), Optional;
        /// Children of a node, by level from 1.
        m: Option<Vec<u64>> = List(&Whole(1, 253)), Optional;
        /// Parents of a node, by level from 0.
        w: Option<Vec<u64>> = List(&Whole(1, 253)), Optional;
    }
}

/// The numbers that define a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Children, by level from 1.
    pub m: Vec<u64>,
    /// Parents, by level from 0.
    pub w: Vec<u64>,
}

/// The trees with names of their own: (name, m, w).
type Net = (&'static str, &'static [u64], &'static [u64]);

/// Pfister's networks, and the example of the adaptive-routing slides. The 8-node net of 2×2
/// elements uses 4-port switches, each standing for two halves: a deviation.
pub const NETS: [Net; 6] = [
    ("pfister-8", &[2, 4], &[1, 2]),
    ("pfister-32", &[4, 8], &[1, 4]),
    ("pfister-128", &[8, 16], &[1, 8]),
    ("pfister-128-5stage", &[4, 4, 8], &[1, 4, 4]),
    ("pfister-432", &[6, 6, 12], &[1, 6, 6]),
    ("pfister-256", &[16, 16], &[1, 16]),
];

/// Switch levels; a path of 63 hops is the most a directed route can name.
const LEVELS_MAX: usize = 31;

/// Nodes that an address of 16 bits can distinguish, multicast left out.
const NODES_MAX: u64 = 0xbfff;

/// The tree of that name.
pub fn net(name: &str) -> Option<Tree> {
    let (_, m, w) = NETS.iter().find(|net| net.0 == name)?;
    Some(Tree { m: m.to_vec(), w: w.to_vec() })
}

fn build(fields: &Fields<'_>) -> Option<Topology> {
    let FatTree { net: name, m, w } = fields.params()?;
    let key = if m.is_some() { "m" } else { "shape" };
    let shape = match name.as_deref().and_then(net) {
        Some(_) if m.is_some() || w.is_some() => {
            return fields.refuse("net", "net and m, w together", "leave one of them out");
        }
        Some(named) => named,
        None => Tree { m: m.unwrap_or_default(), w: w.unwrap_or_default() }.with_one_port_a_host(),
    };
    fields.accept(key, shape.check())?;
    Some(tree(&shape))
}

impl Tree {
    /// The same tree for adapters with one port: where w_1 is above 1, each host gets a switch of its own
    /// that has its ports, a level below all others. A host then climbs as any node does, but sends no
    /// more than one line carries: a deviation.
    fn with_one_port_a_host(self) -> Tree {
        if self.w.first().is_none_or(|parents| *parents <= 1) || self.m.len() != self.w.len() {
            return self;
        }
        let first = |numbers: Vec<u64>| [vec![1], numbers].concat();
        Tree { m: first(self.m), w: first(self.w) }
    }

    /// Switch levels.
    pub fn height(&self) -> usize {
        self.m.len()
    }

    /// How many nodes level `level` has.
    pub fn count(&self, level: usize) -> u64 {
        self.children_above(level) * self.parents_below(level)
    }

    /// Π m_i over i > level.
    fn children_above(&self, level: usize) -> u64 {
        self.m[level..].iter().product()
    }

    /// Π w_i over i ≤ level.
    fn parents_below(&self, level: usize) -> u64 {
        self.w[..level].iter().product()
    }

    fn check(&self) -> Result<(), Complaint> {
        let example = "for example m = [4, 8], w = [1, 4], or net = \"pfister-32\"";
        if self.m.is_empty() || self.m.len() != self.w.len() {
            return Err(Complaint::new("m and w must have one number a level each", example));
        }
        if self.height() > LEVELS_MAX {
            return Err(Complaint::new(format!("more than {LEVELS_MAX} levels"), example));
        }
        let product = |numbers: &[u64]| numbers.iter().try_fold(1u64, |all, n| all.checked_mul(*n));
        let in_range = |n: Option<u64>| n.is_some_and(|n| n <= NODES_MAX);
        if !in_range(product(&self.m)) || !in_range(product(&self.w)) {
            let message = format!("more than {NODES_MAX} nodes: their LIDs would not fit");
            return Err(Complaint::new(message, example));
        }
        let nodes: u64 = (0..=self.height()).map(|level| self.count(level)).sum();
        if nodes > NODES_MAX {
            let message = format!("{nodes} nodes: LIDs end at {NODES_MAX}");
            return Err(Complaint::new(message, "a smaller tree"));
        }
        let up = |level: usize| self.w.get(level).copied().unwrap_or(0);
        match (1..=self.height()).find(|level| self.m[level - 1] + up(*level) > 254) {
            Some(level) => {
                let message = format!("a switch of level {level} would have more than 254 ports");
                Err(Complaint::new(message, "fewer children or parents"))
            }
            None => Ok(()),
        }
    }

    fn name(&self, level: usize, number: u64) -> String {
        match (level, self.height()) {
            (0, _) => format!("h{number}"),
            (1, 1 | 2) => format!("leaf{number}"),
            (2, 2) => format!("spine{number}"),
            (1, 3) => format!("edge{number}"),
            (2, 3) => format!("agg{number}"),
            (3, 3) => format!("core{number}"),
            _ => format!("l{level}_{number}"),
        }
    }
}

/// Builds the graph of a tree that [`Tree`] found possible.
pub fn tree(tree: &Tree) -> Topology {
    let mut topology = Topology { is_tree: true, ..Topology::default() };
    let mut first = Vec::new();
    for level in 0..=tree.height() {
        first.push(topology.nodes.len());
        let down = level.checked_sub(1).map_or(0, |below| tree.m[below]);
        let up = tree.w.get(level).copied().unwrap_or(0);
        for number in 0..tree.count(level) {
            let (name, ports) = (tree.name(level, number), (down + up) as usize);
            topology.add(name, level as u8, ports, tree.parents_below(level));
        }
    }
    for level in 0..tree.height() {
        for number in 0..tree.count(level) {
            for y in 0..tree.w[level] {
                let (a, b) = up_cable(tree, level, number, y);
                let parent = first[level + 1] + b.0 as usize;
                topology.cable(end(first[level] + number as usize, a), end(parent, b.1));
            }
        }
    }
    topology
}

/// The cable from node `number` of `level` to its parent `y`: (port index here), (parent's number
/// in its level, port index there).
fn up_cable(tree: &Tree, level: usize, number: u64, y: u64) -> (usize, (u64, usize)) {
    let width = tree.parents_below(level);
    let (x_digits, y_digits) = (number / width, number % width);
    let (upper_x, child) = (x_digits / tree.m[level], x_digits % tree.m[level]);
    let parent = upper_x * tree.parents_below(level + 1) + y * width + y_digits;
    let down_ports = level.checked_sub(1).map_or(0, |below| tree.m[below]);
    ((down_ports + y) as usize, (parent, child as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::ids::Lid;

    fn counts(m: &[u64], w: &[u64]) -> Vec<u64> {
        let shape = Tree { m: m.to_vec(), w: w.to_vec() };
        (0..=shape.height()).map(|level| shape.count(level)).collect()
    }

    #[test]
    fn the_named_nets_have_the_switches_of_the_paper() {
        let by_name = |name: &str| {
            let shape = net(name).expect("it is in the table");
            (0..=shape.height()).map(|level| shape.count(level)).collect::<Vec<_>>()
        };
        assert_eq!(by_name("pfister-32"), [32, 8, 4]);
        assert_eq!(by_name("pfister-128"), [128, 16, 8]);
        assert_eq!(by_name("pfister-128-5stage"), [128, 32, 32, 16]);
        assert_eq!(by_name("pfister-432"), [432, 72, 72, 36]);
        assert_eq!(by_name("pfister-8"), [8, 4, 2]);
    }

    #[test]
    fn the_example_of_the_slides_has_twelve_hosts_and_twelve_tops() {
        let levels = counts(&[3, 2, 2], &[2, 2, 3]);
        assert_eq!((levels[0], levels[3]), (12, 12));
        let graph = tree(&Tree { m: vec![3, 2, 2], w: vec![2, 2, 3] });
        assert_eq!(graph.cables.len(), 12 * 2 + 8 * 2 + 8 * 3);
    }

    #[test]
    fn a_host_with_several_parents_gets_a_switch_that_has_its_ports() {
        let deck = Tree { m: vec![3, 2, 2], w: vec![2, 2, 3] }.with_one_port_a_host();
        assert_eq!((deck.m.as_slice(), deck.w.as_slice()), (&[1, 3, 2, 2][..], &[1, 2, 2, 3][..]));
        let graph = tree(&deck);
        assert_eq!(graph.adapters(), 12);
        assert!(graph.nodes[..12].iter().all(|host| host.ports == 1));
        assert!(graph.nodes[12..24].iter().all(|own| (own.ports, own.level) == (3, 1)));
        assert_eq!(graph.nodes.iter().filter(|node| node.level == 4).count(), 12);
        let routes = crate::routes::Forwarding::new(
            &graph,
            crate::routes::Routing::named("colored").expect("a row"),
        );
        let proof = crate::routes::proof::prove(&graph, &routes);
        assert!(proof.broken.is_empty() && proof.circle.is_empty());
        let plain = Tree { m: vec![4, 8], w: vec![1, 4] };
        assert_eq!(plain.clone().with_one_port_a_host(), plain);
    }

    #[test]
    fn every_port_of_every_named_net_is_cabled_once() {
        for (name, _, _) in NETS {
            let graph = tree(&net(name).expect("it is in the table"));
            let ends = graph.cables.iter().flat_map(|cable| [cable.a, cable.b]);
            let used: std::collections::BTreeSet<_> = ends.collect();
            assert_eq!(used.len(), graph.cables.len() * 2, "{name}");
            let ports: usize = graph.nodes.iter().map(|node| usize::from(node.ports)).sum();
            assert_eq!(used.len(), ports, "{name}");
        }
    }

    #[test]
    fn leaf_k_holds_four_adapters_and_reaches_every_spine() {
        let graph = tree(&net("pfister-32").expect("it is in the table"));
        let far = graph.neighbours();
        let leaf7 = graph.find("leaf7").expect("there are eight");
        let names: Vec<_> = far[leaf7]
            .iter()
            .map(|end| graph.end_name(end.expect("every port is cabled")))
            .collect();
        let expected =
            ["h28:1", "h29:1", "h30:1", "h31:1", "spine0:8", "spine1:8", "spine2:8", "spine3:8"];
        assert_eq!(names, expected);
        assert_eq!(graph.nodes[31].lid, Lid::new(32));
        assert_eq!(graph.nodes[leaf7].lid, Lid::new(40));
    }
}
