//! Labs under OpenSM and infiniband-diags, unmodified, by real management datagrams. Without the packages these tests
//! print SKIPPED.

#[path = "managed/oracle.rs"]
mod oracle;
#[path = "managed/programs.rs"]
mod programs;

use crate::laboratory::{alone, eventually};
use crate::place::Place;
use daemon::clients::ClientCounts;
use launch::lab::{LabRecord, client};
use oracle::Oracle;
use programs::{PROGRAMS, Program};
use std::process::{Child, Command, Output, Stdio};

const SMALL: &str = "tests/tests/lab/managed/small.toml";
const FAT_TREE: &str = "topo/scenarios/pfister/case4-none.toml";

/// A managed lab.
pub struct Managed {
    pub place: Place,
    pub oracle: Oracle,
    /// The node beside which programs run.
    pub beside: &'static str,
}

/// OpenSM beside the first NIC, until it is dropped.
struct Manager {
    process: Child,
    log: std::path::PathBuf,
}

impl Drop for Manager {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.process.id() as i32);
        // An error means that it has ended.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

/// The environment of the tests has the packages; otherwise the reason is printed.
fn has_packages() -> bool {
    let has = |program: &str| {
        ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
            .iter()
            .any(|folder| std::path::Path::new(folder).join(program).exists())
    };
    let library = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let has_library =
        library.into_iter().any(|entry| entry.path().join("umad2sim/libumad2sim.so").exists());
    let missing = [("opensm", has("opensm")), ("infiniband-diags", has("ibnetdiscover"))];
    let missing = missing.into_iter().chain([("libumad2sim0", has_library)]);
    let missing: Vec<_> = missing.filter(|(_, has)| !has).map(|(package, _)| package).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: not installed: {}", missing.join(", "));
    }
    missing.is_empty()
}

impl Managed {
    fn up(file: &str, words: &[&str]) -> Managed {
        let place = Place::new();
        place.up_with(file, "m", &[&["--managed"], words].concat());
        Managed { place, oracle: Oracle::of(file), beside: "h1" }
    }

    pub fn command(&self, node: &str, words: &[&str]) -> Command {
        let mut command = self.place.command(&[&["exec", node, "--"], words].concat());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(self.beside, words).output().expect("the program starts")
    }

    /// A word with the LID of a node for each `@NODE`.
    fn with_lids(&self, word: &str) -> String {
        let part = |part: &str| match part.strip_prefix('@') {
            Some(name) => self.oracle.node(name).lid.to_string(),
            None => part.to_owned(),
        };
        word.split(':').map(part).collect::<Vec<_>>().join(":")
    }

    /// Starts OpenSM and waits until the fabric is up.
    fn manage(&self) -> Manager {
        let log = self.place.folder.path().join("opensm.log");
        let path = log.display().to_string();
        let mut command = self.command("h0", &["opensm", "-f", &path]);
        let process = command.stdout(Stdio::null()).spawn().expect("OpenSM starts");
        let manager = Manager { process, log };
        assert!(eventually(30.0, || manager.said("SUBNET UP")), "{}", manager.text());
        manager
    }

    /// The sum of a count of the servers for programs, over all daemons.
    fn count(&self, of: fn(&ClientCounts) -> u64) -> u64 {
        let record = LabRecord::read(&self.place.labs().join("m")).expect("a journal");
        let daemons = client::status(&record).expect("all daemons answer");
        daemons.iter().filter_map(|daemon| daemon.clients.as_ref()).map(of).sum()
    }
}

impl Manager {
    fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn said(&self, what: &str) -> bool {
        self.text().contains(what)
    }
}

/// Runs each program and compares its output with the oracle.
fn compare(lab: &Managed, programs: &[&Program]) {
    for program in programs {
        let words: Vec<String> = program.words.split(' ').map(|word| lab.with_lids(word)).collect();
        let output = lab.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_good = output.status.code() == Some(program.code);
        assert!(is_good, "{}: {:?}\n{said}\n{errors}", program.words, output.status);
        eprintln!("{}", program.words);
        (program.check)(lab, &said);
    }
}

#[test]
fn opensm_brings_a_lab_up_and_programs_see_its_topology() {
    if !has_packages() {
        return;
    }
    let _alone = alone();
    let lab = Managed::up(SMALL, &[]);
    let manager = lab.manage();
    assert!(!manager.said("ERR"), "{}", manager.text());
    let quick = PROGRAMS.iter().filter(|program| program.is_quick);
    compare(&lab, &quick.collect::<Vec<_>>());
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}
