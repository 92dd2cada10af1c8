//! Interfaces, namespaces, processes and files after a lab equal those before it, however the lab ended.
//!
//! Each test uses its own network namespace and its own folder, so that foreign objects are not counted. A process
//! belongs to the test if its environment names that folder. live/containers.rs counts the objects of containers.

use super::laboratory::{alone, eventually, in_repository};
use super::objects::{files_below, namespace_of, namespaces_held, processes_of, references};
use super::{INFINIBAND, Place};
use emulation::cable::namespace::{Namespace, within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::random::Random;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A place for labs, in its own network namespace if the test may create one.
struct Ground {
    place: Place,
    /// The namespaces of all labs observed so far.
    seen: BTreeSet<String>,
}

/// The objects that a lab could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct Objects {
    interfaces: BTreeSet<String>,
    processes: BTreeSet<u32>,
    files: BTreeSet<PathBuf>,
    /// References in `/proc` to a namespace of a lab.
    references: Vec<String>,
}

/// The substrates on which the tests create labs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Substrate {
    Udp,
    Netns,
}

impl Substrate {
    const fn name(self) -> &'static str {
        match self {
            Substrate::Udp => "udp",
            Substrate::Netns => "netns",
        }
    }
}

impl Ground {
    fn new() -> Ground {
        let place = match Namespace::make(1) {
            Ok(mut made) => {
                let namespace = made.pop().expect("one");
                namespace
                    .interfaces
                    .switch_on("lo", "loopback of a test")
                    .expect("the object exists");
                let mut place = Place::new();
                place.namespace = Some(namespace);
                place
            }
            Err(error) => {
                skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}");
                Place::new()
            }
        };
        let ground = Ground { place, seen: BTreeSet::new() };
        ground.settle();
        ground
    }

    /// Creates the folders that outlive a lab: that of all labs, and the user's runtime folder.
    fn settle(&self) {
        self.place.good(&["status"]);
        let own = self.place.root().join("pausebed");
        fs::DirBuilder::new().mode(0o700).create(own).expect("a folder");
    }

    fn substrates(&self) -> &'static [Substrate] {
        match self.place.namespace {
            Some(_) => &[Substrate::Udp, Substrate::Netns],
            None => &[Substrate::Udp],
        }
    }

    fn mark(&self) -> String {
        self.place.folder.path().display().to_string()
    }

    fn objects(&self) -> Objects {
        let path = self.place.namespace_file();
        let table = within(path.as_deref(), || fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.expect("/proc is mounted");
        let names = table.lines().filter_map(|line| line.split_once(':'));
        Objects {
            interfaces: names.map(|(name, _)| name.trim().to_owned()).collect(),
            processes: processes_of(&self.mark()),
            files: files_below(self.place.folder.path()),
            references: references(&self.seen),
        }
    }

    /// Records the namespaces that the processes hold or are in.
    fn look(&mut self) {
        let own = [namespace_of(std::process::id()), self.own_namespace()];
        for process in processes_of(&self.mark()) {
            self.seen.extend(namespaces_held(process));
            self.seen.insert(namespace_of(process));
        }
        self.seen.retain(|name| !own.contains(name) && !name.is_empty());
    }

    /// The namespace in which all processes start.
    fn own_namespace(&self) -> String {
        let link = self.place.namespace_file().and_then(|file| fs::read_link(file).ok());
        link.map(|link| link.display().to_string()).unwrap_or_default()
    }

    /// Asserts that the objects equal `before`.
    fn assert_is(&self, before: &Objects, after: &str) {
        let mut now = self.objects();
        let same = eventually(20.0, || {
            now = self.objects();
            now == *before
        });
        assert!(same, "after {after}: {now:#?}\nbefore: {before:#?}");
    }

    fn begin(&self, words: &[&str]) -> Child {
        let mut command = self.place.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    fn begin_up(&self, substrate: Substrate) -> Child {
        let file = in_repository(INFINIBAND).display().to_string();
        self.begin(&["up", &file, "--name", "one", "--tcp", "--backend", substrate.name()])
    }

    fn begin_run(&self, substrate: Substrate) -> Child {
        let file = in_repository(INFINIBAND).display().to_string();
        self.begin(&["run", &file, "--no-report", "--backend", substrate.name()])
    }

    /// Polls without pauses until a lab in creation reaches this step, or `up` ends.
    fn reach(&self, step: Step, up: &mut Child) {
        let begin = emulation::clock::monotonic_ns();
        while !step.is_reached(self) {
            let ended = up.try_wait().expect("the process is a child of the test").is_some();
            let over = emulation::clock::monotonic_ns() - begin > 20_000_000_000;
            if ended || over {
                assert!(step.is_reached(self), "{step:?} was never reached");
            }
        }
    }

    fn supervisor(&self) -> Option<u32> {
        let is_supervisor = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.split(|octet| *octet == 0).nth(1) == Some(b"keep")
        };
        processes_of(&self.mark()).into_iter().find(is_supervisor)
    }

    fn daemons(&self) -> Vec<u32> {
        let is_daemon = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.split(|octet| *octet == 0).any(|word| word == b"--config")
        };
        processes_of(&self.mark()).into_iter().filter(is_daemon).collect()
    }

    /// Runs the commands that a user runs after a failure.
    fn tidy(&self) {
        self.place.good(&["down", "one"]);
        // A run removes what an earlier, killed run left. This run needs no daemon.
        let file = in_repository(INFINIBAND).display().to_string();
        self.place.good(&["run", &file, "--backend", "virtual", "--no-report"]);
    }
}

