//! The hot spot cured by ibccconfig, while the fabric runs under OpenSM.

use super::oracle::field;
use super::{Managed, has_packages};
use crate::laboratory::{alone, eventually};

const SCENARIO: &str = "tests/tests/lab/managed/hot_spot.toml";
/// Picoseconds of a full frame at 8 Gb/s: 2048 octets of payload and 30 of headers and CRCs.
const FRAME_PS: u64 = 2_078_000;
/// Bits a second of a line.
const LINE: f64 = 8e9;
/// Entries of a congestion control table in one attribute.
const BLOCK: usize = 64;
/// Milliseconds that a program waits for an answer: datagrams of QP1 wait in the congestion tree as data do.
const PATIENCE: &str = "60000";
/// Delay at the last of 128 entries, in frame times: 1/32 of the line.
const DELAY_MAX: usize = 31;

/// Fabric time and octets that the cold ports have received.
fn received(lab: &Managed) -> (u64, u64) {
    let shown = lab.place.json(&["show", "links", "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").iter();
    let is_cold = |name: &str| name.starts_with('h') && name != "h31";
    let cold = nodes.filter(|node| node["node"].as_str().is_some_and(is_cold));
    let ports = cold.flat_map(|node| node["ports"].as_array().expect("ports"));
    let lanes = ports.flat_map(|port| port["lanes"].as_array().expect("lanes"));
    let octets = lanes.filter_map(|lane| lane["rx_bytes"].as_u64()).sum();
    (shown["at_ps"].as_u64().expect("a number"), octets)
}

/// Waits for so many frame times of fabric time.
fn wait_frames(lab: &Managed, frames: u64) {
    let (begin, _) = received(lab);
    let has_passed = || received(lab).0 >= begin + frames * FRAME_PS;
    assert!(eventually(600.0, has_passed), "the lab stands still");
}

/// The share of their lines that the cold ports get, over so many frame times.
fn share(lab: &Managed, frames: u64) -> f64 {
    let before = received(lab);
    wait_frames(lab, frames);
    let after = received(lab);
    let seconds = (after.0 - before.0) as f64 / 1e12;
    (after.1 - before.1) as f64 * 8.0 / seconds / LINE / 31.0
}

/// The ticks in which the adapters' ports had data and no credit.
fn waits(lab: &Managed) -> u64 {
    let wait = |node: &super::oracle::Node| {
        let said = lab.good(&["perfquery", "-t", PATIENCE, &node.lid.to_string(), "1"]);
        field(&said, "PortXmitWait").parse::<u64>().expect("a number")
    };
    lab.oracle.nics().take(4).map(wait).sum()
}

/// Marking at every switch, and table and timer of the paper at every adapter.
fn configure(lab: &Managed) {
    for switch in lab.oracle.switches() {
        let lid = switch.lid.to_string();
        let words = [
            "ibccconfig",
            "-t",
            PATIENCE,
            "SwitchCongestionSetting",
            &lid,
            "0x1F",
            "0x0",
            "0x0",
            "1",
            "0",
        ];
        lab.good(&[&words[..], &["0", "0:0", "0"]].concat());
    }
    // With shift 3 the number counts eighths of a frame time.
    let entry = |index: usize| {
        let steps = (8 * DELAY_MAX * index + BLOCK) / (2 * BLOCK - 1);
        format!("3:{steps}")
    };
    for nic in lab.oracle.nics() {
        let lid = nic.lid.to_string();
        for block in 0..2 {
            let limit = (BLOCK * (block + 1) - 1).to_string();
            let entries: Vec<String> = (block * BLOCK..(block + 1) * BLOCK).map(entry).collect();
            let words =
                [&["ibccconfig", "-t", PATIENCE, "CongestionControlTable"][..], &[&lid, &limit]]
                    .concat();
            let block = block.to_string();
            let entries = entries.iter().map(String::as_str);
            let words: Vec<&str> =
                words.into_iter().chain([block.as_str()]).chain(entries).collect();
            lab.good(&words);
        }
        let words = [
            "ibccconfig",
            "-t",
            PATIENCE,
            "CACongestionSetting",
            &lid,
            "0",
            "0x1",
            "31",
            "5",
            "0",
            "0",
        ];
        lab.good(&words);
    }
}

/// Case 4 live without control, and then with what ibccconfig sets while it runs.
#[test]
#[ignore = "slow"]
fn a_hot_spot_is_cured_by_ibccconfig() {
    if !has_packages() {
        return;
    }
    let _alone = alone();
    let lab = Managed::up(SCENARIO, &["--dilate", "1000"]);
    let manager = lab.manage();
    wait_frames(&lab, 6_000);
    let (before, waited) = (share(&lab, 3_000), waits(&lab));
    let (began, _) = received(&lab);
    configure(&lab);
    let took = (received(&lab).0 - began) / FRAME_PS;
    wait_frames(&lab, 30_000);
    let between = waits(&lab);
    let after = share(&lab, 6_000);
    let waits = [waited, between, waits(&lab)];
    eprintln!(
        "cold ports {before:.3} before, {after:.3} after; set within {took} frame times; PortXmitWait {waits:?}"
    );
    assert!(waits[2] - waits[1] < waits[1] - waits[0], "ports still wait for credits");
    assert!((0.25..0.40).contains(&before), "{before}");
    assert!(after >= 0.80, "{after}");
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
