//! Labs under OpenSM and infiniband-diags, unmodified, by real management datagrams. Without the packages these tests
//! are skipped.

#[path = "managed/counters.rs"]
mod counters;
#[path = "managed/engines.rs"]
mod engines;
#[path = "managed/hostile.rs"]
mod hostile;
#[path = "managed/hot_spot.rs"]
mod hot_spot;
#[path = "managed/large.rs"]
mod large;
#[path = "managed/moved.rs"]
mod moved;
#[path = "managed/multicast.rs"]
mod multicast;
#[path = "managed/oracle.rs"]
mod oracle;
#[path = "managed/partitions.rs"]
mod partitions;
#[path = "managed/programs.rs"]
mod programs;

use crate::laboratory::eventually;
use crate::place::Place;
use daemon::clients::ClientCounts;
use launch::lab::{LabRecord, client};
use oracle::Oracle;
use programs::{PROGRAMS, Program};
use std::process::{Child, Command, Output, Stdio};

const SMALL: &str = "tests/tests/lab/managed/small.toml";
const FAT_TREE: &str = "topo/scenarios/pfister/case4-none.toml";

/// A standby manager asks the master every half second, and takes over after two requests without an answer.
const OPTIONS: &str = "force_log_flush TRUE\nsminfo_polling_timeout 500\npolling_retry_number 2\n";

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
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    let library = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let has_library =
        library.into_iter().any(|entry| entry.path().join("umad2sim/libumad2sim.so").exists());
    let missing = [("opensm", has("opensm")), ("infiniband-diags", has("ibnetdiscover"))];
    let missing = missing.into_iter().chain([("libumad2sim0", has_library)]);
    let missing: Vec<_> = missing.filter(|(_, has)| !has).map(|(package, _)| package).collect();
    if !missing.is_empty() {
        skip::because!("not installed: {}", missing.join(", "));
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

    /// The output of a program beside h1, which must end well.
    pub fn good(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A word with the LID of a node for each `@NODE`.
    fn with_lids(&self, word: &str) -> String {
        let name_ends = |rest: &str| rest.find([':', '/']).unwrap_or(rest.len());
        let mut parts = word.split('@');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let (name, rest) = part.split_at(name_ends(part));
            format!("{text}{}{rest}", self.oracle.node(name).lid)
        })
    }

    /// Starts OpenSM and waits until the fabric is up.
    fn manage(&self) -> Manager {
        self.manage_within(30.0)
    }

    fn manage_within(&self, seconds: f64) -> Manager {
        let manager = self.start_manager("h0");
        assert!(eventually(seconds, || manager.said("SUBNET UP")), "{}", manager.text());
        manager
    }

    fn start_manager(&self, node: &str) -> Manager {
        self.start_manager_by(node, &[])
    }

    /// Starts OpenSM by a program with these words.
    fn start_manager_by(&self, node: &str, by: &[&str]) -> Manager {
        self.start_manager_as(node, by, &[])
    }

    /// Starts OpenSM with these words.
    fn start_manager_with(&self, node: &str, with: &[&str]) -> Manager {
        self.start_manager_as(node, &[], with)
    }

    fn start_manager_as(&self, node: &str, by: &[&str], with: &[&str]) -> Manager {
        let file = |ending: &str| self.place.folder.path().join(format!("opensm-{node}.{ending}"));
        let (log, options) = (file("log"), file("conf"));
        std::fs::write(&options, OPTIONS).expect("a file");
        let [path, options] = [&log, &options].map(|file| file.display().to_string());
        let words = [by, &["opensm", "-F", &options, "-f", &path], with].concat();
        let mut command = self.command(node, &words);
        let process = command.stdout(Stdio::null()).spawn().expect("OpenSM starts");
        Manager { process, log }
    }

    /// The cables of the way from h1 to h3; none while a request of ibtracert goes the old way and is lost.
    fn way(&self) -> Option<Vec<[oracle::Port; 2]>> {
        let lids = ["h1", "h3"].map(|name| self.oracle.node(name).lid.to_string());
        let output = self.run(&["ibtracert", &lids[0], &lids[1]]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| oracle::traced(&said))
    }

    fn record(&self) -> LabRecord {
        LabRecord::read(&self.place.labs().join("m")).expect("a journal")
    }

    /// The counts of the servers for programs, by daemon.
    fn counts(&self) -> Vec<ClientCounts> {
        let daemons = client::status(&self.record()).expect("all daemons answer");
        daemons.into_iter().filter_map(|daemon| daemon.clients).collect()
    }

    /// The sum of a count over all daemons.
    fn count(&self, of: fn(&ClientCounts) -> u64) -> u64 {
        self.counts().iter().map(of).sum()
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
        // What a shell gets is one word.
        let words: Vec<&str> = match program.words.strip_prefix("sh -c ") {
            Some(script) => vec!["sh", "-c", script],
            None => program.words.split(' ').collect(),
        };
        let words: Vec<String> = words.into_iter().map(|word| lab.with_lids(word)).collect();
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
    let lab = Managed::up(SMALL, &[]);
    let manager = lab.manage();
    assert!(!manager.said("ERR"), "{}", manager.text());
    let quick = PROGRAMS.iter().filter(|program| program.is_quick);
    compare(&lab, &quick.collect::<Vec<_>>());
    drop(manager);
    lab.place.down("m");
    lab.place.assert_empty();
}

