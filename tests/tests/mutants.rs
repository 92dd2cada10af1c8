//! The cases for devices under test are tested: by devices with one fault each.
//!
//! Faults written by hand before the cases are in `tests/dut/faults.toml`. A relay before our switch makes those of
//! switches, a build of nicd from a scratch copy (`mutants/edits.toml`) and a relay before soft-RoCE make those of NICs.
//! `mutants/drawn.toml` has mutants that were drawn by a seed; one build has them all. `PAUSEBED_LEDGER` names the folder of the
//! ledger, by which their judgement goes on where it was stopped.

#![expect(clippy::disallowed_methods, reason = "these tests build and start programs")]

#[path = "mutants/adapters.rs"]
mod adapters;
#[path = "mutants/drawing.rs"]
mod drawing;
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
#[path = "mutants/schema.rs"]
mod schema;
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
use pausebed_tests::ledger::Ledger;
use place::Place;
use relay::{Editor, Relay, unaltered};
use scratch::{Drawn, Scratch};
use serde::Deserialize;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The code with mutants, and the cases that judge it.
const UNDER_PROOF: [&str; 5] =
    ["switchd/src", "nicd/src", "proto/src", "tests/dut/src", "tests/conformance/src"];

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

#[derive(Deserialize)]
struct AllDrawn {
    mutant: Vec<Drawn>,
}

/// The case that must find a fault.
fn case_of(name: &str) -> String {
    let text = fs::read_to_string(in_repository("tests/dut/faults.toml")).expect("a file");
    let faults: Faults = toml::from_str(&text).expect("faults");
    faults.fault.into_iter().find(|fault| fault.name == name).expect("a row").case
}

fn load(name: &str) -> DutFile {
    let file = in_repository(&format!("tests/dut/devices/{name}.toml"));
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
    place.up("tests/dut/devices/ours-switchd.lab.toml", "dut");
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
    let nicd = Scratch::build_edited().unwrap_or_else(|said| panic!("{said}"));
    let place = Place::new();
    let file = in_repository("tests/dut/devices/ours-nicd.toml");
    let text = fs::read_to_string(in_repository("tests/dut/mutants/edits.toml")).expect("a file");
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

/// Groups of cases, asked one after the other until one fails. Those that find most come first.
const SWITCH_GROUPS: [&[&str]; 4] = [
    &["L2-01", "L2-04", "L2-07"],
    &["INT", "FC", "QUE"],
    &["L2", "RES"],
    &["MAL-01", "MAL-02", "MAL-03"],
];
const NIC_GROUPS: [&[&str]; 4] = [
    &["SEQ-01", "TX-02", "RDMA-01"],
    &["SEQ", "MTU", "RX"],
    &["TX", "RDMA", "UD", "CNP", "IP"],
    &["TIM", "IMP", "CM", "ROB"],
];

/// The DUT file of a device, in `place`, with less patience.
fn impatient(place: &Place, dut: &str) -> PathBuf {
    let folder = in_repository("tests/dut/devices");
    let text = fs::read_to_string(folder.join(format!("{dut}.toml"))).expect("a file");
    let lab = format!("{dut}.lab.toml");
    let text = text.replace(&lab, &folder.join(&lab).display().to_string());
    let is_kept = |line: &&str| !line.starts_with("patience") && !line.starts_with("case");
    let text = text.lines().filter(is_kept).collect::<Vec<_>>().join("\n");
    let text =
        text.replace("[tolerance]\n", "[tolerance]\npatience = \"600 ms\"\ncase = \"10 s\"\n");
    let file = place.root().join("mutant.toml");
    fs::write(&file, text).expect("a file");
    file
}

/// Seconds of the processor for all cases on the virtual clock, which take 8.
const CLOCK_SECONDS: u64 = 60;

/// The first case on the virtual clock that fails with a fault.
fn fails_on_the_clock(program: &Path, fault: &str) -> Option<String> {
    let mut command = Command::new("prlimit");
    command.args(["--as=6000000000", &format!("--cpu={CLOCK_SECONDS}")]).arg(program);
    command.args(["check", "--level", "E"]).env("PAUSEBED_FAULT", fault);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("prlimit is there");
    let mut last = String::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        last = line.expect("text");
        if let Some(failed) = last.strip_prefix("FAIL") {
            child.kill().expect("it is ours");
            child.wait().expect("it has ended");
            return Some(failed.trim().to_owned());
        }
    }
    let status = child.wait().expect("it has ended");
    let case = last.split_whitespace().nth(1).unwrap_or("the first case");
    (!status.success()).then(|| format!("{status} behind {case}"))
}

/// The cases in which our NIC deviates without a fault.
const DEVIATIONS: [&str; 3] = ["TX-05", "TX-06", "RDMA-12"];

/// The case that fails with a fault at a device under test; else how many are INCONCLUSIVE.
fn fails_as_a_device(program: &Path, package: &str, fault: &str) -> Result<String, usize> {
    let (dut, groups) = match package {
        "switchd" => ("ours-switchd", SWITCH_GROUPS),
        _ => ("ours-nicd", NIC_GROUPS),
    };
    let place = Place::new();
    let file = impatient(&place, dut);
    let mut unclear = 0;
    for names in groups {
        let Some(statement) = check(checking(&place, program, &file, names), fault) else {
            return Ok("it does not start".to_owned());
        };
        let is_fault = |outcome: &&Outcome| match outcome.verdict {
            Verdict::Fail => true,
            Verdict::Deviation => !DEVIATIONS.contains(&outcome.id.as_str()),
            _ => false,
        };
        if let Some(outcome) = statement.outcomes.iter().find(is_fault) {
            return Ok(format!("{} {}", outcome.id, outcome.observed));
        }
        let is_unclear = |outcome: &&Outcome| outcome.verdict == Verdict::Inconclusive;
        unclear += statement.outcomes.iter().filter(is_unclear).count();
    }
    Err(unclear)
}

