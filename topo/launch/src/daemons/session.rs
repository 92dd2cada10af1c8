//! A session with the daemons of a run, from their hello to their report.

mod replacing;
mod stretching;

use super::configuration::{daemon_config, write_config, write_feed};
use super::{Cabling, Setup};
use crate::error::OrHost;
use crate::placement::Hosting;
use crate::processes::{Daemon, DaemonEvent};
use crate::{Job, LaunchError, Progress, interrupt};
use daemon::protocol::{Hello, ToDaemon, ToLauncher};
use daemon::token::random;
use daemon::{AdminConfig, DaemonConfig};
use emulation::awake::Awake;
use emulation::clock::{Clock, Stopwatch, monotonic_ns};
use emulation::driver::{self, Beat, Report};
use emulation::exact::Secret;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::timer;
use proto::units::Instant;
use replacing::{Restarting, is_replaceable};
use scenario::run::Pace;
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;
use stretching::Stretching;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Time from the planned stop to the last report: a host with a single, busy core is slow.
const REPORT_WITHIN_S: u64 = 60;
/// Time for the daemons of a lab to stop and to report, in seconds.
const STOPS_WITHIN_S: f64 = 5.0;
/// Time until the hello of a daemon, in seconds.
const HELLO_WITHIN_S: f64 = 20.0;
/// A worker beats several times a second. A launcher beside real-time workers may itself read late, so only a
/// a much longer time without messages counts as the daemon's fault.
const SILENCE_MAX_S: f64 = 3.0;
/// The same with exact pace, where a busy host only delays a run. Below the limit at which neighbours accuse each other.
const EXACT_SILENCE_MAX_S: f64 = 30.0;
/// Time between `start` and fabric zero, for daemons to prepare: a base, and a share for each.
const LEAD_NS: u64 = 150_000_000;
const LEAD_EACH_NS: u64 = 4_000_000;

/// The daemons of a run and what is known of them.
pub struct Session {
    pub hosting: Hosting,
    pub cabling: Cabling,
    daemons: Vec<Daemon>,
    events: UnboundedReceiver<(usize, DaemonEvent)>,
    /// How a daemon is started again; none if the end of one is the end of the run.
    restarting: Option<Restarting>,
    /// What the daemons sent, by process.
    received: Vec<Received>,
    /// Bins that have ended since the last progress.
    bins: Vec<BinSnapshot>,
    /// With elastic pace: what changes the clock.
    stretching: Option<Stretching>,
    /// Keeps cores out of idle states from begin to end, if the job asks for it.
    pub awake: Option<Awake>,
}

/// What a daemon sent.
struct Received {
    /// Time since its last message.
    last: Stopwatch,
    hello: Option<Hello>,
    beat: Option<Beat>,
    report: Option<Box<Report>>,
    /// It missed a heartbeat.
    missed: bool,
    /// The pipe has ended.
    has_ended: bool,
    /// It has ended too often and is not replaced any more.
    is_given_up: bool,
    /// Changes of its peers that it has been sent.
    peers_changed: u64,
}

impl Received {
    fn nothing() -> Received {
        Received {
            last: Stopwatch::start(),
            hello: None,
            beat: None,
            report: None,
            missed: false,
            has_ended: false,
            is_given_up: false,
            peers_changed: 0,
        }
    }
}

/// A run that has begun.
#[derive(Clone, Debug)]
pub struct Begin {
    pub clock: Clock,
    /// The identifier of the run on the cables.
    pub epoch: u32,
    /// The addresses by process.
    pub peers: Vec<String>,
    /// The hello of every daemon.
    pub hellos: Vec<Hello>,
}

impl Session {
    /// Starts the daemons of `job`, each with the administration that `admin` gives it.
    pub fn open(
        job: &Job<'_>,
        setup: Setup,
        admin: impl Fn(usize) -> Option<AdminConfig>,
    ) -> Result<Session, LaunchError> {
        let Setup { hosting, cabling, address, receive_buffer, environment } = setup;
        let feed = write_feed(job)?;
        let (sender, events) = unbounded_channel();
        let count = hosting.kinds.len() - usize::from(address.is_some());
        let mut daemons = Vec::with_capacity(count);
        let mut files = Vec::with_capacity(count);
        for (process, kind) in hosting.kinds.iter().enumerate().take(count) {
            let config = daemon_config(job, &hosting, &cabling, process, feed.as_deref())?;
            let admin = admin(process);
            let file = write_config(job, &DaemonConfig { receive_buffer, admin, ..config })?;
            let daemon = Daemon::start(*kind, process, &file, &environment, sender.clone());
            daemons.push(daemon.or_host(format!("cannot start process {process}"))?);
            files.push(is_replaceable(job, &hosting, process).then_some(file));
        }
        let (has_begun, fallen) = (false, Vec::new());
        let restarting = Restarting { files, environment, sender, has_begun, fallen };
        let session = Session::new(hosting, cabling, daemons, events);
        Ok(Session {
            restarting: (job.lab.plan.stop == Instant::NEVER).then_some(restarting),
            ..session
        })
    }