/// The observable steps of creating a lab, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begun,
    Folder,
    Supervisor,
    RunFolder,
    Namespaces,
    Told,
    Daemons,
    Sockets,
    Up,
}

const STEPS: [Step; 9] = [
    Step::Begun,
    Step::Folder,
    Step::Supervisor,
    Step::RunFolder,
    Step::Namespaces,
    Step::Told,
    Step::Daemons,
    Step::Sockets,
    Step::Up,
];

impl Step {
    fn is_reached(self, ground: &Ground) -> bool {
        let lab = ground.place.labs().join("one");
        match self {
            Step::Begun => true,
            Step::Folder => lab.join("lab.json").exists(),
            Step::Supervisor => ground.supervisor().is_some(),
            Step::RunFolder => lab.join("run").exists(),
            Step::Namespaces => ground.supervisor().is_some_and(|supervisor| {
                !namespaces_held(supervisor).is_empty() || Step::Told.is_reached(ground)
            }),
            Step::Told => lab.join("run/process-0.toml").exists(),
            Step::Daemons => !ground.daemons().is_empty(),
            Step::Sockets => lab.join("run/process-0.sock").exists(),
            Step::Up => {
                let journal = fs::read_to_string(lab.join("lab.json")).unwrap_or_default();
                journal.contains("\"stage\": \"up\"")
            }
        }
    }
}

fn signal(process: u32, signal: Signal) {
    // An error means that it has just ended.
    let _ = kill(Pid::from_raw(process as i32), signal);
}

