//! The trace of a small run, taken apart by a reader that shares nothing with the writer.

use super::trace;
use crate::tests::run;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Three adapters fill a fourth one's line, with congestion control; a phase has a name that wants to be markup.
const SCENARIO: &str = r#"schema = 1
name = "incast"
[run]
duration = "3000 mtu"
[fabric]
technology = "infiniband"
link = { rate = "8 Gbps", delay = "0.125 mtu" }
switch = { buffer = "4 mtu" }
nodes = [
  { name = "h0", kind = "nic" }, { name = "h1", kind = "nic" }, { name = "h2", kind = "nic" },
  { name = "h3", kind = "nic" }, { name = "s0", kind = "switch" },
]
links = [{ a = "h0:1", b = "s0:1" }, { a = "h1:1", b = "s0:2" }, { a = "h2:1", b = "s0:3" }, { a = "h3:1", b = "s0:4" }]
[scheme]
kind = "ib-cca"
[[traffic]]
name = "hot"
from = ["h0", "h1", "h3"]
to = "h2"
load = 0.9
arrivals = "poisson"
size = "2048 B"
[[phase]]
name = "first"
start = "0 mtu"
[[phase]]
name = "<b>second"
start = "700 mtu"
"#;

/// A field's value as it stands on the wire.
#[derive(Clone, Debug)]
enum Raw<'a> {
    Number(u64),
    Octets(&'a [u8]),
}

