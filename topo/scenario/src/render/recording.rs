//! The configuration of the recorder: bins, edges and the windows by which the host is judged.

use crate::Scenario;
use crate::measure::windows::{edges_of, windows_of};
use crate::run::Events;
use emulation::recorder::RecordingPlan;
use proto::units::{Duration, Instant};

/// A bin is at least this many frame times, and at most this share of the run (docs/spec/seeing.md 3.3).
const BIN_FRAMES: u64 = 50;
const BINS: u64 = 280;

/// The recording plan of a scenario.
pub fn plan(scenario: &Scenario) -> RecordingPlan {
    let tau = scenario.fabric.scale.tau;
    let stop = scenario.run.end();
    let mut measured = windows_of(&scenario.measures);
    if measured.is_empty() {
        measured.push((Instant::ZERO, stop));
    }
    RecordingPlan {
        tau,
        stop,
        bin: scenario.run.sample.unwrap_or_else(|| bin(scenario.run.duration, tau)),
        edges: edges_of(&scenario.measures),
        measured,
        all_events: scenario.run.events == Events::All,
        watched: scenario.watched,
        named: scenario
            .measures
            .iter()
            .flat_map(|measure| measure.of.named())
            .map(|ending| (*ending).to_owned())
            .collect(),
    }
}

/// The longer of 50 τ and 1/280 of the run, in whole τ.
fn bin(duration: Duration, tau: Duration) -> Duration {
    let frames = duration.as_ps().div_ceil(BINS).div_ceil(tau.as_ps().max(1));
    tau * frames.max(BIN_FRAMES)
}
