//! One run of one candidate: from settings to a score.
//!
//! What cold ports received is compared with what was posted for them in the same window of the same
//! run, not against the load in the file: sources are open loop, so both are the same in the mean,
//! and the noise of the arrivals cancels. A ratio above 1 is a backlog being worked off.

use crate::tune::TuneError;
use crate::tune::ideal::{Ideal, Window};
use crate::tune::objective::Score;
use emulation::recorder::{Edge, EdgeReading, Recording};
use launch::{Job, substrate};
use proto::counters::DeviceReading;
use proto::device::Depth;
use proto::units::Instant;
use results::fairness::jain;
use results::lossless::LosslessDrops;
use results::violations::Violations;
use scenario::Scenario;
use scenario::render::{Lab, render};
use scenario::run::Backend;
use std::collections::HashSet;
use std::path::Path;

/// Number of bins of the window, to measure swings. Each costs a reading of every device.
const BINS: u64 = 10;

/// Runs `scenario` up to the end of `window` and scores the window.
///
/// # Errors
/// If the run fails, or ends without readings.
pub fn run(scenario: &Scenario, ideal: &Ideal, window: Window) -> Result<Score, TuneError> {
    let mut scenario = scenario.clone();
    scenario.run.backend = Backend::Virtual;
    scenario.run.duration = window.1.since(Instant::ZERO);
    scenario.run.sample = Some(scenario.run.duration);
    scenario.capture.clear();
    scenario.measures.clear();
    scenario.expectations.clear();
    let mut lab = render(&scenario);
    lab.plan.edges = edges(window);
    // The virtual clock writes no files.
    let job = Job::new(&scenario, &lab, Path::new(""));
    let outcome = (substrate(Backend::Virtual).run)(&job, &mut |_| {})?;
    if let Some(broken) = Violations::of(&lab.fabric, &outcome.recordings) {
        return Err(TuneError::Violation(broken.to_string()));
    }
    score(&lab, &outcome.recordings, ideal, window, scenario.run.expected_drops())
        .ok_or(TuneError::NoReadings)
}

fn edges((from, to): Window) -> Vec<Edge> {
    let bin = to.since(from).as_ps() / BINS;
    let inner = (0..BINS).map(|n| Instant::from_ps(from.as_ps() + bin * n));
    let mut edges: Vec<Instant> = inner.chain([to]).collect();
    edges.dedup();
    edges.into_iter().map(|at| Edge { at, depth: Depth::All }).collect()
}

/// Octets that cold ports received, and octets posted for them, since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Cold {
    received: f64,
    posted: f64,
}

fn score(
    lab: &Lab,
    recordings: &[Recording],
    ideal: &Ideal,
    window: Window,
    expected: Option<&str>,
) -> Option<Score> {
    // One worker has all nodes, in their order.
    let [recording] = recordings else { return None };
    let (first, last) = (recording.edges.first()?, recording.edges.last()?);
    let seconds = window.1.since(window.0).as_ps() as f64 / 1e12;
    let cold: Vec<Cold> = recording.edges.iter().map(|edge| cold(lab, ideal, edge)).collect();
    let (began, ended) = (cold.first()?, cold.last()?);
    let posted = ended.posted - began.posted;
    let mut score = Score {
        cold: if posted > 0.0 { (ended.received - began.received) / posted } else { 1.0 },
        hot: f64::INFINITY,
        fairness: 1.0,
        swing: swing(&cold),
        lossless_drops: LosslessDrops::of(&lab.fabric, recordings, expected),
    };
    for hot in &ideal.hot {
        let line = lab.nics.get(hot.node)?.link.rate.get() as f64;
        let octets = received(last.devices.get(hot.node)?) - received(first.devices.get(hot.node)?);
        score.hot = score.hot.min(octets * 8.0 / seconds / line);
        let to = *lab.fabric.addresses.get(hot.node)?;
        let sent = hot.senders.iter().map(|sender| {
            Some(sent(last.devices.get(*sender)?, to) - sent(first.devices.get(*sender)?, to))
        });
        let sent: Option<Vec<f64>> = sent.collect();
        score.fairness = score.fairness.min(jain(&sent?).unwrap_or(0.0));
    }
    Some(score)
}

fn cold(lab: &Lab, ideal: &Ideal, edge: &EdgeReading) -> Cold {
    let received = ideal.cold.iter().filter_map(|node| edge.devices.get(*node)).map(received).sum();
    let cold: HashSet<u64> = ideal.cold.iter().map(|node| lab.fabric.addresses[*node]).collect();
    let flows = edge.devices.iter().take(lab.nics.len()).flat_map(|device| &device.flows);
    let to_cold = flows.filter(|flow| cold.contains(&flow.flow.destination));
    let posted: u64 = to_cold.map(|flow| flow.offered_bytes).sum();
    Cold { received, posted: posted as f64 * ideal.on_wire }
}

/// Standard deviation of the bins, as a share of the octets posted in one.
fn swing(cold: &[Cold]) -> f64 {
    let bins: Vec<(f64, f64)> = cold
        .windows(2)
        .map(|edges| (edges[1].received - edges[0].received, edges[1].posted - edges[0].posted))
        .collect();
    let n = bins.len().max(1) as f64;
    let lag = |(received, posted): &(f64, f64)| received - posted;
    let mean = bins.iter().map(lag).sum::<f64>() / n;
    let square = bins.iter().map(|bin| (lag(bin) - mean).powi(2)).sum::<f64>() / n;
    let posted = bins.iter().map(|(_, posted)| posted).sum::<f64>() / n;
    if posted > 0.0 { square.sqrt() / posted } else { 0.0 }
}

fn received(adapter: &DeviceReading) -> f64 {
    let lanes = adapter.ports.iter().flat_map(|port| &port.lanes);
    lanes.map(|lane| lane.counters.rx_bytes).sum::<u64>() as f64
}

fn sent(adapter: &DeviceReading, to: u64) -> f64 {
    let flows = adapter.flows.iter().filter(|flow| flow.flow.destination == to);
    flows.map(|flow| flow.tx_bytes).sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_ten_bins_and_its_exact_ends() {
        let at = Instant::from_ps;
        let edges = edges((at(1_003), at(2_006)));
        assert_eq!((edges.len(), edges[0].at, edges[10].at), (11, at(1_003), at(2_006)));
        assert!(edges.is_sorted());
    }

    #[test]
    fn swing_is_the_spread_of_what_came_less_what_was_posted() {
        let at = |received: f64, posted: f64| Cold { received, posted };
        // Bins of 100 posted; received less posted is -10, +10, -10, +10: a deviation of 10.
        let cold = [at(0., 0.), at(90., 100.), at(200., 200.), at(290., 300.), at(400., 400.)];
        assert!((swing(&cold) - 0.1).abs() < 1e-12);
        // Bursts that pass through as they were posted are not a swing.
        let cold = [at(0., 0.), at(50., 50.), at(250., 250.)];
        assert_eq!(swing(&cold), 0.0);
    }
}
