//! Adapters by leaf switch, and the fabric of the picture: one row for each adapter, or in a
//! large fabric one row for each leaf.

use super::data::{Envelope, Graph, Node, Run};
use emulation::wiring::NodeKind;
use results::saturation::Output;
use std::collections::BTreeMap;

/// Greatest number of adapters with a row each.
const ROWS_MAX: usize = 512;

/// Consecutive adapters of the same switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The switch; `None` for an adapter without a cable.
    pub switch: Option<usize>,
    /// Index of the first of them.
    pub first: usize,
    /// How many there are.
    pub count: usize,
}

/// The leaves of `adapters`, in this order.
pub fn of(outputs: &[Output], adapters: &[usize]) -> Vec<Leaf> {
    let above: BTreeMap<usize, usize> = outputs.iter().rev().map(|o| (o.from, o.to)).collect();
    let mut leaves: Vec<Leaf> = Vec::new();
    for (first, adapter) in adapters.iter().enumerate() {
        let switch = above.get(adapter).copied();
        match leaves.last_mut() {
            Some(leaf) if leaf.switch == switch => leaf.count += 1,
            _ => leaves.push(Leaf { switch, first, count: 1 }),
        }
    }
    leaves
}

/// The fabric of a picture. Beyond [`ROWS_MAX`] adapters those of a leaf are put together: they are one
/// more node, with an output up and one down that stand for theirs.
#[derive(Debug)]
pub struct Drawn {
    /// The fabric, then the nodes of rows, and their outputs: up and down in turn. Rows stand in place of adapters in its
    /// columns.
    pub graph: Graph,
    /// By node, the adapters that it stands for.
    adapters: Vec<Vec<usize>>,
    /// By output, those of the run that it stands for.
    bundles: Vec<Vec<usize>>,
    /// True if rows are leaves.
    pub is_by_leaf: bool,
}

impl Drawn {
    /// The picture of a fabric.
    pub fn of(graph: &Graph) -> Drawn {
        Drawn::with_rows(graph, ROWS_MAX)
    }

    fn with_rows(graph: &Graph, most: usize) -> Drawn {
        let adapters = graph.columns.first().cloned().unwrap_or_default();
        let mut drawn = Drawn {
            adapters: (0..graph.nodes.len()).map(|node| vec![node]).collect(),
            bundles: (0..graph.outputs.len()).map(|output| vec![output]).collect(),
            is_by_leaf: adapters.len() > most,
            graph: graph.clone(),
        };
        if drawn.is_by_leaf {
            let leaves = of(&graph.outputs, &adapters).into_iter();
            let rows = leaves.flat_map(|leaf| {
                let members = &adapters[leaf.first..leaf.first + leaf.count];
                match leaf.switch {
                    Some(switch) => vec![drawn.row(switch, members)],
                    None => members.to_vec(),
                }
            });
            let rows: Vec<usize> = rows.collect();
            for column in drawn.graph.columns.iter_mut().filter(|column| **column == adapters) {
                column.clone_from(&rows);
            }
        }
        drawn
    }

    /// Adds a row for the adapters of one switch; returns its node.
    fn row(&mut self, switch: usize, members: &[usize]) -> usize {
        let row = self.graph.nodes.len();
        let Node { name, level, .. } = self.graph.nodes[switch].clone();
        let hosts = format!("{name}:hosts");
        let up = Output { name: hosts, from: row, to: switch, level: 0, far_level: level };
        let down = Output { name: name.clone(), from: switch, to: row, level, far_level: 0 };
        let in_row = |node: usize| if members.contains(&node) { row } else { node };
        for bundle in [up, down] {
            let ends = |output: &Output| (in_row(output.from), in_row(output.to));
            let outputs = self.graph.outputs.iter().enumerate();
            let own = outputs.filter(|(_, output)| ends(output) == (bundle.from, bundle.to));
            self.bundles.push(own.map(|(place, _)| place).collect());
            self.graph.outputs.push(bundle);
        }
        self.graph.nodes.push(Node { name, kind: NodeKind::Nic, level: 0 });
        self.adapters.push(members.to_vec());
        row
    }

    /// The rows in which any of `adapters` stand, in their order.
    pub fn rows(&self, adapters: &[usize]) -> Vec<usize> {
        if !self.is_by_leaf {
            return adapters.to_vec();
        }
        let stands = |row: &usize| self.adapters[*row].iter().any(|one| adapters.contains(one));
        self.graph.columns[0].iter().copied().filter(stands).collect()
    }

    /// The adapters that a node of the picture stands for.
    pub fn adapters(&self, node: usize) -> &[usize] {
        &self.adapters[node]
    }

    /// The outputs of the fabric that an output of the picture stands for.
    pub fn outputs(&self, output: usize) -> &[usize] {
        &self.bundles[output]
    }

    /// The outputs that have a line: not those of adapters that share a row.
    pub fn lines(&self) -> impl Iterator<Item = usize> {
        let Graph { nodes, columns, outputs, .. } = &self.graph;
        let is_drawn = |node: usize| {
            !(self.is_by_leaf && nodes[node].is_adapter()) || columns[0].contains(&node)
        };
        let outputs = outputs.iter().enumerate();
        outputs.filter(move |(_, o)| is_drawn(o.from) && is_drawn(o.to)).map(|(output, _)| output)
    }

    /// Share of time for which an output, or the outputs it stands for, were held: least, mean, most.
    pub fn held(&self, run: &Run, output: usize) -> Envelope {
        envelope(run.bins, self.bundles[output].iter().map(|one| &run.series[*one].hold[..]))
    }

    /// What a row received over the rate of its lines: least, mean, most.
    pub fn received(&self, run: &Run, node: usize) -> Envelope {
        envelope(run.bins, self.adapters[node].iter().map(|one| &run.received[*one][..]))
    }

