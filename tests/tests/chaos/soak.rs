//! Two labs of two hours, with faults on and off: every frame is accounted for, and no process grows.

use super::Campaign;
use super::assert_balanced;
use super::ground::{Ground, Objects, Substrate, end};
use super::laboratory::{eventually, in_repository, pause};
use super::place::{ETHERNET, INFINIBAND};
use emulation::clock::Stopwatch;
use nix::sys::signal::Signal;
use proto::random::Random;
use std::collections::BTreeMap;
use std::fs;
use std::process::Child;

/// The life of the labs, in seconds.
const SECONDS: f64 = 7_200.0;
/// Time in which memory may grow to what a lab needs, in seconds.
const SETTLING: f64 = 600.0;
/// The growth that is permitted after that, in KiB an hour.
const GROWTH_MAX: f64 = 1_024.0;
/// Time between two accounts, in seconds.
const BETWEEN_ACCOUNTS: f64 = 30.0;

/// What a port suffers, as words behind `set link PORT` or `fault PORT`.
const FAULTS: [&[&str]; 9] = [
    &["set", "link", "--down"],
    &["set", "link", "--loss", "0.02"],
    &["set", "link", "--rate", "1 Gbps"],
    &["fault", "drop", "all", "--prob", "0.01"],
    &["fault", "drop", "link", "--prob", "0.1"],
    &["fault", "drop", "becn"],
    &["fault", "duplicate", "all", "--prob", "0.05"],
    &["fault", "corrupt", "--part", "icrc", "--prob", "0.02"],
    &["fault", "delay", "all", "--by", "2 us"],
];

/// A process of a lab: when it was looked at, and its resident memory in KiB then.
#[derive(Default)]
struct Process {
    name: String,
    memory: Vec<(f64, f64)>,
    descriptors: usize,
}

impl Process {
    /// The slope of its memory after [`SETTLING`] by least squares, in KiB an hour; 0 for a short life.
    fn growth(&self) -> f64 {
        let late: Vec<_> = self.memory.iter().filter(|(at, _)| *at > SETTLING).collect();
        let count = late.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| late.iter().map(|one| of(one)).sum::<f64>() / count;
        let (at, size) = (mean(|one| one.0), mean(|one| one.1));
        let spread: f64 = late.iter().map(|one| (one.0 - at).powi(2)).sum();
        let common: f64 = late.iter().map(|one| (one.0 - at) * (one.1 - size)).sum();
        if spread > 0.0 { common / spread * 3_600.0 } else { 0.0 }
    }
}

/// A lab, its page, and what its processes use.
struct Soaked {
    ground: Ground,
    before: Objects,
    ports: Vec<String>,
    page: Child,
    processes: BTreeMap<u32, Process>,
}

