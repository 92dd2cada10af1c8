//! Labs in containers: Compose on this host, one node of a swarm.
//!
//! The tests need a Docker engine and the image of docker/build.sh; ./test.sh provides both. Without
//! them the tests are skipped.

use super::laboratory::{Ended, Running, eventually, in_repository, pause, pausebed};
use super::ratios::expected_ratios;
use super::{assert_passes_or_host_is_busy, exact, repeated, small};
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serializes tests that compare all objects of the engine. In the quick suite they run beside other live runs: they judge
/// nothing by the wall clock, and mostly wait for the engine.
static ENGINE: Mutex<()> = Mutex::new(());

/// Blocks all other tests with containers until the guard is dropped.
pub(super) fn alone_at_engine() -> MutexGuard<'static, ()> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output of `docker`, or its standard error if it fails.
pub(super) fn docker(words: &[&str]) -> Result<String, String> {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

pub(super) fn is_there() -> bool {
    let image = format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    match docker(&["image", "inspect", "--format", "{{.Id}}", &image]) {
        Ok(_) => true,
        Err(reason) => {
            skip::because!("no Docker engine or no image (docker/build.sh builds it): {reason}");
            false
        }
    }
}

/// Every engine object that a lab could leave behind.
pub(super) fn census() -> Vec<String> {
    let lists = [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]];
    let list =
        |words: &&[&str]| docker(&[words, &["--quiet"][..]].concat()).expect("the engine answers");
    let text: Vec<String> = lists.iter().map(list).collect();
    let mut objects: Vec<String> =
        text.iter().flat_map(|list| list.lines()).map(str::to_owned).collect();
    objects.sort();
    objects
}

/// Containers of labs that are running.
fn running() -> usize {
    docker(&["ps", "--quiet", "--filter", "label=pausebed.lab"])
        .expect("the engine answers")
        .lines()
        .count()
}

/// Runs the scenario in containers, up to three times, and on the virtual clock; ratios agree within `within`.
fn agrees_with_its_twin(file: &Path, words: &[&str], within: f64, seconds: f64) -> Ended {
    let words = [&["--backend", "compose"], words].concat();
    let ended = repeated(|| Running::start(file, &words).end(seconds));
    assert_passes_or_host_is_busy(&ended);
    assert_eq!(ended.json()["backend"], "compose");
    let twin = Running::start(file, &["--backend", "virtual"]).end(120.0);
    let (names, _) = expected_ratios(file);
    for name in names {
        let path = format!("/measures/{name}");
        let (live, twin) = (ended.number(&path), twin.number(&path));
        let busy = ended.verdict() == "inconclusive";
        assert!(busy || (live - twin).abs() <= within, "{name}: {live} beside {twin}");
    }
    ended
}

