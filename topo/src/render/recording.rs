//! What the recorder is told: bins, edges and the windows by which the host is judged.

use crate::measure::Measure;
use crate::scenario::Scenario;
use emulation::recorder::RecordingPlan;
use proto::units::{Duration, Instant};

/// A bin is at least this many frame times, and at most this share of the run (seeing.md 3.3).
const BIN_FRAMES: u64 = 50;
const BINS: u64 = 280;

/// The recording plan of a scenario.
pub fn plan(scenario: &Scenario) -> RecordingPlan {
    let tau = scenario.fabric.scale.tau;
    let stop = scenario.run.end();
    let windows = scenario.measures.iter().map(|measure| (measure.from, measure.to));
    let mut measured = union(windows.collect());
    if measured.is_empty() {
        measured.push((Instant::ZERO, stop));
    }
    RecordingPlan {
        tau,
        stop,
        bin: scenario.run.sample.unwrap_or_else(|| bin(scenario.run.duration, tau)),
        edges: edges_of(&scenario.measures),
        measured,
        all_events: scenario.run.all_events,
    }
}

/// The longer of 50 τ and 1/280 of the run, in whole τ.
fn bin(duration: Duration, tau: Duration) -> Duration {
    let frames = duration.as_ps().div_ceil(BINS).div_ceil(tau.as_ps().max(1));
    tau * frames.max(BIN_FRAMES)
}

/// The instants at which `measures` need a whole reading, ascending: both ends of each window, of
/// its exceptions and of the window before it, and every edge of a bin.
pub fn edges_of(measures: &[Measure]) -> Vec<Instant> {
    let mut edges = Vec::new();
    for measure in measures {
        edges.extend([measure.from, measure.to]);
        let parts = measure.except.iter().chain(&measure.before);
        edges.extend(parts.flat_map(|(from, to)| [*from, *to]));
        if let Some(bin) = measure.bin {
            let steps = std::iter::successors(Some(measure.from), |edge| Some(*edge + bin));
            edges.extend(steps.take_while(|edge| *edge < measure.to));
        }
    }
    edges.sort();
    edges.dedup();
    edges
}

/// The same time as disjoint windows, ascending.
fn union(mut windows: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    windows.sort();
    let mut joined: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in windows {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}