fn memory_kib(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

impl Soaked {
    fn begin(substrate: Substrate, file: &str) -> Soaked {
        let mut ground = Ground::new();
        let before = ground.objects();
        let file = in_repository(file).display().to_string();
        let substrate =
            if ground.substrates().contains(&substrate) { substrate } else { Substrate::Udp };
        ground.place.good(&["up", &file, "--name", "one", "--backend", substrate.name()]);
        ground.look();
        let shown = ground.place.json(&["show", "links", "--json", "--lab", "one"]);
        let nodes = shown["nodes"].as_array().expect("nodes").iter();
        let ports = nodes.flat_map(|node| node["ports"].as_array().expect("ports"));
        let ports = ports.map(|port| port["port"].as_str().expect("a name").to_owned());
        let ports = ports.collect();
        let page = ground.begin(&["serve", "one", "--listen", "127.0.0.1:0"]);
        let mut soaked = Soaked { ground, before, ports, page, processes: BTreeMap::new() };
        // The page looks at the lab a second after it begins.
        pause(2.0);
        let pids = soaked.ground.place.processes("one").into_iter().chain([soaked.page.id()]);
        soaked.processes = pids
            .map(|pid| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                let name = format!("{} {}", substrate.name(), name.trim());
                (pid, Process { name, descriptors: descriptors(pid), ..Process::default() })
            })
            .collect();
        soaked
    }

    /// One fault that comes and goes, or traffic that stops and starts.
    fn suffer(&self, random: &mut Random, share: f64) {
        let hold = |random: &mut Random| pause(random.below(6_000) as f64 / 1e3 * share);
        let place = &self.ground.place;
        let choice = random.below(FAULTS.len() as u64 + 1) as usize;
        let Some(words) = FAULTS.get(choice) else {
            place.good(&["traffic", "stop", "--lab", "one"]);
            hold(random);
            place.good(&["traffic", "start", "--lab", "one"]);
            return;
        };
        let port = &self.ports[random.below(self.ports.len() as u64) as usize];
        let (command, rest) = if words[0] == "set" { words.split_at(2) } else { words.split_at(1) };
        place.good(&[command, &[port], rest, &["--lab", "one"]].concat());
        hold(random);
        if rest[0] == "--down" {
            place.good(&["set", "link", port, "--up", "--lab", "one"]);
        }
        place.good(&["fault", port, "mend", "--lab", "one"]);
    }

    /// The lab's frames are accounted for, its processes are those of the beginning, and hold as many descriptors.
    fn account(&mut self, at: f64) {
        assert_balanced(&self.ground.place);
        for (pid, process) in &mut self.processes {
            let size = memory_kib(*pid).unwrap_or_else(|| panic!("{} has ended", process.name));
            process.memory.push((at, size));
            // The last command's connection may be open for a moment.
            let mut now = 0;
            let same = eventually(10.0, || {
                now = descriptors(*pid);
                now == process.descriptors
            });
            assert!(same, "{}: {now} descriptors, {} before", process.name, process.descriptors);
        }
    }

    fn end(&mut self) -> String {
        let used = self.processes.values().map(|process| {
            let last = process.memory.last().map_or(0.0, |(_, size)| *size);
            let growth = process.growth();
            assert!(
                growth < GROWTH_MAX,
                "{} grows by {growth:.0} KiB an hour: {:?}",
                process.name,
                process.memory
            );
            format!(
                "{} {last:.0} KiB {growth:+.0} KiB/h, {} descriptors",
                process.name, process.descriptors
            )
        });
        let used = used.collect::<Vec<_>>().join("; ");
        self.ground.place.down("one");
        end(&mut self.page, Signal::SIGTERM);
        self.ground.look();
        self.ground.tidy();
        self.ground.assert_is(&self.before, "a soak");
        used
    }
}

impl Drop for Soaked {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.page.kill();
        let _ = self.page.wait();
    }
}

/// Labs on both substrates and of both technologies, for some seconds. Faults last up to 6 s.
pub fn soak(seed: u64, seconds: f64) -> String {
    let mut random = Random::stream(seed, "chaos", "soak");
    let mut labs = [(Substrate::Udp, INFINIBAND), (Substrate::Netns, ETHERNET)]
        .map(|(substrate, file)| Soaked::begin(substrate, file));
    let (stopwatch, mut faults, mut accounts) = (Stopwatch::start(), 0, 0);
    let share = (seconds / 60.0).min(1.0);
    while stopwatch.seconds() < seconds {
        let until = (stopwatch.seconds() + BETWEEN_ACCOUNTS * share).min(seconds);
        while stopwatch.seconds() < until {
            labs[random.below(2) as usize].suffer(&mut random, share);
            faults += 1;
        }
        for lab in &mut labs {
            lab.account(stopwatch.seconds());
        }
        accounts += 2;
    }
    let used = labs.each_mut().map(Soaked::end).join("; ");
    format!("{:.0} s, {faults} faults, {accounts} accounts closed; {used}", stopwatch.seconds())
}

pub fn two_hours(campaign: &mut Campaign) {
    campaign.part("seed 1", || soak(1, SECONDS));
}
