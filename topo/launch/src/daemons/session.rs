//! A session with the daemons of a run, from their hello to their report.

use super::Cabling;
use super::configuration::{daemon_config, write_config, write_feed};
use crate::placement::Hosting;
use crate::processes::{Daemon, DaemonEvent};
use crate::{Job, LaunchError, Progress, interrupt};
use daemon::AdminConfig;
use daemon::protocol::{Hello, ToDaemon, ToLauncher};
use emulation::awake::Awake;
use emulation::clock::{Clock, Stopwatch, monotonic_ns};
use emulation::driver::{self, Beat, Report};
use emulation::recorder::snapshot::BinSnapshot;
use proto::units::Instant;
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Time from the planned stop to the last report: a host with a single, busy core is slow.
const REPORT_WITHIN: Duration = Duration::from_secs(60);
/// Time until the hello of a daemon, in seconds.
const HELLO_WITHIN_S: f64 = 20.0;
/// A worker beats several times a second. A launcher beside real-time workers may itself read late, so only a
/// much longer silence counts as the daemon's.
const SILENCE_MAX_S: f64 = 3.0;
/// Time between `start` and fabric zero, for daemons to prepare: a base, and a share for each.
const LEAD_NS: u64 = 150_000_000;
const LEAD_EACH_NS: u64 = 4_000_000;

/// What distinguishes a session from that of an ordinary run.
#[derive(Default)]
pub(crate) struct SessionOptions<'a> {
    /// The address of this program's socket, if it plays the last process.
    pub tester: Option<String>,
    /// The size of each daemon's receive buffer in octets, instead of the host's maximum.
    pub receive_buffer: Option<usize>,
    /// Additional environment variables of each daemon.
    pub environment: Vec<(String, String)>,
    /// The administration of each daemon, by process.
    pub admin: Option<&'a dyn Fn(usize) -> AdminConfig>,
}

/// The daemons of a run and what is known of them.
pub struct Session {
    pub hosting: Hosting,
    pub cabling: Cabling,
    daemons: Vec<Daemon>,
    events: UnboundedReceiver<(usize, DaemonEvent)>,
    /// Time since the last message, by process.
    heard: Vec<Stopwatch>,
    beats: Vec<Option<Beat>>,
    reported: Vec<bool>,
    /// Processes that missed a heartbeat.
    pub missed: Vec<usize>,
    /// Bins that have ended since the last progress.
    bins: Vec<BinSnapshot>,
    /// Keeps cores out of idle states from begin to end, if the job asks for it.
    pub awake: Option<Awake>,
}

/// When a run begins, and its identifier on the cables.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    pub clock: Clock,
    pub epoch: u32,
}

impl Session {
    /// Starts the daemons of `job`.
    pub fn open(
        job: &Job<'_>,
        hosting: Hosting,
        cabling: Cabling,
        options: &SessionOptions<'_>,
    ) -> Result<Session, LaunchError> {
        let feed = write_feed(job)?;
        let (sender, events) = unbounded_channel();
        let count = hosting.kinds.len() - usize::from(options.tester.is_some());
        let mut daemons = Vec::with_capacity(count);
        for (process, kind) in hosting.kinds.iter().enumerate().take(count) {
            let mut config = daemon_config(job, &hosting, &cabling, process, feed.as_deref())?;
            config.receive_buffer = options.receive_buffer;
            config.admin = options.admin.map(|admin| admin(process));
            let file = write_config(job, &config)?;
            let started =
                Daemon::start(*kind, process, &file, &options.environment, sender.clone());
            let failed = LaunchError::host(format!("cannot start process {process}"));
            daemons.push(started.map_err(failed.caused())?);
        }
        Ok(Session::new(hosting, cabling, daemons, events))
    }

    /// A session with daemons that run already.
    pub fn new(
        hosting: Hosting,
        cabling: Cabling,
        daemons: Vec<Daemon>,
        events: UnboundedReceiver<(usize, DaemonEvent)>,
    ) -> Session {
        let count = daemons.len();
        Session {
            hosting,
            cabling,
            daemons,
            events,
            heard: vec![Stopwatch::start(); count],
            beats: vec![None; count],
            reported: vec![false; count],
            missed: Vec::new(),
            bins: Vec::new(),
            awake: None,
        }
    }

    /// Uses the session, then ends all daemons in any case.
    pub(crate) async fn use_and_end<T>(mut self, task: impl AsyncFnOnce(&mut Session) -> T) -> T {
        let result = task(&mut self).await;
        for daemon in &mut self.daemons {
            daemon.end().await;
        }
        result
    }

