//! Routing engines of OpenSM, each on a fabric it is for: data between all pairs pass the cables that ibtracert prints,
//! and perfquery counts what the devices have counted.

use super::oracle::{Port, field, hex_after, traced};
use super::{Managed, has_packages};
use crate::laboratory::{eventually, pause};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Further options of OpenSM.
    options: &'static [&'static str],
    /// Lanes that carry data.
    lanes: usize,
}

const ROWS: [Row; 5] = [
    // Two cables between two switches: minhop spreads over them.
    Row {
        engine: "minhop",
        switches: 2,
        nics: &[0, 0, 1, 1],
        trunks: &[(0, 1), (0, 1)],
        roots: &[],
        options: &[],
        lanes: 1,
    },
    // A ring has a cycle that up/down routes never close.
    Row {
        engine: "updn",
        switches: 5,
        nics: &[0, 1, 2, 3, 4],
        trunks: &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        roots: &[0],
        options: &[],
        lanes: 1,
    },
    // Four leaves below two spines.
    Row {
        engine: "ftree",
        switches: 6,
        nics: &[0, 0, 1, 1, 2, 2, 3, 3],
        trunks: &[(0, 4), (0, 5), (1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)],
        roots: &[],
        options: &[],
        lanes: 1,
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
        options: &[],
        lanes: 1,
    },
    // Shortest routes in a ring need two layers of lanes.
    Row {
        engine: "lash",
        switches: 5,
        nics: &[0, 1, 2, 3, 4],
        trunks: &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        roots: &[],
        options: &["-Q"],
        lanes: 2,
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

/// An output and a lane of it.
type Output = (Port, u8);

/// What the devices have counted.
#[derive(Default)]
struct Counted {
    /// Data frames by output and lane.
    data: BTreeMap<Output, u64>,
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
            for lane in list(port, "lanes") {
                let (frames, octets) = (number(&lane, "tx_frames"), number(&lane, "tx_bytes"));
                let of_data = (octets - frames * DATAGRAM) / (FRAME - DATAGRAM);
                if of_data > 0 {
                    data.insert(((guid, index as u8 + 1), number(&lane, "lane") as u8), of_data);
                }
            }
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

/// The service level of the path from one LID to another. OpenSM maps it to the lane of the same number.
fn level(lab: &Managed, from: u64, to: u64) -> u8 {
    let said = lab.good(&["saquery", "--src-to-dst", &format!("{from}:{to}")]);
    hex_after(&said, "\tsl......................").expect("a service level") as u8
}

/// Data frames by output, if every flow passes where ibtracert goes, on the lane of its path record.
fn expected(lab: &Managed, row: &Row, flows: &BTreeMap<(u64, u64), u64>) -> BTreeMap<Output, u64> {
    let mut by_output = BTreeMap::new();
    for ((from, to), frames) in flows {
        let lane = if row.lanes > 1 { level(lab, *from, *to) } else { 0 };
        for output in outputs(lab, *from, *to) {
            *by_output.entry((output, lane)).or_default() += frames;
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

/// Lets every pair send more than `before`, and then all that was posted.
fn send(lab: &Managed, row: &Row, pairs: usize, before: &Counted) -> Counted {
    lab.place.good(&["traffic", "start"]);
    let all = || {
        let flows = since(&counted(lab).flows, &before.flows);
        flows.len() == pairs
    };
    assert!(eventually(60.0, all), "{}: {:?}", row.engine, counted(lab).flows);
    lab.place.good(&["traffic", "stop"]);
    // What was posted before the stop is sent, or withdrawn.
    let mut seen = counted(lab);
    let is_quiet = || {
        pause(1.0);
        let before = std::mem::replace(&mut seen, counted(lab));
        seen.data == before.data
    };
    assert!(eventually(30.0, is_quiet), "{}: data do not end", row.engine);
    seen
}

/// What was counted after `before`, without zeros.
fn since<K: Copy + Ord>(after: &BTreeMap<K, u64>, before: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let more = after.iter().map(|(key, frames)| (*key, frames - before.get(key).unwrap_or(&0)));
    more.filter(|(_, frames)| *frames > 0).collect()
}

fn try_engine(row: &Row) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("engine.toml");
    fs::write(&file, row.text()).expect("a file");
    let lab = Managed::up(file.to_str().expect("a path"), &[]);
    lab.place.good(&["traffic", "stop"]);
    let roots = folder.path().join("roots");
    let guid = |switch: &usize| format!("0x{:016x}\n", lab.oracle.node(&format!("s{switch}")).guid);
    fs::write(&roots, row.roots.iter().map(guid).collect::<String>()).expect("a file");
    let roots = roots.display().to_string();
    let given: &[&str] = if row.roots.is_empty() { &[] } else { &["-a", &roots] };
    let manager = lab.start_manager_with("h0", &[&["-R", row.engine], given, row.options].concat());
    let is_used = format!("{} tables configured on all switches", row.engine);
    let is_up = || manager.said("SUBNET UP");
    assert!(eventually(30.0, is_up) && manager.said(&is_used), "{}", manager.text());
    let pairs = row.nics.len() * (row.nics.len() - 1);
    // The first packet of a pair may leave before its path is known.
    let first = send(&lab, row, pairs, &Counted::default());
    let last = send(&lab, row, pairs, &first);
    let (data, flows) = (since(&last.data, &first.data), since(&last.flows, &first.flows));
    assert_eq!(data, expected(&lab, row, &flows), "{}", row.engine);
    let lanes: BTreeSet<u8> = data.keys().map(|(_, lane)| *lane).collect();
    assert_eq!(lanes.len(), row.lanes, "{}: {data:?}", row.engine);
    let of_port = |port: Port| (0..4).filter_map(|lane| last.data.get(&(port, lane))).sum::<u64>();
    for node in &lab.oracle.nodes {
        for port in 1..=node.ports {
            let at = (node.guid, port);
            let expected = [of_port(at), of_port(lab.oracle.far(at))];
            assert_eq!(data_of(&lab, node.lid, port), expected, "{}: {at:x?}", row.engine);
        }
    }
    let frames: u64 = flows.values().sum();
    let outputs = data.keys().map(|(port, _)| *port).collect::<BTreeSet<_>>().len();
    eprintln!(
        "{}: {pairs} pairs, {frames} frames by {outputs} outputs on lanes {lanes:?}",
        row.engine
    );
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}

#[test]
#[ignore = "slow"]
fn data_take_the_routes_of_each_engine() {
    if !has_packages() {
        return;
    }
    ROWS.iter().for_each(try_engine);
}
