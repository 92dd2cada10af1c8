//! Proof by attack: kills, crashes at every step, races, and hosts that lack something. What was reached stands in
//! docs/reliability.md.
//!
//! A campaign is a slow test. Its schedule comes from seeds, so each part can be repeated. `./test.sh --slow chaos` runs
//! all that is due: the ledgers in tests/ledgers name the parts that are done, and a change of the code under proof makes
//! them due again. `PAUSEBED_CHAOS="kills/seed 7"` runs one part alone and writes no ledger. A sample of each campaign
//! runs with the quick tests.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "chaos/containers.rs"]
mod containers;
#[path = "chaos/counters.rs"]
mod counters;
#[path = "chaos/faults.rs"]
mod faults;
#[path = "chaos/frames.rs"]
mod frames;
#[path = "lab/ground.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod ground;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "chaos/http.rs"]
mod http;
#[path = "mutants/increments.rs"]
mod increments;
#[path = "chaos/kills.rs"]
mod kills;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "chaos/machines.rs"]
mod machines;
#[path = "live/objects.rs"]
mod objects;
#[path = "chaos/page.rs"]
mod page;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "chaos/proofs.rs"]
mod proofs;
#[path = "chaos/rings.rs"]
mod rings;
#[path = "mutants/schema.rs"]
#[allow(dead_code, reason = "the tests of mutants.rs use more of it")]
mod schema;
#[path = "mutants/scratch.rs"]
#[allow(dead_code, reason = "the tests of mutants.rs use more of it")]
mod scratch;
#[path = "chaos/soak.rs"]
mod soak;
#[path = "chaos/steps.rs"]
mod steps;
#[path = "chaos/tracer.rs"]
mod tracer;

use ground::Substrate;
use laboratory::{alone, eventually};
use pausebed_tests::ledger::{FOUND, Ledger};
use place::Place;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracer::Role;

/// The code whose labs are attacked.
const UNDER_PROOF: [&str; 5] = [
    "emulation/src",
    "emulation/daemon/src",
    "topo/launch/src",
    "topo/serve/src",
    "topo/src/command/lab",
];

/// The data path that hostile frames meet.
const DATA_PATH: [&str; 5] = [
    "emulation/src/cable",
    "emulation/src/driver",
    "proto/src/link",
    "proto/src/wire",
    "switchd/src",
];

/// Parts of an attack that are done, and those that found faults.
pub struct Campaign {
    name: &'static str,
    ledger: Ledger,
    /// The only part to run, if one was named.
    only: Option<String>,
    faults: Vec<String>,
}

impl Campaign {
    /// The result of a part, which is made now unless it is done. A part that fails is noted and stays due.
    pub fn part(&mut self, part: &str, make: impl FnOnce() -> String) -> String {
        let make = || {
            let made = catch_unwind(AssertUnwindSafe(make));
            made.unwrap_or_else(|why| {
                let text = why.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let text: String = text.unwrap_or_default().chars().take(1_500).collect();
                format!("{FOUND} {text}")
            })
        };
        let result = match &self.only {
            None => self.ledger.once(part, make),
            Some(only) if only == part => make(),
            Some(_) => return String::new(),
        };
        if result.starts_with(FOUND) {
            self.faults.push(format!("{}/{part}: {result}", self.name));
        }
        result
    }
}

/// Runs what is due of a campaign; fails if it finds a fault.
fn attack(name: &'static str, parts: impl FnOnce(&mut Campaign)) {
    attack_on(&UNDER_PROOF, name, parts);
}

