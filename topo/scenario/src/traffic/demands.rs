//! What pairs of adapters will send to each other, as far as the scenario file determines it.

use super::{Offer, Plan, Receivers};
use crate::routes::colored::Demand;
use crate::topology::Topology;

impl Plan {
    /// What each pair of adapters sends, for the planning of their routes. Traffic to several receivers
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
                let mut to = match &item.to {
                    Receivers::Script(_)
                    | Receivers::Permutation
                    | Receivers::Foreign(_)
                    | Receivers::Group(_) => Vec::new(),
                    Receivers::Uniform => (0..topology.adapters()).collect(),
                    Receivers::Nodes(nodes) => nodes.clone(),
                    Receivers::Dealt(nodes) => vec![nodes[place % nodes.len()]],
                };
                to.retain(|to| to != from);
                let (phase, from, weight) = (0, *from, weight / (to.len() as u64).max(1));
                demands.extend(to.into_iter().map(|to| Demand { phase, from, to, weight }));
            }
        }
        demands
    }
}