/// The fields of a message in their order; what is not a message of numbers, floats and octets fails.
fn fields(mut octets: &[u8]) -> Vec<(u64, Raw<'_>)> {
    fn varint(octets: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = octets.split_first().expect("a varint ends");
            *octets = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !octets.is_empty() {
        let tag = varint(&mut octets);
        let value = match tag & 7 {
            0 => Raw::Number(varint(&mut octets)),
            1 => {
                let (eight, rest) = octets.split_at(8);
                octets = rest;
                Raw::Number(u64::from_le_bytes(eight.try_into().expect("eight octets")))
            }
            2 => {
                let length = varint(&mut octets) as usize;
                let (inner, rest) = octets.split_at(length);
                octets = rest;
                Raw::Octets(inner)
            }
            other => panic!("wire type {other}"),
        };
        found.push((tag >> 3, value));
    }
    found
}

fn numbers<'a>(message: &'a [(u64, Raw<'a>)], field: u64) -> impl Iterator<Item = u64> + 'a {
    message.iter().filter_map(move |(number, value)| match value {
        Raw::Number(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn number(message: &[(u64, Raw<'_>)], field: u64) -> Option<u64> {
    numbers(message, field).next()
}

fn inner<'a>(message: &[(u64, Raw<'a>)], field: u64) -> Vec<&'a [u8]> {
    let of_field = message.iter().filter(|(number, _)| *number == field);
    of_field
        .filter_map(|(_, value)| match value {
            Raw::Octets(octets) => Some(*octets),
            Raw::Number(_) => None,
        })
        .collect()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("names are UTF-8")
}

/// A trace, read back: tracks by number with name and parent, and events in the order of the file.
struct Read {
    tracks: BTreeMap<u64, (String, Option<u64>)>,
    events: Vec<Happened>,
}

#[derive(Debug)]
struct Happened {
    at: u64,
    kind: u64,
    track: u64,
    name: String,
    notes: BTreeMap<String, String>,
    arrows: Vec<u64>,
    value: Option<u64>,
}

fn read(octets: &[u8]) -> Read {
    let mut found = Read { tracks: BTreeMap::new(), events: Vec::new() };
    let mut tables: [BTreeMap<u64, String>; 3] = Default::default();
    for packet in fields(octets) {
        let (1, Raw::Octets(packet)) = packet else { panic!("a trace is packets alone") };
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1), "all of one sequence");
        for names in inner(&packet, 12) {
            assert_eq!(number(&packet, 13), Some(1), "names begin anew");
            for (table, field) in tables.iter_mut().zip([2, 3, 29]) {
                for entry in inner(&fields(names), field).into_iter().map(fields) {
                    let number = number(&entry, 1).expect("a number");
                    table.insert(number, text(inner(&entry, 2)[0]));
                }
            }
        }
        for track in inner(&packet, 60).into_iter().map(fields) {
            let process = inner(&track, 3).into_iter().map(fields).next();
            let name = process.map(|process| text(inner(&process, 6)[0]));
            let name = name.unwrap_or_else(|| text(inner(&track, 2)[0]));
            let number_of = number(&track, 1).expect("a number");
            found.tracks.insert(number_of, (name, number(&track, 5)));
        }
        for event in inner(&packet, 11).into_iter().map(fields) {
            let is_named = number(&event, 10).is_some() || !inner(&event, 4).is_empty();
            assert_eq!(number(&packet, 13), is_named.then_some(2), "it needs the tables or not");
            let notes = inner(&event, 4).into_iter().map(fields).map(|note| {
                let name = tables[1][&number(&note, 1).expect("a name")].clone();
                let said = number(&note, 17).map(|text| tables[2][&text].clone());
                (name, said.unwrap_or_else(|| number(&note, 3).unwrap_or_default().to_string()))
            });
            found.events.push(Happened {
                at: number(&packet, 8).expect("a time"),
                kind: number(&event, 9).expect("a kind"),
                track: number(&event, 11).expect("a track"),
                name: number(&event, 10).map_or(String::new(), |n| tables[0][&n].clone()),
                notes: notes.collect(),
                arrows: numbers(&event, 47).collect(),
                value: number(&event, 30),
            });
        }
    }
    found
}

fn log(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("events.jsonl")).expect("it was written");
    text.lines().map(|line| serde_json::from_str(line).expect("by us")).collect()
}

#[test]
fn every_event_of_the_log_is_in_the_trace_once() {
    let folder = run(SCENARIO);
    let read = read(&trace(folder.path()).expect("a whole run directory"));
    let log = log(folder.path());
    let logged = |kind: &str| {
        let kept = |line: &&Value| line["ev"] == kind && line.get("n").is_none();
        log.iter().filter(kept).count()
    };
    let instants = |names: &[&str]| {
        let of_name = |event: &&Happened| event.kind == 3 && names.contains(&event.name.as_str());
        read.events.iter().filter(of_name).count()
    };
    assert!(logged("mark") > 50 && logged("note") > 50 && logged("hold") > 50);
    assert_eq!(instants(&["FECN"]), logged("mark"));
    assert_eq!(instants(&["BECN", "CNP"]), logged("note"));
    assert_eq!(instants(&["react"]), logged("react"));
    let begins = read.events.iter().filter(|event| event.kind == 1);
    let held = begins.filter(|event| event.name.starts_with("held: ")).count();
    let unheard = logged("free").saturating_sub(logged("hold"));
    assert!(
        (logged("hold")..=logged("hold") + unheard).contains(&held),
        "{held} slices of waiting"
    );
    let counted = log.iter().filter(|line| line.get("n").is_some()).count();
    let told = |event: &&Happened| event.name.ends_with(", counted");
    assert_eq!(read.events.iter().filter(told).count(), counted);
}

#[test]
fn slices_close_times_ascend_and_tracks_have_parents() {
    let folder = run(SCENARIO);
    let read = read(&trace(folder.path()).expect("a whole run directory"));
    assert!(read.events.windows(2).all(|two| two[0].at <= two[1].at), "times ascend");
    let mut depth: BTreeMap<u64, i64> = BTreeMap::new();
    for event in &read.events {
        assert!(read.tracks.contains_key(&event.track), "{event:?} has a track");
        let depth = depth.entry(event.track).or_default();
        *depth += match event.kind {
            1 => 1,
            2 => -1,
            _ => 0,
        };
        assert!((0..=1).contains(depth), "one slice at a time: {event:?}");
    }
    assert!(depth.values().all(|depth| *depth == 0), "every slice ends");
    let parents = read.tracks.values().filter_map(|(_, parent)| *parent);
    assert!(parents.into_iter().all(|parent| read.tracks.contains_key(&parent)));
    let names: BTreeSet<&str> = read.tracks.values().map(|(name, _)| name.as_str()).collect();
    for name in ["h0", "s0", "fabric", "s0:3 → h2", "queue, most", "flow h1>h2", "phase"] {
        assert!(names.contains(name), "no track {name} among {names:?}");
    }
    let phases = read.events.iter().filter(|event| event.name.starts_with("phase "));
    let phases: Vec<&str> = phases.map(|event| event.name.as_str()).collect();
    assert_eq!(phases, ["phase first", "phase <b>second"]);
}

#[test]
fn a_mark_leads_to_its_reaction_and_queues_are_those_of_the_table() {
    let folder = run(SCENARIO);
    let read = read(&trace(folder.path()).expect("a whole run directory"));
    let mut arrows: BTreeMap<u64, Vec<&Happened>> = BTreeMap::new();
    for event in &read.events {
        event.arrows.iter().for_each(|arrow| arrows.entry(*arrow).or_default().push(event));
    }
    assert!(arrows.len() > 5, "{} arrows", arrows.len());
    for chain in arrows.values() {
        assert_eq!(chain[0].name, "FECN");
        assert_eq!(chain[chain.len() - 1].name, "react");
        let flows: BTreeSet<&str> = chain.iter().map(|e| e.notes["flow"].as_str()).collect();
        assert_eq!(flows.len(), 1, "an arrow stays with its flow");
    }
    let of_name = |name: &str| {
        let found = read.tracks.iter().find(|(_, (known, _))| known == name);
        found.map(|(number, _)| *number).expect("the port has a track")
    };
    let port = of_name("s0:3 → h2");
    let queue = read.tracks.iter().find(|(_, (n, p))| n == "queue, most" && *p == Some(port));
    let queue = *queue.expect("it has a queue").0;
    let drawn = read.events.iter().filter(|event| event.track == queue);
    let drawn = drawn.filter_map(|event| event.value).max();
    let table = std::fs::read_to_string(folder.path().join("queues.csv")).expect("it was written");
    let rows = table.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let own = rows.filter(|row| row[2] == "s0:3" && row[4] == "out");
    let most = own.map(|row| row[7].parse::<u64>().expect("a number")).max();
    assert_eq!(drawn, most);
    assert!(most > Some(0));
}
