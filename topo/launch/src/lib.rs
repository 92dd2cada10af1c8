//! Runs a rendered scenario on a substrate and brings back what was recorded.
//!
//! A substrate is one file in `launch/` and one row in [`BACKENDS`]. Child processes exist only
//! here.

use capture::CapturePlan;
use emulation::cable::Carrier;
use emulation::recorder::Recording;
use emulation::recorder::snapshot::BinSnapshot;
use proto::units::Instant;
use results::run_directory::FidelityRow;
use results::run_directory::result::{Fidelity, OnCables};
use scenario::render::Lab;
use scenario::run::{Backend, Cables, Placement};
use std::collections::BTreeMap;
use std::path::Path;

#[macro_use]
pub mod spoken;

pub mod calibration;
pub mod compose;
pub mod daemons;
pub mod estimate;
pub mod experiment;
pub mod interrupt;
pub mod joined;
pub mod lab;
pub mod netns;
pub mod owner;
pub mod placement;
pub mod processes;
pub mod programs;
pub mod remote;
pub mod replay;
pub mod scratch;
pub mod udp;
pub mod virtual_clock;

/// The commit this program was built from, or "unknown".
pub const COMMIT: &str = env!("PAUSEBED_COMMIT");

/// What is to be run, and how.
#[derive(Debug)]
pub struct Job<'a> {
    /// Devices, cables, recording plan.
    pub lab: &'a Lab,
    /// The scenario's name.
    pub name: &'a str,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Wall time over fabric time; the virtual clock has none.
    pub dilation: u64,
    /// On how many threads the virtual clock runs the fabric; live substrates have none.
    pub threads: usize,
    /// How devices are spread over processes.
    pub placement: Placement,
    /// Which links are sockets.
    pub cables: Cables,
    /// What kind of sockets.
    pub carrier: Carrier,
    /// Ask for real-time priority.
    pub realtime: bool,
    /// Keep this host's cores from falling asleep.
    pub awake: bool,
    /// Which ports to capture, into which file.
    pub capture: Option<CapturePlan>,
    /// Frames from outside: where, and when they arrive, in whole nanoseconds.
    pub injections: Vec<(emulation::wiring::End, Instant, proto::frame::Frame)>,
    /// A folder of the run's own, for configurations and sockets.
    pub scratch: &'a Path,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Fabric time of the slowest part.
    pub at: Instant,
    /// Lateness so far, p99 in frame times; none on the virtual clock.
    pub late_p99_frames: Option<f64>,
    /// Frames lost so far.
    pub lost: u64,
    /// Bins that have ended since the last word, by worker; only of a run that is watched.
    pub bins: &'a [BinSnapshot],
}

/// What a run brought back.
#[derive(Debug)]
pub struct Outcome {
    /// By worker.
    pub recordings: Vec<Recording>,
    /// Whether the host kept up.
    pub fidelity: Fidelity,
    /// Why it did not, one sentence each.
    pub reasons: Vec<String>,
    /// How well it kept up over time.
    pub timeline: Vec<FidelityRow>,
    /// Frames that ended or stood on cables.
    pub on_cables: OnCables,
    /// Links by kind of cable.
    pub cables: BTreeMap<String, u64>,
    /// Wall time over fabric time; none on the virtual clock.
    pub dilation: Option<u64>,
    /// Frames of any kind that crossed a link.
    pub frame_hops: u64,
    /// Wall time of the run itself.
    pub wall_seconds: f64,
    /// CPU time of all workers together.
    pub cpu_seconds: f64,
    /// Datagrams that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// How workers were scheduled, in words.
    pub scheduling: String,
}

/// Why a run brought nothing back.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A daemon ended before its report.
    #[error("{0}")]
    Died(String),
    /// The host lacks something.
    #[error("{0}")]
    Host(String),
    /// A device refuses its configuration.
    #[error("{0}")]
    Config(String),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// A substrate: its name on the command line and in files, and how it runs a job.
pub struct Substrate {
    /// As in `--backend`.
    pub name: &'static str,
    /// The word of the scenario file.
    pub backend: Backend,
    /// Keeps time by the wall.
    pub is_live: bool,
    /// Runs a job, telling how far it is.
    pub run: Run,
}

/// Runs a job, telling how far it is.
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

/// Removes what launchers of this user left that were killed: files, since the kernel has removed the rest.
pub fn sweep() {
    netns::sweep();
    scratch::sweep();
}

/// Refuses interfaces of the host, for a substrate that has no way to them.
fn refuse_attached(job: &Job<'_>) -> Result<(), LaunchError> {
    match job.lab.fabric.wiring.attached.first() {
        None => Ok(()),
        Some(attached) => Err(LaunchError::Config(format!(
            "interface {} can be attached on the backend netns only",
            attached.interface
        ))),
    }
}
