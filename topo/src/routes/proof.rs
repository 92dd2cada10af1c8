//! Proof that every adapter reaches every other, and that buffers cannot wait for each other in a circle.

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

/// The ways of a frame from adapter `from` to adapter `to`: each the ends by which it leaves, the
/// source's own port first. There are several only where flows are spread.
///
/// # Errors
/// If it does not always get there.
pub fn ways(
    topology: &Topology,
    neighbours: &[Vec<Option<End>>],
    forwarding: &Forwarding,
    from: usize,
    to: usize,
) -> Result<Vec<Vec<End>>, Broken> {
    let source = neighbours[from].iter().position(Option::is_some).ok_or(Broken::NoCable)?;
    let search = Search { topology, neighbours, forwarding, to };
    let mut ways = Vec::new();
    search.follow(&mut vec![crate::topology::end(from, source)], &mut ways)?;
    Ok(ways)
}

/// What is the same along all ways to one adapter.
struct Search<'a> {
    topology: &'a Topology,
    neighbours: &'a [Vec<Option<End>>],
    forwarding: &'a Forwarding,
    to: usize,
}

impl Search<'_> {
    /// Adds all ways that begin with `way`.
    fn follow(&self, way: &mut Vec<End>, ways: &mut Vec<Vec<End>>) -> Result<(), Broken> {
        let last = way[way.len() - 1];
        let far = self.neighbours[last.node].get(last.port.index()).copied().flatten();
        let here = far.ok_or(Broken::DeadPort { at: last })?.node;
        if here == self.to {
            ways.push(way.clone());
            return Ok(());
        }
        if self.topology.nodes[here].kind == NodeKind::Nic {
            return Err(Broken::WrongAdapter { at: here });
        }
        if way.iter().any(|end| end.node == here) {
            return Err(Broken::Loop { at: here });
        }
        let ports = self.forwarding.ports(here, self.topology.nodes[self.to].lid);
        if ports.is_empty() {
            return Err(Broken::NoRoute { at: here });
        }
        for port in ports {
            way.push(End { node: here, port: *port });
            self.follow(way, ways)?;
            way.pop();
        }
        Ok(())
    }
}

/// Who can wait for whom: the buffer behind an end's cable, full, holds that end up until one of these
/// ends lets something go.
pub type Waits = BTreeMap<End, BTreeSet<End>>;

/// What was found out about a fabric's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Pairs (from, to) without a way, and why.
    pub broken: Vec<(usize, usize, Broken)>,
    /// Ports whose lanes can wait for each other in a circle, in order; empty if none can.
    pub circle: Vec<End>,
    /// Who can wait for whom at all.
    pub waits: Waits,
}

/// Follows every pair of adapters.
pub fn prove(topology: &Topology, forwarding: &Forwarding) -> Proof {
    let neighbours = topology.neighbours();
    let mut proof = Proof::default();
    let mut waits = Waits::new();
    for from in 0..topology.adapters() {
        for to in (0..topology.adapters()).filter(|to| *to != from) {
            match ways(topology, &neighbours, forwarding, from, to) {
                Ok(ways) => {
                    for hop in ways.iter().flat_map(|way| way.windows(2)) {
                        waits.entry(hop[0]).or_default().insert(hop[1]);
                    }
                }
                Err(why) => proof.broken.push((from, to, why)),
            }
        }
    }
    proof.circle = circle(&waits);
    proof.waits = waits;
    proof
}

/// A circle in the graph of who waits for whom, in order; empty if there is none. Whoever waits for
/// nobody is taken away until
/// nothing changes; from what is left every walk ends in a circle.
pub fn circle(waits: &Waits) -> Vec<End> {
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
