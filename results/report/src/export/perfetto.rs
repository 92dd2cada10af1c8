//! A run as a trace for the Perfetto viewer: a process a node, a track a port, counters, slices of waiting,
//! instants of marks and notifications, arrows from mark to reaction (docs/spec/seeing.md 8).
//!
//! Times are fabric nanoseconds from the start of the run. Lateness, a property of the host, has a process
//! of its own.

use crate::ReportError;
use crate::data::Run;
use results::saturation::BinTrees;
use std::path::Path;
use trace::Unit;
use tracks::Tracks;

mod events;
mod series;
#[cfg(test)]
mod tests;
mod trace;
mod tracks;

/// The trace of a run directory.
///
/// # Errors
/// If a file there is missing or is not what a run writes.
pub fn trace(folder: &Path) -> Result<Vec<u8>, ReportError> {
    let run = Run::load(folder)?;
    let mut tracks = Tracks::new(&run);
    trees(&run, &mut tracks);
    series::ports(folder, &mut tracks)?;
    series::queues(folder, &mut tracks)?;
    series::rates(folder, &mut tracks)?;
    series::lateness(folder, &mut tracks)?;
    events::all(&run, folder, &mut tracks)?;
    Ok(tracks.trace.into_octets())
}

/// A slice for each tree of congestion, and the number of its members.
fn trees(run: &Run, tracks: &mut Tracks<'_>) {
    let Tracks { trace, fabric, .. } = tracks;
    for tree in &run.result.saturation.trees {
        let track = trace.track(*fabric, &format!("tree {} → {}", tree.root, tree.feeds));
        trace.begin(track, tree.first_ps, &format!("tree root={} size={}", tree.root, tree.size));
        trace.end(track, tree.last_ps);
        let root = run.graph.outputs.iter().position(|output| output.name == tree.root);
        let size = |(bin, moment): (usize, &BinTrees)| {
            let members = root.and_then(|root| moment.trees.get(&root));
            (bin as u64 * run.result.grid.dt_ps, members.map_or(0, |members| members.len() as u64))
        };
        trace.counter_of(track, "members", &Unit::Count, run.moments.iter().enumerate().map(size));
    }
}
