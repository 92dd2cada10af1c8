//! Live runs as users start them: the built program, its daemons, real sockets, the wall clock.
//!
//! On a busy host a run is inconclusive, which is a correct result and not a failure. Such a run is made at most
//! three times, and the report of every run must be consistent.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests start the program and send to its sockets"
)]

#[path = "live/containers.rs"]
mod containers;
#[path = "live/dissector.rs"]
mod dissector;
#[path = "live/elastic.rs"]
mod elastic;
#[path = "live/ethernet.rs"]
mod ethernet;
#[path = "live/exact.rs"]
mod exact;
#[path = "live/hostile.rs"]
mod hostile;
#[path = "live/joining.rs"]
mod joining;
#[path = "live/laboratory.rs"]
mod laboratory;
#[path = "live/path.rs"]
mod path;
#[path = "live/ratios.rs"]
mod ratios;
#[path = "live/ring.rs"]
mod ring;
#[path = "live/stalls.rs"]
mod stalls;
#[path = "live/watched.rs"]
mod watched;

use hostile::{Pace, impostor, nonsense, stranger, udp_ports};
use laboratory::{Busy, Ended, Running, alone, eventually, in_repository, pause};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use ratios::expected_ratios;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The keys of `run.json` that docs/spec/design.md 5 specifies, and those that these tests use.
const KEYS: [&str; 18] = [
    "/schema",
    "/scenario",
    "/source",
    "/seed",
    "/backend",
    "/dilation",
    "/scheme",
    "/verdict",
    "/measures",
    "/expectations",
    "/fidelity/ok",
    "/fidelity/lateness_p99_frames",
    "/fidelity/suggested_dilation",
    "/cables",
    "/refused",
    "/fabric_seconds",
    "/host/frame_hops_per_s",
    "/host/kernel",
];

fn small() -> PathBuf {
    in_repository("tests/tests/live/scenario.toml")
}

/// Repeats a run up to three times, until it is conclusive. Every report must be consistent.
fn repeated(mut make: impl FnMut() -> Ended) -> Ended {
    laboratory::repeated(|| {
        let ended = make();
        assert_honest(&ended);
        ended
    })
}

/// Asserts that the verdict follows from the figures, the exit code from the verdict, and that every frame is counted.
fn assert_honest(ended: &Ended) {
    let run = ended.json();
    for key in KEYS {
        assert!(run.pointer(key).is_some(), "{key} is missing in {run:#}");
    }
    let late = ended.number("/fidelity/lateness_p99_frames");
    let lost = ended.number("/fidelity/transport_lost") as u64;
    let ok = run["fidelity"]["ok"].as_bool().expect("fidelity.ok is a boolean");
    assert!(!ok || (late <= 0.1 && lost == 0), "called ok: {:#}", run["fidelity"]);
    let met = run["expectations"]
        .as_array()
        .expect("a list")
        .iter()
        .all(|judged| judged["verdict"] == "pass");
    let (verdict, code) = match (ok, met) {
        (false, _) => ("inconclusive", 4),
        (true, true) => ("pass", 0),
        (true, false) => ("fail", 1),
    };
    assert_eq!(
        (ended.verdict(), ended.code),
        (verdict, Some(code)),
        "{}{}",
        ended.data,
        ended.talk
    );
    let balance = ["injected", "delivered", "buffered"]
        .map(|of| ended.number(&format!("/conservation/{of}")) as u64);
    let dropped = ended.sum("/conservation/dropped");
    assert_eq!(balance[0], balance[1] + balance[2] + dropped, "{:#}", run["conservation"]);
    assert!(ended.number("/conservation/dropped/transport") as u64 <= lost);
    assert_eq!(ended.leftovers, [""; 0].map(PathBuf::from), "a scratch folder is left");
}

