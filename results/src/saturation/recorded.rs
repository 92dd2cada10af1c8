//! Trees from recordings.

use super::{Output, OutputState, Outputs, Saturation, TreeLog};
use emulation::recorder::Recording;
use emulation::recorder::bins::PORT_COLUMNS;
use emulation::wiring::End;
use proto::events::EventKind;
use proto::units::{BitRate, Bytes};
use scenario::inventory::Fabric;
use std::collections::BTreeMap;

/// Both directions of every cable: of cable `i` the one from its first end is output `2·i`.
pub fn outputs(fabric: &Fabric, long_queue: u64) -> Outputs {
    let nodes = &fabric.wiring.nodes;
    let output = |from: End, to: End| Output {
        name: fabric.wiring.end_name(from),
        from: from.node,
        to: to.node,
        level: nodes[from.node].level,
        far_level: nodes[to.node].level,
    };
    let links = fabric.wiring.links.iter();
    let all = links.flat_map(|link| [output(link.a, link.b), output(link.b, link.a)]);
    Outputs::new(all.collect(), long_queue)
}

/// The trees of a run. A queue is long from the least threshold on at which a frame was marked; if
/// none was, from the least fill at which a switch sent XOFF; else from half of `buffer`.
pub fn observe(fabric: &Fabric, recordings: &[Recording], buffer: Option<Bytes>) -> Saturation {
    let half = buffer.map_or(0, |buffer| buffer.get() / 2);
    let long = long_queue(fabric, recordings).unwrap_or(half);
    let outputs = outputs(fabric, long);
    let ends: BTreeMap<End, usize> = (fabric.wiring.links.iter().enumerate())
        .flat_map(|(index, link)| [(link.a, 2 * index), (link.b, 2 * index + 1)])
        .collect();
    let [sent, hold] = ["tx_bytes", "hold_ps"].map(|name| {
        PORT_COLUMNS.iter().position(|column| *column == name).expect("ports.csv has both columns")
    });
    let slots = recordings.iter().map(|r| r.grid.slots.len()).max().unwrap_or(0);
    let mut watch = TreeLog::new(&outputs);
    let mut seen = vec![OutputState::default(); outputs.all.len()];
    for place in 0..slots {
        seen.fill(OutputState::default());
        let mut edges = None;
        for recording in recordings {
            let Some(slot) = recording.grid.slots.get(place) else { continue };
            edges.get_or_insert((slot.begin.as_ps(), slot.end.as_ps()));
            let length = slot.length().as_ps();
            for series in &recording.ports {
                let Some(output) = ends.get(&series.at) else { continue };
                let rate = fabric.rates.get(output / 2).copied().map_or(1, BitRate::get);
                let bin = series.bins.get(place as u32);
                let sight = &mut seen[*output];
                let share = |ps: u64| ps as f64 / length.max(1) as f64;
                sight.hold = sight.hold.max(share(bin.counts[hold]));
                sight.queue += bin.out.mean(length) as f64;
                sight.sent += bin.counts[sent] as f64 * 8e12 / length.max(1) as f64 / rate as f64;
            }
        }
        if let Some((begin, end)) = edges {
            watch.enter(begin, end, &outputs.trees(&seen));
        }
    }
    watch.finish(|node| fabric.node_name(node))
}

/// The threshold of the devices for a long queue, from their events.
fn long_queue(fabric: &Fabric, recordings: &[Recording]) -> Option<u64> {
    let events = || {
        let logged = recordings.iter().flat_map(|recording| &recording.events.events);
        logged.map(|logged| (logged.node as usize, &logged.event.kind))
    };
    let level = |node: usize| fabric.wiring.nodes.get(node).map_or(0, |node| node.level);
    let limits = events().filter_map(|(_, kind)| match kind {
        EventKind::Mark { limit, .. } => Some(limit.get()),
        _ => None,
    });
    let fills = events().filter_map(|(node, kind)| match kind {
        EventKind::Xoff { fill, .. } if level(node) > 0 && fill.get() > 0 => Some(fill.get()),
        _ => None,
    });
    limits.min().or_else(|| fills.min())
}
