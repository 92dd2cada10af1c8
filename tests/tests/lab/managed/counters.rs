//! The options of perfquery on a congested fabric, compared with the counters of the devices.

use super::oracle::field;
use super::programs::numbers;
use super::{Managed, has_packages};
use crate::laboratory::{eventually, pause};
use serde_json::Value;

const SCENARIO: &str = "tests/tests/lab/managed/counters.toml";
/// A NIC that sends, the NIC that receives, and the congested outputs.
const PLACES: [(&str, usize); 4] = [("h0", 1), ("h3", 1), ("s1", 2), ("s0", 3)];
/// Picoseconds of a tick: four octets at 8 Gb/s.
const TICK: u64 = 4_000;
/// The largest number in a field of sixteen bits.
const MAX: u64 = 0xffff;

/// The ports of a node as the lab shows them.
fn lanes(lab: &Managed, (name, port): (&str, usize)) -> Vec<Value> {
    let shown = lab.place.json(&["show", "links", "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").clone();
    let node = nodes.into_iter().find(|node| node["node"] == name).expect("the node");
    node["ports"][port - 1]["lanes"].as_array().expect("lanes").clone()
}

fn query(lab: &Managed, option: &str, (name, port): (&str, usize)) -> String {
    let lid = lab.oracle.node(name).lid.to_string();
    lab.good(&["perfquery", "-t", "20000", option, &lid, &port.to_string()])
}

fn number(said: &str, name: &str) -> u64 {
    field(said, name).parse().expect("a number")
}

/// Marks at the switches, and a table with long delays at the senders.
fn control(lab: &Managed) {
    let set = |words: &[&str]| {
        lab.good(&[&["ibccconfig", "-t", "20000"], words].concat());
    };
    for switch in lab.oracle.switches() {
        let lid = switch.lid.to_string();
        let rest = ["0x1F", "0x0", "0x0", "15", "0", "0", "0:0", "0"];
        set(&[&["SwitchCongestionSetting", &lid][..], &rest].concat());
    }
    let entries: Vec<String> = (0..64).map(|index| format!("3:{}", 2 * index)).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    for nic in lab.oracle.nics() {
        let lid = nic.lid.to_string();
        set(&[&["CongestionControlTable", &lid, "63", "0"][..], &entries].concat());
        set(&["CACongestionSetting", &lid, "0", "0x1", "31", "4", "0", "0"]);
    }
}

#[test]
#[ignore = "slow"]
fn every_option_of_perfquery_agrees_with_the_counters_of_the_device() {
    if !has_packages() {
        return;
    }
    let lab = Managed::up(SCENARIO, &[]);
    let manager = lab.manage();
    let sum = |place, of: &str| -> u64 {
        lanes(&lab, place).iter().filter_map(|lane| lane[of].as_u64()).sum()
    };
    assert!(eventually(60.0, || sum(PLACES[2], "tx_frames") > 500), "{}", manager.text());
    control(&lab);
    assert!(eventually(120.0, || sum(PLACES[2], "marks") > 50), "nothing is marked");
    let held = || number(&query(&lab, "--xmitcc", PLACES[0]), "PortXmitTimeCong");
    assert!(eventually(120.0, || held() > 0), "the table holds nothing back");
    lab.place.good(&["traffic", "stop"]);
    let mut before = 0;
    let is_quiet = || {
        pause(1.0);
        let now = sum(PLACES[2], "tx_frames");
        std::mem::replace(&mut before, now) == now
    };
    assert!(eventually(120.0, is_quiet), "data do not end");
    for place in PLACES {
        let row = |of: &str| -> Vec<u64> {
            lanes(&lab, place).iter().filter_map(|lane| lane[of].as_u64()).collect()
        };
        let waits = numbers(&query(&lab, "--vlxmitcounters", place), "PortVLXmitWait");
        let expected = row("wait_ps").into_iter().map(|time| (time / TICK).min(MAX));
        assert!(expected.zip(&waits).all(|(a, b)| a == *b), "{place:?}: {waits:?}");
        let said = query(&lab, "--flowctlcounters", place);
        assert!(number(&said, "PortXmitFlowPkts") > 0 && number(&said, "PortRcvFlowPkts") > 0);
        assert_eq!(number(&query(&lab, "-D", place), "PortInactiveDiscards"), 0);
        assert_eq!(number(&query(&lab, "-E", place), "PortLocalPhysicalErrors"), 0);
        // All but subnet management has service level 0. Each question and answer is a packet more.
        let (all, said) =
            (query(&lab, "-x", place), [query(&lab, "-X", place), query(&lab, "-S", place)]);
        for (name, row, said) in
            [("PortXmitData", "XmtDataSL", &said[0]), ("PortRcvData", "RcvDataSL", &said[1])]
        {
            let levels = numbers(said, row);
            assert!(
                levels[0] > 0 && levels[1..].iter().all(|level| *level == 0),
                "{place:?}: {levels:?}"
            );
            assert!(levels[0] <= number(&all, name) + 72 * 4, "{place:?}: {levels:?} of {all}");
        }
        if place.0.starts_with('s') {
            let marked = numbers(&query(&lab, "--swportvlcong", place), "SWPortVLCongestion");
            assert!(row("marks").into_iter().zip(&marked).all(|(a, b)| a == *b), "{marked:?}");
            continue;
        }
        let said = query(&lab, "--rcvcc", place);
        let [fecn, becn] = ["PortPktRcvFECN", "PortPktRcvBECN"].map(|name| number(&said, name));
        let levels = |option: &str, name: &str| numbers(&query(&lab, option, place), name);
        assert_eq!(levels("--slrcvfecn", "PortSLRcvFECN").iter().sum::<u64>(), fecn);
        assert_eq!(levels("--slrcvbecn", "PortSLRcvBECN").iter().sum::<u64>(), becn);
        let is_sender = place == PLACES[0];
        assert_eq!((fecn > 0, becn > 0), (!is_sender, is_sender), "{place:?}");
        let by_lane = levels("--vlxmittimecc", "PortVLXmitTimeCong").iter().sum::<u64>();
        assert_eq!(by_lane, number(&query(&lab, "--xmitcc", place), "PortXmitTimeCong"));
        assert_eq!(by_lane > 0, is_sender, "{place:?}");
    }
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
