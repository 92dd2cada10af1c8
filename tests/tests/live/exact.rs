//! Runs with exact pace: separate processes and real sockets, and a run directory that equals the virtual clock's.
//!
//! The slow campaigns take hours on two cores: `./test.sh --slow exact` goes on where it was
//! stopped ([`pausebed_tests::campaign`]).

use super::containers::{self, docker};
use super::laboratory::{Ended, Running, alone, eventually, in_repository, pause, pausebed};
use super::path::LossyPath;
use super::{Busy, small};
use emulation::cable::namespace::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pausebed_tests::campaign::Campaign;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words of a run with exact pace on loopback.
const EXACT: [&str; 4] = ["--backend", "udp", "--pace", "exact"];

fn ethernet() -> PathBuf {
    in_repository("tests/tests/live/ethernet.toml")
}

fn scenario(name: &str) -> PathBuf {
    in_repository(&format!("topo/scenarios/{name}.toml"))
}

pub(super) fn twin(file: &Path, words: &[&str]) -> Ended {
    let twin = Running::start(file, &[&["--backend", "virtual"], words].concat()).end(1_800.0);
    assert!(matches!(twin.code, Some(0 | 1)), "{}", twin.talk);
    twin
}

/// Exit code and standard output of `pausebed compare A B --exact`.
fn compared(a: &Ended, b: &Ended) -> (Option<i32>, String) {
    compare(&a.out(), &b.out())
}