    /// A session with daemons that run already.
    pub fn new(
        hosting: Hosting,
        cabling: Cabling,
        daemons: Vec<Daemon>,
        events: UnboundedReceiver<(usize, DaemonEvent)>,
    ) -> Session {
        let received = daemons.iter().map(|_| Received::nothing()).collect();
        let (restarting, bins, stretching, awake) = Default::default();
        Session { hosting, cabling, daemons, events, restarting, received, bins, stretching, awake }
    }

    /// Uses the session, then ends all daemons in any case.
    pub(crate) async fn use_and_end<T>(mut self, task: impl AsyncFnOnce(&mut Session) -> T) -> T {
        let result = task(&mut self).await;
        for daemon in &mut self.daemons {
            daemon.end().await;
        }
        result
    }

    /// Waits for the hello of every daemon, and sends `start` with the addresses of all processes to each. `tester`
    /// is the address of the last process, if this program plays it.
    pub async fn begin(
        &mut self,
        job: &Job<'_>,
        tester: Option<String>,
    ) -> Result<Begin, LaunchError> {
        // Changes of the clock must reach the daemons in time beside other work.
        timer::wake_promptly();
        let hellos = self.hellos().await?;
        let peers: Vec<String> =
            hellos.iter().map(|hello| hello.address.clone()).chain(tester).collect();
        let dilation = NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN);
        let origin_ns = monotonic_ns() + LEAD_NS + LEAD_EACH_NS * self.daemons.len() as u64;
        // Low bits of a nanosecond clock: two runs on one host never share them.
        let epoch = (origin_ns ^ (origin_ns >> 32)) as u32;
        let is_exact = job.run.pace == Pace::Exact;
        let secret = is_exact.then(random).transpose().or_host("no random octets")?;
        let secret = secret.map(Secret::new);
        for (daemon, received) in self.daemons.iter_mut().zip(&mut self.received) {
            let origin_ns = origin_ns.saturating_add_signed(daemon.clock_ahead_ns);
            let (peers, begin) = (peers.clone(), Instant::ZERO);
            let start = ToDaemon::Start { epoch, origin_ns, dilation, peers, begin, secret };
            let lost = LaunchError::died(daemon.name.as_str()).caused::<io::Error>();
            daemon.send(&start).await.map_err(lost)?;
            received.last = Stopwatch::start();
        }
        self.restarting.iter_mut().for_each(|restarting| restarting.has_begun = true);
        let overcommitted = driver::is_heavily_overcommitted(self.daemons.len());
        self.stretching =
            job.is_elastic().then(|| Stretching::new(dilation.get(), job.lab.plan.stop));
        self.awake = (job.keeps_awake() && !overcommitted).then(Awake::keep);
        Ok(Begin { clock: Clock::new(origin_ns, dilation), epoch, peers, hellos })
    }

    async fn hellos(&mut self) -> Result<Vec<Hello>, LaunchError> {
        let stopwatch = Stopwatch::start();
        while let Some(silent) = self.received.iter().position(|from| from.hello.is_none()) {
            self.next().await?;
            if stopwatch.seconds() > HELLO_WITHIN_S {
                let name = &self.daemons[silent].name;
                return Err(LaunchError::died(format!("{name} sent no hello")));
            }
        }
        let hellos: Vec<Hello> =
            self.received.iter_mut().filter_map(|from| from.hello.take()).collect();
        let version = hellos.first().map_or(0, |hello| hello.shim_version);
        match hellos.iter().find(|hello| hello.shim_version != version) {
            None => Ok(hellos),
            Some(other) => Err(LaunchError::config(format!(
                "daemons of different builds: shim versions {version} and {}",
                other.shim_version
            ))),
        }
    }

    /// Waits for the report of every daemon, until some time after the planned end of the run, and meanwhile stretches
    /// `clock` where the job is elastic. Returns also the processes that missed a heartbeat, or whose report is
    /// incomplete.
    pub async fn reports(
        &mut self,
        job: &Job<'_>,
        clock: &mut Clock,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Vec<Report>, Vec<usize>), LaunchError> {
        let is_exact = job.run.pace == Pace::Exact;
        while self.received.iter().any(|from| from.report.is_none()) {
            self.next().await?;
            for from in &mut self.received {
                from.missed |= from.report.is_none() && from.last.seconds() > SILENCE_MAX_S;
            }
            if is_exact {
                self.check_silence()?;
            } else {
                self.check_end(clock, job.lab.plan.stop)?;
                self.stretch(clock, job.lab.plan.stop).await;
            }
            progress(self.progress(clock));
            self.bins.clear();
        }
        if is_exact {
            let reports = self.received.iter_mut().filter_map(|from| from.report.take());
            return Ok((reports.map(|report| *report).collect(), Vec::new()));
        }
        let missed = |from: &Received| {
            from.missed || from.report.as_ref().is_some_and(|report| report.cut_short)
        };
        let missed =
            (0..self.received.len()).filter(|process| missed(&self.received[*process])).collect();
        let reports = self.received.iter_mut().filter_map(|from| from.report.take());
        Ok((reports.map(|report| *report).collect(), missed))
    }

    /// The run's end may be long ago, and a daemon has not reported.
    fn check_end(&self, clock: &Clock, stop: Instant) -> Result<(), LaunchError> {
        let end_ns = clock.wall_ns_of(stop);
        if monotonic_ns() < end_ns.saturating_add(REPORT_WITHIN_S * 1_000_000_000) {
            return Ok(());
        }
        let daemons = self.daemons.iter().zip(&self.received);
        let silent = daemons.filter(|(_, from)| from.report.is_none());
        let names: Vec<&str> = silent.map(|(daemon, _)| daemon.name.as_str()).collect();
        let names = names.join(", ");
        let reason = format!("no report from {names} {REPORT_WITHIN_S} s after the run's end");
        Err(LaunchError::died(reason))
    }

    /// The daemons that have said nothing for long, unless messages wait here.
    pub fn silent(&self) -> Vec<usize> {
        let silent = |process: &usize| {
            let from = &self.received[*process];
            !from.is_given_up && from.last.seconds() > SILENCE_MAX_S
        };
        (0..self.received.len())
            .filter(|process| self.events.is_empty() && silent(process))
            .collect()
    }

    /// A daemon that says nothing for long keeps all others from running on. Messages that wait here count.
    fn check_silence(&self) -> Result<(), LaunchError> {
        let is_silent =
            |from: &Received| from.report.is_none() && from.last.seconds() > EXACT_SILENCE_MAX_S;
        match self.received.iter().position(is_silent).filter(|_| self.events.is_empty()) {
            None => Ok(()),
            Some(process) => Err(LaunchError::died(format!(
                "{} has been silent for {EXACT_SILENCE_MAX_S:.0} s",
                self.daemons[process].name
            ))),
        }
    }

    fn progress(&self, clock: &Clock) -> Progress<'_> {
        let beats = || self.received.iter().filter_map(|from| from.beat.as_ref());
        // A worker that has not beaten yet is not late.
        let late = beats().map(|beat| beat.late_p99_thousandths).max().unwrap_or(Some(0));
        Progress {
            at: beats().map(|beat| beat.at).min().unwrap_or(Instant::ZERO),
            late_p99_frames: late.map(|late| late as f64 / 1_000.0),
            lost: beats().map(|beat| beat.lost).sum(),
            dilation: clock.pieces().last().map_or(1, |piece| piece.dilation.get()),
            bins: &self.bins,
        }
    }

    /// Stops all daemons now, and waits for their reports; none if one fails or is late.
    pub async fn stop(&mut self) -> Option<Vec<Report>> {
        for daemon in &mut self.daemons {
            // A daemon that has ended sends no report, either.
            let _ = daemon.send(&ToDaemon::Stop).await;
        }
        let stopwatch = Stopwatch::start();
        while self.received.iter().any(|from| from.report.is_none() && !from.is_given_up) {
            let fails = self.handle_message().await.is_err() || self.fallen().is_some();
            if fails || stopwatch.seconds() > STOPS_WITHIN_S {
                return None;
            }
        }
        let reports = self.received.iter_mut().filter_map(|from| from.report.take());
        Some(reports.map(|report| *report).collect())
    }

    /// Handles the next message, or returns after a short while.
    ///
    /// # Errors
    /// If the user interrupts, or a daemon fails.
    pub async fn next(&mut self) -> Result<(), LaunchError> {
        let handled = self.handle_message().await;
        if interrupt::requested() { Err(LaunchError::interrupted()) } else { handled }
    }

    async fn handle_message(&mut self) -> Result<(), LaunchError> {
        const PATIENCE: Duration = Duration::from_millis(100);
        let received = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let Ok(Some((process, event))) = received else { return Ok(()) };
        let (daemon, from) = (&mut self.daemons[process], &mut self.received[process]);
        from.last = Stopwatch::start();
        from.has_ended |= matches!(event, DaemonEvent::Ended);
        let how = match event {
            DaemonEvent::Message(ToLauncher::Fatal { message }) => format!(": {message}"),
            DaemonEvent::Message(message) => {
                self.keep(process, message);
                return Ok(());
            }
            DaemonEvent::Malformed(reason) => format!(" sent a malformed message: {reason}"),
            DaemonEvent::Ended if from.report.is_some() => return Ok(()),
            DaemonEvent::Ended => format!(" ended before its report: {}", daemon.wait().await),
        };
        let failure = format!("{}{how}", daemon.name);
        if self.replaces(process) {
            self.note_fallen(process, failure);
            return Ok(());
        }
        Err(LaunchError::died(failure))
    }

    fn keep(&mut self, process: usize, message: ToLauncher) {
        let from = &mut self.received[process];
        match message {
            ToLauncher::Hello(hello) => from.hello = Some(hello),
            ToLauncher::Beat(beat) => {
                self.stretching.iter_mut().for_each(|stretching| stretching.heard(&beat.recent));
                from.beat = Some(*beat);
            }
            ToLauncher::Bin(bin) => self.bins.push(*bin),
            ToLauncher::Report(report) => from.report = Some(report),
            ToLauncher::Fatal { .. } => {}
        }
    }
}
