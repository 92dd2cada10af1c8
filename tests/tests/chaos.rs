//! Proof by attack: kills, crashes at every step, races, and hosts that lack something. What was reached stands in
//! docs/reliability.md.
//!
//! A campaign is a slow test ([`pausebed_tests::campaign`]). Its schedule comes from seeds, so each part can be repeated:
//! `PAUSEBED_PART="kills/seed 7" ./test.sh --slow chaos`. A sample of each campaign runs with the quick tests.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "chaos/containers.rs"]
mod containers;
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
#[path = "chaos/kills.rs"]
mod kills;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "chaos/machines.rs"]
mod machines;
#[path = "live/objects.rs"]
mod objects;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "chaos/proofs.rs"]
mod proofs;
#[path = "chaos/rings.rs"]
mod rings;
#[path = "chaos/soak.rs"]
mod soak;
#[path = "chaos/steps.rs"]
mod steps;
#[path = "chaos/tracer.rs"]
mod tracer;

use ground::Substrate;
use laboratory::{alone, eventually};
use pausebed_tests::campaign::Campaign;
use place::Place;
use serde_json::Value;
use tracer::Role;

/// Runs what is due of a campaign; fails if it finds a fault.
fn attack(name: &str, parts: impl FnOnce(&mut Campaign)) {
    let mut campaign = Campaign::open(name);
    parts(&mut campaign);
    campaign.end();
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
    attack("machines", machines::kills);
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
    attack("frames", frames::frames);
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
    attack("proofs", proofs::proofs);
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
