//! Routing engines of OpenSM, each on a fabric it is for: data between all pairs pass the cables that ibtracert prints,
//! and perfquery counts what the devices have counted.

use super::oracle::{Port, field, traced};
use super::{Managed, has_packages};
use crate::laboratory::{alone, eventually, pause};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

/// Octets of each message's packet: payload, headers and both CRCs.
const FRAME: u64 = 2048 + 26;
/// Octets of a management packet. On QP1 they share lanes and counters with data.
const DATAGRAM: u64 = 256 + 34;

/// A fabric for an engine.
struct Row {
    engine: &'static str,
    /// The number of switches.
    switches: usize,
    /// By NIC: its switch.
    nics: &'static [usize],
    /// Cables between switches.
    trunks: &'static [(usize, usize)],
    /// Switches that the engine needs as roots.
    roots: &'static [usize],
}

const ROWS: [Row; 5] = [
    // Two cables between two switches: minhop spreads over them.
    Row {
        engine: "minhop",
        switches: 2,
        nics: &[0, 0, 1, 1],
        trunks: &[(0, 1), (0, 1)],
        roots: &[],
    },
    // A ring has a cycle that up/down routes never close.
    Row {
        engine: "updn",
        switches: 5,
        nics: &[0, 1, 2, 3, 4],
        trunks: &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        roots: &[0],
    },
    // Four leaves below two spines.
    Row {
        engine: "ftree",
        switches: 6,
        nics: &[0, 0, 1, 1, 2, 2, 3, 3],
        trunks: &[(0, 4), (0, 5), (1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)],
        roots: &[],
    },
    // A mesh of three by three; the cables of each row come before those of the columns.
    Row {
        engine: "dor",
        switches: 9,
        nics: &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        trunks: &[
            (0, 1),
            (1, 2),
            (3, 4),
            (4, 5),
            (6, 7),
            (7, 8),
            (0, 3),
            (3, 6),
            (1, 4),
            (4, 7),
            (2, 5),
            (5, 8),
        ],
        roots: &[],
    },
    // Shortest routes in a ring need two layers of lanes.
    Row {
        engine: "lash",
        switches: 5,
        nics: &[0, 1, 2, 3, 4],
        trunks: &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        roots: &[],
    },
];

impl Row {
    /// The scenario, with traffic from every NIC to all others.
    fn text(&self) -> String {
        let mut used = vec![0u8; self.switches];
        let mut port = |switch: usize| {
            used[switch] += 1;
            format!("s{switch}:{}", used[switch])
        };
        let (mut nodes, mut links) = (String::new(), String::new());
        // Writing to a String cannot fail.
        for switch in 0..self.switches {
            let _ = writeln!(nodes, "{{ name = \"s{switch}\", kind = \"switch\" }},");
        }
        for (nic, switch) in self.nics.iter().enumerate() {
            let _ = writeln!(nodes, "{{ name = \"h{nic}\", kind = \"nic\" }},");
            let _ = writeln!(links, "{{ a = \"h{nic}:1\", b = \"{}\" }},", port(*switch));
        }
        for (a, b) in self.trunks {
            let _ = writeln!(links, "{{ a = \"{}\", b = \"{}\" }},", port(*a), port(*b));
        }
        format!(
            "schema = 1\nname = \"engines\"\nsource = \"the tests of labs; no paper\"\n\
             [run]\nseed = 5\nduration = \"300 mtu\"\ndilate = 500\nbackend = \"udp\"\n\
             [lab]\nmanaged = true\n[fabric]\nnodes = [{nodes}]\nlinks = [{links}]\n\
             link = {{ rate = \"8 Gbps\", delay = \"0.125 mtu\", lanes = 4, vls = 4 }}\n\
             [[traffic]]\nname = \"all\"\nfrom = \"h[0-{}]\"\nto = \"uniform\"\nload = 0.1\n\
             arrivals = \"paced\"\nsize = \"2048 B\"\ntransport = \"uc\"\n",
            self.nics.len() - 1
        )
    }
}

/// What the devices have counted.
struct Counted {
    /// Data frames by output.
    data: BTreeMap<Port, u64>,
    /// Data frames by LIDs of sender and receiver.
    flows: BTreeMap<(u64, u64), u64>,
}

fn counted(lab: &Managed) -> Counted {
    let shown = lab.place.json(&["show", "flows", "--json"]);
    let list = |value: &Value, of: &str| value[of].as_array().cloned().unwrap_or_default();
    let number = |value: &Value, of: &str| value[of].as_u64().unwrap_or_default();
    let (mut data, mut flows) = (BTreeMap::new(), BTreeMap::new());
    for node in list(&shown, "nodes") {
        let guid = lab.oracle.node(node["node"].as_str().expect("a name")).guid;
        for (index, port) in list(&node, "ports").iter().enumerate() {
            let lanes = list(port, "lanes");
            let sum = |of: &str| lanes.iter().map(|lane| number(lane, of)).sum::<u64>();
            let (frames, octets) = (sum("tx_frames"), sum("tx_bytes"));
            let of_data = (octets - frames * DATAGRAM) / (FRAME - DATAGRAM);
            data.insert((guid, index as u8 + 1), of_data);
        }
        for flow in list(&node, "flows") {
            let ends = (number(&flow, "source"), number(&flow, "destination"));
            *flows.entry(ends).or_default() += number(&flow, "tx_bytes") / FRAME;
        }
    }
    Counted { data, flows }
}

