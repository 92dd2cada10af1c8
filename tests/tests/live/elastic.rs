//! Elastic pace: a run that falls behind stretches its clock. Slow: as an ordinary user, beside busy loops and beside a build, runs stretch their clocks and stay
//! conclusive; and no run under random load passes with measures that are out of band.
//!
//! A campaign goes on with `./test.sh --slow elastic` ([`pausebed_tests::campaign`]). A part is named by the load and
//! the run, then verdict, wall seconds, lateness, the pieces of the clock, and stalls of the host. The directory of a run that is
//! inconclusive beside other work is kept: its fidelity.csv shows when departures were late.

use super::laboratory::{Busy, Ended, Running, alone, in_repository, pause, pausebed};
use super::ratios::expected_ratios;
use super::stalls::Stalls;
use emulation::clock::monotonic_ns;
use emulation::timer;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, geteuid};
use pausebed_tests::campaign::Campaign;
use proto::random::Random;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Runs of the short scenario beside each load.
const SHORT_RUNS: u64 = 10;
/// The wall time of a run over that of a quiet one.
const TIMES_QUIET_MAX: f64 = 20.0;
/// Runs under random load.
const RANDOM_RUNS: u64 = 200;
/// Wall time after which a run hangs.
const SECONDS_MAX: f64 = 3_600.0;

/// A sixth of the demo's fabric time.
fn short() -> PathBuf {
    in_repository("tests/tests/live/elastic.toml")
}

fn demo(scheme: &str) -> PathBuf {
    in_repository(&format!("topo/scenarios/pfister/demo-{scheme}.toml"))
}

/// What makes the short scenario shorter again: 2 s on a quiet host, so that 200 runs fit into an hour.
const SHORTER: [&str; 10] = [
    "--set",
    "run.duration=\"300 mtu\"",
    "--set",
    "measure.hot_port.from=\"150 mtu\"",
    "--set",
    "measure.hot_port.to=\"300 mtu\"",
    "--set",
    "measure.ports_mean.from=\"150 mtu\"",
    "--set",
    "measure.ports_mean.to=\"300 mtu\"",
];

/// A run over UDP without any right of root, so without real-time priority and as nice as others.
fn as_ordinary_user(file: &Path, seed: u64, words: &[&str]) -> Ended {
    let front: &[&str] = match geteuid().is_root() {
        true => &["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
        false => &[],
    };
    let seed = seed.to_string();
    let words = [&["--backend", "udp", "--seed", &seed, "--no-report"], words].concat();
    Running::start_by(front, file, &words).end(SECONDS_MAX)
}

/// Verdict, wall seconds, lateness and the pieces of the clock in a line.
fn described(ended: &Ended) -> String {
    let pieces = ended.json()["pieces"].as_array().cloned().unwrap_or_default();
    let tau_ps = ended.number("/tau_ps");
    let piece = |piece: &Value| {
        let from = piece["from_ps"].as_f64().unwrap_or(f64::NAN) / tau_ps;
        format!("{} from {from:.0} τ", piece["dilation"])
    };
    let dilations: Vec<String> = pieces.iter().map(piece).collect();
    let reasons = ended.data.lines().filter_map(|line| line.trim().strip_prefix("◐ "));
    format!(
        "{} {:.1} s, late p99 {:.3}, dilation {} {}",
        ended.verdict(),
        ended.number("/host/wall_seconds"),
        ended.number("/fidelity/lateness_p99_frames"),
        if dilations.is_empty() {
            ended.json()["dilation"].to_string()
        } else {
            dilations.join(", ")
        },
        reasons.collect::<Vec<_>>().join("; ")
    )
}

/// A run beside a load, described; see the first lines of this file.
fn watched(load: &str, file: &Path, seed: u64) -> String {
    let _load = Load::start(load);
    let stalls = Stalls::watch();
    let ended = as_ordinary_user(file, seed, &[]);
    let line = format!("{}; {}", described(&ended), stalls.end());
    match ended.verdict() {
        "inconclusive" => format!("{line}; kept in {}", ended.keep().display()),
        _ => line,
    }
}

/// The wall seconds of a line of [`described`].
fn seconds(line: &str) -> f64 {
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("wall seconds")
}

/// A measure that differs from that of the twin by more than live twins may, if there is one.
fn out_of_band(file: &Path, ended: &Ended, seed: u64, words: &[&str]) -> Option<String> {
    let seed = seed.to_string();
    let words = [&["--backend", "virtual", "--seed", &seed], words].concat();
    let twin = Running::start(file, &words).end(300.0);
    let (ratios, tolerance) = expected_ratios(file);
    ratios.iter().find_map(|measure| {
        let [real, ideal] = [ended, &twin].map(|run| run.number(&format!("/measures/{measure}")));
        ((real - ideal).abs() > tolerance)
            .then(|| format!("{measure} is {real}, its twin's {ideal}"))
    })
}

fn busy(loops: usize) -> Vec<Busy> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (0..loops).map(|n| Busy::on(&(n % cores).to_string(), 0)).collect()
}