    /// Sends `start` with the addresses of all processes to every daemon.
    pub async fn begin(&mut self, job: &Job<'_>, peers: Vec<String>) -> Result<Begin, LaunchError> {
        let dilation = NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN);
        let origin_ns = monotonic_ns() + LEAD_NS + LEAD_EACH_NS * self.daemons.len() as u64;
        // Low bits of a nanosecond clock: two runs on one host never share them.
        let epoch = (origin_ns ^ (origin_ns >> 32)) as u32;
        for daemon in &mut self.daemons {
            let origin_ns = origin_ns.saturating_add_signed(daemon.clock_ahead_ns);
            let start = ToDaemon::Start { epoch, origin_ns, dilation, peers: peers.clone() };
            let lost = LaunchError::died(daemon.name.as_str()).caused::<io::Error>();
            daemon.send(&start).await.map_err(lost)?;
        }
        self.heard.fill(Stopwatch::start());
        let keeps = job.awake && !driver::is_heavily_overcommitted(self.daemons.len());
        self.awake = keeps.then(Awake::keep);
        Ok(Begin { clock: Clock::new(origin_ns, dilation), epoch })
    }

    /// Waits for the hello of every daemon.
    pub(crate) async fn hellos(&mut self) -> Result<Vec<Hello>, LaunchError> {
        let mut hellos: Vec<Option<Hello>> = vec![None; self.daemons.len()];
        let stopwatch = Stopwatch::start();
        while let Some(silent) = hellos.iter().position(Option::is_none) {
            match self.next().await? {
                Some((process, ToLauncher::Hello(hello))) => hellos[process] = Some(hello),
                None if stopwatch.seconds() > HELLO_WITHIN_S => {
                    let name = &self.daemons[silent].name;
                    return Err(LaunchError::died(format!("{name} never said hello")));
                }
                Some(_) | None => {}
            }
        }
        let hellos: Vec<Hello> = hellos.into_iter().flatten().collect();
        let version = hellos.first().map_or(0, |hello| hello.shim_version);
        if let Some(other) = hellos.iter().find(|hello| hello.shim_version != version) {
            return Err(LaunchError::config(format!(
                "daemons of different builds: shim versions {version} and {}",
                other.shim_version
            )));
        }
        Ok(hellos)
    }

    /// Waits for the report of every daemon, until some time after the planned end of the run.
    pub async fn reports(
        &mut self,
        job: &Job<'_>,
        clock: Clock,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Report>, LaunchError> {
        let planned = clock.wall(job.lab.plan.stop.since(Instant::ZERO));
        let all = tokio::time::timeout(planned + REPORT_WITHIN, self.all_reports(progress)).await;
        all.unwrap_or_else(|_| {
            let daemons = self.daemons.iter().zip(&self.reported);
            let silent = daemons.filter(|(_, reported)| !**reported);
            let names: Vec<&str> = silent.map(|(daemon, _)| daemon.name.as_str()).collect();
            let (names, within) = (names.join(", "), REPORT_WITHIN.as_secs());
            Err(LaunchError::died(format!("no report from {names} {within} s after the run's end")))
        })
    }

    async fn all_reports(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Report>, LaunchError> {
        let mut reports: Vec<Option<Report>> = (0..self.daemons.len()).map(|_| None).collect();
        while reports.iter().any(Option::is_none) {
            match self.next().await? {
                Some((process, ToLauncher::Beat(beat))) => self.beats[process] = Some(beat),
                Some((_, ToLauncher::Bin(snapshot))) => self.bins.push(*snapshot),
                Some((process, ToLauncher::Report(report))) => {
                    self.reported[process] = true;
                    reports[process] = Some(*report);
                }
                Some(_) | None => {}
            }
            for (process, report) in reports.iter().enumerate() {
                let silent = self.heard[process].seconds() > SILENCE_MAX_S;
                if silent && report.is_none() && !self.missed.contains(&process) {
                    self.missed.push(process);
                }
            }
            progress(self.progress());
            self.bins.clear();
        }
        Ok(reports.into_iter().flatten().collect())
    }

    fn progress(&self) -> Progress<'_> {
        let beats = || self.beats.iter().flatten();
        let late = beats().map(|beat| beat.late_p99_thousandths).max();
        Progress {
            at: beats().map(|beat| beat.at).min().unwrap_or(Instant::ZERO),
            late_p99_frames: Some(late.unwrap_or(0) as f64 / 1_000.0),
            lost: beats().map(|beat| beat.lost).sum(),
            bins: &self.bins,
        }
    }

    /// The next message, or none after a short while.
    pub async fn next(&mut self) -> Result<Option<(usize, ToLauncher)>, LaunchError> {
        const PATIENCE: Duration = Duration::from_millis(100);
        let received = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        if interrupt::requested() {
            return Err(LaunchError::interrupted());
        }
        let Ok(Some((process, event))) = received else { return Ok(None) };
        self.heard[process] = Stopwatch::start();
        let daemon = &mut self.daemons[process];
        match event {
            DaemonEvent::Message(message) => match *message {
                ToLauncher::Fatal { message } => {
                    Err(LaunchError::died(format!("{}: {message}", daemon.name)))
                }
                message => Ok(Some((process, message))),
            },
            DaemonEvent::Malformed(reason) => Err(LaunchError::died(format!(
                "{} sent a malformed message: {reason}",
                daemon.name
            ))),
            DaemonEvent::Ended if self.reported[process] => Ok(None),
            DaemonEvent::Ended => {
                let how = daemon.wait().await;
                Err(LaunchError::died(format!("{} ended before its report: {how}", daemon.name)))
            }
        }
    }
}