fn compare(a: &Path, b: &Path) -> (Option<i32>, String) {
    let mut compare = Command::new(pausebed());
    compare.arg("compare").args([a, b]).arg("--exact");
    let output = compare.output().expect("the program is built");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a scenario with exact pace; its run directory must be that of `twin`.
pub(super) fn assert_equals(twin: &Ended, file: &Path, words: &[&str]) -> Ended {
    let exact = Running::start(file, words).end(3_600.0);
    assert!(exact.run.is_some(), "{words:?}: {}", exact.talk);
    let (code, text) = compared(twin, &exact);
    assert_eq!(code, Some(0), "{words:?}: {text}");
    assert_eq!(exact.code, twin.code, "the verdict is that of the twin");
    assert_eq!(exact.json()["pace"], "exact");
    assert_eq!(exact.json()["fidelity"]["ok"], true);
    assert_eq!(exact.leftovers, [""; 0].map(PathBuf::from), "a scratch folder is left");
    exact
}

/// The run directory in `folder` must be that of `twin`.
pub(super) fn assert_is_twin(twin: &Ended, folder: &Path, talk: &str) {
    let (code, text) = compare(&twin.out(), folder);
    assert_eq!(code, Some(0), "{text}{talk}");
}

#[test]
fn an_exact_run_equals_its_twin_to_the_octet_over_every_kind_of_socket() {
    let _alone = alone();
    let variants: [&[&str]; 4] = [
        &[],
        &["--set", "run.placement=device"],
        &["--set", "run.carrier=unix"],
        &["--set", "run.cables=local"],
    ];
    // Captures of ports of both processes.
    let captures = ["--set", "run.capture=[\"h0:1\", \"s0:1\", \"h2:1\"]"];
    for file in [small(), ethernet()] {
        let twin = twin(&file, &captures);
        assert!(twin.out().join("capture.pcapng").exists(), "{}", twin.talk);
        for words in variants {
            assert_equals(&twin, &file, &[&EXACT, words, &captures].concat());
        }
        let words = [&EXACT[..], &captures, &["--seed", "99"]].concat();
        let other = Running::start(&file, &words).end(60.0);
        let (code, text) = compared(&twin, &other);
        assert_eq!(code, Some(1), "another seed: {text}");
        assert!(text.contains("run.json, "), "{text}");
    }
}

#[test]
fn an_exact_run_between_namespaces_equals_its_twin() {
    if let Err(error) = Namespace::make(1) {
        skip::because!("network namespaces require CAP_SYS_ADMIN: {error}");
        return;
    }
    let _alone = alone();
    for file in [small(), ethernet()] {
        let words = ["--backend", "netns", "--pace", "exact"];
        let exact = assert_equals(&twin(&file, &[]), &file, &words);
        assert!(exact.number("/cables/veth") > 0.0, "{:#}", exact.json()["cables"]);
    }
}

#[test]
fn an_exact_run_needs_no_quiet_host() {
    let _alone = alone();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let twin = twin(&small(), &[]);
    let _busy: Vec<Busy> = (0..cores).map(|core| Busy::on(&core.to_string(), 0)).collect();
    assert_equals(&twin, &small(), &EXACT);
}

#[test]
fn strangers_do_not_change_an_exact_run() {
    let _alone = alone();
    let words = ["--set", "run.duration=\"20000 mtu\""];
    let twin = twin(&small(), &words);
    let running = Running::start(&small(), &[&EXACT[..], &words].concat());
    let ports = super::ports(&running, 2);
    let forged = super::impostor(&ports, 10);
    let sent = super::stranger(&ports, super::Pace::PerSecond(5_000), 0.5);
    let ended = running.end(120.0);
    assert_eq!(compared(&twin, &ended).0, Some(0), "{}", ended.talk);
    let refused = ended.sum("/refused");
    assert!(refused > 0, "{sent} of strangers, {forged:?} forged: {:#}", ended.json()["refused"]);
}

#[test]
fn a_killed_daemon_ends_an_exact_run_with_its_name() {
    let _alone = alone();
    let long = ["--set", "run.duration=\"2000000 mtu\""];
    let running = Running::start(&small(), &[&EXACT[..], &long].concat());
    let daemons = running.daemons(2);
    pause(0.5);
    daemons.iter().find(|daemon| daemon.is_switchd()).expect("one of the two").kill();
    let ended = running.end(5.0);
    assert_eq!(ended.code, Some(5), "{}", ended.talk);
    assert!(ended.talk.contains("switchd (process 1)"), "{}", ended.talk);
    assert!(daemons.iter().all(|daemon| !daemon.is_alive()), "{daemons:?}");
    assert_eq!(ended.leftovers, [""; 0].map(PathBuf::from));
}

#[test]
fn attached_ports_and_labs_that_stay_are_refused_with_the_reason() {
    let attached = in_repository("tests/tests/netns/attach.toml");
    let ended = Running::start(&attached, &["--pace", "exact"]).end(20.0);
    assert_eq!(ended.code, Some(2), "{}", ended.talk);
    assert!(ended.talk.contains("outside the fabric"), "{}", ended.talk);
    let folder = tempfile::tempdir().expect("a folder");
    let mut up = Command::new(pausebed());
    up.args(["up", "--pace", "exact"]).arg(small()).env("XDG_RUNTIME_DIR", folder.path());
    let output = up.output().expect("the program is built");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("follows the wall clock"), "{text}");
    let no_delay = ["--set", "fabric.link.delay=\"0 ns\""];
    let ended = Running::start(&small(), &[&EXACT[..], &no_delay].concat()).end(20.0);
    assert_eq!(ended.code, Some(2), "{}", ended.talk);
    assert!(ended.talk.contains("needs a delay on every cable"), "{}", ended.talk);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_silent_daemon_ends_an_exact_run_with_its_name() {
    let _alone = alone();
    let long = ["--set", "run.duration=\"2000000 mtu\""];
    let running = Running::start(&small(), &[&EXACT[..], &long].concat());
    let daemons = running.daemons(2);
    pause(0.5);
    let silent = daemons.iter().find(|daemon| daemon.is_switchd()).expect("one of the two");
    kill(Pid::from_raw(silent.process as i32), Signal::SIGSTOP).expect("it runs");
    let ended = running.end(45.0);
    assert_eq!(ended.code, Some(5), "{}", ended.talk);
    assert!(ended.talk.contains("switchd (process 1) has been silent for 30 s"), "{}", ended.talk);
    assert!(eventually(5.0, || daemons.iter().all(|daemon| !daemon.is_alive())), "{daemons:?}");
}

/// The scenarios that are compared with their twins: all but the large ones and those of searches.
fn scenarios() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["ar", "dcqcn", "pfister", "rrcc", "zhb"] {
        let path = in_repository(&format!("topo/scenarios/{folder}"));
        for entry in std::fs::read_dir(path).expect("a folder of the repository").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.extend(name.strip_suffix(".toml").map(|stem| format!("{folder}/{stem}")));
        }
    }
    found.sort();
    found
}

