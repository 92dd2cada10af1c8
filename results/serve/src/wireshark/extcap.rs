//! Ports of running labs as interfaces of Wireshark: the answers to its extcap queries.
//!
//! ```text
//!   Wireshark ── --extcap-interfaces, --extcap-dlts, --extcap-config ──▶ this program
//!             ── --capture --fifo ──▶ daemons ── a pipe each ──▶ one pcapng stream ──▶ Wireshark
//! ```
//!
//! An answer is lines of a word and values in braces. Source: Wireshark, doc/extcap.adoc and extcap_parser.c.

use emulation::wiring::NodeKind;
use launch::lab::LabRecord;
use proto::technology::Technology;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub mod filter;
mod merge;
pub mod session;

/// The default snap length of Ethernet frames, in octets. InfiniBand packets are kept whole, because Wireshark calls
/// cut ones malformed.
const SNAPLEN: u32 = 128;

/// An interface of Wireshark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name on command lines and in file names.
    pub value: String,
    /// Its name in the list.
    pub display: String,
    /// Its lab.
    pub lab: String,
    /// Its ports.
    pub ports: Vec<String>,
}

/// The interfaces of all labs: first one for all ports, one for all ports of switches, then one for each port.
pub fn interfaces(labs: &BTreeMap<String, LabRecord>) -> Vec<Interface> {
    labs.iter().flat_map(|(lab, record)| of_lab(lab, record)).collect()
}

fn of_lab(lab: &str, record: &LabRecord) -> Vec<Interface> {
    let cables = || record.links.iter().map(|link| (&link.a, &link.b));
    let hosts = record.attached.iter().map(|attached| (&attached.port, &attached.interface));
    let mut ends: Vec<(&String, &String)> =
        cables().chain(cables().map(|(a, b)| (b, a))).chain(hosts).collect();
    ends.sort_by_key(|(port, _)| natural(port));
    let is_switch = |port: &str| {
        let node = port.rsplit_once(':').map_or(port, |(node, _)| node);
        record.daemon_of(node).is_some_and(|daemon| daemon.kind == NodeKind::Switch)
    };
    let together = |word: &str, wanted: &dyn Fn(&str) -> bool| Interface {
        value: format!("pausebed-{lab}-all-{word}"),
        display: format!("lab {lab}, all {word}"),
        lab: lab.to_owned(),
        ports: ends.iter().map(|(port, _)| (*port).clone()).filter(|port| wanted(port)).collect(),
    };
    let single = |(number, (port, peer)): (usize, &(&String, &String))| Interface {
        value: format!("pausebed-{lab}-{}", plain(port, number)),
        display: format!("lab {lab}, {} \u{2192} {}", shown(port), shown(peer)),
        lab: lab.to_owned(),
        ports: vec![(*port).clone()],
    };
    let mut all = vec![together("ports", &|_| true), together("switches", &is_switch)];
    all.extend(ends.iter().enumerate().map(single));
    all
}

/// A sort key with numbers as numbers: leaf2:10 after leaf2:9.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(letters);
        let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(digits);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

/// A name that is valid in file names and settings; with its number if it had to be changed.
fn plain(name: &str, number: usize) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if name.chars().all(is_plain) && name.len() <= 40 {
        return name.to_owned();
    }
    format!("{:.40}~{number}", name.replace(|c| !is_plain(c), "_"))
}

/// A name without characters that would end a value or a line.
fn shown(name: &str) -> String {
    format!("{:.60}", name.replace(|c: char| c.is_control() || "{}".contains(c), "_"))
}

/// The answer to `--extcap-interfaces`.
pub fn listing(interfaces: &[Interface]) -> String {
    let mut text =
        format!("extcap {{version={}}}{{display=pausebed}}\n", env!("CARGO_PKG_VERSION"));
    for Interface { value, display, .. } in interfaces {
        let _ = writeln!(text, "interface {{value={value}}}{{display={display}}}");
    }
    text
}

/// The answer to `--extcap-dlts`.
pub fn link_types(technology: Technology) -> &'static str {
    match technology {
        Technology::Ethernet => "dlt {number=1}{name=EN10MB}{display=Ethernet}\n",
        Technology::Infiniband => "dlt {number=197}{name=ERF}{display=InfiniBand in ERF records}\n",
    }
}

