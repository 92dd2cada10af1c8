//! Every verb in both directions between nicd and soft-RoCE, without impairment and with it.

use crate::bench::{Bench, NIC};
use crate::laboratory::alone;
use emulation::clock::Stopwatch;
use serde_json::Value;
use std::time::Duration;
use testbed::verbs::stream::{Plan, VERBS, Verb, memory_for};
use testbed::verbs::{End, Fault, Terms, connect, datagrams, stream};
use verbs::attributes::{Service, State};

/// The path MTU of an interface with 1500 octets.
pub const MTU_1024: u32 = 1500;
/// An interface with this MTU has a path MTU of 4096.
const MTU_4096: u32 = 4200;
/// Faults of 1 % each.
const FAULTS: [&[&str]; 3] = [
    &["drop", "--prob", "0.01"],
    &["duplicate", "--prob", "0.01"],
    &["delay", "--prob", "0.01", "--by", "2 ms"],
];

/// A local ACK timeout of 537 ms. A daemon that stood still makes up for the time at once, and its requesters use up
/// their retries before the machine can answer: with eight of 134 ms a host that stood still for 1.1 s ended a queue pair.
pub fn patient(path_mtu: u8) -> Terms {
    Terms { path_mtu, timeout: 17, ..Terms::default() }
}

/// One percent of the frames that this port sends are lost, as many come twice, and as many late.
pub fn impair(bench: &Bench, port: &str) {
    for fault in FAULTS {
        bench.place.good(&[&["fault", port], fault].concat());
    }
}

/// Both ends, the machine's first.
pub fn ends(bench: &Bench, service: (Service, bool), octets: u64) -> [End; 2] {
    let clients = [("linux", bench.linux()), ("nicd", bench.nic())];
    clients.map(|(name, client)| {
        End::open(name, client, service, octets).unwrap_or_else(|Fault(why)| panic!("{why}"))
    })
}

/// Sends one stream and prints its rate.
pub fn one(plan: &Plan, from: &mut End, to: &mut End) {
    let watch = Stopwatch::start();
    let Plan { verb, messages, length, first } = *plan;
    if let Err(Fault(why)) = stream::run(plan, from, to) {
        let counters = [from, to].map(|end| end.client.counters(end.device));
        panic!("{verb:?} from {first}: {why}\n{counters:#?}");
    }
    let rate = messages as f64 / watch.seconds();
    eprintln!("{verb:?} {} to {}: {messages} of {length} octets, {rate:.0}/s", from.name, to.name);
}

pub fn length_of(verb: Verb, length: u32) -> u32 {
    if matches!(verb, Verb::CompareSwap | Verb::FetchAdd) { 8 } else { length }
}

/// Every verb, both ways.
fn each_way(ends: &mut [End; 2], length: u32, messages: u64) {
    for way in 0..2 {
        let [a, b] = &mut *ends;
        let (from, to) = if way == 0 { (a, b) } else { (b, a) };
        for verb in VERBS {
            let length = length_of(verb, length);
            one(&Plan { verb, messages, length, first: 0 }, from, to);
        }
    }
}

#[test]
fn each_verb_passes_both_ways() {
    let _alone = alone();
    for (mtu, path_mtu, length, over_ipv4) in
        [(MTU_4096, 5, 9000, false), (MTU_1024, 3, 1500, true)]
    {
        let Some(bench) = Bench::start(&[], mtu) else { return };
        for address in [NIC, "2001:db8::1"] {
            let (code, text) = bench.run(&format!("ping -c 2 {address}"), Duration::from_secs(60));
            assert_eq!(code, 0, "{text}");
        }
        let mut ends = ends(&bench, (Service::Rc, over_ipv4), memory_for(length));
        let [a, b] = &mut ends;
        connect(a, b, &patient(path_mtu)).unwrap_or_else(|Fault(why)| panic!("{why}"));
        for end in &mut ends {
            let found = end.client.query_qp(end.qp).expect("both agents can answer");
            assert_eq!(found.state, Some(State::Rts), "{}", end.name);
        }
        each_way(&mut ends, length, 512);
        drop(ends);
        bench.stop();
    }
}

#[test]
fn each_verb_passes_both_ways_with_frames_lost_repeated_and_late() {
    let _alone = alone();
    let Some(bench) = Bench::start(&[], MTU_1024) else { return };
    impair(&bench, "h1:1");
    impair(&bench, "s1:1");
    let length = 1500;
    let mut ends = ends(&bench, (Service::Rc, true), memory_for(length));
    let [a, b] = &mut ends;
    connect(a, b, &patient(3)).unwrap_or_else(|Fault(why)| panic!("{why}"));
    each_way(&mut ends, length, 512);
    let status = bench.place.json(&["status", "--json"]);
    let lost = status["one"]["injected_lost"].as_u64().expect("a number");
    assert!(lost > 0, "{status:#}");
    drop(ends);
    bench.stop();
}

/// What impairments have done to the frames that `port` sends: lost, and repeated.
pub fn injected(bench: &Bench, port: &str) -> (u64, u64) {
    let shown = bench.place.json(&["show", "links", port, "--json"]);
    let found = shown["nodes"].as_array().expect("nodes").iter().find_map(|node| {
        node["ports"].as_array()?.iter().find(|found| found["port"] == port).cloned()
    });
    let found: Value = found.unwrap_or_else(|| panic!("{shown:#}"));
    let number = |name: &str| found["injected"][name].as_u64().unwrap_or(0);
    (number("lost"), number("duplicated"))
}

/// Datagrams both ways; the numbers that arrive are those sent − lost + repeated.
pub fn datagrams_each_way(bench: &Bench, ends: &mut [End; 2], messages: u32) {
    // What the machine sends passes the switch's line to the NIC.
    for (way, port) in [(0, "s1:1"), (1, "h1:1")] {
        let [a, b] = &mut *ends;
        let (from, to) = if way == 0 { (a, b) } else { (b, a) };
        let before = injected(bench, port);
        let watch = Stopwatch::start();
        let arrived = datagrams::run(from, to, messages, 1000);
        let arrived = arrived.unwrap_or_else(|Fault(why)| panic!("{why}"));
        let after = injected(bench, port);
        let (lost, repeated) = (after.0 - before.0, after.1 - before.1);
        eprintln!(
            "UD {} to {}: {messages} sent, {lost} lost, {repeated} repeated, {arrived} arrived, {:.0}/s",
            from.name,
            to.name,
            f64::from(messages) / watch.seconds()
        );
        assert_eq!(arrived, u64::from(messages) - lost + repeated);
    }
}

#[test]
fn datagrams_arrive_unaltered_or_not_at_all() {
    let _alone = alone();
    let Some(bench) = Bench::start(&[], MTU_1024) else { return };
    let mut ends = ends(&bench, (Service::Ud, true), datagrams::memory_for(1000));
    let [a, b] = &mut ends;
    datagrams::open([&mut *a, &mut *b]).unwrap_or_else(|Fault(why)| panic!("{why}"));
    bench.keep_neighbour();
    datagrams_each_way(&bench, &mut ends, 256);
    impair(&bench, "h1:1");
    impair(&bench, "s1:1");
    datagrams_each_way(&bench, &mut ends, 1024);
    drop(ends);
    bench.stop();
}