/// Wall time, repeated datagrams, processes and datagrams of a run.
fn described(exact: &Ended) -> String {
    let [seconds, repeated] = ["/host/wall_seconds", "/repeated"].map(|name| exact.number(name));
    let scheduling = exact.json()["host"]["versions"]["scheduling"].to_string();
    format!("{seconds:.1} s, {repeated} repeated, {scheduling}")
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn every_scenario_equals_its_twin_with_two_processes_and_with_one_for_each_device() {
    let _alone = alone();
    let mut campaign = Campaign::open("exact");
    let all = scenarios();
    println!("{} scenarios: {}", all.len(), all.join(", "));
    let placements = ["worker", "device"].map(|word| (word, format!("run.placement={word}")));
    for (word, placement) in &placements {
        for name in &all {
            let file = scenario(name);
            campaign.part(&format!("{word} {name}"), || {
                let twin = twin(&file, &[]);
                described(&assert_equals(
                    &twin,
                    &file,
                    &[&EXACT[..], &["--set", placement]].concat(),
                ))
            });
        }
    }
    campaign.end();
}

/// A sample of both technologies for substrates other than loopback.
const SAMPLE: [&str; 6] = [
    "pfister/demo-ib-cca",
    "pfister/eight-ib-cca",
    "rrcc/burst-rr-cc",
    "dcqcn/incast3-dcqcn",
    "zhb/case1-partitioned-bcn",
    "zhb/case5-qcn",
];

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_sample_equals_its_twin_between_namespaces() {
    let _alone = alone();
    let mut campaign = Campaign::open("exact-netns");
    for name in SAMPLE {
        let file = scenario(name);
        campaign.part(&format!("netns {name}"), || {
            let twin = twin(&file, &[]);
            let runs = ["run.placement=worker", "run.placement=device"].map(|placement| {
                let words = ["--backend", "netns", "--pace", "exact", "--set", placement];
                described(&assert_equals(&twin, &file, &words))
            });
            runs.join("; ")
        });
    }
    campaign.end();
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_sample_equals_its_twin_in_containers() {
    if !containers::is_there() {
        return;
    }
    let _alone = alone();
    let mut campaign = Campaign::open("exact-compose");
    let before = containers::census();
    for name in SAMPLE {
        let file = scenario(name);
        campaign.part(&format!("compose {name}"), || {
            let twin = twin(&file, &[]);
            described(&assert_equals(&twin, &file, &["--backend", "compose", "--pace", "exact"]))
        });
    }
    campaign.end();
    assert_eq!(containers::census(), before);
    docker(&["info"]).expect("the engine still answers");
}

/// Fabric and load of case 4 with congestion control, hot from the beginning, for 1000 frame times.
fn case_4() -> (PathBuf, [&'static str; 2]) {
    (in_repository("tests/tests/live/elastic.toml"), ["--set", "scheme.kind=ib-cca"])
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn twenty_runs_beside_busy_cores_equal_their_twin() {
    let _alone = alone();
    let mut campaign = Campaign::open("exact-busy");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (file, words) = case_4();
    let twin = twin(&file, &words);
    let _busy: Vec<Busy> = (0..cores).map(|core| Busy::on(&core.to_string(), 0)).collect();
    for run in 1..=20 {
        campaign.part(&format!("busy {run}"), || {
            described(&assert_equals(&twin, &file, &[&EXACT[..], &words].concat()))
        });
    }
    campaign.end();
}

/// Daemons that join by TCP, with a path between them that loses every hundredth datagram and delays each by up to 20 ms.
#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn case_4_over_a_path_that_loses_and_delays_equals_its_twin() {
    let _alone = alone();
    let mut campaign = Campaign::open("exact-lossy");
    let (file, words) = case_4();
    campaign.part("lossy path", || {
        let twin = twin(&file, &words);
        let path = LossyPath::start(&file, &[&words[..], &["--pace", "exact"]].concat());
        let (ended, lost) = path.end(1_200.0);
        let (code, text) = compared(&twin, &ended);
        assert_eq!(code, Some(0), "{text}{}", ended.talk);
        assert!(lost > 0 && ended.number("/repeated") > 0.0);
        format!("{lost} lost, {}", described(&ended))
    });
    campaign.end();
}
