//! Runs with daemons: started on this host, told what carries their frames, heard, ended.
//!
//! ```text
//!   start each daemon ─▶ hello from all ─▶ start to all ─▶ beats … ─▶ report from all ─▶ all gone
//! ```
//!
//! Whatever goes wrong on the way ends every daemon before this returns.

pub mod beside;
pub(super) mod configuration;
pub mod kept;

use super::placement::Hosting;
use super::processes::{Daemon, News};
use super::{Job, LaunchError, Outcome, Progress, interrupt};
use configuration::{describe, write_config, write_feed};
use daemon::PortInterface;
use daemon::protocol::{Hello, ToDaemon, ToLauncher};
use emulation::awake::Awake;
use emulation::cable::Carrier;
use emulation::cable::is_link_local;
use emulation::cable::reconcile::reconcile;
use emulation::clock::{Clock, Stopwatch, monotonic_ns};
use emulation::driver;
use emulation::driver::{Beat, Report, evidence};
use emulation::fidelity::judge;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::timer::Priority;
use emulation::wiring::LinkWiring;
use kept::Administered;
use proto::counters::DropReason;
use proto::frame::Frame;
use proto::units::Instant;
use results::run_directory::FidelityRow;
use results::run_directory::result::{Fidelity, OnCables};
use scenario::run::Cables;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long after the planned stop the last report may come: a report from a host with a single,
/// busy core takes its time.
const REPORT_WITHIN: Duration = Duration::from_secs(60);
/// A daemon that has not said hello by then never will.
const HELLO_WITHIN: Duration = Duration::from_secs(20);
/// A worker beats several times a second. A launcher beside real-time workers may itself be late to
/// read, so only a silence well beyond that is the daemon's.
const SILENCE_MAX_S: f64 = 3.0;
/// Between `start` and fabric zero, for daemons to make ready: a base, and a share each.
const LEAD_NS: u64 = 150_000_000;
const LEAD_EACH_NS: u64 = 4_000_000;

/// What joins the daemons of a run.
#[derive(Clone, Debug)]
pub struct Cabling {
    /// What kind of sockets.
    pub carrier: Carrier,
    /// With packet sockets: frames go as they are.
    pub bare: bool,
    /// With packet sockets: the interface of each port of the fabric that has a cable.
    pub interfaces: Vec<PortInterface>,
}

impl Cabling {
    /// Sockets on loopback, of the kind the scenario asks for.
    pub fn on_loopback(job: &Job<'_>) -> Cabling {
        Cabling { carrier: job.carrier, bare: false, interfaces: Vec::new() }
    }

    /// UDP, whatever the scenario asks for: across containers and machines.
    pub const fn by_udp() -> Cabling {
        Cabling { carrier: Carrier::Udp, bare: false, interfaces: Vec::new() }
    }

    /// The kind of its cables, as results name it.
    const fn name(&self) -> &'static str {
        match self.carrier {
            Carrier::Udp => "udp",
            Carrier::Unix => "unix",
            Carrier::Packet => "veth",
        }
    }
}

/// Runs a job with daemons that are joined by `cabling`.
///
/// # Errors
/// If a daemon dies, refuses its configuration, or somebody interrupts.
pub fn run(
    job: &Job<'_>,
    cabling: Cabling,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LaunchError::Host(error.to_string()))?;
    runtime.block_on(async {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let hosting = Hosting::new(&job.lab.fabric.wiring, job.placement, cores);
        let mut session = Session::open(job, hosting, cabling, &Special::default())?;
        let outcome = session.play(job, progress).await;
        for daemon in &mut session.daemons {
            daemon.end().await;
        }
        outcome
    })
}

/// What an ordinary run has none of.
#[derive(Clone, Debug, Default)]
struct Special {
    /// The last process is no daemon but played by this program, whose socket listens here.
    played_at: Option<String>,
    /// Octets of each daemon's receive buffer, in place of as many as the host grants.
    receive_buffer: Option<usize>,
    /// Variables of each daemon's environment, beside those of this program.
    environment: Vec<(String, String)>,
    /// Each daemon may be administered, if this is there.
    administered: Option<Administered>,
}

