//! Partitions of a partitions.conf: data inside each pass, data across are dropped, counted and reported, by the NIC or, where
//! OpenSM has the switches enforce partitions, before they reach it.

use super::moved::completed;
use super::oracle::field;
use super::{Managed, Manager, has_packages};
use crate::laboratory::{eventually, pause};
use serde_json::Value;
use std::fs;

const SCENARIO: &str = "tests/tests/lab/managed/partitions.toml";
/// Flows inside a partition.
const INSIDE: [(&str, &str); 2] = [("h1", "h2"), ("h3", "h4")];

/// All are limited members of the default partition but the manager, so that they reach it and not each other.
fn configure(lab: &Managed) -> String {
    let port = |name: &str| format!("0x{:016x}=full", lab.oracle.node(name).guid + 1);
    let line = |name: &str, number: u8, [a, b]: [&str; 2]| {
        format!("{name}=0x{number:04x} : {}, {} ;\n", port(a), port(b))
    };
    let rest = line("first", 1, ["h1", "h2"]) + &line("second", 2, ["h3", "h4"]);
    let file = lab.place.folder.path().join("partitions.conf");
    fs::write(&file, format!("Default=0x7fff : ALL=limited, SELF=full ;\n{rest}")).expect("a file");
    file.display().to_string()
}

/// Frames that a port has dropped because of their P_Key.
fn dropped(lab: &Managed, name: &str, port: u8) -> u64 {
    let shown = lab.place.json(&["show", "links", "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").clone();
    let node = nodes.into_iter().find(|node| node["node"] == name).expect("the node");
    let ports: Vec<Value> = node["ports"].as_array().expect("ports").clone();
    ports[usize::from(port) - 1]["drops"]["partition_key"].as_u64().unwrap_or(0)
}

fn number(said: &str, name: &str) -> u64 {
    field(said, name).parse().expect("a number")
}

/// Under OpenSM with this option: the flows inside go on, and the flow across ends at this port.
fn divides(lab: &Managed, option: &str, (name, port): (&str, u8)) -> Manager {
    let file = configure(lab);
    let manager = lab.start_manager_with("h0", &["-P", &file, "-Z", option]);
    assert!(eventually(30.0, || manager.said("SUBNET UP")), "{}", manager.text());
    let before = INSIDE.map(|(from, to)| completed(lab, from, to));
    let all_go = || {
        let pairs = INSIDE.into_iter().zip(before);
        pairs.into_iter().all(|((from, to), count)| completed(lab, from, to) > count + 20)
    };
    assert!(eventually(60.0, all_go), "{}", manager.text());
    let had = dropped(lab, name, port);
    assert!(eventually(60.0, || dropped(lab, name, port) > had + 20), "nothing is dropped");
    manager
}

#[test]
#[ignore = "slow"]
fn opensm_divides_a_lab_into_partitions() {
    if !has_packages() {
        return;
    }
    let lab = Managed { beside: "h0", ..Managed::up(SCENARIO, &[]) };
    let manager = divides(&lab, "off", ("h4", 1));
    lab.place.good(&["traffic", "stop"]);
    let lid = |name: &str| lab.oracle.node(name).lid.to_string();
    let violations = |name: &str, port: &str| {
        number(&lab.good(&["smpquery", "portinfo", &lid(name), port]), "PkeyViolations")
    };
    let is_counted = || violations("h4", "1") == dropped(&lab, "h4", 1);
    assert!(eventually(20.0, is_counted), "{} violations", violations("h4", "1"));
    // Before the partitions were there, the first packets of a pair had no path.
    assert_eq!((dropped(&lab, "s1", 2), violations("h2", "1")), (0, dropped(&lab, "h2", 1)));
    assert!(manager.said("num:257 (Bad P_Key)"), "{}", manager.text());
    drop(manager);
    lab.place.good(&["traffic", "start"]);
    let manager = divides(&lab, "both", ("s1", 2));
    lab.place.good(&["traffic", "stop"]);
    let errors = || {
        let said = lab.good(&["perfquery", "-t", "10000", &lid("s1"), "2"]);
        number(&said, "PortXmitConstraintErrors")
    };
    // The manager writes PortInfo, and PkeyViolations with it, while the first packets are dropped already. And a queue
    // pair repeats its packets while it has tries left. So growth is compared, from rest to rest.
    let at_rest = || {
        let read = || (dropped(&lab, "s1", 2), violations("s1", "2"), errors());
        let mut before = read();
        let is_at_rest = || {
            pause(0.5);
            std::mem::replace(&mut before, read()) == before
        };
        assert!(eventually(20.0, is_at_rest), "counters still move");
        before
    };
    let (had, violated, _) = at_rest();
    lab.place.good(&["traffic", "start"]);
    assert!(eventually(60.0, || dropped(&lab, "s1", 2) > had + 20), "nothing is dropped");
    lab.place.good(&["traffic", "stop"]);
    let (has, violates, counted) = at_rest();
    assert_eq!((has - had, counted), (violates - violated, has.min(255)));
    assert!(manager.said("num:259 (Bad P_Key"), "{}", manager.text());
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
