//! One switch `s0` and adapters `h0`, `h1`, … on its ports 1, 2, ….

use crate::keyfile::fields::Fields;
use crate::shapes::Shape;
use crate::shapes::xgft::{Tree, tree};
use crate::topology::Topology;
use proto::params::Params;

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "star", keys: Star::KEYS, build };

proto::params! {
    /// The keys of a star.
    pub struct Star {
        /// Adapters on the switch.
        hosts: u64 = Whole(2, 254), Required;
    }
}

fn build(fields: &Fields<'_>) -> Option<Topology> {
    Some(star(fields.params::<Star>()?.hosts))
}

/// The star of `hosts` adapters: a tree of one level.
pub fn star(hosts: u64) -> Topology {
    let mut topology = tree(&Tree { m: vec![hosts], w: vec![1] });
    if let Some(switch) = topology.nodes.last_mut() {
        switch.name = "s0".to_owned();
    }
    topology
}