/// Every program of the table, on the small lab and on a fat tree of 32 NICs and 12 switches.
#[test]
#[ignore = "slow"]
fn every_program_of_infiniband_diags_agrees_with_the_plan() {
    if !has_packages() {
        return;
    }
    for file in [SMALL, FAT_TREE] {
        let lab = Managed::up(file, &["--dilate", "500"]);
        // Counters stand still without traffic; the small lab has none.
        lab.place.run(&["traffic", "stop"]);
        let manager = lab.manage();
        assert!(!manager.said("ERR"), "{}", manager.text());
        compare(&lab, &PROGRAMS.iter().collect::<Vec<_>>());
        let (sent, repeated) = (lab.count(|count| count.sent), lab.count(|count| count.repeated));
        eprintln!("{file}: {sent} datagrams of programs, {repeated} repeated");
        assert_eq!(lab.count(|count| count.malformed + count.refused + count.overrun), 0);
        drop(manager);
        lab.place.down("m");
        lab.place.assert_empty();
    }
}

/// A cut cable, a disabled port, and a manager that is killed beside another.
#[test]
#[ignore = "slow"]
fn opensm_routes_around_a_cut_cable_and_a_second_opensm_takes_over() {
    if !has_packages() {
        return;
    }
    let lab = Managed::up(SMALL, &[]);
    let mut first = lab.manage();
    let second = lab.start_manager("h2");
    assert!(eventually(20.0, || second.said("Entering STANDBY state")), "{}", second.text());
    let trunk = lab.way().expect("a way")[1];
    let end = |guid: u64, port: u8| {
        let node = lab.oracle.nodes.iter().find(|node| node.guid == guid).expect("a switch");
        format!("{}:{port}", node.name)
    };
    let port = end(trunk[0].0, trunk[0].1);
    lab.place.good(&["set", "link", &port, "--down"]);
    let stopwatch = emulation::clock::Stopwatch::start();
    let is_around = || lab.way().is_some_and(|way| !way.contains(&trunk));
    assert!(eventually(20.0, is_around), "{}", first.text());
    eprintln!("a cut cable is routed around after {:.2} s", stopwatch.seconds());
    lab.place.good(&["set", "link", &port, "--up"]);
    let count = lab.oracle.cables.len() * 2;
    let active = || lab.good(&["iblinkinfo"]).matches("Active/  LinkUp").count();
    assert!(eventually(20.0, || active() == count), "{}", first.text());
    let lid = lab.oracle.node("s0").lid.to_string();
    lab.good(&["ibportstate", &lid, "3", "disable"]);
    assert!(eventually(20.0, || active() == count - 2), "{}", first.text());
    lab.good(&["ibportstate", &lid, "3", "enable"]);
    assert!(eventually(20.0, || active() == count), "{}", first.text());
    // The kernel ends what the killed command has started.
    first.process.kill().expect("it runs");
    let stopwatch = emulation::clock::Stopwatch::start();
    assert!(eventually(30.0, || second.said("Entering MASTER state")), "{}", second.text());
    eprintln!("the second OpenSM is master after {:.2} s", stopwatch.seconds());
    let manager = lab.oracle.node("h2").guid + 1;
    let is_master = || oracle::hex_after(&lab.good(&["sminfo"]), "sm guid ") == Some(manager);
    assert!(eventually(20.0, is_master), "{}", second.text());
    assert_eq!(active(), count);
    drop((first, second));
    lab.place.down("m");
    lab.place.assert_empty();
}
