//! Switch daemons that end or hang in a lab: each is replaced, its neighbours go on, and the balance closes.

use super::is_alive;
use super::laboratory::{alone, eventually, in_repository};
use super::place::{ETHERNET, INFINIBAND, Place};
use emulation::cable::namespace::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The processes with switches, as the journal has them.
fn switches(place: &Place) -> Vec<Value> {
    let status = place.json(&["status", "--json"]);
    let all = status["one"]["processes"].as_array().expect("a list").clone();
    all.into_iter().filter(|daemon| daemon["kind"] == "switch").collect()
}

fn pid(daemon: &Value) -> Pid {
    Pid::from_raw(daemon["pid"].as_u64().expect("a number") as i32)
}

fn send(signal: Signal, daemon: &Value) {
    kill(pid(daemon), signal).expect("the test may signal the process");
}

/// Waits until the first switch daemon has been replaced for the `time`th time, and NICs send and receive again.
fn await_replaced(place: &Place, time: u64) {
    let replaced = || {
        let now = &switches(place)[0];
        now["restarts"] == time && is_alive(pid(now).as_raw() as u32)
    };
    assert!(eventually(20.0, replaced), "{:?}\n{}", switches(place), place.good(&["logs", "one"]));
    let before = place.total("one", "tx_frames");
    let goes_on = || place.total("one", "tx_frames") > before + 200;
    assert!(eventually(20.0, goes_on), "traffic goes on\n{}", place.good(&["logs", "one"]));
}

/// Kills a switch daemon of a lab of `file`, and looks at the lab afterwards.
fn is_replaced(file: &str, words: &[&str]) {
    let place = Place::new();
    let path = in_repository(file).display().to_string();
    place.good(&[&["up", &path, "--name", "one"], words].concat());
    assert!(eventually(20.0, || place.total("one", "tx_frames") > 100), "traffic is running");
    let killed = switches(&place).remove(0);
    send(Signal::SIGKILL, &killed);
    await_replaced(&place, 1);
    assert_ne!(pid(&switches(&place)[0]), pid(&killed));
    let balance = place.json(&["status", "--balance", "--json"]);
    assert_eq!(balance["one"]["closes"], true, "{balance}");
    place.down("one");
    place.assert_empty();
}

#[test]
fn a_killed_switch_daemon_is_replaced_and_every_frame_is_accounted_for() {
    let _alone = alone();
    is_replaced(INFINIBAND, &["--backend", "udp", "--set", "run.placement=\"device\""]);
    is_replaced(ETHERNET, &["--backend", "udp", "--set", "run.carrier=\"unix\""]);
    if let Err(error) = Namespace::make(1) {
        return skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}");
    }
    is_replaced(INFINIBAND, &["--backend", "netns"]);
    is_replaced(ETHERNET, &["--backend", "netns"]);
}

#[test]
fn a_switch_daemon_that_hangs_is_replaced_and_one_that_ends_five_times_is_given_up() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    send(Signal::SIGSTOP, &switches(&place)[0]);
    await_replaced(&place, 1);
    for time in 2..=4 {
        send(Signal::SIGKILL, &switches(&place)[0]);
        await_replaced(&place, time);
    }
    send(Signal::SIGKILL, &switches(&place)[0]);
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
