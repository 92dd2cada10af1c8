//! Labs as users run them: started, inspected, changed, stopped, and killed at any step.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "lab/census.rs"]
mod census;
#[path = "lab/changes.rs"]
mod changes;
#[path = "lab/ground.rs"]
#[allow(dead_code, reason = "the tests of chaos.rs use more of it")]
mod ground;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "lab/hosts.rs"]
mod hosts;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "lab/lateness.rs"]
mod lateness;
#[path = "lab/managed.rs"]
mod managed;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of netns.rs use more of it")]
mod objects;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of seeing.rs use more of it")]
mod place;
#[path = "lab/programs.rs"]
mod programs;
#[path = "lab/replaced.rs"]
mod replaced;
#[path = "lab/rights.rs"]
mod rights;
#[path = "lab/tcp.rs"]
mod tcp;

use laboratory::{eventually, in_repository, pause};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use place::{ETHERNET, INFINIBAND, Place};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Adapters whose messages wait for each other.
const TRACE: &str = "topo/scenarios/ar/cg-linear-ar.toml";

fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_lab_stays_up_accepts_changes_and_leaves_nothing_behind() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let again =
        place.run(&["up", &in_repository(INFINIBAND).display().to_string(), "--name", "one"]);
    assert_eq!(again.status.code(), Some(2), "a second lab of the same name is refused");
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["one"]["state"], "up");
    assert!(eventually(20.0, || place.total("one", "tx_frames") > 100), "traffic is running");
    let table = place.good(&["show", "links"]);
    assert!(table.lines().count() > 4, "{table}");
    place.good(&["clear"]);
    let shown = place.json(&["show", "queues", "--json"]);
    assert!(shown["cleared_ps"].as_u64().is_some_and(|at| at > 0), "{shown:#}");
    assert_eq!(place.run(&["show", "links", "nobody:1"]).status.code(), Some(2));
    place.good(&["traffic", "stop"]);
    // The adapters send what is posted and then nothing.
    let mut before = 0;
    let quiet = eventually(30.0, || {
        let now = place.total("one", "tx_frames");
        pause(0.5);
        std::mem::replace(&mut before, now) == now && now > 0
    });
    assert!(quiet, "frames were sent after {before}");
    place.good(&["traffic", "start"]);
    assert!(eventually(20.0, || place.total("one", "tx_frames") > before), "traffic resumes");
    let port = shown["nodes"][0]["ports"][0]["port"].as_str().expect("a port").to_owned();
    let captured = place.folder.path().join("frames.pcapng").display().to_string();
    place.good(&["capture", &port, "-w", &captured, "--seconds", "2"]);
    let verified = place.run(&["verify", &captured]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        verified.status.success() && fs::metadata(&captured).is_ok_and(|f| f.len() > 4096),
        "{said}"
    );
    place.good(&["fault", &port, "drop", "--prob", "0.5"]);
    let injected = |place: &Place| {
        place.json(&["status", "--json"])["one"]["injected_lost"].as_u64().expect("a number")
    };
    assert!(eventually(20.0, || injected(&place) > 10), "the fault drops frames");
    let mut injected_before = 0;
    for _ in 0..4 {
        let balance = &place.json(&["status", "--balance", "--json"])["one"];
        assert_eq!(balance["closes"], true, "{balance:#}");
        let injected = balance["frames"]["injected"].as_u64().expect("a number");
        assert!(injected > injected_before, "traffic is running: {balance:#}");
        assert!(balance["frames"]["dropped"]["injected"].as_u64() > Some(10), "{balance:#}");
        injected_before = injected;
    }
    place.good(&["fault", &port, "mend"]);
    place.good(&["set", "link", &port, "--down"]);
    place.good(&["set", "link", &port, "--up"]);
    place.good(&["set", "link", &port, "--rate", "1 Mbps"]);
    assert_eq!(place.run(&["set", "link", &port, "--rate", "1 Tbps"]).status.code(), Some(2));
    assert_eq!(place.run(&["set", "link", "nobody:1", "--down"]).status.code(), Some(2));
    assert_eq!(place.run(&["fault", &port, "drop", "--prob", "7"]).status.code(), Some(2));
    place.down("one");
    place.assert_empty();
    assert_eq!(place.run(&["down"]).status.code(), Some(0), "`down` succeeds when no lab is up");
}

#[test]
fn a_lab_in_which_nothing_happens_has_a_balance() {
    let place = Place::new();
    place.up(ETHERNET, "idle");
    place.good(&["traffic", "stop"]);
    // Longer than an account is asked for in advance.
    pause(2.0);
    let said = place.good(&["status", "--balance"]);
    assert!(said.contains("frames  "), "{said}");
    place.down("idle");
    place.assert_empty();
}