/// A build of this project that begins anew when it ends, as long as this process lives.
struct Build {
    child: Child,
    _target: TempDir,
}

impl Build {
    fn start() -> Build {
        let target = tempfile::tempdir().expect("a folder");
        let line = "while kill -0 \"$2\"; do rm -rf \"$1\"/*; cargo build --offline -p launch --target-dir \"$1\"; done";
        let mut command = Command::new("sh");
        command.args(["-c", line, "sh"]).arg(target.path()).arg(std::process::id().to_string());
        command.current_dir(in_repository("."));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Build { child: command.spawn().expect("a shell"), _target: target }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL).expect("it runs");
        self.child.wait().expect("a child of the test");
    }
}

/// What else the host does.
enum Load {
    Nothing,
    Loops { _held: Vec<Busy> },
    Building { _held: Build },
}

impl Load {
    const NAMES: [&str; 3] = ["as an ordinary user", "beside a busy loop a core", "beside a build"];

    fn start(name: &str) -> Load {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match name {
            "beside a busy loop a core" => Load::Loops { _held: busy(cores) },
            "beside a build" => Load::Building { _held: Build::start() },
            _ => Load::Nothing,
        }
    }
}

/// A small run whose switches stand still for a quarter of its first second, again and again.
fn hampered(words: &[&str]) -> Ended {
    let file = in_repository("tests/tests/live/scenario.toml");
    let words =
        [&["--set", "run.duration=\"300 mtu\"", "--set", "run.realtime=false"], words].concat();
    let running = Running::start(&file, &words);
    let daemons = running.daemons(2);
    let switches = daemons.iter().find(|daemon| daemon.is_switchd()).expect("one hosts switches");
    let switches = Pid::from_raw(switches.process as i32);
    for _ in 0..25 {
        // An error means that the run has ended.
        let _ = kill(switches, Signal::SIGSTOP);
        pause(0.012);
        let _ = kill(switches, Signal::SIGCONT);
        pause(0.036);
    }
    running.end(60.0)
}

#[test]
fn a_run_that_falls_behind_stretches_its_clock_and_says_so() {
    let _alone = alone();
    let ended = hampered(&["--dilate", "auto"]);
    let pieces =
        ended.json()["pieces"].as_array().unwrap_or_else(|| panic!("{}{}", ended.data, ended.talk));
    let dilations: Vec<u64> =
        pieces.iter().map(|piece| piece["dilation"].as_u64().expect("a number")).collect();
    assert!(dilations[1] * 2 >= dilations[0] * 3, "{dilations:?}");
    assert_eq!(ended.json()["dilation"], dilations[0]);
    assert!(ended.data.contains("  stretched  the host fell behind: "), "{}", ended.data);
    assert!(ended.talk.contains("the host falls behind"), "{}", ended.talk);
    let bins = std::fs::read_to_string(ended.out().join("fidelity.csv")).expect("it is written");
    let of_bins = |by: u64| bins.lines().any(|line| line.ends_with(&format!(",{by}")));
    assert!(dilations[..2].iter().all(|by| of_bins(*by)), "{dilations:?}:\n{bins}");
    let page = std::fs::read_to_string(ended.out().join("report.html")).expect("it is written");
    assert!(page.contains("clock stretched"), "a lane of the report");
}