/// Ends a child process with a signal.
fn end(child: &mut Child, by: Signal) {
    signal(child.id(), by);
    child.wait().expect("the process is a child of the test");
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_launcher_killed_at_any_step_leaves_nothing_behind() {
    let _alone = alone();
    let mut ground = Ground::new();
    let before = ground.objects();
    assert!(before.references.is_empty() && before.processes.is_empty(), "{before:#?}");
    for substrate in ground.substrates() {
        for step in STEPS {
            for by in [Signal::SIGKILL, Signal::SIGINT] {
                let mut up = ground.begin_up(*substrate);
                ground.reach(step, &mut up);
                ground.look();
                end(&mut up, by);
                ground.look();
                ground.tidy();
                ground.assert_is(&before, &format!("{by} to up on {substrate:?} at {step:?}"));
            }
            let mut up = ground.begin_up(*substrate);
            ground.reach(step.max_supervisor(), &mut up);
            ground.look();
            if let Some(supervisor) = ground.supervisor() {
                signal(supervisor, Signal::SIGKILL);
            }
            let status = up.wait().expect("the process is a child of the test");
            assert_ne!(status.code(), Some(101), "up panicked");
            ground.tidy();
            ground.assert_is(&before, &format!("a supervisor killed on {substrate:?} at {step:?}"));
        }
    }
    let is_netns = ground.substrates().contains(&Substrate::Netns);
    assert_eq!(
        !ground.seen.is_empty(),
        is_netns,
        "namespaces are observed exactly on the substrate netns"
    );
}

impl Step {
    /// This step, or the first step with a supervisor process if that is later.
    fn max_supervisor(self) -> Step {
        if matches!(self, Step::Begun | Step::Folder) { Step::Supervisor } else { self }
    }
}

/// One random life of a lab; returns its description.
fn cycle(ground: &mut Ground, random: &mut Random) -> String {
    let one_of = |random: &mut Random, count: usize| random.below(count as u64) as usize;
    let substrates = ground.substrates();
    let substrate = substrates[one_of(random, substrates.len())];
    let step = STEPS[one_of(random, STEPS.len())];
    let by = [Signal::SIGKILL, Signal::SIGINT, Signal::SIGTERM][one_of(random, 3)];
    let what = one_of(random, 5);
    let mut child = match what {
        0..=2 => ground.begin_up(substrate),
        _ => ground.begin_run(substrate),
    };
    match what {
        0 => {
            ground.reach(step, &mut child);
            ground.look();
            end(&mut child, by);
        }
        1 => {
            ground.reach(Step::Up, &mut child);
            child.wait().expect("the process is a child of the test");
            ground.look();
            let (supervisor, daemons) = (ground.supervisor(), ground.daemons());
            let all: Vec<u32> = supervisor.into_iter().chain(daemons).collect();
            signal(all[one_of(random, all.len())], by);
        }
        2 => {
            ground.reach(Step::Up, &mut child);
            child.wait().expect("the process is a child of the test");
            ground.look();
        }
        3 => {
            let some = random.below(600_000_000);
            super::laboratory::pause(some as f64 / 1e9);
            ground.look();
            end(&mut child, by);
        }
        _ => {
            eventually(20.0, || ground.daemons().len() == 2);
            ground.look();
            if let Some(daemon) = ground.daemons().first() {
                signal(*daemon, Signal::SIGKILL);
            }
            child.wait().expect("the process is a child of the test");
        }
    }
    format!("{what} on {substrate:?} with {by} at {step:?}")
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn fifty_random_lab_cycles_leave_nothing_behind() {
    const CYCLES: u32 = 50;
    let _alone = alone();
    let mut ground = Ground::new();
    let before = ground.objects();
    let seed = emulation::clock::monotonic_ns();
    eprintln!("seed {seed}");
    let mut random = Random::stream(seed, "census", "cycles");
    for number in 0..CYCLES {
        let what = cycle(&mut ground, &mut random);
        ground.tidy();
        ground.assert_is(&before, &format!("cycle {number}, {what}, seed {seed}"));
    }
}

/// A small file system that holds all files of a lab.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Size of the file system, in octets.
    const SIZE: usize = 1 << 20;

    fn mount(at: PathBuf) -> Option<SmallDisk> {
        use std::process::Command;
        fs::create_dir(&at).expect("a folder");
        let size = format!("size={}", SmallDisk::SIZE);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at);
        let output = mount.output().expect("mount, of util-linux, is installed");
        if !output.status.success() {
            skip::because!("the test cannot mount a file system: {output:?}");
            return None;
        }
        Some(SmallDisk(at))
    }

    /// Leaves `room` octets free until the returned file is removed.
    fn fill(&self, room: usize) -> PathBuf {
        let file = self.0.join("filler");
        fs::write(&file, vec![1; SmallDisk::SIZE - room]).expect("the file fits the file system");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Only a failed test leaves processes on the file system.
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_full_disk_is_reported_and_nothing_remains() {
    let _alone = alone();
    let mut ground = Ground::new();
    let Some(disk) = SmallDisk::mount(ground.place.folder.path().join("disk")) else { return };
    ground.place.root = Some(disk.0.clone());
    ground.settle();
    let before = ground.objects();
    let file = in_repository(INFINIBAND).display().to_string();
    let mut outcomes = BTreeSet::new();
    for substrate in ground.substrates() {
        // The first value leaves no room at all; the last leaves room for everything except a long log.
        for room in [0, 4, 8, 12, 16, 24, 32, 64, 256].map(|kilobytes| kilobytes << 10) {
            let filler = disk.fill(room);
            let backend = substrate.name();
            let up = ["up", &file, "--name", "one", "--backend", backend];
            let out = disk.0.join("out").display().to_string();
            let run = ["run", &file, "--backend", backend, "--no-report", "--out", &out];
            for words in [&up[..], &run] {
                let output = ground.place.run(words);
                ground.look();
                let said = String::from_utf8_lossy(&output.stderr);
                let code = output.status.code();
                assert!(!said.contains("panicked"), "{words:?} with {room} octets: {said}");
                let is_told = said.contains("No space left") || said.contains("no space");
                assert!(matches!(code, Some(0 | 4)) || is_told, "{code:?} {words:?}: {said}");
                outcomes.insert(matches!(code, Some(0 | 4)));
            }
            // `down` must work without free space, too.
            ground.place.good(&["down", "one"]);
            fs::remove_file(filler).expect("the object exists");
            let _ = fs::remove_dir_all(&out);
            ground.tidy();
            ground.assert_is(&before, &format!("{room} free octets on {substrate:?}"));
        }
    }
    assert_eq!(outcomes.len(), 2, "some labs start and some do not: {outcomes:?}");
    drop(disk);
}
