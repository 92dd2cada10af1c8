//! A daemon in this process, with the launcher's side of the protocol at the other end of two pipes.

use super::protocol::{ToDaemon, ToLauncher, read_line, write_line};
use super::*;
use crate::token::Token;
use emulation::cable::Carrier;
use emulation::clock::{ClockChange, monotonic_ns};
use emulation::driver::Report;
use emulation::recorder::RecordingPlan;
use emulation::timer;
use emulation::wiring::Wiring;
use proto::units::{Duration, Instant};
use std::io::{BufRead, BufReader, Lines, PipeReader, PipeWriter, pipe};
use std::num::NonZeroU64;
use std::thread::JoinHandle;
use testbed::toy::{CHAIN, Log, Toy, arrival};

/// source – relay – sink
pub(crate) fn chain() -> Wiring {
    serde_json::from_str(CHAIN).expect("a wiring")
}

pub(crate) fn config(process: usize, processes: usize, hosts: Vec<usize>) -> DaemonConfig {
    let own = hosts.iter().filter(|host| **host == process).count();
    let text = "lab = \"chain\"\nseed = 1\ntechnology = \"ethernet\"\nprocess = 0\nprocesses = 1\n\
         hosts = []\ndevices = []\n[plan]\ntau = \"2 us\"\nstop = \"400 us\"\nbin = \"20 us\"\nedges = []\nmeasured = []\n\
         all_events = false\n[wiring]\nnodes = []\nlinks = []\n";
    let base: DaemonConfig = toml::from_str(text).expect("a minimal configuration");
    let devices = vec![toml::Table::new(); own];
    let plan = RecordingPlan { tau: Duration::from_us(2), ..base.plan.clone() };
    DaemonConfig { process, processes, hosts, devices, plan, wiring: chain(), ..base }
}

/// The launcher's ends of a daemon's pipes.
struct Daemon {
    commands: Option<PipeWriter>,
    replies: Lines<BufReader<PipeReader>>,
    thread: JoinHandle<Ending>,
}

impl Daemon {
    fn spawn(config: DaemonConfig, devices: Vec<Box<dyn Device>>) -> Daemon {
        let (commands_out, commands) = pipe().expect("a pipe");
        let (replies, replies_in) = pipe().expect("a pipe");
        let thread = std::thread::spawn(move || {
            serve(config, devices, Scope::Thread, BufReader::new(commands_out), replies_in)
        });
        Daemon { commands: Some(commands), replies: BufReader::new(replies).lines(), thread }
    }

    fn tell(&mut self, command: &ToDaemon) {
        let pipe = self.commands.as_ref().expect("still open");
        write_line(pipe, command).expect("the daemon listens");
    }

    fn hear(&mut self) -> ToLauncher {
        let line = self.replies.next().expect("the daemon speaks").expect("in UTF-8");
        read_line(&line).expect("in our language")
    }

    fn hello(&mut self) -> String {
        match self.hear() {
            ToLauncher::Hello(hello) => hello.address,
            other => panic!("{other:?} instead of a hello"),
        }
    }

    /// The report, and the number of beats before it.
    fn report(&mut self) -> (Report, usize) {
        let mut beats = 0;
        loop {
            match self.hear() {
                ToLauncher::Beat(_) => beats += 1,
                ToLauncher::Report(report) => return (*report, beats),
                other => panic!("{other:?} instead of a report"),
            }
        }
    }

    fn fatal(&mut self) -> String {
        loop {
            match self.hear() {
                ToLauncher::Fatal { message } => return message,
                ToLauncher::Beat(_) => {}
                other => panic!("{other:?} instead of giving up"),
            }
        }
    }

    fn ending(self) -> Ending {
        drop(self.commands);
        self.thread.join().expect("a daemon does not panic")
    }
}

fn start(peers: Vec<String>) -> ToDaemon {
    let dilation = NonZeroU64::new(1000).expect("not zero");
    let origin_ns = monotonic_ns() + 20_000_000;
    let begin = Instant::ZERO;
    ToDaemon::Start { epoch: 5, origin_ns, dilation, peers, begin, secret: None }
}