/// Asserts that the run passed, unless the host was too busy in all three attempts.
fn assert_passes_or_host_is_busy(ended: &Ended) {
    if ended.verdict() == "inconclusive" {
        eprintln!(
            "INCONCLUSIVE three times: this host is too busy for a conclusive run\n{}",
            ended.data
        );
    } else {
        assert_passes(ended);
    }
}

fn assert_passes(ended: &Ended) {
    assert_eq!(ended.verdict(), "pass", "{}{}", ended.data, ended.talk);
    assert_eq!(ended.number("/fidelity/transport_lost"), 0.0);
}

#[test]
fn a_small_fabric_runs_over_every_kind_of_cable() {
    let _alone = alone();
    let variants: [(&[&str], Value); 3] = [
        (&[], serde_json::json!({ "memory": 0, "udp": 5 })),
        (&["--set", "run.carrier=unix"], serde_json::json!({ "memory": 0, "unix": 5 })),
        (&["--set", "run.cables=local"], serde_json::json!({ "memory": 1, "udp": 4 })),
    ];
    for (words, cables) in variants {
        let ended = repeated(|| Running::start(&small(), words).end(30.0));
        assert_passes_or_host_is_busy(&ended);
        assert_eq!(ended.json()["cables"], cables, "{words:?}");
        assert_eq!(ended.json()["dilation"], 2400);
        assert_eq!(
            ended.sum("/refused"),
            0,
            "no foreign datagram arrived: {:#}",
            ended.json()["refused"]
        );
    }
}

#[test]
fn foreign_and_forged_datagrams_are_counted_and_do_no_harm() {
    let _alone = alone();
    let ended = repeated(|| {
        let running = Running::start(&small(), &["--set", "run.duration=\"800 mtu\""]);
        let ports = ports(&running, 2);
        // Start after the origin of fabric time. Earlier datagrams wait in the sockets and do not test a running flow.
        pause(0.5);
        let forged = impostor(&ports, 10);
        let sent = stranger(&ports, Pace::PerSecond(5_000), 2.0);
        let ended = running.end(40.0);
        assert_counted(&ended, sent, &forged);
        ended
    });
    assert_passes_or_host_is_busy(&ended);
    assert!(ended.data.contains("refused") && ended.data.contains("foreign"), "{}", ended.data);
}

fn ports(running: &Running, daemons: usize) -> Vec<u16> {
    running.daemons(daemons).iter().flat_map(|daemon| udp_ports(daemon.process)).collect()
}

/// Asserts that every datagram was refused for its reason or dropped by a full socket.
fn assert_counted(ended: &Ended, by_stranger: u64, by_impostor: &std::io::Result<u64>) {
    let refused = |reason: &str| ended.number(&format!("/refused/{reason}")) as u64;
    let overflow = refused("socket_overflow");
    let foreign = refused("foreign");
    assert!(
        foreign <= by_stranger && foreign + overflow >= by_stranger,
        "{foreign} of {by_stranger}"
    );
    let Ok(of_each) = by_impostor else {
        skip::because!("forged datagrams require raw sockets");
        return;
    };
    for (_, _, reason) in nonsense() {
        let sent =
            of_each * nonsense().iter().filter(|(_, _, other)| *other == reason).count() as u64;
        let counted = refused(reason);
        assert!(counted <= sent && counted + overflow >= sent, "{reason}: {counted} of {sent}");
    }
}

#[test]
fn ctrl_c_ends_with_130_and_leaves_nothing_behind() {
    let _alone = alone();
    let running = Running::start(&small(), &["--set", "run.duration=\"6000 mtu\""]);
    let daemons = running.daemons(2);
    pause(0.5);
    running.signal(Signal::SIGINT);
    let ended = running.end(5.0);
    assert_eq!(ended.code, Some(130), "{}", ended.talk);
    assert!(ended.talk.contains("interrupted"), "{}", ended.talk);
    assert!(daemons.iter().all(|daemon| !daemon.is_alive()), "{daemons:?}");
    assert_eq!(ended.leftovers, [""; 0].map(PathBuf::from));
}

