//! Proof that every adapter reaches every other, and that credits cannot wait in a circle.

use crate::routes::Forwarding;
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Why a frame from one adapter does not come to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The source has no cable.
    NoCable,
    /// A switch has no route for the destination.
    NoRoute {
        /// The switch.
        at: usize,
    },
    /// A switch sends it by a port without a cable.
    DeadPort {
        /// The port.
        at: End,
    },
    /// A switch sends it to an adapter that is not the destination.
    WrongAdapter {
        /// That adapter.
        at: usize,
    },
    /// It comes through a switch twice.
    Loop {
        /// The switch.
        at: usize,
    },
}

/// The ends by which a frame leaves on its way from adapter `from` to adapter `to`, the source's
/// own port first.
///
/// # Errors
/// If it does not get there.
pub fn path(
    topology: &Topology,
    neighbours: &[Vec<Option<End>>],
    forwarding: &Forwarding,
    from: usize,
    to: usize,
) -> Result<Vec<End>, Broken> {
    let lid = topology.nodes[to].lid;
    let source = neighbours[from].iter().position(Option::is_some).ok_or(Broken::NoCable)?;
    let mut way = vec![crate::topology::end(from, source)];
    let mut here = neighbours[from][source].ok_or(Broken::NoCable)?.node;
    while here != to {
        if topology.nodes[here].kind == NodeKind::Nic {
            return Err(Broken::WrongAdapter { at: here });
        }
        if way.iter().any(|end| end.node == here) {
            return Err(Broken::Loop { at: here });
        }
        let port = forwarding.port(here, lid).ok_or(Broken::NoRoute { at: here })?;
        let end = End { node: here, port };
        way.push(end);
        let far = neighbours[here].get(port.index()).copied().flatten();
        here = far.ok_or(Broken::DeadPort { at: end })?.node;
    }
    Ok(way)
}

/// What was found out about a fabric's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Pairs (from, to) without a way, and why.
    pub broken: Vec<(usize, usize, Broken)>,
    /// Ports whose lanes can wait for each other in a circle, in order; empty if none can.
    pub circle: Vec<End>,
}

/// Follows every pair of adapters.
pub fn prove(topology: &Topology, forwarding: &Forwarding) -> Proof {
    let neighbours = topology.neighbours();
    let mut proof = Proof::default();
    let mut waits: BTreeMap<End, BTreeSet<End>> = BTreeMap::new();
    for from in 0..topology.adapters() {
        for to in (0..topology.adapters()).filter(|to| *to != from) {
            match path(topology, &neighbours, forwarding, from, to) {
                Ok(way) => {
                    for hop in way.windows(2) {
                        waits.entry(hop[0]).or_default().insert(hop[1]);
                    }
                }
                Err(why) => proof.broken.push((from, to, why)),
            }
        }
    }
    proof.circle = circle(&waits);
    proof
}

/// A circle in the graph of who waits for whom. Whoever waits for nobody is taken away until
/// nothing changes; from what is left every walk ends in a circle.
fn circle(waits: &BTreeMap<End, BTreeSet<End>>) -> Vec<End> {
    let mut left = waits.clone();
    loop {
        let before = left.len();
        let standing: BTreeSet<End> = left.keys().copied().collect();
        left.retain(|_, next| {
            next.retain(|end| standing.contains(end));
            !next.is_empty()
        });
        if left.len() == before {
            break;
        }
    }
    let Some(mut here) = left.keys().next().copied() else { return Vec::new() };
    let mut walk: Vec<End> = Vec::new();
    loop {
        if let Some(start) = walk.iter().position(|end| *end == here) {
            return walk.split_off(start);
        }
        walk.push(here);
        let next = left.get(&here).and_then(|next| next.iter().find(|end| left.contains_key(end)));
        match next {
            Some(next) => here = *next,
            None => return Vec::new(),
        }
    }
}
