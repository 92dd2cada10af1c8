//! Runs with a tester in this program: it plays the neighbours of a daemon under test, or disturbs it.
//!
//! The daemons run as without it. If the tester plays nodes, the last process of the run is a socket of this
//! program. The tester runs on its own thread and gets the same start message as the daemons.

use super::Setup;
use super::session::{Begin, Session};
use crate::error::OrHost;
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

    /// The fabric time when `wall_ns` nanoseconds of wall time will have passed.
    pub fn in_wall_ns(&self, wall_ns: u64) -> Instant {
        self.clock.at_wall_ns(monotonic_ns() + wall_ns)
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
    setup: Setup,
    tester: impl FnOnce(&RunStart) -> T + Send + 'static,
) -> Result<TesterRun<T>, LaunchError> {
    let address = setup.address.clone();
    block_on(async {
        Session::open(job, setup, |_| None)?
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
    let Begin { mut clock, epoch, peers, hellos } = session.begin(job, address).await?;
    let over = Arc::new(AtomicBool::new(false));
    let daemons = hellos.iter().map(|hello| hello.pid).collect();
    let start = RunStart { clock: clock.clone(), epoch, peers, daemons, over: Arc::clone(&over) };
    let thread = thread::Builder::new().name("tester".to_owned()).spawn(move || tester(&start));
    let thread = thread.or_host("no thread")?;
    let reports = session.reports(job, &mut clock, &mut |_| {}).await;
    over.store(true, Ordering::Release);
    let found = thread.join().map_err(|_| LaunchError::host("the tester panicked"))?;
    let (reports, missed) = reports?;
    Ok(TesterRun { reports, missed, found })
}
