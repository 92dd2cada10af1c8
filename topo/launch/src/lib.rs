//! Runs a rendered scenario on a substrate and returns what was recorded.
//!
//! A substrate is one file of this crate and one row in [`BACKENDS`]. Only this crate starts child processes.

use crate::error::OrHost;
use capture::CapturePlan;
use emulation::recorder::Recording;
use emulation::recorder::snapshot::BinSnapshot;
use proto::units::{Duration, Instant};
use results::run_directory::FidelityBin;
use results::run_directory::hosts::HostRun;
use results::run_directory::result::{ClockPieces, Fidelity, OnCables};
use scenario::Scenario;
use scenario::render::Lab;
use scenario::run::{Backend, Pace};
use std::collections::BTreeMap;
use std::path::Path;

#[macro_use]
pub mod output;

pub mod attached;
pub mod calibration;
pub mod compose;
pub mod daemons;
pub mod descriptors;
pub mod error;
pub mod estimate;
pub mod experiment;
pub mod hosts;
pub mod interfaces;
pub mod interrupt;
mod joined;
pub mod lab;
mod netns;
pub mod owner;
pub mod placement;
mod processes;
pub mod programs;
mod remote;
pub mod replay;
pub mod scratch;
mod udp;
pub mod virtual_clock;

pub use daemon::with_sources;
pub use error::{FailureKind, LaunchError};
pub use netns::RIGHTS as RIGHTS_OF_NETNS;

/// The commit this program was built from, or "unknown".
pub const COMMIT: &str = env!("PAUSEBED_COMMIT");

/// A run: the fabric and the conditions.
#[derive(Debug)]
pub struct Job<'a> {
    /// The rendered scenario: devices, cables, recording plan.
    pub lab: &'a Lab,
    /// The name of the scenario or of the lab.
    pub name: &'a str,
    /// The table `[run]` of the scenario.
    pub run: &'a scenario::run::Run,
    /// Wall time over fabric time; not used on the virtual clock.
    pub dilation: u64,
    /// The dilation is an estimate: a run that falls behind stretches its clock.
    pub elastic: bool,
    /// The number of threads on the virtual clock; not used on live substrates.
    pub threads: usize,
    /// The ports to capture, and the file.
    pub capture: Option<CapturePlan>,
    /// Frames from outside: port, arrival in whole nanoseconds, frame.
    pub injections: Vec<(emulation::wiring::End, Instant, proto::frame::Frame)>,
    /// The run's own folder, for configurations and sockets.
    pub scratch: &'a Path,
}