/// The answer to `--extcap-config`.
pub fn configuration(technology: Technology) -> String {
    let (lane, lanes, control, snaplen) = match technology {
        Technology::Ethernet => ("priority", 8, "pauses and congestion notifications", SNAPLEN),
        Technology::Infiniband => ("virtual lane", 16, "credits and congestion notifications", 0),
    };
    let mut text = format!(
        "arg {{number=0}}{{call=--snaplen}}{{display=Octets kept of a frame}}\
         {{tooltip=0 keeps all}}{{type=unsigned}}{{range=0,65535}}{{default={snaplen}}}\n\
         arg {{number=1}}{{call=--direction}}{{display=Frames that the port}}{{type=selector}}\n\
         value {{arg=1}}{{value=both}}{{display=sends or receives}}{{default=true}}\n\
         value {{arg=1}}{{value=sent}}{{display=sends}}{{default=false}}\n\
         value {{arg=1}}{{value=received}}{{display=receives}}{{default=false}}\n\
         arg {{number=2}}{{call=--lane}}{{display=Of {lane}}}{{type=selector}}\n\
         value {{arg=2}}{{value=all}}{{display=all}}{{default=true}}\n"
    );
    for number in 0..lanes {
        let value = format_args!("{{value={number}}}{{display={number}}}{{default=false}}");
        let _ = writeln!(text, "value {{arg=2}}{value}");
    }
    let only = format_args!("{{display=Only {control}}}{{type=boolflag}}{{default=false}}");
    let _ = writeln!(text, "arg {{number=3}}{{call=--only-control}}{only}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;
    use launch::lab::folder::{DaemonRecord, LinkRecord};
    use proto::units::BitRate;

    fn lab() -> LabRecord {
        let daemon = |kind, nodes: &[&str]| DaemonRecord {
            pid: 1,
            kind,
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            is_silent: false,
            restarts: 0,
            is_given_up: false,
            socket: "s".into(),
            address: None,
            clients: None,
        };
        let link = |a: &str, b: &str| LinkRecord {
            a: a.to_owned(),
            b: b.to_owned(),
            rate: BitRate::gbps(8),
        };
        LabRecord {
            daemons: vec![
                daemon(NodeKind::Nic, &["h1", "{x}\n</b>"]),
                daemon(NodeKind::Switch, &["s1"]),
            ],
            links: vec![link("h1:1", "s1:10"), link("{x}\n</b>:1", "s1:9")],
            ..record("one")
        }
    }

    #[test]
    fn every_end_of_a_cable_is_an_interface_whatever_its_name() {
        let all = interfaces(&BTreeMap::from([("one".to_owned(), lab())]));
        let values: Vec<&str> = all.iter().map(|one| one.value.as_str()).collect();
        let expected = [
            "pausebed-one-all-ports",
            "pausebed-one-all-switches",
            "pausebed-one-h1:1",
            "pausebed-one-s1:9",
            "pausebed-one-s1:10",
            "pausebed-one-_x____b_:1~3",
        ];
        assert_eq!(values, expected);
        assert_eq!(
            (all[0].ports.len(), all[1].ports.as_slice()),
            (4, &["s1:9", "s1:10"].map(String::from)[..])
        );
        assert_eq!(all[5].ports, ["{x}\n</b>:1"]);
        let text = listing(&all);
        assert_eq!(text.lines().count(), 7, "{text}");
        assert!(text.lines().all(|line| line.ends_with('}')), "{text}");
    }

    #[test]
    fn answers_have_words_and_values_in_braces_and_nothing_else() {
        let parses = |line: &str| {
            let (word, values) = line.split_once(' ').expect("a word");
            let inner = values.strip_prefix('{').and_then(|v| v.strip_suffix('}')).expect("braces");
            let values = inner.split("}{").map(|value| value.split_once('=').expect("a value"));
            ["extcap", "interface", "dlt", "arg", "value"].contains(&word)
                && values
                    .into_iter()
                    .all(|(key, value)| !key.is_empty() && !value.contains(['{', '}']))
        };
        for technology in [Technology::Ethernet, Technology::Infiniband] {
            let text = configuration(technology) + link_types(technology);
            for line in text.lines() {
                assert!(parses(line), "{line}");
            }
            assert_eq!(text.matches("{default=true}").count(), 2);
        }
    }
}
