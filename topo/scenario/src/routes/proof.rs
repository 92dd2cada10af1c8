//! Proof that every adapter reaches every other, and that buffers cannot wait for each other in a circle.

use crate::routes::Forwarding;
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::ids::PortNumber;
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

impl<'a> Search<'a> {
    /// The switch to which `way` leads; nothing if it is at its end.
    fn next(&self, way: &[End]) -> Result<Option<usize>, Broken> {
        let last = way[way.len() - 1];
        let far = self.neighbours[last.node].get(last.port.index()).copied().flatten();
        let here = far.ok_or(Broken::DeadPort { at: last })?.node;
        if here == self.to {
            return Ok(None);
        }
        if self.topology.nodes[here].kind == NodeKind::Nic {
            return Err(Broken::WrongAdapter { at: here });
        }
        if way.iter().any(|end| end.node == here) {
            return Err(Broken::Loop { at: here });
        }
        Ok(Some(here))
    }

    /// The ports by which switch `here` sends on.
    fn ports(&self, here: usize) -> Result<&'a [PortNumber], Broken> {
        match self.forwarding.ports(here, self.topology.nodes[self.to].lid) {
            [] => Err(Broken::NoRoute { at: here }),
            ports => Ok(ports),
        }
    }

    /// Adds all ways that begin with `way`.
    fn follow(&self, way: &mut Vec<End>, ways: &mut Vec<Vec<End>>) -> Result<(), Broken> {
        let Some(here) = self.next(way)? else {
            ways.push(way.clone());
            return Ok(());
        };
        for port in self.ports(here)? {
            way.push(End { node: here, port: *port });
            self.follow(way, ways)?;
            way.pop();
        }
        Ok(())
    }
}

/// The edges of the wait graph: the buffer behind an end's cable, full, holds that end up until one of these
/// ends lets something go.
pub type Waits = BTreeMap<End, BTreeSet<End>>;

/// What was found out about a fabric's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Pairs without a way, or with one that does not end.
    pub broken: Vec<Failure>,
    /// Ports whose lanes can wait for each other in a circle, in order; empty if none can.
    pub circle: Vec<End>,
    /// All edges of the wait graph.
    pub waits: Waits,
}

/// A pair of adapters of which one does not always reach the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The sending adapter.
    pub from: usize,
    /// The receiving adapter.
    pub to: usize,
    /// What is wrong.
    pub why: Broken,
    /// The ends by which a frame leaves on its way to where it is wrong.
    pub way: Vec<End>,
}

/// Follows every pair of adapters. All that is sent to one adapter must make a directed graph without a
/// circle, whichever of its ports each switch chooses; then it ends there.
pub fn prove(topology: &Topology, forwarding: &Forwarding) -> Proof {
    let neighbours = topology.neighbours();
    let mut proof = Proof::default();
    let mut waits = Waits::new();
    for to in 0..topology.adapters() {
        let mut walk = Walk {
            search: Search { topology, neighbours: &neighbours, forwarding, to },
            good: vec![false; topology.nodes.len()],
            waits: &mut waits,
        };
        for from in (0..topology.adapters()).filter(|from| *from != to) {
            let mut way = Vec::new();
            let outcome = match neighbours[from].iter().position(Option::is_some) {
                None => Err(Broken::NoCable),
                Some(port) => {
                    way.push(crate::topology::end(from, port));
                    walk.follow(&mut way)
                }
            };
            if let Err(why) = outcome {
                proof.broken.push(Failure { from, to, why, way });
            }
        }
    }
    // A loop would be reported again as buffers that wait in a circle.
    if proof.broken.is_empty() {
        proof.circle = circle(&waits);
        proof.waits = waits;
    }
    proof
}

/// The graph of all that is sent to one adapter, walked once.
struct Walk<'a> {
    search: Search<'a>,
    /// By node: whatever is sent from there arrives.
    good: Vec<bool>,
    waits: &'a mut Waits,
}

impl Walk<'_> {
    /// Goes on from the end of `way`, which stays where the fault is if there is one.
    fn follow(&mut self, way: &mut Vec<End>) -> Result<(), Broken> {
        let Some(here) = self.search.next(way)? else { return Ok(()) };
        let last = way[way.len() - 1];
        let (good, ports) = (self.good[here], self.search.ports(here)?);
        for port in ports {
            let next = End { node: here, port: *port };
            self.waits.entry(last).or_default().insert(next);
            if !good {
                way.push(next);
                self.follow(way)?;
                way.pop();
            }
        }
        self.good[here] = true;
        Ok(())
    }
}

/// A circle in the wait graph, in order; empty if there is none. A node that waits for
/// no other node is removed until
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