#[test]
fn a_killed_daemon_is_named_and_ends_the_run() {
    let _alone = alone();
    let running = Running::start(&small(), &["--set", "run.duration=\"6000 mtu\""]);
    let daemons = running.daemons(2);
    pause(0.5);
    daemons.iter().find(|daemon| daemon.is_switchd()).expect("one of the two").kill();
    let ended = running.end(5.0);
    assert_eq!(ended.code, Some(5), "{}", ended.talk);
    assert!(
        ended.talk.contains("switchd (process 1)") && ended.talk.contains("SIGKILL"),
        "{}",
        ended.talk
    );
    assert!(daemons.iter().all(|daemon| !daemon.is_alive()), "{daemons:?}");
    assert!(ended.run.is_none(), "a run that did not finish has no result");
    assert_eq!(ended.leftovers, [""; 0].map(PathBuf::from));
}

#[test]
fn a_killed_launcher_leaves_no_daemon() {
    let _alone = alone();
    let running = Running::start(&small(), &["--set", "run.duration=\"6000 mtu\""]);
    let daemons = running.daemons(2);
    pause(0.3);
    running.signal(Signal::SIGKILL);
    let gone = eventually(2.0, || daemons.iter().all(|daemon| !daemon.is_alive()));
    assert!(gone, "still there two seconds after their launcher: {daemons:?}");
    assert_eq!(running.end(1.0).code, None);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn the_demo_passes_live_and_agrees_with_its_twin() {
    for name in ["demo-none", "demo-ib-cca"] {
        assert_agrees_with_its_twin(&format!("pfister/{name}"), &[]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn case_4_passes_live_and_agrees_with_its_twin() {
    for name in ["case4-none", "case4-ib-cca"] {
        assert_agrees_with_its_twin(&format!("pfister/{name}"), &[]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn sixteen_bursts_pass_live_and_agree_with_their_twins() {
    for name in ["burst-none", "burst-ib-cca", "burst-rr-cc"] {
        assert_agrees_with_its_twin(&format!("rrcc/{name}"), &[]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn hot_spots_dissolve_live_as_they_do_on_the_virtual_clock() {
    for name in ["case1-partitioned-qcn", "case1-partitioned-bcn", "case5-qcn"] {
        assert_agrees_with_its_twin(&format!("zhb/{name}"), &["--dilate", "1000"]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn three_senders_share_a_port_live_as_they_do_on_the_virtual_clock() {
    for name in ["incast3-none", "incast3-pfc", "incast3-dcqcn"] {
        assert_agrees_with_its_twin(&format!("dcqcn/{name}"), &["--dilate", "3000"]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn frames_avoid_congestion_live_as_they_do_on_the_virtual_clock() {
    for name in ["t1-cm", "t1-ar"] {
        assert_agrees_with_its_twin(&format!("ar/{name}"), &["--set", "run.duration=\"600 ms\""]);
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_hundred_and_twenty_eight_nodes_keep_up_at_four_milliseconds() {
    let words = ["--dilate", "1929"];
    let live = assert_agrees_with_its_twin("pfister/large/fat128x16-live-ib-cca", &words);
    let late = live.number("/fidelity/lateness_p99_frames");
    assert!(late <= 0.03, "p99 of lateness is {late} frame times");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn one_process_a_device_holds_a_frame_time_of_two_milliseconds() {
    for name in ["demo-none", "demo-ib-cca", "case4-none", "case4-ib-cca"] {
        let words = ["--set", "run.placement=device", "--dilate", "965"];
        assert_agrees_with_its_twin(&format!("pfister/{name}"), &words);
    }
}

/// Runs a scenario live and on the virtual clock; ratios to line rate that are expected agree within
/// 0.03, on Ethernet 0.05 (docs/spec/design.md 5).
fn assert_agrees_with_its_twin(name: &str, words: &[&str]) -> Ended {
    let _alone = alone();
    let file = in_repository(&format!("topo/scenarios/{name}.toml"));
    let twin = Running::start(&file, &["--backend", "virtual"]).end(300.0);
    assert_eq!(twin.verdict(), "pass", "{}", twin.data);
    let live =
        repeated(|| Running::start(&file, &[&["--backend", "udp"], words].concat()).end(600.0));
    assert_passes(&live);
    let (ratios, tolerance) = expected_ratios(&file);
    for measure in ratios {
        let [real, ideal] = [&live, &twin].map(|run| run.number(&format!("/measures/{measure}")));
        assert!(
            (real - ideal).abs() <= tolerance,
            "{name}: {measure} is {real} live and {ideal} on the virtual clock"
        );
    }
    live
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn an_overloaded_host_makes_a_run_inconclusive_and_never_a_pass() {
    let _alone = alone();
    let allowed =
        sched_getaffinity(Pid::from_raw(0)).expect("the affinity of a process is readable");
    let core =
        (0..CpuSet::count()).find(|core| allowed.is_set(*core).unwrap_or(false)).expect("a core");
    let core = core.to_string();
    let file = in_repository("topo/scenarios/pfister/demo-none.toml");
    let words = ["--backend", "udp", "--dilate", "965", "--set", "run.realtime=false"];
    let running = Running::start_by(&["taskset", "-c", &core], &file, &words);
    running.daemons(2);
    // The load ends with the fabric: a launcher without the core could not report.
    let busy = [Busy::on(&core, -20), Busy::on(&core, -20)];
    pause(12.0);
    drop(busy);
    let ended = running.end(120.0);
    assert_honest(&ended);
    assert_eq!((ended.verdict(), ended.code), ("inconclusive", Some(4)), "{}", ended.data);
    assert!(ended.data.contains("--dilate"), "the message suggests a dilation: {}", ended.data);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_million_foreign_datagrams_are_counted_and_do_not_disturb_a_flow() {
    besieged(&small(), Pace::PerSecond(20_000), 50.0, 1_000_000);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn bursts_of_foreign_datagrams_are_counted_and_do_not_disturb_a_flow() {
    besieged(&small(), Pace::Bursts, 10.0, 50_000);
}

/// Runs a scenario with a frame time of 5 ms while foreign datagrams arrive; it must pass.
fn besieged(file: &Path, pace: Pace, seconds: f64, datagrams: u64) -> Ended {
    let _alone = alone();
    let ended = repeated(|| {
        // The run begins before and ends after the foreign datagrams.
        let duration = format!("run.duration=\"{} mtu\"", ((seconds + 4.0) * 200.0) as u64);
        let running = Running::start(file, &["--set", &duration]);
        let ports = ports(&running, 2);
        pause(0.5);
        let sent = stranger(&ports, pace, seconds);
        assert!(sent * 10 >= datagrams * 9, "{sent} of {datagrams} in time");
        let ended = running.end(120.0);
        assert_counted(&ended, sent, &Ok(0));
        ended
    });
    assert_passes(&ended);
    ended
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_flood_makes_a_run_inconclusive_at_worst() {
    let _alone = alone();
    let running = Running::start(&small(), &["--set", "run.duration=\"1600 mtu\""]);
    let ports = ports(&running, 2);
    pause(0.5);
    let flood = |_| {
        std::thread::spawn({
            let ports = ports.clone();
            move || stranger(&ports, Pace::FlatOut, 3.0)
        })
    };
    let sent: u64 =
        [0, 1].map(flood).map(|thread| thread.join().expect("a flood does not panic")).iter().sum();
    let ended = running.end(60.0);
    assert_honest(&ended);
    assert!(["pass", "inconclusive"].contains(&ended.verdict()), "{}", ended.data);
    assert_counted(&ended, sent, &Ok(0));
}
