//! Hosts that stop processes, step their clock, or lack room, descriptors, memory or an interface: every frame is accounted
//! for, or the command ends with a message and its exit code, and nothing is left.

use super::Campaign;
use super::assert_balanced;
use super::ground::{Ground, Objects, SmallDisk, Substrate, signal};
use super::laboratory::{eventually, in_repository, pause, pausebed};
use super::place::{ETHERNET, INFINIBAND};
use conformance::stepped_clock::SteppedClock;
use nix::sys::signal::Signal;
use proto::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

/// Parts of each kind.
const OF_EACH: u64 = 100;

/// Causes the fault of a seed, and says what became of the lab or the command.
type Fault = fn(u64) -> String;

/// The kinds of faults by name.
pub const KINDS: [(&str, Fault); 7] = [
    ("stop", stop),
    ("disk", disk),
    ("descriptors", |seed| limited(seed, Limit::Descriptors)),
    ("memory", |seed| limited(seed, Limit::Memory)),
    ("interface", interface),
    ("mtu", mtu),
    ("clock", clock),
];

/// The result on hosts where the test may not cause the fault.
const SKIPPED: &str = "skipped";

/// The state of a lab whose daemons do not answer.
const MUTE: &str = "does not answer";

/// One part: a place for one lab, and what was there before.
struct Part {
    ground: Ground,
    random: Random,
    before: Objects,
    substrate: Substrate,
    file: String,
}

impl Part {
    fn new(kind: &str, seed: u64) -> Part {
        let mut random = Random::stream(seed, "chaos", kind);
        let ground = Ground::new();
        let substrates = ground.substrates();
        let substrate = substrates[random.below(substrates.len() as u64) as usize];
        let file = in_repository([INFINIBAND, ETHERNET][random.below(2) as usize]);
        let (before, file) = (ground.objects(), file.display().to_string());
        Part { ground, random, before, substrate, file }
    }

    /// A part whose lab has interfaces of the kernel; none where the test may not make them.
    fn with_interfaces(kind: &str, seed: u64) -> Option<Part> {
        let part = Part::new(kind, seed);
        let may = part.ground.substrates().contains(&Substrate::Netns);
        may.then_some(Part { substrate: Substrate::Netns, ..part })
    }

    fn words(&self, command: &'static str) -> Vec<&str> {
        let words = match command {
            "up" => &["up", self.file.as_str(), "--name", "one"][..],
            _ => &["run", self.file.as_str(), "--no-report"],
        };
        [words, &["--backend", self.substrate.name()]].concat()
    }

    fn up(&mut self) {
        self.ground.place.good(&self.words("up"));
        self.ground.look();
        pause(self.random.below(400_000_000) as f64 / 1e9);
    }

    /// A process of the lab, by chance.
    fn any_process(&mut self) -> u32 {
        let processes = self.ground.place.processes("one");
        processes[self.random.below(processes.len() as u64) as usize]
    }

    /// The state of the lab; none if there is no lab.
    fn state(&self) -> Option<String> {
        let shown = self.ground.place.run(&["status", "--json"]).stdout;
        let all: Option<Value> = serde_json::from_slice(&shown).ok();
        Some(all?["one"]["state"].as_str()?.to_owned())
    }

    /// The lab is up and its frames are accounted for, or it has ended and says why. Returns which. A daemon without
    /// descriptors or memory may not answer; its lab can be ended all the same.
    fn outcome(&self) -> String {
        let Some(state) = self.state() else { return "no lab".to_owned() };
        let log = fs::read_to_string(self.ground.place.labs().join("one/lab.log"));
        let log = log.unwrap_or_default();
        assert!(!log.contains("panicked"), "{state}: {log}");
        let answers = ["up", "without ", "silent: "].iter().any(|word| state.starts_with(word));
        if !answers && state != MUTE {
            assert!(state.len() > "ended".len(), "a reason: {state}\n{log}");
            return state;
        }
        if answers {
            assert_balanced(&self.ground.place);
        }
        let said = self.ground.place.good(&["down", "one"]);
        assert!(!said.contains("UNACCOUNTED"), "{said}\n{log}");
        let is_balanced = said.contains("frames  ");
        format!("{state}, {} at down", if is_balanced { "balanced" } else { "no account" })
    }

