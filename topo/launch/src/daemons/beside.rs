//! Runs in which this program plays a part: the neighbours of a daemon under test, or somebody who
//! disturbs it from outside.
//!
//! The daemons are told nothing of it. The last process of such a run listens at a socket of this
//! program; its [`Player`] gets the same start as they do, on a thread of its own.

use super::{Cabling, Session, Special};
use crate::placement::Hosting;
use crate::{Job, LaunchError};
use emulation::clock::{Clock, monotonic_ns};
use emulation::driver::Report;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::units::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What such a run needs beside its job.
#[derive(Debug)]
pub struct Setting {
    /// Which process hosts which node; the last process is this program's if it has a socket.
    pub hosting: Hosting,
    /// What carries frames.
    pub cabling: Cabling,
    /// Where this program's socket listens, if it plays nodes.
    pub address: Option<String>,
    /// Octets of each daemon's receive buffer, in place of as many as the host grants.
    pub receive_buffer: Option<usize>,
    /// Variables of each daemon's environment, beside those of this program.
    pub environment: Vec<(String, String)>,
}

/// What a player is told when the run begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Fabric time.
    pub clock: Clock,
    /// The run's mark on the cables.
    pub epoch: u32,
    /// Addresses by process, this program's among them.
    pub peers: Vec<String>,
    /// The daemons' process ids, by process.
    pub daemons: Vec<u32>,
    /// Every daemon has reported, or the run has failed: nothing more will happen.
    pub over: Arc<AtomicBool>,
}

/// A daemon that stands still until this is dropped.
#[derive(Debug)]
pub struct Held(Pid);

impl Drop for Held {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

impl Opening {
    /// Stops the daemon of `process` until what this returns is dropped.
    pub fn hold(&self, process: usize) -> Held {
        let daemon = Pid::from_raw(self.daemons[process] as i32);
        // An error means that it has ended.
        let _ = kill(daemon, Signal::SIGSTOP);
        Held(daemon)
    }

    /// Kills the daemon of `process`.
    pub fn kill(&self, process: usize) {
        let _ = kill(Pid::from_raw(self.daemons[process] as i32), Signal::SIGKILL);
    }

    /// Waits until `at` of fabric time, or until nothing more will happen.
    pub fn wait_until(&self, at: Instant) {
        const LOOK_AGAIN_NS: u64 = 50_000_000;
        let deadline = self.clock.wall_ns_of(at);
        while !self.is_over() && monotonic_ns() < deadline {
            timer::wait(None, deadline.min(monotonic_ns() + LOOK_AGAIN_NS));
        }
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// What came back.
#[derive(Debug)]
pub struct Played<T> {
    /// By process.
    pub reports: Vec<Report>,
    /// Processes that missed a heartbeat or were cut short.
    pub missed: Vec<usize>,
    /// What the player found.
    pub found: T,
}

/// Runs `job` in `setting`, with `player` on a thread of its own from just before fabric zero until
/// it returns, which it must soon after [`Opening::is_over`].
///
/// Must be called on the main thread, as for every run with daemons.
///
/// # Errors
/// If a daemon dies, refuses its configuration or does not report in time.
pub fn run<T: Send + 'static>(
    job: &Job<'_>,
    setting: Setting,
    player: impl FnOnce(&Opening) -> T + Send + 'static,
) -> Result<Played<T>, LaunchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LaunchError::Host(error.to_string()))?;
    let Setting { hosting, cabling, address, receive_buffer, environment } = setting;
    let special = Special { played_at: address, receive_buffer, environment, administered: None };
    runtime.block_on(async {
        let mut session = Session::open(job, hosting, cabling, &special)?;
        let played = play(&mut session, job, &special, player).await;
        for daemon in &mut session.daemons {
            daemon.end().await;
        }
        played
    })
}

async fn play<T: Send + 'static>(
    session: &mut Session,
    job: &Job<'_>,
    special: &Special,
    player: impl FnOnce(&Opening) -> T + Send + 'static,
) -> Result<Played<T>, LaunchError> {
    let hellos = session.hellos().await?;
    let addresses = hellos.iter().map(|hello| hello.address.clone());
    let peers: Vec<String> = addresses.chain(special.played_at.clone()).collect();
    let begin = session.begin(job, peers.clone()).await?;
    let over = Arc::new(AtomicBool::new(false));
    let opening = Opening {
        clock: begin.clock,
        epoch: begin.epoch,
        peers,
        daemons: hellos.iter().map(|hello| hello.pid).collect(),
        over: Arc::clone(&over),
    };
    let thread = thread::Builder::new().name("player".to_owned());
    let thread = thread.spawn(move || player(&opening));
    let thread = thread.map_err(|error| LaunchError::Host(format!("no thread: {error}")))?;
    let planned = begin.clock.wall(job.lab.plan.stop.since(Instant::ZERO));
    let reports = session.reports_in_time(planned, &mut |_| {}).await;
    over.store(true, Ordering::Release);
    let found = thread.join().map_err(|_| LaunchError::Host("the player panicked".to_owned()))?;
    let reports = reports?;
    let mut missed = session.missed.clone();
    missed.extend(reports.iter().filter(|report| report.cut_short).map(|report| report.process));
    Ok(Played { reports, missed, found })
}