/// The same for other code under proof.
fn attack_on(under_proof: &[&str], name: &'static str, parts: impl FnOnce(&mut Campaign)) {
    let faults = faults_on(under_proof, name, parts);
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Runs what is due, and returns the faults.
fn faults_on(
    under_proof: &[&str],
    name: &'static str,
    parts: impl FnOnce(&mut Campaign),
) -> Vec<String> {
    let named = std::env::var("PAUSEBED_CHAOS").ok();
    let only = named.as_deref().map(|named| named.split_once('/').expect("CAMPAIGN/PART"));
    if only.is_some_and(|(campaign, _)| campaign != name) {
        return Vec::new();
    }
    let only = only.map(|(_, part)| part.to_owned());
    let ledger = Ledger::kept(&format!("chaos-{name}"), under_proof);
    let mut campaign = Campaign { name, ledger, only, faults: Vec::new() };
    parts(&mut campaign);
    campaign.faults
}

/// Every frame of the lab "one" is accounted for. Returns its account.
fn assert_balanced(place: &Place) -> Value {
    let mut said = String::new();
    let mut account = None;
    eventually(20.0, || {
        let output = place.run(&["status", "--balance", "--json"]);
        said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // A busy host may answer too late for a consistent cut, and is asked again.
        let all: Option<Value> = serde_json::from_str(&said).ok();
        account = all.map(|mut all| all["one"].take());
        account.is_some()
    });
    let Some(account) = account else { panic!("no balance: {said}") };
    assert_eq!(account["closes"], true, "{account:#}");
    account
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_kills_leave_nothing_behind() {
    let _alone = alone();
    attack("kills", kills::kills);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_kills_of_machines_leave_nothing_behind() {
    let _alone = alone();
    let with_hosts = [&UNDER_PROOF[..], &["topo/host/src"]].concat();
    attack_on(&with_hosts, "machines", machines::kills);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_crashes_at_every_step_leave_nothing_behind() {
    let _alone = alone();
    attack("steps", steps::at_every_step);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_commands_that_race_leave_nothing_behind() {
    let _alone = alone();
    attack("races", steps::races);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_kills_in_containers_leave_nothing_behind() {
    let _alone = alone();
    attack("containers", containers::kills);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_faults_of_the_host_are_accounted_for() {
    let _alone = alone();
    attack("faults", faults::faults);
}

#[test]
#[ignore = "slow: two hours"]
fn chaos_soak_of_two_hours_leaves_nothing_unaccounted() {
    let _alone = alone();
    attack("soak", soak::two_hours);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_hostile_frames_are_counted_and_the_neighbour_loses_none() {
    let _alone = alone();
    attack_on(&DATA_PATH, "frames", frames::frames);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_http_requests_delay_no_frame() {
    let _alone = alone();
    attack("http", http::http);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn chaos_proofs_by_all_cases_hold() {
    let counted = [
        "proto/src/link/credit.rs",
        "proto/src/ids.rs",
        "emulation/src/cable/sequence.rs",
        "emulation/src/cable/inbox.rs",
        "emulation/src/cable/packet_socket/counts.rs",
        "emulation/daemon/src/orders.rs",
        "emulation/src/cable/packet_socket/auxiliary.rs",
        "emulation/src/cable/packet_socket/mapping.rs",
        "emulation/src/cable/packet_socket/ring.rs",
        "emulation/src/cable/packet_socket/send_ring.rs",
        "topo/agent/src/memory.rs",
    ];
    attack_on(&counted, "proofs", proofs::proofs);
}

#[test]
#[ignore = "slow: a build, and half an hour"]
fn chaos_counters_that_do_not_count_are_found() {
    counters::counters();
}

#[test]
fn every_proof_holds() {
    for (name, _, proof) in proofs::PROOFS {
        println!("{name}: {} cases", proof());
    }
}

#[test]
fn a_sample_of_hostile_frames_finds_nothing() {
    let _alone = alone();
    frames::sample();
}

#[test]
fn a_sample_of_each_chaos_campaign_finds_nothing() {
    let _alone = alone();
    println!("{}", kills::life(1, 2));
    for (role, step) in [(Role::Keep, 20), (Role::Down, 2)] {
        let what = steps::killed_at(Substrate::Udp, role, step, false);
        assert!(what.starts_with("killed before "), "{role:?} {step}: {what}");
    }
    println!("{}", steps::race(1));
    println!("{}", soak::soak(1, 1.0));
    // Seed 12 leaves a run no descriptors for an event loop.
    for (name, seed) in [("stop", 1), ("descriptors", 12)] {
        let (_, fault) = faults::KINDS.iter().find(|(kind, _)| *kind == name).expect("a kind");
        println!("{name}: {}", fault(seed));
    }
}