/// The outputs on the way from one LID to another, as ibtracert prints it.
fn outputs(lab: &Managed, from: u64, to: u64) -> Vec<Port> {
    let said = lab.good(&["ibtracert", &from.to_string(), &to.to_string()]);
    let source = lab.oracle.nodes.iter().find(|node| u64::from(node.lid) == from);
    let mut at = source.expect("a node of the plan").guid;
    let next = |[a, b]: [Port; 2]| {
        let (out, far) = if a.0 == at { (a, b) } else { (b, a) };
        at = far.0;
        out
    };
    traced(&said).into_iter().map(next).collect()
}

/// Data frames by output, if every flow passes where ibtracert goes.
fn expected(lab: &Managed, flows: &BTreeMap<(u64, u64), u64>) -> BTreeMap<Port, u64> {
    let mut by_output = BTreeMap::new();
    for ((from, to), frames) in flows {
        for output in outputs(lab, *from, *to) {
            *by_output.entry(output).or_default() += frames;
        }
    }
    by_output
}

/// Data frames sent and received by a port, as perfquery counts packets and words: all others are datagrams, those of
/// perfquery among them.
fn data_of(lab: &Managed, lid: u16, port: u8) -> [u64; 2] {
    let said = lab.good(&["perfquery", "-t", "10000", &lid.to_string(), &port.to_string()]);
    let number = |name: &str| field(&said, name).parse::<u64>().expect("a number");
    // Without the two octets of the VCRC, in words.
    let [frame, datagram] = [FRAME, DATAGRAM].map(|octets| (octets - 2) / 4);
    [("PortXmitPkts", "PortXmitData"), ("PortRcvPkts", "PortRcvData")].map(|(packets, words)| {
        let rest = number(words) - number(packets) * datagram;
        assert_eq!(rest % (frame - datagram), 0, "{said}");
        rest / (frame - datagram)
    })
}

fn try_engine(row: &Row) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("engine.toml");
    fs::write(&file, row.text()).expect("a file");
    let lab = Managed::up(file.to_str().expect("a path"), &[]);
    lab.place.good(&["traffic", "stop"]);
    let log = folder.path().join("opensm.log").display().to_string();
    let roots = folder.path().join("roots");
    let guid = |switch: &usize| format!("0x{:016x}\n", lab.oracle.node(&format!("s{switch}")).guid);
    fs::write(&roots, row.roots.iter().map(guid).collect::<String>()).expect("a file");
    let roots = roots.display().to_string();
    let given: &[&str] = if row.roots.is_empty() { &[] } else { &["-a", &roots] };
    lab.good(&[&["opensm", "-o", "-R", row.engine, "-f", &log], given].concat());
    let said = fs::read_to_string(&log).expect("a log");
    let is_used = said.contains(&format!("{} tables configured on all switches", row.engine));
    assert!(is_used && said.contains("SUBNET UP"), "{}: {said}", row.engine);
    lab.place.good(&["traffic", "start"]);
    let pairs = row.nics.len() * (row.nics.len() - 1);
    let all = || counted(&lab).flows.values().filter(|frames| **frames > 0).count() == pairs;
    assert!(eventually(60.0, all), "{}: {:?}", row.engine, counted(&lab).flows);
    lab.place.good(&["traffic", "stop"]);
    // What was posted before the stop is sent, or withdrawn.
    let mut seen = counted(&lab);
    let is_quiet = || {
        pause(1.0);
        let before = std::mem::replace(&mut seen, counted(&lab));
        seen.data == before.data
    };
    assert!(eventually(30.0, is_quiet), "{}: data do not end", row.engine);
    let expected = expected(&lab, &seen.flows);
    let data = seen.data;
    let passed = data.iter().filter(|(_, frames)| **frames > 0);
    let passed: BTreeMap<Port, u64> = passed.map(|(port, frames)| (*port, *frames)).collect();
    assert_eq!(passed, expected, "{}", row.engine);
    for node in &lab.oracle.nodes {
        for port in 1..=node.ports {
            let at = (node.guid, port);
            let expected = [data[&at], data[&lab.oracle.far(at)]];
            assert_eq!(data_of(&lab, node.lid, port), expected, "{}: {at:x?}", row.engine);
        }
    }
    let frames: u64 = seen.flows.values().sum();
    eprintln!("{}: {pairs} pairs, {frames} frames by {} outputs", row.engine, expected.len());
    lab.place.down("m");
    lab.place.assert_empty();
}

#[test]
#[ignore = "slow"]
fn data_take_the_routes_of_each_engine() {
    if !has_packages() {
        return;
    }
    let _alone = alone();
    ROWS.iter().for_each(try_engine);
}