    /// Nothing is left after the commands that a user gives.
    fn end(&mut self, what: &str) -> String {
        self.ground.look();
        self.ground.tidy();
        self.ground.assert_is(&self.before, what);
        format!("{} {what}", self.substrate.name())
    }
}

/// A command succeeds, or says why it does not and ends with a code of its own. Returns code or signal.
fn told(output: &Output, good: &[i32]) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{:?}: {said}", output.status);
    match output.status.code() {
        Some(code) if good.contains(&code) => format!("code {code}"),
        // 126 and 127 are codes of prlimit, if the program cannot be started.
        Some(code) if [2, 3, 5, 126, 127].contains(&code) => {
            let last = said.trim().lines().last().unwrap_or_default();
            assert!(!last.is_empty(), "code {code} without a message");
            let last: String = last.chars().take(120).collect();
            format!("code {code}: {last}")
        }
        // Rust's library ends a process that gets no memory, with this message.
        None if said.contains("memory allocation of") => "no memory".to_owned(),
        code => panic!("{code:?}, signal {:?}: {said}", output.status.signal()),
    }
}

/// A process of a lab stands still for 0.1 to 5 s.
fn stop(seed: u64) -> String {
    let mut part = Part::new("stop", seed);
    part.up();
    let process = part.any_process();
    let still_ms = 100 + part.random.below(4_900);
    signal(process, Signal::SIGSTOP);
    pause(still_ms as f64 / 1e3);
    signal(process, Signal::SIGCONT);
    let mut state = None;
    let is_up = eventually(20.0, || {
        state = part.state();
        state.as_deref() == Some("up")
    });
    assert!(is_up, "after {still_ms} ms: {state:?}");
    let outcome = part.outcome();
    part.end(&format!("stopped for {still_ms} ms: {outcome}"))
}

/// The file system of a lab, a run or a capture has little room.
fn disk(seed: u64) -> String {
    let mut part = Part::new("disk", seed);
    let at = part.ground.place.folder.path().join("disk");
    let Some(disk) = SmallDisk::mount(at) else { return SKIPPED.to_owned() };
    part.ground.place.root = Some(disk.0.clone());
    part.ground.settle();
    part.before = part.ground.objects();
    let mut room = part.random.below(SmallDisk::SIZE as u64) as usize >> part.random.below(6);
    let out = disk.0.join("out").display().to_string();
    let what = match part.random.below(3) {
        0 => {
            let filler = disk.fill(room);
            let ended = told(&part.ground.place.run(&part.words("up")), &[0]);
            let outcome = part.outcome();
            fs::remove_file(filler).expect("it was made");
            format!("up with {room} octets: {ended}; {outcome}")
        }
        1 => {
            let filler = disk.fill(room);
            let words =
                [&part.words("run")[..], &["--out", &out, "--set", "run.capture=[\"s0:*\"]"]];
            let ended = told(&part.ground.place.run(&words.concat()), &[0, 4, 6]);
            fs::remove_file(filler).expect("it was made");
            format!("run with {room} octets: {ended}")
        }
        _ => {
            part.up();
            room = room.min(SmallDisk::SIZE / 2);
            let filler = disk.fill_up_to(room);
            let words = ["capture", "s0:1", "--lab", "one", "-w", &out, "--seconds", "1"];
            let ended = told(&part.ground.place.run(&words), &[0, 6]);
            let outcome = part.outcome();
            fs::remove_file(filler).expect("it was made");
            format!("capture with {room} octets: {ended}; {outcome}")
        }
    };
    // What the user asked for: a run directory or a capture.
    let _ = fs::remove_dir_all(&out);
    let _ = fs::remove_file(&out);
    part.end(&what)
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Descriptors,
    Memory,
}

/// The least memory in MiB in which the program starts: it has been mapped, and the loader has made it ready.
static LEAST: LazyLock<u64> = LazyLock::new(|| {
    let starts = |mib: &u64| {
        let limit = format!("--as={}", mib << 20);
        let said = Command::new("prlimit").arg(limit).arg(pausebed()).arg("--version").output();
        said.expect("prlimit, of util-linux, is installed").status.success()
    };
    (8..512).find(starts).expect("the program starts in half a GiB")
});

