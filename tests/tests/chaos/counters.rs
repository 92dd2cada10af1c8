//! Counters that do not count: each increment is deleted, each drop reason is exchanged for another, and a test must fail.
//!
//! What these are says `../mutants/increments.rs`. One build has all mutants, and the environment chooses one. The unit tests
//! that have killed others of its file come first, then those of its crate, the conformance cases on the virtual clock, and
//! the other tests named here. A test that fails must fail again, and must pass without the mutant. A part of the campaign is
//! a file.

use super::increments::{self, FOLDERS, Mutant};
use super::scratch::Scratch;
use super::{faults_on, page};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pausebed_tests::ledger::{self, FOUND};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::thread;

/// Files of quick tests on the virtual clock, for mutants that survive all others.
const TESTS: [&str; 5] = ["managed", "determinism", "dcqcn", "schemes", "replay"];
/// Files that are judged at a time.
const THREADS: usize = 3;
/// Seconds in which the tests of a program must end. They take a few on a host without other work.
const PATIENCE: &str = "120";
/// Cases of a test with random input: fewer than usual, since a mutant that survives meets all tests.
const RANDOM_CASES: &str = "32";
/// Killed mutants in percent, at least.
const DUE: u64 = 98;

/// A program with tests, or `pausebed` with cases.
struct Program {
    /// How the ledger names its tests.
    kind: &'static str,
    path: PathBuf,
    folder: PathBuf,
    all: &'static [&'static str],
    one: &'static str,
    /// The tests that fail without a mutant, in a copy that lacks files. They are found when they are asked for.
    failing: OnceLock<BTreeSet<String>>,
}

impl Program {
    fn new(kind: &'static str, path: PathBuf, folder: PathBuf) -> Program {
        let (all, one): (&[&str], _) = match kind {
            "case" => (&["check", "--level", "E"], "check"),
            _ => (&[], "--exact"),
        };
        Program { kind, path, folder, all, one, failing: OnceLock::new() }
    }

    fn failing(&self) -> &BTreeSet<String> {
        self.failing.get_or_init(|| {
            let mut failing = BTreeSet::new();
            while let Some(test) = self.failure("", self.all, &failing) {
                println!("{}: {test} fails without a mutant", self.path.display());
                failing.insert(test);
            }
            failing
        })
    }

    /// The first of these tests that fails with a mutant, but for those `known`; else how the program ended, if in another way.
    fn failure(&self, mutant: &str, words: &[&str], known: &BTreeSet<String>) -> Option<String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", PATIENCE]).arg(&self.path).args(words);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
            .env("PAUSEBED_FAULT", mutant)
            .env("PROPTEST_CASES", RANDOM_CASES)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("timeout is there");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).split(b'\n');
        let failed = |line: Vec<u8>| {
            let line = String::from_utf8_lossy(&line).into_owned();
            let case = line.strip_prefix("FAIL ").and_then(|rest| rest.split_whitespace().next());
            let test = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
            case.or_else(test).map(str::to_owned)
        };
        let found =
            lines.map_while(Result::ok).filter_map(failed).find(|name| !known.contains(name));
        if found.is_some() {
            // It stops its child, too.
            kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it is ours");
        }
        let status = child.wait().expect("it has ended");
        let ended = || match status.code() {
            Some(0 | 1 | 101) => None,
            _ => Some(status.to_string()).filter(|status| !known.contains(status)),
        };
        found.or_else(ended)
    }

    /// The first of these tests that fails because of a mutant.
    fn kills(&self, mutant: &str, tests: &[&str]) -> Option<String> {
        let mut known = self.failing().clone();
        loop {
            let test = self.failure(mutant, tests, &known)?;
            let words = if test.contains(": ") { tests } else { &[self.one, &test] };
            let none = BTreeSet::new();
            if self.failure(mutant, words, &none).is_some()
                && self.failure("", words, &none).is_none()
            {
                return Some(test);
            }
            known.insert(test);
        }
    }
}

/// The programs with all mutants.
struct Built {
    /// The unit tests of each crate, by the name of its library.
    units: BTreeMap<&'static str, Program>,
    cases: Program,
    tests: Vec<Program>,
    /// Mutants that do not build, by number.
    unbuildable: BTreeMap<usize, String>,
}

