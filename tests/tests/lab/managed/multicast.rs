//! A multicast group joined through OpenSM: its record, its tree, the data of members and of a sender that is none, the
//! counters, a member that is cut off and comes back, and another OpenSM that knows nothing of the group.

use super::oracle::{Node, field};
use super::{Managed, has_packages};
use crate::laboratory::{eventually, pause};
use emulation::clock::Stopwatch;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SCENARIO: &str = "tests/tests/lab/managed/multicast.toml";
const MGID: &str = "ff12::beef";
const MEMBERS: [&str; 3] = ["h1", "h2", "h3"];
const SENDERS: [&str; 2] = ["h1", "h4"];
/// OpenSM leads the packets also to ports that only send.
const IN_TREE: [&str; 4] = ["h1", "h2", "h3", "h4"];
/// The LID of the group in the plan.
const PLANNED: u64 = 0xc000;

fn node(lab: &Managed, name: &str) -> Value {
    let shown = lab.place.json(&["show", "flows", "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").clone();
    nodes.into_iter().find(|node| node["node"] == name).expect("the node")
}

fn named(lab: &Managed, name: &str, counter: &str) -> u64 {
    node(lab, name)["ports"][0]["named"][counter].as_u64().unwrap_or(0)
}

fn received(lab: &Managed, name: &str) -> u64 {
    named(lab, name, "multicast_rcv_packets")
}

/// Messages that a NIC has sent to the group.
fn sent(lab: &Managed, name: &str) -> u64 {
    let node = node(lab, name);
    let flows = node["flows"].as_array().expect("flows").iter();
    let own = flows.filter(|flow| flow["destination"].as_u64() == Some(PLANNED));
    own.filter_map(|flow| flow["completed"].as_u64()).sum()
}

/// The output ports of the group at each switch, by GUID, as `dump_mfts` prints them.
fn tree(lab: &Managed, mlid: u64) -> BTreeMap<u64, BTreeSet<u8>> {
    let said = lab.good(&["dump_mfts"]);
    let mut outputs = BTreeMap::new();
    let (mut guid, mut ports) = (0, "");
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("guid ") {
            let digits = rest.trim_start_matches("0x").split(' ').next().unwrap_or_default();
            guid = u64::from_str_radix(digits, 16).expect("a GUID");
            outputs.insert(guid, BTreeSet::new());
        }
        if line.contains("Ports:") {
            ports = line;
        }
        if line.to_lowercase().starts_with(&format!("{mlid:#06x}")) {
            // A cross below the last digit of each port.
            let at = |(place, _): (usize, &str)| {
                let number = ports[..=place].rsplit(' ').next().expect("a number");
                number.parse::<u8>().expect("a port")
            };
            outputs.insert(
                guid,
                line[6..].match_indices('x').map(|(at, x)| (at + 6, x)).map(at).collect(),
            );
        }
    }
    outputs
}

/// The NICs that a packet of `from` reaches along the tree.
fn reached(lab: &Managed, tree: &BTreeMap<u64, BTreeSet<u8>>, from: &str) -> BTreeSet<String> {
    let mut nics = BTreeSet::new();
    let mut inputs = vec![lab.oracle.far((lab.oracle.node(from).guid, 1))];
    while let Some((guid, input)) = inputs.pop() {
        if let Some(nic) = lab.oracle.nics().find(|nic| nic.guid == guid) {
            assert!(nics.insert(nic.name.clone()), "{} gets it twice", nic.name);
            continue;
        }
        let outputs = tree[&guid].iter().filter(|port| **port != input);
        inputs.extend(outputs.map(|port| lab.oracle.far((guid, *port))));
    }
    nics
}

/// JoinState of a NIC in the group, as the manager has it; `None` if it has none.
fn join_state(lab: &Managed, nic: &Node) -> Option<String> {
    let gid = format!("fe80::{}", interface(nic.guid + 1));
    let words = ["saquery", "--smkey", "1", "MCMR", "--mgid", MGID, "--gid", &gid];
    // An error while no manager answers.
    let said = String::from_utf8_lossy(&lab.run(&words).stdout).into_owned();
    let line = said.lines().find(|line| line.contains("JoinState"))?;
    Some(line.rsplit('.').next().expect("a value").to_owned())
}

fn interface(guid: u64) -> String {
    let part = |shift: u32| format!("{:x}", guid >> shift & 0xffff);
    [48, 32, 16, 0].map(part).join(":")
}

/// What NICs have sent and received once the traffic rests.
fn at_rest(lab: &Managed) -> BTreeMap<String, u64> {
    lab.place.good(&["traffic", "stop"]);
    let read = || {
        let received =
            ["h1", "h2", "h3", "h4", "h5"].map(|name| (name.to_owned(), received(lab, name)));
        let sent = SENDERS.map(|name| (format!("sent {name}"), sent(lab, name)));
        let dropped = node(lab, "h4")["ports"][0]["drops"]["not_for_us"].as_u64().unwrap_or(0);
        let dropped = ("dropped h4".to_owned(), dropped);
        BTreeMap::from_iter(received.into_iter().chain(sent).chain([dropped]))
    };
    let mut before = read();
    let rests = || {
        pause(0.5);
        std::mem::replace(&mut before, read()) == before
    };
    assert!(eventually(20.0, rests), "counters still move");
    before
}

