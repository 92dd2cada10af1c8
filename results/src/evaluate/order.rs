//! The order in which pauses reached the nodes of a fabric, from events.
//!
//! A switch counts from the first pause that it sends, a NIC from the first pause that it receives,
//! because a NIC does not pause its source. The first XON of a node counts only after its first XOFF.
//! Consecutive nodes of the same level of the fabric count as simultaneous and
//! are sorted by name.

use super::RunData;
use emulation::wiring::NodeKind;
use proto::events::{Direction, EventKind};
use proto::units::Instant;
use scenario::measure::{At, First, Measure};
use std::collections::BTreeMap;

/// The nodes of `measure` in the order of their first pause, or of its first end.
pub fn order(measure: &Measure, first: First, run: &RunData<'_>) -> Result<Vec<String>, String> {
    let At::Nodes(nodes) = &measure.at else {
        return Err("it is taken at nodes, and none is named".to_owned());
    };
    let pauses = pauses(measure, run);
    let reached = nodes.iter().filter_map(|node| {
        let (xoff, xon) = pauses.get(node)?;
        let at = if first == First::Xoff { Some(*xoff) } else { *xon };
        Some((at?, *node))
    });
    let mut reached: Vec<(Instant, usize)> = reached.collect();
    if reached.is_empty() {
        return Err("no pause was sent or received there".to_owned());
    }
    reached.sort_unstable();
    let wiring = &run.fabric.wiring;
    let level = |node: usize| wiring.nodes.get(node).map(|node| node.level);
    let together = reached.chunk_by(|a, b| level(a.1) == level(b.1));
    let names = together.flat_map(|level| {
        let mut level: Vec<usize> = level.iter().map(|(_, node)| *node).collect();
        // Nodes are numbered so that their numbers sort as their names are counted.
        level.sort_unstable();
        level
    });
    Ok(names.map(|node| run.fabric.node_name(node).to_owned()).collect())
}

/// By node: its first XOFF, and the first XON after it.
fn pauses(measure: &Measure, run: &RunData<'_>) -> BTreeMap<usize, (Instant, Option<Instant>)> {
    let mut found: BTreeMap<usize, (Instant, Option<Instant>)> = BTreeMap::new();
    let mut events: Vec<_> =
        run.recordings.iter().flat_map(|recording| &recording.events.events).collect();
    // Each worker's events are in order; together they may not be.
    events.sort_by_key(|logged| logged.event.at);
    for logged in events {
        let (node, at) = (logged.node as usize, logged.event.at);
        if at < measure.from || at >= measure.to {
            continue;
        }
        let is_switch =
            run.fabric.wiring.nodes.get(node).is_some_and(|node| node.kind == NodeKind::Switch);
        let counts = if is_switch { Direction::Tx } else { Direction::Rx };
        let is_end = match logged.event.kind {
            EventKind::Xoff { dir, .. } if dir == counts => {
                found.entry(node).or_insert((at, None));
                false
            }
            EventKind::Xon { dir, .. } => dir == counts,
            // A pause that expires also ends.
            EventKind::PauseExpired { .. } => !is_switch,
            _ => false,
        };
        if is_end && let Some((_, xon)) = found.get_mut(&node) {
            xon.get_or_insert(at);
        }
    }
    found
}