    /// What an output is called: `leaf7:4 → h31`, or `leaf7 → leaf7:hosts, mean of 8`.
    pub fn output_name(&self, output: usize) -> String {
        format!("{} → {}", self.graph.outputs[output].name, self.feeds(output))
    }

    /// What it leads to, the second half of that.
    pub fn feeds(&self, output: usize) -> String {
        let far = &self.graph.nodes[self.graph.outputs[output].to];
        match self.bundles[output].len() {
            1 => far.name.clone(),
            of if far.is_adapter() => format!("{}:hosts, mean of {of}", far.name),
            of => format!("{}, mean of {of}", far.name),
        }
    }
}

/// Least, mean and greatest of several series, bin by bin; no number where none of them has one.
fn envelope<'a>(bins: usize, series: impl Iterator<Item = &'a [f64]>) -> Envelope {
    let mut out = Envelope { mean: vec![0.0; bins], ..Envelope::blank(bins) };
    let mut counts = vec![0_u32; bins];
    for values in series {
        for (bin, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            // The lesser and the greater of a number and of none is the number.
            out.min[bin] = out.min[bin].min(*value);
            out.max[bin] = out.max[bin].max(*value);
            out.mean[bin] += value;
            counts[bin] += 1;
        }
    }
    out.mean.iter_mut().zip(counts).for_each(|(mean, count)| *mean /= f64::from(count));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::technology::Technology;

    /// Two switches above each other, the lower ones with so many adapters each.
    fn fabric(hosts: usize) -> Graph {
        let node = |name: String, kind: NodeKind, level| Node { name, kind, level };
        let mut nodes: Vec<Node> =
            (0..2 * hosts).map(|n| node(format!("h{n}"), NodeKind::Nic, 0)).collect();
        let leaf = |n: usize| 2 * hosts + n;
        nodes.extend((0..2).map(|n| node(format!("leaf{n}"), NodeKind::Switch, 1)));
        nodes.push(node("spine0".to_owned(), NodeKind::Switch, 2));
        let mut outputs = Vec::new();
        let mut cable = |low: usize, level: u8, high: usize| {
            for (from, to, level, far_level) in
                [(low, high, level, level + 1), (high, low, level + 1, level)]
            {
                outputs.push(Output { name: format!("{from}:{to}"), from, to, level, far_level });
            }
        };
        (0..2 * hosts).for_each(|n| cable(n, 0, leaf(n / hosts)));
        (0..2).for_each(|n| cable(leaf(n), 1, leaf(2)));
        let hosts: Vec<usize> = (0..2 * hosts).collect();
        let leaves = vec![leaf(0), leaf(1)];
        let columns = vec![hosts.clone(), leaves.clone(), vec![leaf(2)], leaves, hosts];
        let (rates, technology) = (vec![1; outputs.len()], Technology::Infiniband);
        Graph { nodes, columns, outputs, rates, technology }
    }

    #[test]
    fn adapters_of_a_switch_that_stand_together_are_a_leaf() {
        let Graph { columns, outputs, .. } = fabric(3);
        let leaf = |switch, first| Leaf { switch: Some(switch), first, count: 3 };
        assert_eq!(of(&outputs, &columns[0]), [leaf(6, 0), leaf(7, 3)]);
        let alone = Leaf { switch: None, first: 0, count: 1 };
        assert_eq!(of(&[], &[5]), [alone]);
    }

    #[test]
    fn few_adapters_have_a_row_each() {
        let graph = fabric(3);
        let drawn = Drawn::with_rows(&graph, 6);
        assert_eq!((&drawn.graph.columns, drawn.rows(&[1, 4])), (&graph.columns, vec![1, 4]));
        assert!(drawn.lines().eq(0..graph.outputs.len()) && !drawn.is_by_leaf);
        assert_eq!(drawn.output_name(12), "6:8 → spine0");
    }

    #[test]
    fn many_share_the_row_of_their_leaf() {
        let drawn = Drawn::with_rows(&fabric(3), 5);
        assert_eq!((drawn.outputs(7), drawn.outputs(18)), (&[7][..], &[6, 8, 10][..]));
        // Nine nodes and sixteen outputs are the run's; rows come after them.
        assert_eq!(
            drawn.graph.columns,
            [vec![9, 10], vec![6, 7], vec![8], vec![6, 7], vec![9, 10]]
        );
        assert_eq!((drawn.adapters(9), drawn.adapters(10)), (&[0, 1, 2][..], &[3, 4, 5][..]));
        assert!(drawn.lines().eq(12..20));
        assert_eq!(
            drawn.bundles[16..],
            [vec![0, 2, 4], vec![1, 3, 5], vec![6, 8, 10], vec![7, 9, 11]]
        );
        assert_eq!((drawn.graph.output_of(10), drawn.rows(&[4, 5])), (Some(18), vec![10]));
        assert_eq!(drawn.output_name(16), "leaf0:hosts → leaf0, mean of 3");
        assert_eq!(drawn.output_name(19), "leaf1 → leaf1:hosts, mean of 3");
    }

    #[test]
    fn an_envelope_leaves_out_what_has_no_number() {
        let none = f64::NAN;
        let series = [vec![0.5, none, none], vec![0.1, 0.4, none]];
        let Envelope { min, mean, max } = envelope(3, series.iter().map(Vec::as_slice));
        assert_eq!(
            (&min[..2], &mean[..2], &max[..2]),
            (&[0.1, 0.4][..], &[0.3, 0.4][..], &[0.5, 0.4][..])
        );
        assert!([min[2], mean[2], max[2]].iter().all(|value| value.is_nan()));
    }
}