#[test]
fn two_daemons_run_a_plan_and_report() {
    let log = Log::default();
    let ends = vec![Toy::boxed(1, 50, &log), Toy::boxed(1, 0, &log)];
    let mut nicd = Daemon::spawn(config(0, 2, vec![0, 0, 1]), ends);
    let relay = vec![Toy::boxed(2, 0, &log)];
    let mut switchd = Daemon::spawn(config(1, 2, vec![0, 0, 1]), relay);
    let start = start(vec![nicd.hello(), switchd.hello()]);
    nicd.tell(&start);
    switchd.tell(&start);
    let (first, beats) = nicd.report();
    let (second, _) = switchd.report();
    assert_eq!((first.departures, second.departures), (50, 50));
    assert_eq!(first.stopped_at, Instant::from_ps(400_000_000));
    assert!(beats >= 2, "{beats} beats in 0.4 s of wall time");
    let arrivals: Vec<_> = log.lock().expect("no panic").iter().map(|entry| entry.1).collect();
    assert_eq!(arrivals, (0..50).map(arrival).collect::<Vec<_>>());
    assert_eq!(
        [nicd.ending(), switchd.ending()].map(|ending| matches!(ending, Ending::Reported)),
        [true; 2]
    );
}

#[test]
fn a_stretched_run_computes_the_same_and_takes_longer() {
    let log = Log::default();
    let ends = vec![Toy::boxed(1, 50, &log), Toy::boxed(1, 0, &log)];
    let mut nicd = Daemon::spawn(config(0, 2, vec![0, 0, 1]), ends);
    let mut switchd = Daemon::spawn(config(1, 2, vec![0, 0, 1]), vec![Toy::boxed(2, 0, &log)]);
    let start = start(vec![nicd.hello(), switchd.hello()]);
    let dilation = NonZeroU64::new(3000).expect("not zero");
    let at = Instant::from_ps(100_000_000);
    for daemon in [&mut nicd, &mut switchd] {
        daemon.tell(&start);
        daemon.tell(&ToDaemon::ChangeClock(ClockChange { at, dilation }));
    }
    let reports = [nicd.report().0, switchd.report().0];
    let arrivals: Vec<_> = log.lock().expect("no panic").iter().map(|entry| entry.1).collect();
    assert_eq!(arrivals, (0..50).map(arrival).collect::<Vec<_>>());
    for report in &reports {
        assert_eq!((report.changes.learned, report.changes.late), (1, 0));
        // 100 µs at 1000 and 300 µs at 3000.
        assert!(report.wall_ns >= 1_000_000_000, "{} ns", report.wall_ns);
        let dilations = report.timeline.iter().map(|bin| bin.dilation);
        assert!(dilations.eq(
            report.timeline.iter().map(|bin| { if bin.t_ps < at.as_ps() { 1000 } else { 3000 } })
        ));
    }
}

#[test]
fn a_process_that_learns_of_a_change_too_late_says_so() {
    let mut daemon = lone(vec![0; 3]);
    let peers = vec![daemon.hello()];
    daemon.tell(&start(peers));
    timer::wait(None, monotonic_ns() + 100_000_000);
    // The dilation stays as it is, so nothing else is late.
    let dilation = NonZeroU64::new(1000).expect("not zero");
    let change = ClockChange { at: Instant::from_ps(1_000_000), dilation };
    daemon.tell(&ToDaemon::ChangeClock(change));
    let (report, _) = daemon.report();
    assert_eq!((report.changes.learned, report.changes.late), (1, 0), "its cables have stamps");
    assert!(report.lateness.frames.max() > 10_000, "{}", report.lateness.frames.max());
}

#[test]
fn a_change_of_the_clock_before_the_start_is_an_error() {
    let mut daemon = lone(vec![0; 3]);
    daemon.hello();
    let change = ClockChange { at: Instant::ZERO, dilation: NonZeroU64::MIN };
    daemon.tell(&ToDaemon::ChangeClock(change));
    assert!(daemon.fatal().contains("before the start"));
}

#[test]
fn a_stop_ends_the_run_early_with_a_report() {
    let mut daemon = lone(vec![0; 3]);
    let peers = vec![daemon.hello()];
    daemon.tell(&start(peers));
    timer::wait(None, monotonic_ns() + 60_000_000);
    daemon.tell(&ToDaemon::Stop);
    let (report, _) = daemon.report();
    assert!(report.cut_short && report.stopped_at < Instant::from_ps(400_000_000));
}

fn lone(hosts: Vec<usize>) -> Daemon {
    let log = Log::default();
    let toys = [(1, 500), (1, 0), (2, 0)];
    let devices = toys.map(|(ports, to_send)| Toy::boxed(ports, to_send, &log));
    Daemon::spawn(config(0, 1, hosts), devices.into())
}