pub(super) struct Session {
    hosting: Hosting,
    cabling: Cabling,
    pub(super) daemons: Vec<Daemon>,
    news: UnboundedReceiver<(usize, News)>,
    /// By process, when it was last heard.
    heard: Vec<Stopwatch>,
    beats: Vec<Option<Beat>>,
    reported: Vec<bool>,
    missed: Vec<usize>,
    /// Bins that have ended since the last progress.
    bins: Vec<BinSnapshot>,
    /// From begin to end, if the job asks for it.
    awake: Option<Awake>,
}

impl Session {
    fn open(
        job: &Job<'_>,
        hosting: Hosting,
        cabling: Cabling,
        special: &Special,
    ) -> Result<Session, LaunchError> {
        let feed = write_feed(job)?;
        let (sender, news) = unbounded_channel();
        let count = hosting.kinds.len() - usize::from(special.played_at.is_some());
        let mut daemons = Vec::with_capacity(count);
        for (process, kind) in hosting.kinds.iter().enumerate().take(count) {
            let mut config = describe(job, &hosting, &cabling, process, feed.as_deref())?;
            config.receive_buffer = special.receive_buffer;
            let administered = special.administered.as_ref();
            config.admin = administered.map(|how| kept::admin(job, process, how));
            let file = write_config(job, &config)?;
            let daemon = Daemon::start(*kind, process, &file, &special.environment, sender.clone());
            daemons.push(daemon.map_err(|error| {
                LaunchError::Host(format!("cannot start process {process}: {error}"))
            })?);
        }
        Ok(Session::of(hosting, cabling, daemons, news))
    }

    /// A run with daemons that are there, and what they say.
    pub(super) fn of(
        hosting: Hosting,
        cabling: Cabling,
        daemons: Vec<Daemon>,
        news: UnboundedReceiver<(usize, News)>,
    ) -> Session {
        let count = daemons.len();
        Session {
            hosting,
            cabling,
            daemons,
            news,
            heard: vec![Stopwatch::start(); count],
            beats: vec![None; count],
            reported: vec![false; count],
            missed: Vec::new(),
            bins: Vec::new(),
            awake: None,
        }
    }

    /// From the hello of all to their reports.
    pub(super) async fn play(
        &mut self,
        job: &Job<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, LaunchError> {
        let hellos = self.hellos().await?;
        let peers = hellos.into_iter().map(|hello| hello.address).collect();
        let begin = self.begin(job, peers).await?;
        let planned = begin.clock.wall(job.lab.plan.stop.since(Instant::ZERO));
        let reports = self.reports_in_time(planned, progress).await?;
        let wall_ns = monotonic_ns().saturating_sub(begin.clock.origin_ns());
        Ok(self.outcome(job, begin.clock.dilation(), reports, wall_ns as f64 / 1e9))
    }

    /// Tells every daemon to start, with the addresses of all processes.
    async fn begin(&mut self, job: &Job<'_>, peers: Vec<String>) -> Result<Begin, LaunchError> {
        let dilation = NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN);
        let origin_ns = monotonic_ns() + LEAD_NS + LEAD_EACH_NS * self.daemons.len() as u64;
        // Low bits of a nanosecond clock: two runs on one host never share them.
        let epoch = (origin_ns ^ (origin_ns >> 32)) as u32;
        for daemon in &mut self.daemons {
            let origin_ns = origin_ns.saturating_add_signed(daemon.clock_ahead_ns);
            let start = ToDaemon::Start { epoch, origin_ns, dilation, peers: peers.clone() };
            let told = daemon.tell(&start).await;
            told.map_err(|error| LaunchError::Died(format!("{}: {error}", daemon.name)))?;
        }
        self.heard.fill(Stopwatch::start());
        let keeps = job.awake && !driver::is_heavily_overcommitted(self.daemons.len());
        self.awake = keeps.then(Awake::keep);
        Ok(Begin { clock: Clock::new(origin_ns, dilation), epoch })
    }

