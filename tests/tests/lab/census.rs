//! Interfaces, namespaces, processes and files after a lab equal those before it, however the lab ended.
//!
//! live/containers.rs counts the objects of containers.

use super::INFINIBAND;
use super::ground::{Ground, SmallDisk, Substrate, end, signal};
use super::laboratory::{eventually, in_repository};
use super::objects::namespaces_held;
use nix::sys::signal::Signal;
use proto::random::Random;
use std::collections::BTreeSet;
use std::fs;
use std::process::Child;

/// Polls and ends of labs in creation.
impl Ground {
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

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_launcher_killed_at_any_step_leaves_nothing_behind() {
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

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_full_disk_is_reported_and_nothing_remains() {
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