/// A command, or a process of a lab under way, may have few descriptors or little memory.
fn limited(seed: u64, limit: Limit) -> String {
    let mut part = Part::new(&format!("{limit:?}"), seed);
    let option = match limit {
        Limit::Descriptors => format!("--nofile={}", 3 + part.random.below(62)),
        Limit::Memory => format!("--as={}", (*LEAST << 20) + part.random.below(64 << 20)),
    };
    let place = &part.ground.place;
    let program = pausebed().display().to_string();
    let under = |words: &[&str]| {
        let words = [&[option.as_str(), &program], words].concat();
        place.program("prlimit", &words).output().expect("prlimit, of util-linux, is installed")
    };
    let what = match part.random.below(3) {
        0 => {
            let ended = told(&under(&part.words("up")), &[0]);
            format!("up with {option}: {ended}; {}", part.outcome())
        }
        1 => format!("run with {option}: {}", told(&under(&part.words("run")), &[0, 4])),
        _ => {
            part.up();
            let process = part.any_process();
            let is_keeper = part.ground.supervisor() == Some(process);
            let pid = process.to_string();
            let set = part.ground.place.program("prlimit", &["--pid", &pid, &option]).output();
            assert!(set.is_ok_and(|set| set.status.success()), "a limit can be set");
            // Clients need descriptors and memory of daemons, and a daemon that ends those of the keeper.
            let ended = told(&part.ground.place.run(&["show", "links", "--lab", "one"]), &[0]);
            if part.random.chance(1, 2) {
                part.ground.daemons().first().into_iter().for_each(|d| signal(*d, Signal::SIGKILL));
                pause(1.5);
            }
            let which = if is_keeper { "the keeper" } else { "a daemon" };
            format!("{which} with {option}: show {ended}; {}", part.outcome())
        }
    };
    part.end(&what)
}

/// A namespace of the lab and an interface in it, by chance.
fn any_interface(part: &mut Part) -> (String, String) {
    let folder = part.ground.place.root().join("pausebed");
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let file: PathBuf = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .max()
        .expect("the journal of the namespaces");
    let text = fs::read_to_string(file).expect("a journal");
    let journal: Value = serde_json::from_str(&text).expect("JSON");
    let nodes = journal["nodes"].as_object().expect("nodes").values();
    let all = nodes.flat_map(|node| {
        let namespace = node["namespace"].as_str().expect("a namespace").to_owned();
        let names = node["interfaces"].as_object().expect("interfaces").values();
        names
            .map(|name| (namespace.clone(), name.as_str().expect("a name").to_owned()))
            .collect::<BTreeMap<_, _>>()
    });
    let mut all: Vec<_> = all.collect();
    all.swap_remove(part.random.below(all.len() as u64) as usize)
}