impl<'a> Job<'a> {
    /// A run of `scenario`, rendered as `lab`, in real time and without a capture.
    pub fn new(scenario: &'a Scenario, lab: &'a Lab, scratch: &'a Path) -> Job<'a> {
        let (name, run, injections) = (&scenario.name, &scenario.run, Vec::new());
        Job {
            lab,
            name,
            run,
            dilation: 1,
            elastic: false,
            threads: 1,
            capture: None,
            injections,
            scratch,
        }
    }

    /// Whether the run may stretch its clock: equipment at attached ports has a clock of its own.
    fn is_elastic(&self) -> bool {
        self.elastic && self.run.pace == Pace::Wall && self.lab.fabric.wiring.attached.is_empty()
    }

    /// Whether cores are kept out of sleep states. By default not with attached ports: the hosts behind them may use
    /// the same cores, and a guest whose virtual cores share one with a busy loop transfers half as much.
    pub(crate) fn keeps_awake(&self) -> bool {
        self.run.awake.unwrap_or(self.lab.fabric.wiring.attached.is_empty())
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Fabric time of the slowest part.
    pub at: Instant,
    /// Lateness so far, p99 in frame times; none on the virtual clock, and where only ports without a rate have sent.
    pub late_p99_frames: Option<f64>,
    /// Frames lost so far.
    pub lost: u64,
    /// Wall time over fabric time, as announced last.
    pub dilation: u64,
    /// Bins that have ended since the last call, by worker; empty unless `run.watched` is set.
    pub bins: &'a [BinSnapshot],
}

/// What a run returns.
#[derive(Debug)]
pub struct Outcome {
    /// Recordings by worker.
    pub recordings: Vec<Recording>,
    /// Whether the host kept up.
    pub fidelity: Fidelity,
    /// Why the host did not keep up, one sentence each.
    pub reasons: Vec<String>,
    /// Lateness and losses over time.
    pub timeline: Vec<FidelityBin>,
    /// Frames that ended or were in flight on cables.
    pub on_cables: OnCables,
    /// Links by kind of cable.
    pub cables: BTreeMap<String, u64>,
    /// Wall time over fabric time at the start; none on the virtual clock.
    pub dilation: Option<u64>,
    /// The pieces of the clock; empty if it never changed.
    pub pieces: ClockPieces,
    /// Frames of any kind that crossed a link.
    pub frame_hops: u64,
    /// Wall time of the run itself.
    pub wall_seconds: f64,
    /// CPU time of all workers together.
    pub cpu_seconds: f64,
    /// Datagrams that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The scheduling of the workers, as text for the report.
    pub scheduling: String,
    /// What became of the commands of hosts.
    pub hosts: Vec<HostRun>,
    /// With exact pace: datagrams that were sent again because one was lost.
    pub repeated: Option<u64>,
}

/// A substrate: its name, and the function that runs a job on it.
pub struct Substrate {
    /// Its name in `--backend`.
    pub name: &'static str,
    /// Its value in a scenario file.
    pub backend: Backend,
    /// Whether it runs on the wall clock.
    pub is_live: bool,
    /// Runs a job and reports its progress.
    pub run: Run,
}

/// Runs a job and reports its progress.
pub type Run = fn(&Job<'_>, &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError>;

/// Every substrate.
pub const BACKENDS: &[Substrate] = &[
    Substrate {
        name: "virtual",
        backend: Backend::Virtual,
        is_live: false,
        run: virtual_clock::run,
    },
    Substrate { name: "udp", backend: Backend::Udp, is_live: true, run: udp::run },
    Substrate { name: "netns", backend: Backend::Netns, is_live: true, run: netns::run },
    Substrate { name: "compose", backend: Backend::Compose, is_live: true, run: compose::run },
    Substrate { name: "remote", backend: Backend::Remote, is_live: true, run: remote::run },
];

/// The substrate of a scenario's `backend`.
pub fn substrate(backend: Backend) -> &'static Substrate {
    let row = BACKENDS.iter().find(|row| row.backend == backend);
    row.expect("every backend has a row")
}

/// Removes the files that killed launchers of this user left. The kernel removes everything else.
pub fn remove_leftovers() {
    netns::remove_leftovers();
    scratch::remove_leftovers();
}

/// Refuses exact pace where it cannot hold: a far end outside the fabric sends no promises, and a cable without delay
/// leaves nothing to promise.
fn refuse_exact(job: &Job<'_>) -> Result<(), LaunchError> {
    let wiring = &job.lab.fabric.wiring;
    if job.run.pace != Pace::Exact {
        return Ok(());
    }
    if job.lab.is_managed() {
        let reason = "programs that manage the fabric follow the wall clock: use pace \"wall\"";
        return Err(LaunchError::config(reason));
    }
    if let Some(attached) = wiring.attached.first() {
        return Err(LaunchError::config(format!(
            "pace \"exact\" needs a promise from the far end of every cable, and {} at port {} is outside the fabric: use \
             pace \"wall\"",
            attached.interface,
            wiring.end_name(attached.at)
        )));
    }
    match wiring.links.iter().find(|link| link.delay == Duration::ZERO) {
        None => Ok(()),
        Some(link) => Err(LaunchError::config(format!(
            "pace \"exact\" needs a delay on every cable, and that from {} to {} has none: set [fabric] link.delay",
            wiring.end_name(link.a),
            wiring.end_name(link.b)
        ))),
    }
}

/// Refuses attached interfaces of this host, and hosts behind interfaces, on a substrate that cannot reach them.
fn refuse_interfaces(job: &Job<'_>) -> Result<(), LaunchError> {
    match job.lab.fabric.wiring.attached.iter().find(|attached| attached.socket.is_none()) {
        None => Ok(()),
        Some(attached) => Err(LaunchError::config(format!(
            "{} {} can be attached on the backend netns only",
            if attached.is_host { "host" } else { "interface" },
            attached.interface
        ))),
    }
}

/// Refuses attached ports, and a managed fabric, on a substrate that can reach neither interfaces nor programs of this
/// host.
fn refuse_attached(job: &Job<'_>) -> Result<(), LaunchError> {
    refuse_interfaces(job)?;
    if job.lab.is_managed() {
        let reason = "a managed fabric runs on the backends udp and netns only";
        return Err(LaunchError::config(reason));
    }
    match job.lab.fabric.wiring.attached.first() {
        None => Ok(()),
        Some(attached) => Err(LaunchError::config(format!(
            "{} can be attached on the backends udp and netns only",
            attached.interface
        ))),
    }
}

/// Runs a future of a launcher on the calling thread.
///
/// Must be the main thread if the future starts daemons: the kernel ends them with the thread that started them.
fn block_on<T>(future: impl Future<Output = Result<T, LaunchError>>) -> Result<T, LaunchError> {
    let runtime = daemon::runtime::on_this_thread();
    runtime.or_host("no event loop")?.block_on(future)
}

/// Writes a file of a run.
fn write_file(file: &Path, content: impl AsRef<[u8]>) -> Result<(), LaunchError> {
    std::fs::write(file, content).or_host(format!("cannot write {}", file.display()))
}
