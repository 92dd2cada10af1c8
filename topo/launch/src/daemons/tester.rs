//! Runs with a tester in this program: it plays the neighbours of a daemon under test, or disturbs it.
//!
//! The daemons do not know of it. If the tester plays nodes, the last process of the run is a socket of this
//! program. The tester runs on its own thread and gets the same start message as the daemons.

use super::Cabling;
use super::session::{Session, SessionOptions};
use crate::error::OrHost;
use crate::placement::Hosting;
use crate::{Job, LaunchError, block_on};
use emulation::clock::{Clock, monotonic_ns};
use emulation::driver::Report;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::units::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What such a run needs in addition to its job.
#[derive(Debug)]
pub struct TesterSetup {
    /// The process of each node; the last process is the tester if it has a socket.
    pub hosting: Hosting,
    /// What connects the daemons.
    pub cabling: Cabling,
    /// The address of the tester's socket, if it plays nodes.
    pub address: Option<String>,
    /// The size of each daemon's receive buffer in octets, instead of the host's maximum.
    pub receive_buffer: Option<usize>,
    /// Additional environment variables of each daemon.
    pub environment: Vec<(String, String)>,
}

/// The start of a run, for the tester.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The clock of fabric time.
    pub clock: Clock,
    /// The identifier of the run on the cables.
    pub epoch: u32,
    /// The addresses by process, with that of the tester.
    pub peers: Vec<String>,
    /// The process ids of the daemons, by process.
    pub daemons: Vec<u32>,
    /// Set when every daemon has reported, or the run has failed.
    pub over: Arc<AtomicBool>,
}

/// A daemon that is suspended until this is dropped.
#[derive(Debug)]
pub struct SuspendedDaemon(Pid);

impl Drop for SuspendedDaemon {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

impl RunStart {
    /// Suspends the daemon of `process` until the returned value is dropped.
    pub fn suspend(&self, process: usize) -> SuspendedDaemon {
        let daemon = Pid::from_raw(self.daemons[process] as i32);
        // An error means that it has ended.
        let _ = kill(daemon, Signal::SIGSTOP);
        SuspendedDaemon(daemon)
    }

    /// Kills the daemon of `process`.
    pub fn kill(&self, process: usize) {
        let _ = kill(Pid::from_raw(self.daemons[process] as i32), Signal::SIGKILL);
    }

    /// Waits until `at` of fabric time, or until the run is over.
    pub fn wait_until(&self, at: Instant) {
        const POLL_NS: u64 = 50_000_000;
        let deadline = self.clock.wall_ns_of(at);
        while !self.is_over() && monotonic_ns() < deadline {
            timer::wait(None, deadline.min(monotonic_ns() + POLL_NS));
        }
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// The result of such a run.
#[derive(Debug)]
pub struct TesterRun<T> {
    /// The reports by process.
    pub reports: Vec<Report>,
    /// Processes that missed a heartbeat, or whose report is incomplete.
    pub missed: Vec<usize>,
    /// What the tester returned.
    pub found: T,
}

/// Runs `job` with `tester` on a thread of its own. The thread starts just before fabric zero and must return
/// soon after [`RunStart::is_over`].
///
/// Must be called on the main thread, as every run with daemons.
///
/// # Errors
/// If a daemon dies, refuses its configuration or does not report in time.
pub fn run<T: Send + 'static>(
    job: &Job<'_>,
    setup: TesterSetup,
    tester: impl FnOnce(&RunStart) -> T + Send + 'static,
) -> Result<TesterRun<T>, LaunchError> {
    let TesterSetup { hosting, cabling, address, receive_buffer, environment } = setup;
    let options =
        SessionOptions { tester: address.clone(), receive_buffer, environment, admin: None };
    block_on(async {
        Session::open(job, hosting, cabling, &options)?
            .use_and_end(async |session| run_tester(session, job, address, tester).await)
            .await
    })
}

async fn run_tester<T: Send + 'static>(
    session: &mut Session,
    job: &Job<'_>,
    address: Option<String>,
    tester: impl FnOnce(&RunStart) -> T + Send + 'static,
) -> Result<TesterRun<T>, LaunchError> {
    let hellos = session.hellos().await?;
    let addresses = hellos.iter().map(|hello| hello.address.clone());
    let peers: Vec<String> = addresses.chain(address).collect();
    let begin = session.begin(job, peers.clone()).await?;
    let over = Arc::new(AtomicBool::new(false));
    let start = RunStart {
        clock: begin.clock,
        epoch: begin.epoch,
        peers,
        daemons: hellos.iter().map(|hello| hello.pid).collect(),
        over: Arc::clone(&over),
    };
    let thread = thread::Builder::new().name("tester".to_owned()).spawn(move || tester(&start));
    let thread = thread.or_host("no thread")?;
    let reports = session.reports(job, begin.clock, &mut |_| {}).await;
    over.store(true, Ordering::Release);
    let found = thread.join().map_err(|_| LaunchError::host("the tester panicked"))?;
    let reports = reports?;
    let mut missed = session.missed.clone();
    missed.extend(reports.iter().filter(|report| report.cut_short).map(|report| report.process));
    Ok(TesterRun { reports, missed, found })
}
