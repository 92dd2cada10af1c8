//! The cases for devices under test are tested: by devices with one fault each.
//!
//! Faults written by hand before the cases are in `check/dut/faults.toml`. A relay before our switch makes those of
//! switches, a build of nicd from a scratch copy (`mutants/edits.toml`) and a relay before soft-RoCE make those of NICs.
//! Mutants by machine are those of cargo-mutants (`.cargo/mutants.toml`).

#![expect(clippy::disallowed_methods, reason = "these tests build and start programs")]

#[path = "mutants/adapters.rs"]
mod adapters;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "mutants/relay.rs"]
mod relay;
#[path = "mutants/scratch.rs"]
mod scratch;
#[path = "mutants/switches.rs"]
mod switches;

use dut::file::{DutFile, DutKind, Reach};
use dut::register::choose;
use dut::statement::Statement;
use dut::suite::Suite;
use dut::verdict::{Outcome, Verdict};
use host::image::Image;
use host::vm::{Qemu, Vm, VmSpec};
use laboratory::{alone, in_repository};
use place::Place;
use relay::{Editor, Relay, unaltered};
use serde::Deserialize;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A row of `faults.toml`.
#[derive(Deserialize)]
struct Fault {
    name: String,
    case: String,
}

#[derive(Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

/// The case that must find a fault.
fn case_of(name: &str) -> String {
    let text = fs::read_to_string(in_repository("check/dut/faults.toml")).expect("a file");
    let faults: Faults = toml::from_str(&text).expect("faults");
    faults.fault.into_iter().find(|fault| fault.name == name).expect("a row").case
}

fn load(name: &str) -> DutFile {
    let file = in_repository(&format!("check/dut/devices/{name}.toml"));
    DutFile::load(&file).unwrap_or_else(|faults| panic!("{faults}"))
}

fn perform(suite: &mut Suite<'_>, kind: DutKind, id: &str) -> Outcome {
    let chosen = choose(kind, &[id.to_owned()]).expect("a case");
    suite.perform(chosen[0])
}

/// Asks the case of each fault, first without the fault. Returns a line for each that is not found.
fn through_relay(
    relay: &Relay,
    file: &DutFile,
    good: Editor,
    faults: &[(&str, Editor)],
) -> Vec<String> {
    let mut said = Vec::new();
    let mut report = |line: &str| said.push(line.to_owned());
    let mut suite = Suite::start(file, None, false, &mut report).expect("the device is there");
    let mut survivors = Vec::new();
    for (name, editor) in faults {
        let case = case_of(name);
        relay.edit_by(good);
        let before = perform(&mut suite, file.dut.kind, &case);
        relay.edit_by(*editor);
        let after = perform(&mut suite, file.dut.kind, &case);
        println!("{name:<22} {case:<8} {:<12} {}", after.verdict.word(), after.observed);
        let is_found = matches!(after.verdict, Verdict::Fail | Verdict::Deviation);
        if before.verdict != Verdict::Pass || !is_found {
            survivors.push(format!("{name}: {before:?} {after:?}"));
        }
    }
    survivors
}

#[test]
#[ignore = "slow: a minute"]
fn mutants_of_our_switch_fail_by_the_case_that_names_their_rule() {
    let _alone = alone();
    let place = Place::new();
    place.up("check/dut/devices/ours-switchd.lab.toml", "dut");
    let run = place.labs().join("dut").join("run");
    let mut file = load("ours-switchd");
    let devices = file.device.ports.iter();
    let devices: Vec<_> = devices
        .map(|port| (run.join(format!("{port}.peer")), run.join(format!("{port}.lab"))))
        .collect();
    let relay = Relay::start(place.root(), &devices);
    (file.device.reach, file.device.ports) = (Reach::Sockets, relay.ports.clone());
    // The suite has not started the lab, so it cannot change its settings.
    place.good(&[
        "set",
        "switch",
        "s1",
        "scheme.kmin=10 KB",
        "scheme.kmax=160 KB",
        "scheme.pmax=0.5",
        "--lab",
        "dut",
    ]);
    file.hooks.clear();
    let survivors = through_relay(&relay, &file, unaltered, &switches::FAULTS);
    assert!(survivors.is_empty(), "{survivors:#?}");
    file.dut.claims.push("lag".to_owned());
    file.queue.lag_port = Some(3);
    relay.edit_by(switches::grouped);
    let survivors = through_relay(&relay, &file, switches::grouped, &switches::GROUP_FAULTS);
    assert!(survivors.is_empty(), "{survivors:#?}");
    drop(relay);
    place.good(&["down", "dut"]);
}