#[test]
fn a_daemon_ends_when_its_launcher_goes_away_before_or_after_the_start() {
    let mut waiting = lone(vec![0; 3]);
    waiting.hello();
    assert!(matches!(waiting.ending(), Ending::LauncherGone));
    let mut running = lone(vec![0; 3]);
    let peers = vec![running.hello()];
    running.tell(&start(peers));
    assert!(matches!(running.ending(), Ending::LauncherGone));
}

#[test]
fn what_a_daemon_cannot_do_it_says() {
    let mut wrong = lone(vec![0; 3]);
    wrong.hello();
    wrong.tell(&start(vec![]));
    assert_eq!(wrong.fatal(), "0 peers for 1 processes");
    let mut nonsense = lone(vec![0; 3]);
    nonsense.hello();
    write_line(nonsense.commands.as_ref().expect("open"), &"jump").expect("it listens");
    assert!(nonsense.fatal().contains("jump"));
    assert!(matches!(nonsense.ending(), Ending::Failed(_)));
}

#[test]
fn a_panic_in_the_data_plane_is_told_and_not_survived() {
    let log = Log::default();
    let devices = vec![Toy::boxed(1, 5, &log), Toy::boxed(1, 0, &log), Toy::fragile(&log)];
    let mut daemon = Daemon::spawn(config(0, 1, vec![0; 3]), devices);
    let peers = vec![daemon.hello()];
    daemon.tell(&start(peers));
    let message = daemon.fatal();
    assert!(message.contains("panicked: a fragile toy broke"), "{message}");
    assert!(matches!(daemon.ending(), Ending::Failed(_)));
}

#[test]
fn arguments_and_configurations_that_make_no_sense_are_refused() {
    let parse =
        |words: &[&str]| Arguments::parse("nicd", words.iter().map(|word| (*word).to_owned())).ok();
    let with_file = |file: &str| {
        let config = Some(file.to_owned());
        Some(Arguments { config, join: None, process: None, admin: None })
    };
    assert_eq!(parse(&["--config", "x"]), with_file("x"));
    assert_eq!(parse(&["--config=x"]), with_file("x"));
    for bad in [&["--config"][..], &[], &["--version"], &["--help"], &["--config", "x", "y"]] {
        assert_eq!(parse(bad), None, "{bad:?}");
    }
    let joining = |words: &[&str]| {
        let words = [&["--join", "h:1", "--process", "2"], words].concat();
        parse(&words).map(|parsed| (parsed.join, parsed.process, parsed.admin))
    };
    let at = Some(("nicd-0".to_owned(), 4701));
    let lab = Some("h:1".to_owned());
    assert_eq!(joining(&[]), Some((lab.clone(), Some(2), None)));
    assert_eq!(joining(&["--admin", "nicd-0:4701"]), Some((lab, Some(2), at)));
    for bad in
        [&["--admin"][..], &["--admin", "x"], &["--admin", ":9"], &["--admin", "x:y"], &["x"]]
    {
        assert!(joining(bad).is_none(), "{bad:?}");
    }
    assert_eq!(parse(&["--join", "h:1"]), None, "a daemon that joins needs its number");
    let tcp = TcpConfig { port: 9, name: Some("nicd-0".to_owned()), token: Token::new("secret") };
    let admin = Some(AdminConfig { socket: Some("s".into()), tcp: Some(tcp) });
    let good = DaemonConfig { admin, ..config(0, 2, vec![0, 0, 1]) };
    good.check().expect("it makes sense");
    let text = toml::to_string(&good).expect("it serialises");
    assert_eq!(toml::from_str::<DaemonConfig>(&text), Ok(good.clone()));
    let few = DaemonConfig { devices: vec![], ..good.clone() };
    assert!(with_sources(&few.check().expect_err("no devices")).contains("devices has 0"));
    let unix = DaemonConfig { carrier: Carrier::Unix, ..good.clone() };
    assert!(with_sources(&unix.check().expect_err("no directory")).contains("socket_dir"));
    let make = |_| Err("no".into());
    let other_kind = good.make_devices(NodeKind::Switch, &make).err().expect("NICs");
    assert_eq!(other_kind.to_string(), "source is not of this daemon's kind");
    let refused = good.make_devices(NodeKind::Nic, &make).err().expect("no");
    assert_eq!(with_sources(&refused), "source: no");
}