impl Built {
    fn new(mutants: &[Mutant]) -> Built {
        let scratch = Scratch::new(mutants.iter().map(|mutant| mutant.file.as_str()));
        let mut unbuildable = BTreeMap::new();
        let write = |unbuildable: &BTreeMap<usize, String>| {
            for (file, mut good) in by_file(mutants) {
                good.retain(|(number, _)| !unbuildable.contains_key(number));
                scratch.write_switched(file, |text| increments::insert(text, &good));
            }
        };
        let build = || {
            let mut words =
                vec!["test", "--no-run", "--lib", "--message-format", "json-render-diagnostics"];
            FOLDERS.iter().for_each(|(_, library)| words.extend(["-p", library]));
            words.extend(["-p", "pausebed-tests", "-p", "testbed"]);
            TESTS.iter().for_each(|test| words.extend(["--test", test]));
            let made = scratch.cargo(&words)?;
            Ok((made, scratch.build("topo", "pausebed")?))
        };
        let (made, pausebed) = scratch.build_without(&mut unbuildable, write, build);
        let made: Vec<Value> =
            made.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let program = |kind: &'static str, name: &str| {
            let is_it = |one: &&Value| {
                one["target"]["name"] == name
                    && one["profile"]["test"] == true
                    && one["executable"].is_string()
            };
            let one = made.iter().find(is_it).unwrap_or_else(|| panic!("no tests of {name}"));
            let path = |key: &str| PathBuf::from(one[key].as_str().expect("a path"));
            let folder = path("manifest_path").parent().expect("a folder").to_owned();
            Program::new(kind, path("executable"), folder)
        };
        let units = FOLDERS.iter().map(|(_, library)| (*library, program(library, library)));
        Built {
            units: units.collect(),
            tests: TESTS.iter().map(|test| program(test, test)).collect(),
            cases: Program::new("case", pausebed, super::laboratory::in_repository("")),
            unbuildable,
        }
    }

    /// What kills a mutant: unit tests of its crate, the cases, or others. `near` are the unit tests that come first.
    fn killer(
        &self,
        number: usize,
        own: &'static str,
        near: &BTreeSet<String>,
    ) -> Option<(&'static str, String)> {
        let number = number.to_string();
        let units = &self.units[own];
        let mut words: Vec<&str> = near.iter().map(String::as_str).collect();
        words.push("--exact");
        if !near.is_empty()
            && let Some(test) = units.kills(&number, &words)
        {
            return Some((own, test));
        }
        let others = self.units.values().filter(|unit| unit.kind != own).chain(&self.tests);
        let mut all = [units, &self.cases].into_iter().chain(others);
        all.find_map(|program| Some((program.kind, program.kills(&number, program.all)?)))
    }

    /// Judges the mutants of a file.
    fn judge(&self, mutants: &[(usize, &Mutant)]) -> String {
        let mut killed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let (mut survivors, mut unbuilt) = (Vec::new(), Vec::new());
        let (mut by, mut near) = ([0; 3], BTreeSet::new());
        for (number, mutant) in mutants {
            if self.unbuildable.contains_key(number) {
                unbuilt.push(mutant.name.as_str());
                continue;
            }
            let own = increments::library(&mutant.file);
            let killer = self.killer(*number, own, &near);
            println!("{} {} {:?}: {killer:?}", mutant.file, mutant.name, mutant.change);
            let Some((kind, test)) = killer else {
                survivors.push(mutant.name.as_str());
                continue;
            };
            by[if kind == own {
                near.insert(test.clone());
                0
            } else if kind == "case" {
                1
            } else {
                2
            }] += 1;
            killed.entry(format!("{kind} {test}")).or_default().push(mutant.place());
        }
        let total = mutants.len() - unbuilt.len();
        let [unit, cases, others] = by;
        let mut parts = vec![format!(
            "{} of {total} killed, {unit} by unit tests, {cases} by cases, {others} by others",
            total - survivors.len()
        )];
        parts.extend(killed.iter().map(|(test, places)| format!("{} by {test}", places.join(" "))));
        parts.extend(unbuilt.iter().map(|name| format!("not built: {name}")));
        let found = if survivors.is_empty() { String::new() } else { format!("{FOUND} ") };
        parts.extend(survivors.iter().map(|name| format!("survives: {name}")));
        found + &parts.join("; ")
    }
}

/// The mutants of each file, with their numbers.
fn by_file(mutants: &[Mutant]) -> BTreeMap<&str, Vec<(usize, &Mutant)>> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        files.entry(&mutant.file).or_default().push((number, mutant));
    }
    files
}

pub fn counters() {
    let (mutants, _) = increments::all();
    let folders = FOLDERS.map(|(folder, _)| folder);
    faults_on(&folders, "counters", |campaign| {
        campaign.part(page::MUTANTS, || format!("{} in the product", mutants.len()));
    });
    let built = LazyLock::new(|| Built::new(&mutants));
    let queue = Mutex::new(by_file(&mutants).into_iter());
    let next = || queue.lock().expect("no thread panics here").next();
    let survivors = Mutex::new(Vec::new());
    let work = || {
        while let Some((file, mutants)) = next() {
            let faults = faults_on(&[file], "counters", |campaign| {
                campaign.part(file, || built.judge(&mutants));
            });
            survivors.lock().expect("no thread panics here").extend(faults);
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let text = fs::read_to_string(ledger::kept().join("pausebed-chaos-counters.ledger"));
    let [killed, total, ..] = page::killed(&text.unwrap_or_default());
    assert!(killed * 100 >= total * DUE, "{killed} of {total}: {survivors:#?}");
}