#[test]
fn a_dilation_that_is_given_is_never_changed() {
    let _alone = alone();
    let ended = hampered(&["--dilate", "965"]);
    assert_eq!(ended.json().get("pieces"), None);
    assert_eq!((ended.json()["dilation"].as_u64(), ended.verdict()), (Some(965), "inconclusive"));
    assert!(
        ended.data.contains("again with --pace exact, which needs no quiet host"),
        "{}",
        ended.data
    );
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn runs_beside_other_work_are_conclusive() {
    let _alone = alone();
    let mut campaign = Campaign::open("elastic");
    let mut wrong = Vec::new();
    let mut judge = |campaign: &mut Campaign, load: &str, what: &str, file: &Path, seeds: u64| {
        let quiet =
            campaign.part(&format!("quiet, {what}"), || described(&as_ordinary_user(file, 1, &[])));
        for seed in 1..=seeds {
            let part = format!("{load}, {what} {seed}");
            let line = campaign.part(&part, || watched(load, file, seed));
            let is_slow = seconds(&line) > TIMES_QUIET_MAX * seconds(&quiet);
            if line.starts_with("inconclusive") || is_slow {
                wrong.push(format!("{part}: {line}; quiet: {quiet}"));
            }
        }
    };
    for load in Load::NAMES {
        judge(&mut campaign, load, "short", &short(), SHORT_RUNS);
        judge(&mut campaign, load, "demo-none", &demo("none"), 1);
        judge(&mut campaign, load, "demo-ib-cca", &demo("ib-cca"), 1);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    campaign.end();
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn beside_sixteen_busy_loops_a_run_is_inconclusive_or_takes_a_known_multiple() {
    let _alone = alone();
    let load = busy(16);
    let ended = as_ordinary_user(&short(), 1, &[]);
    drop(load);
    println!("{}", described(&ended));
    let estimate = ended.number("/fabric_seconds") * ended.number("/dilation");
    // The clock is stretched 16 times at most, and starting takes a moment.
    assert!(ended.number("/host/wall_seconds") <= 16.0 * estimate + 5.0, "{}", ended.data);
    if ended.verdict() == "inconclusive" {
        assert!(ended.data.contains("again with --pace exact"), "{}", ended.data);
    } else {
        assert_eq!(out_of_band(&short(), &ended, 1, &[]), None, "{}", ended.data);
    }
}

/// Busy loops that come and go, as the seed says, until it is dropped: 0 to 4 at a time, at most as many as the seed allows.
struct RandomLoad {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RandomLoad {
    fn start(seed: u64) -> RandomLoad {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut random = Random::stream(seed, "host", "load");
            let most = random.below(5);
            while !over.load(Ordering::Relaxed) {
                let _load = busy(random.below(most + 1) as usize);
                let until_ns = monotonic_ns() + 50_000_000 + random.below(1_000_000_000);
                while monotonic_ns() < until_ns && !over.load(Ordering::Relaxed) {
                    timer::wait(None, until_ns.min(monotonic_ns() + 50_000_000));
                }
            }
        });
        RandomLoad { is_over, thread: Some(thread) }
    }
}

impl Drop for RandomLoad {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn no_elastic_run_under_random_load_passes_out_of_band() {
    let _alone = alone();
    let mut campaign = Campaign::open("elastic-random");
    assert!(pausebed().is_file());
    let mut wrong = Vec::new();
    let mut conclusive = 0;
    for seed in 1..=RANDOM_RUNS {
        let part = format!("seed {seed}");
        let line = campaign.part(&part, || {
            let load = RandomLoad::start(seed);
            let ended = as_ordinary_user(&short(), seed, &SHORTER);
            drop(load);
            let band = match ended.verdict() {
                "inconclusive" => None,
                _ => out_of_band(&short(), &ended, seed, &SHORTER),
            };
            let told = band.map_or(String::new(), |band| format!(", OUT OF BAND: {band}"));
            described(&ended) + &told
        });
        conclusive += u64::from(!line.starts_with("inconclusive"));
        if line.contains("OUT OF BAND") {
            wrong.push(format!("{part}: {line}"));
        }
    }
    campaign.end();
    println!("{conclusive} of {RANDOM_RUNS} runs were conclusive");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
