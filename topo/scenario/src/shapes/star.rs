//! One switch `s0` and adapters `h0`, `h1`, … on its ports 1, 2, ….

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Problems;
use crate::shapes::Shape;
use crate::shapes::xgft::{Tree, tree};
use crate::topology::Topology;
use proto::params::{Key, Kind};

/// The row of the registry.
pub const SHAPE: Shape = Shape { name: "star", keys: &KEYS, build };

const KEYS: [Key; 1] = [Key::required("hosts", Kind::Whole(2, 254), "adapters on the switch")];

fn build(fields: &Fields<'_>, _: &mut Problems) -> Option<Topology> {
    Some(star(fields.whole("hosts")?))
}

/// The star of `hosts` adapters: a tree of one level.
pub fn star(hosts: u64) -> Topology {
    let mut topology = tree(&Tree { m: vec![hosts], w: vec![1] });
    if let Some(switch) = topology.nodes.last_mut() {
        switch.name = "s0".to_owned();
    }
    topology
}