/// What the suite says of a mutant that was drawn: cases on the virtual clock, and those of devices under test. The latter come
/// first for what serves agents, which no case on the virtual clock has.
fn judge(program: &Path, mutant: &Drawn, fault: &str) -> String {
    let on_the_clock = || fails_on_the_clock(program, fault).map(|case| format!("killed: {case}"));
    let serves_agents = mutant.file.starts_with("nicd/src/host");
    let early = if serves_agents { None } else { on_the_clock() };
    let line = early.unwrap_or_else(|| match fails_as_a_device(program, mutant.package(), fault) {
        Ok(case) => format!("killed: dut {case}"),
        Err(unclear) => {
            let late = serves_agents.then(on_the_clock).flatten();
            late.unwrap_or_else(|| format!("survived, {unclear} INCONCLUSIVE"))
        }
    });
    line.replace(['\t', '\n'], " ")
}

/// A mutant of each daemon with which nothing works. They must fail in both ways, and nothing may fail without them.
const FATAL: [&str; 2] = ["replace Switch::poll_port -> ", "replace QueuePair::has_work -> "];

fn prove(program: &Path, mutants: &[Drawn]) {
    assert_eq!(fails_on_the_clock(program, ""), None);
    for name in FATAL {
        let is_it = |mutant: &Drawn| mutant.name.contains(name);
        let number = mutants.iter().position(is_it).expect("it was drawn");
        let (package, fault) = (mutants[number].package(), number.to_string());
        let without = fails_as_a_device(program, package, "");
        assert!(without.is_err(), "{package} without a fault: {without:?}");
        println!("{name}: {:?}", fails_as_a_device(program, package, &fault).expect("a failure"));
        // No case on the virtual clock has queue pairs of an agent.
        if package == "switchd" {
            println!("{name}: {}", fails_on_the_clock(program, &fault).expect("a failure"));
        }
    }
}

fn drawn() -> Vec<Drawn> {
    let text = fs::read_to_string(in_repository("tests/dut/mutants/drawn.toml")).expect("a file");
    let drawn: AllDrawn = toml::from_str(&text).expect("mutants");
    drawn.mutant
}

#[test]
fn mutants_replace_what_stands_in_the_code() {
    assert!(!Scratch::edited().is_empty());
    for mutant in drawn() {
        let text = fs::read_to_string(in_repository(&mutant.file)).expect("a file");
        mutant.place(&text);
    }
}

#[test]
#[ignore = "slow: two builds, and half an hour; goes on where it was stopped"]
fn mutants_that_were_drawn_fail() {
    let _alone = alone();
    let mutants = drawn();
    let mut ledger = Ledger::open("mutants", &UNDER_PROOF);
    let scratch = Scratch::new(mutants.iter().map(|mutant| mutant.file.as_str()));
    // Those that an earlier part of the campaign could not build.
    let known = |(number, mutant): (usize, &Drawn)| {
        let result = ledger.result(&mutant.name)?.strip_prefix("unbuildable: ")?;
        Some((number, result.to_owned()))
    };
    let unbuildable = mutants.iter().enumerate().filter_map(known).collect();
    let built = scratch.build_drawn(&mutants, unbuildable);
    for (number, error) in &built.unbuildable {
        ledger.once(&mutants[*number].name, || format!("unbuildable: {error}"));
    }
    ledger.once("proof", || {
        prove(&built.program, &mutants);
        "done".to_owned()
    });
    for (number, mutant) in mutants.iter().enumerate() {
        if !built.unbuildable.contains_key(&number) && !built.alone.contains(&number) {
            ledger.once(&mutant.name, || judge(&built.program, mutant, &number.to_string()));
        }
    }
    for number in built.alone {
        let mutant = &mutants[number];
        ledger.once(&mutant.name, || match scratch.build_alone(&mutants, number) {
            Ok(program) => judge(&program, mutant, ""),
            Err(error) => format!("unbuildable: {error}"),
        });
    }
    let (mut killed, mut survivors) = (0, Vec::new());
    for mutant in mutants.iter().filter(|mutant| mutant.equivalent.is_none()) {
        let result = ledger.result(&mutant.name).expect("it was judged");
        match result.split_once(':').map_or(result, |(word, _)| word) {
            "killed" => killed += 1,
            "unbuildable" => {}
            _ => survivors.push(format!("{}: {:?}", mutant.name, mutant.survives)),
        }
    }
    ledger.close();
    println!("{killed} killed; survivors: {survivors:#?}");
    assert!(killed * 100 >= (killed + survivors.len()) * 95, "{survivors:#?}");
}

#[test]
#[ignore = "writes mutants/drawn.toml"]
fn draw_faults() {
    let is_wanted = std::env::var_os("PAUSEBED_DRAW").is_some();
    let Some(text) = is_wanted.then(drawing::draw).flatten() else {
        skip::because!("without PAUSEBED_DRAW, or cargo-mutants is not installed");
        return;
    };
    fs::write(in_repository("tests/dut/mutants/drawn.toml"), text).expect("a file");
}
