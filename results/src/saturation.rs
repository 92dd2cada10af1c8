//! Saturation trees: which output is the root of congestion, which wait behind it, and which wait for
//! no root at all (docs/spec/seeing.md 3.7).
//!
//! Bin by bin, over the outputs of a fabric. An output is a **root** if its queue is long, it is not held and
//! its line is busy; a **member** of the root's tree if frames are held there and the device it
//! feeds has an output in that tree; a **stray** if frames are held there and no root explains it. What
//! goes down in a fabric of levels never waits for what goes up, since no route turns that way.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

mod recorded;
#[cfg(test)]
mod tests;

pub use recorded::observe;

/// An output counts as held from this share of time on.
pub const HELD: f64 = 0.10;
/// A root's line carries at least this share of its rate in data frames.
pub const BUSY: f64 = 0.95;
/// At most this many trees and strays are in `run.json`, the greatest first.
const NAMED_MAX: usize = 32;

/// One output: a direction of a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// `node:port`.
    pub name: String,
    /// Index of the node that sends.
    pub from: usize,
    /// Index of the node that receives.
    pub to: usize,
    /// The level of `from`, 0 for adapters.
    pub level: u8,
    /// The level of `to`.
    pub far_level: u8,
}

impl Output {
    /// Whether a frame that arrives by this output may go on by `next`.
    fn leads_to(&self, next: &Output) -> bool {
        let turns_up = self.far_level < self.level && next.far_level > next.level;
        next.from == self.to && next.to != self.from && !turns_up
    }
}

/// The state of one output in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutputState {
    /// Share of the bin in which a ready frame was forbidden to leave.
    pub hold: f64,
    /// Mean of the octets waiting for it.
    pub queue: f64,
    /// Data sent, as a share of the line rate.
    pub sent: f64,
}

/// The graph of outputs, and the threshold of a long queue.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// All of them, in a fixed order.
    pub all: Vec<Output>,
    /// A queue of that many octets is long.
    pub long_queue: u64,
    /// By output, those that feed its sender.
    feeders: Vec<Vec<usize>>,
}

/// The trees of one bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinTrees {
    /// By root, its members with their distance from it, roots in order.
    pub trees: BTreeMap<usize, Vec<(usize, u32)>>,
    /// Held, and in no tree.
    pub strays: Vec<usize>,
    /// A cycle of held outputs: each waits for the next, the last for the first; empty if there is none.
    pub circle: Vec<usize>,
}

impl Outputs {
    /// The graph of these outputs.
    pub fn new(all: Vec<Output>, long_queue: u64) -> Outputs {
        let mut by_receiver: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, output) in all.iter().enumerate() {
            by_receiver.entry(output.to).or_default().push(index);
        }
        let feeders = all.iter().map(|output| {
            let into = by_receiver.get(&output.from);
            let into = into.into_iter().flatten().copied();
            into.filter(|feeder| all[*feeder].leads_to(output)).collect()
        });
        Outputs { feeders: feeders.collect(), all, long_queue }
    }

    /// The trees of one bin; `seen` has an entry an output.
    pub fn trees(&self, seen: &[OutputState]) -> BinTrees {
        let held = |output: &usize| seen[*output].hold >= HELD;
        let is_root = |output: &usize| {
            let sight = seen[*output];
            let is_long = self.long_queue > 0 && sight.queue >= self.long_queue as f64;
            // Only switches are roots: adapters hold their own frames back.
            self.all[*output].level > 0 && is_long && !held(output) && sight.sent >= BUSY
        };
        let mut roots: Vec<usize> = (0..self.all.len()).filter(is_root).collect();
        roots.sort_by(|a, b| self.all[*a].name.cmp(&self.all[*b].name));
        let mut tree_of: Vec<Option<usize>> = vec![None; self.all.len()];
        let mut moment = BinTrees::default();
        // Breadth first from all roots at once: the nearest wins, of two as near the smaller name.
        let mut queue: VecDeque<(usize, usize, u32)> = VecDeque::new();
        for root in roots {
            tree_of[root] = Some(root);
            moment.trees.insert(root, Vec::new());
            queue.push_back((root, root, 0));
        }
        while let Some((output, root, depth)) = queue.pop_front() {
            for feeder in self.feeders[output].iter().copied() {
                if held(&feeder) && tree_of[feeder].is_none() {
                    tree_of[feeder] = Some(root);
                    moment.trees.entry(root).or_default().push((feeder, depth + 1));
                    queue.push_back((feeder, root, depth + 1));
                }
            }
        }
        moment.strays = (0..self.all.len()).filter(|o| held(o) && tree_of[*o].is_none()).collect();
        moment.circle = self.circle(&held);
        moment
    }

    /// A cycle among held outputs, found against the direction of the frames.
    fn circle(&self, held: &impl Fn(&usize) -> bool) -> Vec<usize> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.all.len()];
        for start in (0..self.all.len()).filter(held) {
            if marks[start] != Mark::New {
                continue;
            }
            let mut way = vec![(start, 0)];
            marks[start] = Mark::Open;
            while let Some((output, next)) = way.last_mut() {
                let (here, place) = (*output, *next);
                *next += 1;
                match self.feeders[here].get(place).copied() {
                    None => {
                        marks[here] = Mark::Done;
                        way.pop();
                    }
                    Some(feeder) if held(&feeder) && marks[feeder] == Mark::Open => {
                        let begin = way.iter().position(|(o, _)| *o == feeder).unwrap_or(0);
                        // The walk goes from the output that is waited for to the one that waits; the result has the other direction.
                        return way[begin..].iter().rev().map(|(output, _)| *output).collect();
                    }
                    Some(feeder) if held(&feeder) && marks[feeder] == Mark::New => {
                        marks[feeder] = Mark::Open;
                        way.push((feeder, 0));
                    }
                    Some(_) => {}
                }
            }
        }
        Vec::new()
    }
}

