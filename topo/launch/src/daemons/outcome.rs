//! The outcome of a run with daemons, from their reports.

mod exact;

use super::accounts::{on_cables, refused};
use super::session::Session;
use crate::{Job, LaunchError, Outcome, Progress};
use emulation::awake::Awake;
use emulation::cable::is_link_local;
use emulation::clock::{Clock, monotonic_ns};
use emulation::driver::{Report, evidence};
use emulation::fidelity::judge;
use emulation::timer::Priority;
use emulation::wiring::LinkWiring;
use proto::frame::Frame;
use results::run_directory::FidelityBin;
use results::run_directory::result::{ClockPieces, Fidelity, OnCables};
use scenario::run::{Cables, Pace};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

impl Session {
    /// An ordinary run, from the hello of all daemons to their reports. Calls `begun` with the clock of the run, a
    /// moment before its fabric time starts.
    pub async fn run(
        self,
        job: &Job<'_>,
        begun: impl FnOnce(&Clock),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, LaunchError> {
        self.use_and_end(async |session| {
            let mut clock = session.begin(job, None).await?.clock;
            begun(&clock);
            let reports = session.reports(job, &mut clock, progress).await?;
            if job.run.pace == Pace::Exact {
                return exact::outcome(session, job, reports.0);
            }
            let wall_ns = monotonic_ns().saturating_sub(clock.origin_ns());
            Ok(outcome(session, job, &clock, reports, wall_ns as f64 / 1e9))
        })
        .await
    }
}

fn outcome(
    session: &Session,
    job: &Job<'_>,
    clock: &Clock,
    (reports, missed): (Vec<Report>, Vec<usize>),
    wall_seconds: f64,
) -> Outcome {
    let pieces = clock.pieces();
    let mut evidence = evidence(&reports, missed);
    let announced = pieces.len() as u64 - 1;
    let unaware = reports.iter().filter(|report| report.changes.learned < announced);
    evidence.uninformed.extend(unaware.map(|report| report.process));
    let greatest = pieces.iter().map(|piece| piece.dilation).max().unwrap_or(NonZeroU64::MIN);
    let judged = judge(&evidence, greatest);
    Outcome {
        fidelity: Fidelity {
            ok: judged.ok,
            lateness_p99_frames: judged.lateness_p99_frames,
            transport_lost: judged.transport_lost,
            suggested_dilation: Some(judged.suggested_dilation),
        },
        reasons: judged.reasons,
        timeline: timeline(&reports),
        on_cables: cables_of(job, &reports),
        cables: cables(session, job),
        dilation: pieces.first().map(|piece| piece.dilation.get()),
        pieces: ClockPieces::of(pieces),
        frame_hops: reports.iter().map(|report| report.departures).sum(),
        wall_seconds,
        cpu_seconds: reports.iter().map(|report| report.cpu_ns as f64 / 1e9).sum(),
        refused: refused(reports.iter().map(|report| &report.exchange)),
        scheduling: scheduling(session, &reports),
        hosts: Vec::new(),
        repeated: None,
        recordings: reports.into_iter().map(|report| report.recording).collect(),
    }
}

/// Links by kind of cable.
fn cables(session: &Session, job: &Job<'_>) -> BTreeMap<String, u64> {
    let hosts = &session.hosting.hosts;
    let links = &job.lab.fabric.wiring.links;
    let inside = |link: &&LinkWiring| hosts[link.a.node] == hosts[link.b.node];
    let memory = match job.run.cables {
        Cables::Local => links.iter().filter(inside).count() as u64,
        Cables::Socket => 0,
    };
    let mut cables = BTreeMap::from([
        ("memory".to_owned(), memory),
        (session.cabling.name().to_owned(), links.len() as u64 - memory),
    ]);
    let attached = job.lab.fabric.wiring.attached.len() as u64;
    if attached > 0 {
        cables.insert("attached".to_owned(), attached);
    }
    cables
}

/// The scheduling of the workers, as text.
fn scheduling(session: &Session, reports: &[Report]) -> String {
    let count = |priority| reports.iter().filter(|report| report.priority == priority).count();
    let (fifo, workers) = (count(Priority::Fifo), reports.len());
    let awake = match session.awake.as_ref().map_or(0, Awake::cores) {
        0 => String::new(),
        cores => format!(", {cores} cores kept awake"),
    };
    format!("{fifo} of {workers} workers with real-time priority{awake}")
}

fn timeline(reports: &[Report]) -> Vec<FidelityBin> {
    let of = |report: &Report| {
        let worker = report.process as u32;
        report.timeline.clone().into_iter().map(move |bin| FidelityBin { worker, ..bin })
    };
    reports.iter().flat_map(of).collect()
}

/// What cables counted, injected frames of a replay included.
fn cables_of(job: &Job<'_>, reports: &[Report]) -> OnCables {
    let parts =
        reports.iter().map(|report| (&report.in_flight, &report.injected, &report.exchange));
    let travels = |frame: &Frame| !is_link_local(frame.kind, &frame.octets);
    let fed = job.injections.iter().filter(|(.., frame)| travels(frame));
    let mut cables = on_cables(parts, false);
    cables.duplicated += fed.count() as u64;
    cables
}