/// Runs `ip link` in a namespace of the lab.
fn link(part: &Part, namespace: &str, words: &[&str]) {
    let net = format!("--net={namespace}");
    let words = [&[net.as_str(), "ip", "link"], words].concat();
    let output = part.ground.place.program("nsenter", &words).output().expect("nsenter runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// An interface of a lab is removed, or switched off and on.
fn interface(seed: u64) -> String {
    let Some(mut part) = Part::with_interfaces("interface", seed) else {
        return SKIPPED.to_owned();
    };
    part.up();
    let (namespace, name) = any_interface(&mut part);
    let is_removed = part.random.chance(2, 3);
    let off_s = part.random.below(1_000) as f64 / 1e3;
    let what = if is_removed {
        link(&part, &namespace, &["del", &name]);
        pause(off_s);
        "removed".to_owned()
    } else {
        link(&part, &namespace, &["set", "dev", &name, "down"]);
        pause(off_s);
        link(&part, &namespace, &["set", "dev", &name, "up"]);
        pause(0.3);
        format!("off for {off_s} s")
    };
    let outcome = part.outcome();
    part.end(&format!("{name} {what}: {outcome}"))
}

/// The MTU of an interface of a lab changes, and sometimes back.
fn mtu(seed: u64) -> String {
    let Some(mut part) = Part::with_interfaces("mtu", seed) else { return SKIPPED.to_owned() };
    part.up();
    let (namespace, name) = any_interface(&mut part);
    let mtu = (68 + part.random.below(2_200)).to_string();
    link(&part, &namespace, &["set", "dev", &name, "mtu", &mtu]);
    pause(0.1 + part.random.below(900) as f64 / 1e3);
    let is_back = part.random.chance(1, 2);
    if is_back {
        link(&part, &namespace, &["set", "dev", &name, "mtu", "9000"]);
        pause(0.3);
    }
    let outcome = part.outcome();
    let back = if is_back { " and back" } else { "" };
    part.end(&format!("{name} has MTU {mtu}{back}: {outcome}"))
}

/// Distances of the calendar clock from the true one, in nanoseconds: 1 ms to 9 hours, forwards and back.
fn distances(random: &mut Random) -> Vec<i64> {
    let one = |random: &mut Random| {
        let least = 1_000_000 << random.below(24);
        let distance = least + random.below(least as u64) as i64;
        if random.chance(1, 2) { distance } else { -distance }
    };
    (0..2 + random.below(9)).map(|_| one(random)).collect()
}

/// The calendar clock of all programs of a lab, or of one of its daemons, steps again and again. Half of the labs have bare
/// cables, where the kernel's time stamps are of that clock.
fn clock(seed: u64) -> String {
    let mut part = Part::new("clock", seed);
    if seed.is_multiple_of(2) && part.ground.substrates().contains(&Substrate::Netns) {
        (part.substrate, part.file) =
            (Substrate::Netns, in_repository(ETHERNET).display().to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let stepped = SteppedClock::compile(folder.path()).expect("a C compiler");
    let offsets = distances(&mut part.random);
    let each = Duration::from_millis(2 + part.random.below(300));
    let only = [None, Some("process-0.toml"), Some("process-1.toml")];
    let only = only[part.random.below(only.len() as u64) as usize];
    let place = &part.ground.place;
    let mut up = place.command(&part.words("up"));
    let said = up.envs(stepped.environment(each, &offsets, only)).output().expect("it starts");
    assert!(said.status.success(), "{said:?}");
    part.ground.look();
    pause(1.0 + part.random.below(1_500) as f64 / 1e3);
    let delivered = || assert_balanced(&part.ground.place)["frames"]["delivered"].as_u64();
    let before = delivered().expect("a count");
    let goes_on = eventually(20.0, || delivered().is_some_and(|now| now > before + 100));
    assert!(goes_on, "{before} frames were delivered, and few after that");
    let all = assert_balanced(&part.ground.place);
    let dropped = all["frames"]["dropped"].as_object().expect("reasons").iter();
    let dropped: Vec<String> = dropped
        .filter(|(_, count)| **count != 0)
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    let lost = if dropped.is_empty() { "none".to_owned() } else { dropped.join(" ") };
    let (loaded, readings) = stepped.readings();
    // The keeper and two daemons; only sockets of the kernel's interfaces have time stamps.
    assert!(loaded >= if only.is_some() { 1 } else { 3 }, "{loaded} programs were deceived");
    assert!(readings > 0 || part.substrate == Substrate::Udp, "the clock was never read");
    let (count, who) = (offsets.len(), only.unwrap_or("all"));
    let (each, reach) = (each.as_millis(), offsets.iter().map(|one| one.abs()).max());
    let reach_ms = reach.unwrap_or(0) / 1_000_000;
    let outcome = part.outcome();
    part.end(&format!(
        "clock of {who} stepped each {each} ms to one of {count} distances up to {reach_ms} ms, {readings} readings; {lost} dropped: {outcome}"
    ))
}

/// All kinds, each with its seeds.
pub fn faults(campaign: &mut Campaign) {
    for seed in 1..=OF_EACH {
        for (name, fault) in KINDS {
            campaign.part(&format!("{name} {seed}"), || fault(seed));
        }
    }
}