#[test]
#[ignore = "slow: a machine is started"]
fn mutants_of_soft_roce_fail_by_the_case_that_names_their_rule() {
    let _alone = alone();
    let image = match Qemu::find().and_then(|_| Image::find(None)) {
        Ok(image) => image,
        Err(error) => {
            skip::because!("{error}");
            return;
        }
    };
    let place = Place::new();
    fs::set_permissions(place.root(), Permissions::from_mode(0o700)).expect("it is ours");
    let mut file = load("soft-roce");
    let (mac, address) = file.station.expect("a NIC has addresses");
    let (local, remote) = (place.root().join("port.vm"), place.root().join("port.relay"));
    let spec = VmSpec {
        name: "dut".to_owned(),
        mac: mac.octets(),
        addresses: vec![(address.into(), 16)],
        mtu: file.device.mtu.get() as u32,
        memory_mib: image.memory_mib().expect("an image"),
        local: local.clone(),
        remote: remote.clone(),
        folder: place.root().to_owned(),
    };
    let relay = Relay::start(place.root(), &[(remote, local)]);
    let mut machine = Vm::start(&image, &spec).expect("it starts");
    machine.wait_ready(Duration::from_secs(120)).expect("it is ready");
    (file.device.reach, file.device.ports) = (Reach::Sockets, relay.ports.clone());
    file.device.agent = Some(format!("unix:{}", place.root().join("dut.verbs").display()));
    file.dut.claims.extend(["cnp", "cnp-obeyed"].map(str::to_owned));
    let survivors = through_relay(&relay, &file, adapters::notifies, &adapters::FAULTS);
    assert!(survivors.is_empty(), "{survivors:#?}");
    machine.stop();
}

/// The program that starts a mutant in place of a daemon.
fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    own.ancestors().nth(2).expect("target/<profile>").join("examples").join("mutant")
}

/// The statement that `command` makes of cases; none if the device does not start.
fn check(mut command: Command, fault: &str) -> Option<Statement> {
    let output = command.env("PAUSEBED_FAULT", fault).output().expect("the program starts");
    Statement::parse(&String::from_utf8_lossy(&output.stdout)).ok()
}

/// The command that checks a device, by `program`.
fn checking(place: &Place, program: &Path, file: &Path, names: &[&str]) -> Command {
    let file = file.display().to_string();
    place.program(program, &[&["check", "--dut", &file, "--json"], names].concat())
}

#[test]
#[ignore = "slow: a build, and two minutes"]
fn mutants_of_our_nic_fail_by_the_case_that_names_their_rule() {
    let _alone = alone();
    let nicd = scratch::build_edited().unwrap_or_else(|said| panic!("{said}"));
    let place = Place::new();
    let file = in_repository("check/dut/devices/ours-nicd.toml");
    let text = fs::read_to_string(in_repository("check/dut/mutants/edits.toml")).expect("a file");
    let names: Vec<String> = {
        let parts = text.split("FAULT(").skip(2);
        let mut names: Vec<String> = parts
            .filter_map(|part| part.split_once(')').map(|(name, _)| name.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let cases: Vec<String> = names.iter().map(|name| case_of(name)).collect();
    let all: Vec<&str> = cases.iter().map(String::as_str).collect();
    let command = |names: &[&str]| {
        let mut command = checking(&place, &program(), &file, names);
        command.env("PAUSEBED_MUTANT", &nicd);
        command
    };
    let before = check(command(&all), "").expect("it starts without a fault");
    let is_good = |case: &str| {
        let outcome = before.outcomes.iter().find(|outcome| outcome.id == case);
        outcome.is_some_and(|outcome| outcome.verdict == Verdict::Pass)
    };
    let mut survivors = Vec::new();
    for (name, case) in names.iter().zip(&cases) {
        let after = check(command(&[case]), name);
        let outcome = after.as_ref().and_then(|statement| statement.outcomes.first());
        let (verdict, observed) =
            outcome.map_or(("no start", ""), |outcome| (outcome.verdict.word(), &outcome.observed));
        println!("{name:<22} {case:<8} {verdict:<12} {observed}");
        if !is_good(case) || !matches!(verdict, "FAIL" | "DEVIATION") {
            survivors
                .push(format!("{name}: {verdict} {observed}; without it good: {}", is_good(case)));
        }
    }
    assert!(survivors.is_empty(), "{survivors:#?}");
}

#[test]
fn faults_of_our_nic_replace_what_the_code_contains() {
    assert!(!scratch::edited().is_empty());
}