    /// Waits until every daemon has introduced itself.
    async fn hellos(&mut self) -> Result<Vec<Hello>, LaunchError> {
        let mut hellos: Vec<Option<Hello>> = vec![None; self.daemons.len()];
        let stopwatch = Stopwatch::start();
        while hellos.iter().any(Option::is_none) {
            match self.next().await? {
                Some((process, ToLauncher::Hello(hello))) => hellos[process] = Some(hello),
                Some(_) => {}
                None if stopwatch.seconds() > HELLO_WITHIN.as_secs_f64() => {
                    let silent = hellos.iter().position(Option::is_none).unwrap_or(0);
                    let name = &self.daemons[silent].name;
                    return Err(LaunchError::Died(format!("{name} never said hello")));
                }
                None => {}
            }
        }
        let hellos: Vec<Hello> = hellos.into_iter().flatten().collect();
        let version = hellos.first().map_or(0, |hello| hello.shim_version);
        if let Some(other) = hellos.iter().find(|hello| hello.shim_version != version) {
            return Err(LaunchError::Config(format!(
                "daemons of different builds: shim version {version} beside {}",
                other.shim_version
            )));
        }
        Ok(hellos)
    }

    /// Waits until every daemon has reported, but not for ever: a run of `planned` wall time is over
    /// some time after that, or never.
    async fn reports_in_time(
        &mut self,
        planned: Duration,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Report>, LaunchError> {
        let reports = tokio::time::timeout(planned + REPORT_WITHIN, self.reports(progress)).await;
        reports.unwrap_or_else(|_| {
            let daemons = self.daemons.iter().zip(&self.reported);
            let silent = daemons.filter(|(_, reported)| !**reported);
            let names: Vec<&str> = silent.map(|(daemon, _)| daemon.name.as_str()).collect();
            let (names, within) = (names.join(", "), REPORT_WITHIN.as_secs());
            Err(LaunchError::Died(format!("no report from {names} {within} s after the run's end")))
        })
    }

    /// Waits until every daemon has reported.
    async fn reports(
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

    /// The next message, or nothing after a short while.
    async fn next(&mut self) -> Result<Option<(usize, ToLauncher)>, LaunchError> {
        const PATIENCE: Duration = Duration::from_millis(100);
        let received = tokio::time::timeout(PATIENCE, self.news.recv()).await;
        if interrupt::requested() {
            return Err(LaunchError::Interrupted);
        }
        let Ok(Some((process, news))) = received else { return Ok(None) };
        self.heard[process] = Stopwatch::start();
        let daemon = &mut self.daemons[process];
        match news {
            News::Message(message) => match *message {
                ToLauncher::Fatal { message } => {
                    Err(LaunchError::Died(format!("{}: {message}", daemon.name)))
                }
                message => Ok(Some((process, message))),
            },
            News::Nonsense(reason) => {
                Err(LaunchError::Died(format!("{} speaks another language: {reason}", daemon.name)))
            }
            News::Ended if self.reported[process] => Ok(None),
            News::Ended => {
                let how = daemon.wait().await;
                Err(LaunchError::Died(format!("{} ended before its report: {how}", daemon.name)))
            }
        }
    }

    fn outcome(
        &self,
        job: &Job<'_>,
        dilation: NonZeroU64,
        reports: Vec<Report>,
        wall_seconds: f64,
    ) -> Outcome {
        let cut_short = reports.iter().filter(|report| report.cut_short);
        let mut missed = self.missed.clone();
        missed.extend(cut_short.map(|report| report.process));
        let judged = judge(&evidence(&reports, missed), dilation);
        Outcome {
            fidelity: Fidelity {
                ok: judged.ok,
                lateness_p99_frames: judged.lateness_p99_frames,
                transport_lost: judged.transport_lost,
                suggested_dilation: Some(judged.suggested_dilation),
            },
            reasons: judged.reasons,
            timeline: timeline(&reports),
            on_cables: on_cables(job, &reports),
            cables: self.cables(job),
            dilation: Some(dilation.get()),
            frame_hops: reports.iter().map(|report| report.departures).sum(),
            wall_seconds,
            cpu_seconds: reports.iter().map(|report| report.cpu_ns as f64 / 1e9).sum(),
            refused: refused(&reports),
            scheduling: self.scheduling(&reports),
            recordings: reports.into_iter().map(|report| report.recording).collect(),
        }
    }

    /// Links by kind of cable.
    fn cables(&self, job: &Job<'_>) -> BTreeMap<String, u64> {
        let hosts = &self.hosting.hosts;
        let links = &job.lab.fabric.wiring.links;
        let inside = |link: &&LinkWiring| hosts[link.a.node] == hosts[link.b.node];
        let memory = match job.cables {
            Cables::Local => links.iter().filter(inside).count() as u64,
            Cables::Socket => 0,
        };
        let mut cables = BTreeMap::from([
            ("memory".to_owned(), memory),
            (self.cabling.name().to_owned(), links.len() as u64 - memory),
        ]);
        let attached = job.lab.fabric.wiring.attached.len() as u64;
        if attached > 0 {
            cables.insert("attached".to_owned(), attached);
        }
        cables
    }

    /// How workers were scheduled, in words.
    fn scheduling(&self, reports: &[Report]) -> String {
        let count = |priority| reports.iter().filter(|report| report.priority == priority).count();
        let (fifo, workers) = (count(Priority::Fifo), reports.len());
        let awake = match self.awake.as_ref().map_or(0, Awake::cores) {
            0 => String::new(),
            cores => format!(", {cores} cores kept awake"),
        };
        format!("{fifo} of {workers} workers with real-time priority{awake}")
    }
}

/// When a run begins, and what identifies it on the cables.
#[derive(Clone, Copy, Debug)]
struct Begin {
    clock: Clock,
    epoch: u32,
}

fn timeline(reports: &[Report]) -> Vec<FidelityRow> {
    let rows = reports.iter().flat_map(|report| {
        report.timeline.iter().map(|bin| FidelityRow {
            t_ps: bin.t_ps,
            dt_ps: bin.dt_ps,
            worker: report.process as u32,
            wall_ns: bin.wall_ns,
            departures: bin.departures,
            late_ps_p50: bin.late_ps_p50,
            late_ps_p99: bin.late_ps_p99,
            late_ps_max: bin.late_ps_max,
            lost: bin.lost,
            cpu_permille: bin.cpu_permille,
        })
    });
    let mut rows: Vec<FidelityRow> = rows.collect();
    rows.sort_by_key(|row| (row.t_ps, row.worker));
    rows
}

fn on_cables(job: &Job<'_>, reports: &[Report]) -> OnCables {
    let mut cables = OnCables::default();
    let travels = |frame: &Frame| !is_link_local(frame.kind, &frame.octets);
    let fed = job.injections.iter().filter(|(.., frame)| travels(frame));
    cables.duplicated += fed.count() as u64;
    for report in reports {
        let flying = report.in_flight.on_the_line.plus(report.in_flight.on_cables);
        cables.under_way += flying.end_to_end;
        cables.duplicated += report.injected.duplicated.end_to_end;
        cables.dropped.add(DropReason::Injected, report.injected.lost.end_to_end);
    }
    let lost = reconcile(reports.iter().map(|report| &report.exchange)).lost;
    cables.dropped.add(DropReason::Transport, lost.end_to_end);
    for outside in reports.iter().filter_map(|report| report.exchange.outside) {
        cables.duplicated += outside.received.end_to_end;
        cables.handed_over += outside.sent.end_to_end;
        cables.dropped.add(DropReason::Transport, outside.unsent.end_to_end);
    }
    cables
}

/// Refused datagrams and records by reason, over all processes.
fn refused(reports: &[Report]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for report in reports {
        let rejected = &report.exchange.rejected;
        let counts = [
            ("foreign", rejected.foreign),
            ("magic", rejected.magic),
            ("version", rejected.version),
            ("kind", rejected.kind),
            ("epoch", rejected.epoch),
            ("link", rejected.link),
            ("truncated", rejected.truncated),
            ("oversize", rejected.oversize),
            ("trailing", rejected.trailing),
            ("unfinished", rejected.unfinished),
            ("socket_overflow", report.exchange.overflows),
        ];
        for (reason, count) in counts {
            *sums.entry(reason.to_owned()).or_insert(0) += count;
        }
    }
    sums
}
