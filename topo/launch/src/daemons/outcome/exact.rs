//! The outcome of a run with exact pace: the recordings of all daemons become that of one worker, and their captures one.

use super::{cables, cables_of, refused};
use crate::daemons::configuration::capture_part;
use crate::daemons::session::Session;
use crate::error::OrHost;
use crate::{Job, LaunchError, Outcome};
use emulation::driver::Report;
use emulation::recorder::Recording;
use results::run_directory::result::{ClockPieces, Fidelity};

/// The outcome, which is that of the virtual clock but for how it came about.
pub(super) fn outcome(
    session: &Session,
    job: &Job<'_>,
    mut reports: Vec<Report>,
) -> Result<Outcome, LaunchError> {
    let wall_ns = reports.iter().map(|report| report.wall_ns).max().unwrap_or(0);
    let captures = reports.iter_mut().filter_map(|report| report.recording.capture.take());
    let captures: Vec<_> = captures.collect();
    if let Some(reason) = captures.iter().find_map(|capture| capture.error.as_ref()) {
        return Err(LaunchError::host(format!("a capture cannot be written: {reason}")));
    }
    let parts = reports.iter().map(|report| capture_part(job, report.process));
    let parts: Vec<_> = parts.filter(|part| part.exists()).collect();
    let capture = job.capture.as_ref().map(|plan| {
        let (wiring, stop) = (&job.lab.fabric.wiring, job.lab.plan.stop);
        capture::part::merge(&parts, plan, wiring, stop).or_host("cannot write the capture")
    });
    let mut outcome = Outcome {
        fidelity: Fidelity::VIRTUAL,
        reasons: Vec::new(),
        timeline: Vec::new(),
        on_cables: cables_of(job, &reports),
        cables: cables(session, job),
        dilation: None,
        pieces: ClockPieces::default(),
        frame_hops: reports.iter().map(|report| report.departures).sum(),
        wall_seconds: wall_ns as f64 / 1e9,
        cpu_seconds: reports.iter().map(|report| report.cpu_ns as f64 / 1e9).sum(),
        refused: refused(reports.iter().map(|report| &report.exchange)),
        scheduling: scheduling(&reports),
        hosts: Vec::new(),
        repeated: Some(reports.iter().map(|report| report.exchange.sending.repeated).sum()),
        recordings: Vec::new(),
    };
    let recordings = reports.into_iter().map(|report| report.recording).collect();
    let mut merged = Recording::merge(recordings, job.lab.plan.all_events);
    merged.capture = capture.transpose()?;
    outcome.recordings = vec![merged];
    Ok(outcome)
}

/// How the workers were driven, as text: what promises cost is in docs/performance.md.
fn scheduling(reports: &[Report]) -> String {
    let sending = || reports.iter().map(|report| report.exchange.sending);
    let datagrams: u64 = sending().map(|counts| counts.datagrams).sum();
    let alone: u64 = sending().map(|counts| counts.alone).sum();
    let asides: u64 = sending().map(|counts| counts.asides).sum();
    format!(
        "exact pace, {} processes, {datagrams} datagrams, {alone} with a promise alone, {asides} that ask or answer",
        reports.len()
    )
}