/// The saturation trees in `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// A queue of that many octets counted as long; 0 if there was no measure for it, and so no root.
    pub long_queue_bytes: u64,
    /// By root, the greatest first.
    pub trees: Vec<Tree>,
    /// Held without a root, the longest first.
    pub strays: Vec<Stray>,
    /// The first cycle of outputs that waited for each other, each for the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
}

/// A root and all outputs that ever waited behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// The root, `node:port`.
    pub root: String,
    /// The node that its line leads to.
    pub feeds: String,
    /// Begin of the first bin with this root.
    pub first_ps: u64,
    /// End of the last one.
    pub last_ps: u64,
    /// Number of bins in which it was a root.
    pub bins: u64,
    /// Most members in one bin, the root not counted.
    pub size: u64,
    /// Begin of the first bin with that many.
    pub size_at_ps: u64,
    /// Greatest distance of a member from the root, in outputs.
    pub depth: u64,
    /// Most adapters that were held in one bin.
    pub sources: u64,
}

/// An output that was held and in no tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stray {
    /// Which, `node:port`.
    pub port: String,
    /// Begin of the first such bin.
    pub first_ps: u64,
    /// End of the last one.
    pub last_ps: u64,
    /// How many.
    pub bins: u64,
}

/// Accumulates the trees of consecutive bins.
#[derive(Debug)]
pub struct TreeLog<'a> {
    outputs: &'a Outputs,
    trees: BTreeMap<usize, Tree>,
    strays: BTreeMap<usize, Stray>,
    circle: Vec<usize>,
}

impl<'a> TreeLog<'a> {
    /// An accumulator without bins.
    pub fn new(outputs: &'a Outputs) -> TreeLog<'a> {
        TreeLog { outputs, trees: BTreeMap::new(), strays: BTreeMap::new(), circle: Vec::new() }
    }

    /// Adds the bin from `begin` to `end` (picoseconds).
    pub fn enter(&mut self, begin: u64, end: u64, moment: &BinTrees) {
        for (root, members) in &moment.trees {
            let output = &self.outputs.all[*root];
            let tree = self.trees.entry(*root).or_insert_with(|| Tree {
                root: output.name.clone(),
                first_ps: begin,
                ..Tree::default()
            });
            let size = members.len() as u64;
            let adapters = |(member, _): &&(usize, u32)| self.outputs.all[*member].level == 0;
            let sources = members.iter().filter(adapters).count() as u64;
            let depth = members.iter().map(|(_, depth)| u64::from(*depth)).max().unwrap_or(0);
            if size > tree.size {
                (tree.size, tree.size_at_ps) = (size, begin);
            }
            tree.sources = tree.sources.max(sources);
            tree.depth = tree.depth.max(depth);
            tree.last_ps = end;
            tree.bins += 1;
        }
        for port in &moment.strays {
            let stray = self.strays.entry(*port).or_insert_with(|| Stray {
                port: self.outputs.all[*port].name.clone(),
                first_ps: begin,
                ..Stray::default()
            });
            stray.last_ps = end;
            stray.bins += 1;
        }
        if self.circle.is_empty() {
            self.circle.clone_from(&moment.circle);
        }
    }

    /// The result; `node` returns the name of a node.
    pub fn finish<'n>(self, node: impl Fn(usize) -> &'n str) -> Saturation {
        let outputs = self.outputs;
        let named = self
            .trees
            .into_iter()
            .map(|(root, tree)| Tree { feeds: node(outputs.all[root].to).to_owned(), ..tree });
        let mut trees: Vec<Tree> = named.collect();
        trees.sort_by(|a, b| {
            (b.size, b.bins).cmp(&(a.size, a.bins)).then_with(|| a.root.cmp(&b.root))
        });
        let mut strays: Vec<Stray> = self.strays.into_values().collect();
        strays.sort_by(|a, b| b.bins.cmp(&a.bins).then_with(|| a.port.cmp(&b.port)));
        trees.truncate(NAMED_MAX);
        strays.truncate(NAMED_MAX);
        let circle = self.circle.iter().map(|output| outputs.all[*output].name.clone()).collect();
        Saturation { long_queue_bytes: outputs.long_queue, trees, strays, circle }
    }
}