#[test]
fn an_exact_run_in_containers_equals_its_twin_and_leaves_none() {
    if !is_there() {
        return;
    }
    let _alone = alone_at_engine();
    let before = census();
    let words = ["--backend", "compose", "--pace", "exact"];
    let ended = exact::assert_equals(&exact::twin(&small(), &[]), &small(), &words);
    assert_eq!(ended.json()["backend"], "compose");
    assert_eq!(census(), before);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn runs_in_containers_follow_the_wall_clock() {
    if !is_there() {
        return;
    }
    let _alone = alone_at_engine();
    let before = census();
    // A dilation that is given is never stretched. The start of containers is a load that would stretch it fourfold.
    let file = in_repository("topo/scenarios/pfister/eight-ib-cca.toml");
    agrees_with_its_twin(&file, &["--dilate", "2000"], 0.05, 120.0);
    for scenario in ["dcqcn/incast3-dcqcn", "zhb/case5-qcn"] {
        let file = in_repository(&format!("topo/scenarios/{scenario}.toml"));
        agrees_with_its_twin(&file, &["--set", "run.placement=device"], 0.05, 900.0);
    }
    assert_eq!(census(), before);
}

#[test]
fn containers_end_with_their_launcher_and_the_next_run_removes_leftovers() {
    if !is_there() {
        return;
    }
    let _alone = alone_at_engine();
    let before = census();
    let long = ["--backend", "compose", "--set", "run.duration=\"20000 mtu\""];
    let start = || {
        let lab = Running::start(&small(), &long);
        assert!(eventually(60.0, || lab.talk().contains(" of 20000 τ")), "{}", lab.talk());
        lab
    };
    let lab = start();
    lab.signal(Signal::SIGINT);
    let ended = lab.end(60.0);
    assert_eq!(ended.code, Some(130), "{}", ended.talk);
    assert_eq!(census(), before, "after Ctrl-C");
    let lab = start();
    lab.signal(Signal::SIGKILL);
    lab.end(10.0);
    assert!(eventually(20.0, || running() == 0), "the daemons end with their launcher");
    assert_ne!(census(), before, "the killed launcher leaves its containers");
    // Kill the launcher while containers are created.
    let lab = Running::start(&small(), &long);
    pause(1.5);
    lab.signal(Signal::SIGKILL);
    lab.end(10.0);
    // The launcher's last child command ends by itself.
    pause(5.0);
    let ended = Running::start(&small(), &["--backend", "compose"]).end(120.0);
    assert!(ended.run.is_some(), "{}", ended.talk);
    assert_eq!(census(), before, "the next run removed all leftovers");
}

/// A swarm of this engine alone, with networks of its own.
struct Swarm {
    census: Vec<String>,
}

impl Swarm {
    /// `None` without an engine, or if it is part of a swarm.
    fn start() -> Option<Swarm> {
        let inactive = docker(&["info", "--format", "{{.Swarm.LocalNodeState}}"]);
        if inactive.as_deref() != Ok("inactive") {
            skip::because!("this engine is part of a swarm: {inactive:?}");
            return None;
        }
        let swarm = Swarm { census: census() };
        let bridge = ["network", "create", "--driver", "bridge", "--subnet", "198.19.251.0/24"];
        let bridge =
            [&bridge[..], &["--opt", "com.docker.network.bridge.enable_icc=false"]].concat();
        docker(&[&bridge[..], &["docker_gwbridge"]].concat()).expect("a bridge");
        let pool =
            ["--default-addr-pool", "198.19.252.0/22", "--default-addr-pool-mask-length", "24"];
        let init = ["swarm", "init", "--advertise-addr", "127.0.0.1"];
        docker(&[&init[..], &pool].concat()).expect("a swarm of one");
        Some(swarm)
    }

    /// Runs the stack of `file` until its launcher has said `last`. Returns what it said.
    fn run(&self, file: &Path, words: &[&str], last: &str) -> String {
        let mut command = Command::new(pausebed());
        command.args(["compose", "--swarm"]).args(words).arg(file);
        let output = command.output().expect("the program is built");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stack.yaml");
        std::fs::write(&path, output.stdout).expect("a file");
        let path = path.to_string_lossy();
        let deployed = docker(&["stack", "deploy", "--compose-file", &path, "pausebed-test"]);
        let mut said = String::new();
        let ended = deployed.is_ok()
            && eventually(240.0, || {
                pause(2.0);
                said = docker(&["service", "logs", "--raw", "pausebed-test_launcher"])
                    .unwrap_or_default();
                said.contains(last)
            });
        let removed = docker(&["stack", "rm", "pausebed-test"]);
        assert!(ended && removed.is_ok(), "{deployed:?} {removed:?}\n{said}");
        said
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        let left = docker(&["swarm", "leave", "--force"]);
        // The engine removes tasks and networks of a swarm asynchronously.
        let gone = eventually(60.0, || {
            // The network stays while a task uses it.
            let _ = docker(&["network", "rm", "docker_gwbridge"]);
            census() == self.census
        });
        let is_clean = left.is_ok() && gone;
        assert!(is_clean || std::thread::panicking(), "{left:?} {:?}", census());
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn one_node_of_a_swarm_runs_the_stack_to_a_verdict() {
    if !is_there() {
        return;
    }
    let _alone = alone_at_engine();
    let Some(swarm) = Swarm::start() else { return };
    let file = in_repository("topo/scenarios/pfister/eight-ib-cca.toml");
    let said = swarm.run(&file, &["--set", "run.dilate=2000"], " of 6 expectations");
    assert!(said.contains("PASS") || said.contains("INCONCLUSIVE"), "{said}");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn an_exact_run_in_a_swarm_equals_its_twin() {
    if !is_there() {
        return;
    }
    let _alone = alone_at_engine();
    let Some(swarm) = Swarm::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_string_lossy();
    let file = in_repository("topo/scenarios/pfister/eight-ib-cca.toml");
    let words = ["--set", "run.pace=exact", "--out", &out];
    let said = swarm.run(&file, &words, "report ");
    exact::assert_is_twin(&exact::twin(&file, &[]), folder.path(), &said);
}
