//! Daemons that end or hang in a lab: each is replaced, its neighbours go on, and the balance closes.

use super::is_alive;
use super::laboratory::{eventually, in_repository};
use super::place::{ETHERNET, INFINIBAND, Place};
use emulation::cable::namespace::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;

/// The processes with nodes of this kind, as the journal has them.
fn daemons(place: &Place, kind: &str) -> Vec<Value> {
    let status = place.json(&["status", "--json"]);
    let all = status["one"]["processes"].as_array().expect("a list").clone();
    all.into_iter().filter(|daemon| daemon["kind"] == kind).collect()
}

fn pid(daemon: &Value) -> Pid {
    Pid::from_raw(daemon["pid"].as_u64().expect("a number") as i32)
}

/// Sends a signal to the first process with nodes of this kind.
fn send(place: &Place, kind: &str, signal: Signal) {
    kill(pid(&daemons(place, kind)[0]), signal).expect("the test may signal the process");
}

/// By flow, the messages that its sender knows to be complete.
fn completed(place: &Place) -> BTreeMap<[u64; 2], u64> {
    let shown = place.json(&["show", "flows", "--json", "--lab", "one"]);
    let flows =
        shown["nodes"].as_array().expect("nodes").iter().flat_map(|node| node["flows"].as_array());
    let number = |flow: &Value, key: &str| flow[key].as_u64().expect("a number");
    let line = |flow: &Value| {
        (["source", "destination"].map(|key| number(flow, key)), number(flow, "completed"))
    };
    flows.flatten().map(line).collect()
}

/// Waits until the first process of this kind has been replaced for the `time`th time, and frames are sent again.
fn await_replaced(place: &Place, kind: &str, time: u64) {
    let logs = || place.good(&["logs", "one"]);
    let replaced = || {
        let now = &daemons(place, kind)[0];
        now["restarts"] == time && is_alive(pid(now).as_raw() as u32)
    };
    assert!(eventually(20.0, replaced), "{:?}\n{}", daemons(place, kind), logs());
    let before = place.total("one", "tx_frames");
    let goes_on = || place.total("one", "tx_frames") > before + 200;
    assert!(eventually(20.0, goes_on), "traffic goes on\n{}", logs());
}

/// Kills daemons of a lab of `file`, and looks at the lab afterwards.
fn is_replaced(file: &str, words: &[&str]) {
    let place = Place::new();
    let path = in_repository(file).display().to_string();
    place.good(&[&["up", &path, "--name", "one"], words].concat());
    assert!(eventually(20.0, || place.total("one", "tx_frames") > 100), "traffic is running");
    for kind in ["switch", "nic"] {
        let killed = daemons(&place, kind).remove(0);
        send(&place, kind, Signal::SIGKILL);
        await_replaced(&place, kind, 1);
        assert_ne!(pid(&daemons(&place, kind)[0]), pid(&killed));
        let before = completed(&place);
        let goes_on = || {
            let now = completed(&place);
            before.iter().all(|(flow, count)| now.get(flow).is_some_and(|now| *now > count + 3))
        };
        assert!(eventually(30.0, goes_on), "{before:?} {:?}", completed(&place));
        let balance = place.json(&["status", "--balance", "--json"]);
        assert_eq!(balance["one"]["closes"], true, "{balance}");
    }
    place.down("one");
    place.assert_empty();
}

#[test]
fn a_killed_daemon_is_replaced_and_every_frame_is_accounted_for() {
    is_replaced(INFINIBAND, &["--backend", "udp", "--set", "run.placement=\"device\""]);
    is_replaced(ETHERNET, &["--backend", "udp", "--set", "run.carrier=\"unix\""]);
    if let Err(error) = Namespace::make(1) {
        return skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}");
    }
    is_replaced(INFINIBAND, &["--backend", "netns"]);
    is_replaced(ETHERNET, &["--backend", "netns"]);
}

#[test]
fn a_daemon_that_hangs_is_replaced_and_one_that_ends_five_times_is_given_up() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    send(&place, "switch", Signal::SIGSTOP);
    await_replaced(&place, "switch", 1);
    for time in 2..=4 {
        send(&place, "switch", Signal::SIGKILL);
        await_replaced(&place, "switch", time);
    }
    send(&place, "switch", Signal::SIGKILL);
    let state = || place.json(&["status", "--json"])["one"]["state"].to_string();
    assert!(eventually(10.0, || state().contains("without s0, s1")), "{}", state());
    let said = place.good(&["logs", "one"]);
    assert!(said.contains("silent for 10 s; process"), "{said}");
    assert!(said.contains("ended too often and stays away (s0, s1)"), "{said}");
    let balance = place.json(&["status", "--balance", "--json"]);
    assert_eq!(balance["one"]["closes"], true, "{balance}");
    assert!(balance["one"]["frames"]["dropped"]["lost_on_restart"].as_u64() > Some(0), "{balance}");
    place.down("one");
    place.assert_empty();
}
