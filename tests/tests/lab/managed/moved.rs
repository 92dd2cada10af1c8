//! Data of NICs whose LID moves, and of one behind a switch that loses all its cables; the traffic of others.

use super::oracle::hex_after;
use super::{Managed, Manager, has_packages};
use crate::laboratory::eventually;
use emulation::clock::Stopwatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;

const SCENARIO: &str = "tests/tests/lab/managed/moved.toml";
/// A LID that no node of the plan has.
const ELSEWHERE: u16 = 60;
/// The cables of the switch before h4.
const CABLES: [&str; 3] = ["s2:1", "s2:2", "s2:3"];
/// Flows that do not pass there.
const OTHERS: [(&str, &str); 4] = [("h0", "h1"), ("h1", "h2"), ("h2", "h3"), ("h3", "h0")];
const FLOWS: [(&str, &str); 5] = [OTHERS[0], OTHERS[1], OTHERS[2], OTHERS[3], ("h0", "h4")];

fn nodes(lab: &Managed) -> Vec<Value> {
    let shown = lab.place.json(&["show", "flows", "--json"]);
    shown["nodes"].as_array().expect("nodes").clone()
}

/// Messages of the flow that are complete. Flows have the LIDs of the plan.
pub fn completed(lab: &Managed, from: &str, to: &str) -> u64 {
    let lid = u64::from(lab.oracle.node(to).lid);
    let nodes = nodes(lab);
    let node = nodes.iter().find(|node| node["node"] == from).expect("the sender");
    let flows = node["flows"].as_array().expect("flows").iter();
    let own = flows.filter(|flow| flow["destination"].as_u64() == Some(lid));
    own.filter_map(|flow| flow["completed"].as_u64()).sum()
}

/// Packets that NICs without a flow to h4 have sent again.
fn sent_again(lab: &Managed) -> u64 {
    let is_other = |name: &str| ["h1", "h2", "h3"].contains(&name);
    let nodes = nodes(lab);
    let others = nodes.iter().filter(|node| node["node"].as_str().is_some_and(is_other));
    let ports = others.flat_map(|node| node["ports"].as_array().expect("ports"));
    ports.filter_map(|port| port["named"]["retransmitted_packets"].as_u64()).sum()
}

/// Wall time until the flow from h0 to h4 goes on.
fn goes_on(lab: &Managed, manager: &Manager) -> f64 {
    let stopwatch = Stopwatch::start();
    let before = completed(lab, "h0", "h4");
    let has_more = || completed(lab, "h0", "h4") > before + 3;
    assert!(eventually(60.0, has_more), "h4 gets nothing: {}", manager.text());
    stopwatch.seconds()
}

/// The planned LIDs, but h4 elsewhere, in a folder as OpenSM reads them.
fn other_lids(lab: &Managed) -> std::path::PathBuf {
    let planned = fs::read_to_string(lab.place.labs().join("m/guid2lid")).expect("planned LIDs");
    let guid = format!("0x{:016x}", lab.oracle.node("h4").guid + 1);
    let moved = |line: &str| match line.starts_with(&guid) {
        true => format!("{guid} 0x{ELSEWHERE:04x} 0x{ELSEWHERE:04x}\n"),
        false => format!("{line}\n"),
    };
    let folder = lab.place.folder.path().join("lids");
    fs::create_dir(&folder).expect("a folder");
    let text: String = planned.lines().map(moved).collect();
    fs::write(folder.join("guid2lid"), text).expect("a file");
    folder
}

/// The daemon of the switch before h4 is killed: another takes its place, OpenSM configures it, and others lose nothing.
#[test]
fn a_killed_switch_starts_again_under_opensm_and_others_lose_nothing() {
    if !has_packages() {
        return;
    }
    let lab = Managed::up(SCENARIO, &["--set", "run.placement=\"device\""]);
    let manager = lab.manage();
    let all_run = || FLOWS.into_iter().all(|(from, to)| completed(&lab, from, to) > 20);
    assert!(eventually(60.0, all_run), "{}", manager.text());
    let before = sent_again(&lab);
    let counts = OTHERS.map(|(from, to)| completed(&lab, from, to));
    let switch = || {
        let status = lab.place.json(&["status", "--json"]);
        let all = status["m"]["processes"].as_array().expect("processes").clone();
        all.into_iter().find(|process| process["nodes"][0] == "s2").expect("a process")
    };
    let pid = Pid::from_raw(switch()["pid"].as_u64().expect("a number") as i32);
    kill(pid, Signal::SIGKILL).expect("the test may signal the process");
    let stopwatch = Stopwatch::start();
    assert!(eventually(20.0, || switch()["restarts"] == 1), "{}", switch());
    eprintln!("the killed switch is replaced after {:.2} s", stopwatch.seconds());
    eprintln!("data behind it {:.2} s later", goes_on(&lab, &manager));
    assert_eq!(sent_again(&lab), before, "others have lost packets");
    let goes_on_without = |((from, to), count)| completed(&lab, from, to) > count + 20;
    let all = || OTHERS.into_iter().zip(counts).all(goes_on_without);
    assert!(eventually(60.0, all), "flows of others stand still");
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}

/// A manager that gives h4 another LID, and a switch without cables for a while: h4 is reached again, and the flows of
/// others lose no packet.
#[test]
#[ignore = "slow"]
fn data_follow_a_moved_lid_and_others_lose_nothing() {
    if !has_packages() {
        return;
    }
    let lab = Managed::up(SCENARIO, &[]);
    let manager = lab.manage();
    let all_run = || FLOWS.into_iter().all(|(from, to)| completed(&lab, from, to) > 20);
    assert!(eventually(60.0, all_run), "{}", manager.text());
    let before = sent_again(&lab);
    let folder = format!("OSM_CACHE_DIR={}", other_lids(&lab).display());
    drop(manager);
    let stopwatch = Stopwatch::start();
    let manager = lab.start_manager_by("h0", &["env", &folder]);
    let guid = lab.oracle.node("h4").guid;
    let has_moved = || {
        let output = lab.run(&["smpquery", "nodeinfo", &ELSEWHERE.to_string()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        hex_after(&said, "\nGuid:............................") == Some(guid)
    };
    assert!(eventually(60.0, has_moved), "{}", manager.text());
    let swept = stopwatch.seconds();
    let after = goes_on(&lab, &manager);
    eprintln!("LID moved {swept:.2} s after the start of OpenSM, data there {after:.2} s later");
    assert_eq!(sent_again(&lab), before, "others have lost packets while the LID moved");
    let counts = OTHERS.map(|(from, to)| completed(&lab, from, to));
    for port in CABLES {
        lab.place.good(&["set", "link", port, "--down"]);
    }
    let active = || lab.good(&["iblinkinfo"]).matches("Active/  LinkUp").count();
    let stopwatch = Stopwatch::start();
    assert!(eventually(30.0, || active() == 10), "{} ports", active());
    eprintln!("a switch without cables is left out after {:.2} s", stopwatch.seconds());
    let goes_on_without = |((from, to), count)| completed(&lab, from, to) > count + 20;
    let all = || OTHERS.into_iter().zip(counts).all(goes_on_without);
    assert!(eventually(60.0, all), "flows of others stand still");
    for port in CABLES {
        lab.place.good(&["set", "link", port, "--up"]);
    }
    let back = goes_on(&lab, &manager);
    eprintln!("data behind the switch {back:.2} s after its cables are back");
    assert_eq!(sent_again(&lab), before, "others have lost packets");
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
