//! A run as a trace for the Perfetto viewer: a process a node, a track a port, counters, slices of waiting,
//! instants of marks and notifications, arrows from mark to reaction (docs/spec/seeing.md 8).
//!
//! Times are fabric nanoseconds from the start of the run. Lateness, a property of the host, has a process
//! of its own.

use crate::ReportError;
use crate::data::Run;
use std::path::Path;
use trace::{Trace, Unit};
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
    let mut trace = Trace::default();
    let mut tracks = Tracks::new(&run, &mut trace);
    trees(&run, &tracks, &mut trace);
    series::ports(&run, folder, &tracks, &mut trace)?;
    series::queues(folder, &tracks, &mut trace)?;
    series::rates(folder, &mut tracks, &mut trace)?;
    series::lateness(folder, &mut tracks, &mut trace)?;
    events::all(&run, folder, &mut tracks, &mut trace)?;
    Ok(trace.into_octets())
}

/// A slice for each tree of congestion, and the number of its members.
fn trees(run: &Run, tracks: &Tracks<'_>, trace: &mut Trace) {
    let bin_ps = run.result.grid.dt_ps;
    for tree in &run.result.saturation.trees {
        let track = trace.track(tracks.fabric, &format!("tree {} → {}", tree.root, tree.feeds));
        let name = format!("tree root={} size={}", tree.root, tree.size);
        trace.begin(track, tree.first_ps, &name, &[]);
        trace.end(track, tree.last_ps);
        let members = trace.counter(track, "members", &Unit::Count);
        let root = run.outputs.all.iter().position(|output| output.name == tree.root);
        let size = |bin: usize| {
            let tree = root.and_then(|root| run.moments[bin].trees.get(&root));
            tree.map_or(0, |members| members.len() as i64)
        };
        let mut before = None;
        for bin in 0..run.bins {
            if before != Some(size(bin)) {
                before = Some(size(bin));
                trace.count(members, bin as u64 * bin_ps, size(bin));
            }
        }
    }
}