/// Starts the traffic until `name` has received so many packets more.
fn send(lab: &Managed, name: &str, more: u64) {
    let had = received(lab, name);
    lab.place.good(&["traffic", "start"]);
    assert!(eventually(60.0, || received(lab, name) > had + more), "{name} gets nothing");
}

#[test]
#[ignore = "slow"]
fn nics_join_a_multicast_group_through_opensm_and_get_its_packets() {
    if !has_packages() {
        return;
    }
    let lab = Managed { beside: "h0", ..Managed::up(SCENARIO, &[]) };
    let manager = lab.manage();
    let mlid = |name: &str| named(&lab, name, "multicast_lid_news");
    let all_joined = || IN_TREE.iter().all(|name| mlid(name) > PLANNED);
    assert!(eventually(60.0, all_joined), "{}", manager.text());
    let group = mlid("h1");
    assert!(IN_TREE.iter().all(|name| mlid(name) == group));
    let record = lab.good(&["saquery", "MCMR", "--mgid", MGID]);
    assert!(record.contains(MGID) && record.contains(&format!("{group:#x}")), "{record}");
    let state = |name: &str| join_state(&lab, lab.oracle.node(name));
    let states = ["h1", "h2", "h3", "h4", "h5"].map(state);
    let expected = [Some("0x1"), Some("0x1"), Some("0x1"), Some("0x4"), None];
    assert_eq!(states, expected.map(|state| state.map(str::to_owned)));
    // The tree leads the packets of each sender to all others.
    let reaches = |from: &str, members: &[&str]| {
        let to = members.iter().filter(|name| **name != from).map(|name| (*name).to_owned());
        reached(&lab, &tree(&lab, group), from) == to.collect()
    };
    let is_routed = || SENDERS.iter().all(|from| reaches(from, &IN_TREE));
    assert!(eventually(30.0, is_routed), "{:?}", tree(&lab, group));
    let before = at_rest(&lab);
    send(&lab, "h1", 50);
    let after = at_rest(&lab);
    let grown = |name: &str| after[name] - before[name];
    let [of_h1, of_h4] = SENDERS.map(|name| grown(&format!("sent {name}")));
    assert!(of_h1 > 20 && of_h4 > 20, "{after:?}");
    let expected = [of_h4, of_h1 + of_h4, of_h1 + of_h4, 0, 0];
    assert_eq!(["h1", "h2", "h3", "h4", "h5"].map(grown), expected);
    assert_eq!(grown("dropped h4"), of_h1, "h4 takes none of the packets of h1");
    for name in MEMBERS {
        let lid = lab.oracle.node(name).lid.to_string();
        let said = lab.good(&["perfquery", "-x", &lid, "1"]);
        assert_eq!(field(&said, "PortMulticastRcvPkts"), received(&lab, name).to_string());
        assert_eq!(field(&said, "PortMulticastXmitPkts") != "0", SENDERS.contains(&name), "{said}");
    }
    // A member that is cut off leaves the tree, and joins again when it is back.
    let stopwatch = Stopwatch::start();
    lab.place.good(&["set", "link", "h3:1", "--down"]);
    let left = || SENDERS.iter().all(|from| reaches(from, &["h1", "h2", "h4"]));
    assert!(eventually(60.0, left), "{}", manager.text());
    eprintln!("a member without its cable is out of the tree after {:.2} s", stopwatch.seconds());
    assert_eq!(state("h3"), None);
    let stopwatch = Stopwatch::start();
    lab.place.good(&["set", "link", "h3:1", "--up"]);
    assert!(eventually(60.0, is_routed), "{:?} {}", tree(&lab, group), manager.text());
    eprintln!("it is back {:.2} s after its cable", stopwatch.seconds());
    assert_eq!(state("h3").as_deref(), Some("0x1"));
    send(&lab, "h3", 20);
    at_rest(&lab);
    let second = lab.start_manager("h5");
    assert!(eventually(20.0, || second.said("Entering STANDBY state")), "{}", second.text());
    let stopwatch = Stopwatch::start();
    drop(manager);
    assert!(eventually(30.0, || second.said("Entering MASTER state")), "{}", second.text());
    let all_joined = || MEMBERS.iter().all(|name| state(name).as_deref() == Some("0x1"));
    assert!(eventually(60.0, all_joined), "{}", second.text());
    eprintln!("another OpenSM has all members after {:.2} s", stopwatch.seconds());
    send(&lab, "h3", 20);
    drop(second);
    lab.place.down("m");
    lab.place.assert_empty();
}