/// NICs that obey no pause overrun the headroom: the end of such a lab is a failure, unless the host was late or the
/// scenario expects it.
#[test]
fn a_lab_that_lost_lossless_frames_fails_when_it_ends() {
    let place = Place::new();
    let deaf = ["--set", "fabric.link.obeyed=[]"];
    let why = ["--set", "run.lossless_drops=expected", "--set", "run.lossless_drops_why=deaf NICs"];
    for sets in [vec![], why.to_vec()] {
        place.up_with(ETHERNET, "deaf", &[&deaf[..], &sets].concat());
        let lost = || {
            let balance = &place.json(&["status", "--balance", "--json"])["deaf"];
            balance["frames"]["dropped"]["headroom_overrun"].as_u64() > Some(0)
        };
        assert!(eventually(60.0, lost), "no headroom is overrun");
        let output = place.run(&["down", "deaf"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(" lossless frames lost: headroom overrun, first at "), "{said}");
        let signs = [("✕ ", 1), ("◐ ", 4), ("! ", 0)];
        let line = said.lines().find(|line| line.contains(" lossless ")).unwrap_or_default();
        let (sign, code) = signs
            .into_iter()
            .find(|(sign, _)| line.trim_start().starts_with(sign))
            .unwrap_or_else(|| panic!("{said}"));
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(sets.is_empty(), sign != "! ", "{said}");
        assert_eq!(sets.is_empty(), !said.contains("; expected: deaf NICs"), "{said}");
    }
    place.assert_empty();
}

#[test]
fn two_labs_side_by_side_do_not_collide() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    place.up(ETHERNET, "two");
    assert_eq!(
        place.run(&["show", "links"]).status.code(),
        Some(2),
        "with two labs the command requires a name"
    );
    for lab in ["one", "two"] {
        assert!(eventually(20.0, || place.total(lab, "rx_frames") > 50), "{lab} has traffic");
    }
    place.good(&["down", "one"]);
    let before = place.total("two", "rx_frames");
    assert!(eventually(20.0, || place.total("two", "rx_frames") > before), "lab two continues");
    assert!(place.processes("two").into_iter().all(is_alive));
    place.good(&["down", "--all"]);
    place.assert_empty();
}

#[test]
fn the_next_command_removes_what_a_killed_command_left() {
    let place = Place::new();
    let file = in_repository(INFINIBAND).display().to_string();
    let begin = || -> Child {
        let mut command = place.command(&["up", &file, "--name", "one", "--backend", "udp"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    for step_ms in [0u32, 3, 10, 30, 60, 100, 200, 400] {
        let mut up = begin();
        pause(f64::from(step_ms) / 1e3);
        up.kill().expect("the test may signal the process");
        up.wait().expect("the process is a child of the test");
        place.good(&["down", "one"]);
        place.assert_empty();
    }
    // Kill `up` before it is done, kill what it started, then start a lab of the same name.
    let mut up = begin();
    pause(0.1);
    up.kill().expect("the test may signal the process");
    up.wait().expect("the process is a child of the test");
    place.up(INFINIBAND, "one");
    let processes = place.processes("one");
    let supervisor = Pid::from_raw(*processes.last().expect("a supervisor") as i32);
    kill(supervisor, Signal::SIGKILL).expect("the test may signal the process");
    assert!(
        eventually(10.0, || !processes.iter().copied().any(is_alive)),
        "the daemons end with their supervisor"
    );
    let status = place.run(&["status"]);
    assert_eq!(status.status.code(), Some(5), "exit code 5 reports a dead lab");
    place.up(TRACE, "one");
    let processes = place.processes("one");
    // The death of a daemon on whose state others rely ends its lab, and `status` reports it until `down`.
    kill(Pid::from_raw(processes[0] as i32), Signal::SIGKILL)
        .expect("the test may signal the process");
    assert!(eventually(10.0, || state(&place).contains("ended before its report")));
    assert!(!place.good(&["logs", "one"]).contains("panicked"));
    place.good(&["down"]);
    place.assert_empty();
}

/// The state of the lab "one".
fn state(place: &Place) -> String {
    let shown = place.run(&["status", "--json"]).stdout;
    let shown: Value = serde_json::from_slice(&shown).expect("JSON");
    shown["one"]["state"].as_str().expect("a word").to_owned()
}

#[test]
fn a_daemon_that_hangs_is_named_and_a_lab_without_its_journal_ends() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let processes = place.processes("one");
    let signal = |signal| {
        kill(Pid::from_raw(processes[0] as i32), signal).expect("the test may signal the process");
    };
    signal(Signal::SIGSTOP);
    assert!(eventually(10.0, || state(&place).starts_with("silent: ")), "{}", state(&place));
    signal(Signal::SIGCONT);
    assert!(eventually(10.0, || state(&place) == "up"), "{}", state(&place));
    let said = place.good(&["logs", "one"]);
    assert!(said.contains(") is silent\n") && said.contains(") answers again\n"), "{said}");
    fs::remove_dir_all(place.labs().join("one")).expect("a folder");
    assert!(eventually(10.0, || !processes.iter().copied().any(is_alive)), "{processes:?}");
    place.assert_empty();
}

#[test]
fn a_thousand_slow_connections_and_a_huge_body_do_not_disturb_a_lab() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let socket = place.labs().join("one/run/process-0.sock");
    let before = place.total("one", "tx_frames");
    let mut lorises = Vec::new();
    for _ in 0..1_000 {
        // A full backlog refuses connections for a moment. The test does not wait for a place.
        if let Ok(mut stream) = UnixStream::connect(&socket) {
            let _ = stream.write_all(b"POST /traffic HTTP/1.1\r\nHost: ");
            lorises.push(stream);
        }
        if lorises.len() % 100 == 99 {
            pause(0.05);
        }
    }
    let mut huge = UnixStream::connect(&socket).expect("the server listens");
    huge.set_read_timeout(Some(Duration::from_secs(30))).expect("the time-out is not zero");
    let head = "POST /traffic HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n";
    let block = vec![b'x'; 1 << 20];
    let mut sent = huge.write_all(head.as_bytes());
    for _ in 0..100 {
        sent = sent.and_then(|()| huge.write_all(&block));
    }
    assert!(sent.is_err(), "the server does not accept so large a body");
    let mut answer = Vec::new();
    let _ = huge.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    drop(lorises);
    assert!(eventually(30.0, || place.run(&["show", "links"]).status.success()), "the lab answers");
    assert!(
        eventually(20.0, || place.total("one", "tx_frames") > before),
        "the lab continues to send frames"
    );
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["one"]["lost"], 0, "{status:#}");
    place.good(&["down"]);
    place.assert_empty();
}
