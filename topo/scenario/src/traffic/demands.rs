//! What pairs of adapters will have to say to each other, as far as a file tells it.

use super::{Offer, Plan, Receivers};
use crate::routes::colored::Demand;
use crate::topology::Topology;

impl Plan {
    /// What each pair of adapters has to say to each other, for who plans their ways. What goes to many
    /// counts evenly for each of them; partners drawn by the seed are not known here.
    pub fn demands(&self, topology: &Topology) -> Vec<Demand> {
        let mut demands = Vec::new();
        for item in &self.items {
            if let Receivers::Script(replay) = &item.to {
                demands.extend_from_slice(&replay.demands);
            }
            let weight = match item.offer {
                Offer::Load(load) => (load * 1e6) as u64,
                Offer::Rate(rate) => rate.get() / 10_000,
                Offer::Backlog => 1_000_000,
            };
            for (place, from) in item.from.iter().enumerate() {
                let to: Vec<usize> = match &item.to {
                    Receivers::Script(_) => Vec::new(),
                    Receivers::Uniform => (0..topology.adapters()).collect(),
                    Receivers::Permutation => Vec::new(),
                    Receivers::Nodes(nodes) => nodes.clone(),
                    Receivers::Dealt(nodes) => vec![nodes[place % nodes.len()]],
                };
                let to: Vec<usize> = to.into_iter().filter(|to| to != from).collect();
                let weight = weight / (to.len() as u64).max(1);
                demands.extend(to.iter().map(|to| Demand {
                    phase: 0,
                    from: *from,
                    to: *to,
                    weight,
                }));
            }
        }
        demands
    }
}
