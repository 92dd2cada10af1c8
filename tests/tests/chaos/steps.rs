//! Labs whose commands are killed at every step, and commands that race for one name.

use super::Campaign;
use super::ground::{Ground, Substrate};
use super::laboratory::{in_repository, pause};
use super::place::INFINIBAND;
use super::tracer::{self, Role};
use nix::sys::signal::Signal;
use proto::random::Random;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::channel;

/// A role has no more steps, or counting them went wrong.
const STEPS_MAX: usize = 2_000;
/// Cycles of commands that race.
const RACES: u64 = 200;
/// How the result of a step begins that does not exist.
const NONE: &str = "no such step";

/// `up` and then `down`, where the process with this role is killed at this step. Nothing may be left, and if `again`,
/// `up` works at once. Returns what was killed.
pub fn killed_at(substrate: Substrate, role: Role, step: usize, again: bool) -> String {
    let mut ground = Ground::new();
    let before = ground.objects();
    let file = in_repository(INFINIBAND).display().to_string();
    let up = ["up", &file, "--name", "one", "--tcp", "--backend", substrate.name()];
    let command = |words: &[&str]| {
        let mut command = ground.place.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let commands = vec![command(&up), command(&["down", "one"])];
    let (sender, receiver) = channel();
    let tracer = std::thread::spawn(move || tracer::run(commands, role, step, &sender));
    receiver.recv().expect("the tracer tells");
    ground.look();
    if again {
        let output = ground.place.run(&up);
        ground.look();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A command that is killed once its lab is up leaves the lab.
        let is_there = output.status.code() == Some(2) && said.contains("lab one is up already");
        assert!(output.status.success() || is_there, "{}: {said}", output.status);
        ground.place.down("one");
    }
    ground.tidy();
    let traced = tracer.join().expect("the tracer does not panic");
    ground.assert_is(&before, &format!("{role:?} killed at step {step}, {traced:?}"));
    // A shell would show 101 for a panic.
    assert!(!traced.ended.iter().any(|status| status >> 8 == 101), "{traced:?}");
    match traced.struck {
        Some(what) => format!("killed before {what}"),
        None => format!("{NONE}: {} steps", traced.steps.get(&role).unwrap_or(&0)),
    }
}

/// Kills each role at each of its steps.
pub fn at_every_step(campaign: &mut Campaign) {
    for substrate in Ground::new().substrates() {
        for role in Role::ALL {
            for step in 1..=STEPS_MAX {
                let part = format!("{} {} {step}", substrate.name(), role.name());
                let result =
                    campaign.part(&part, || killed_at(*substrate, role, step, step % 3 == 0));
                assert!(step < STEPS_MAX || result.is_empty(), "{part}: {result}");
                if result.starts_with(NONE) {
                    break;
                }
            }
        }
    }
}

/// Two or three commands for one name that begin within 300 ms.
pub fn race(seed: u64) -> String {
    let mut random = Random::stream(seed, "chaos", "race");
    let mut ground = Ground::new();
    let before = ground.objects();
    let substrates = ground.substrates();
    let substrate = substrates[random.below(substrates.len() as u64) as usize];
    if random.chance(1, 3) {
        ground.place.good(&up(&file(), substrate));
    }
    let mut commands: Vec<(&str, Child)> = Vec::new();
    for number in 0..2 + random.below(2) {
        let is_up = if number < 2 { number == 0 } else { random.chance(1, 2) };
        let word = if is_up { "up" } else { "down" };
        let file = file();
        let words = if is_up { up(&file, substrate).to_vec() } else { vec!["down", "one"] };
        let mut command = ground.place.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        commands.push((word, command.spawn().expect("the program starts")));
        pause(random.below(300_000_000) as f64 / 1e9 / (1 + random.below(4)) as f64);
        ground.look();
    }
    let ended = commands.into_iter().map(|(word, child)| {
        let Output { status, stderr, .. } = child.wait_with_output().expect("a child of the test");
        (word, status, String::from_utf8_lossy(&stderr).into_owned())
    });
    let ended: Vec<_> = ended.collect();
    for (word, status, said) in &ended {
        let codes: &[i32] = if *word == "up" { &[0, 2, 3, 5] } else { &[0] };
        let is_told = status.success() || !said.trim().is_empty();
        let has_code = status.code().is_some_and(|code| codes.contains(&code)) && is_told;
        // Until the keeper owns the lab, `down` ends the `up` that does.
        let is_ended = *word == "up" && status.signal() == Some(Signal::SIGTERM as i32);
        assert!((has_code || is_ended) && !said.contains("panicked"), "{word}: {status} {said}");
    }
    let left = fs::read_dir(ground.place.labs()).expect("a folder").flatten();
    let left: BTreeSet<_> = left.map(|entry| entry.file_name()).collect();
    ground.look();
    ground.tidy();
    ground.assert_is(&before, &format!("{ended:?}"));
    let each: Vec<_> = ended.iter().map(|(word, status, _)| format!("{word}: {status}")).collect();
    format!("{}, {}; a lab left: {}", substrate.name(), each.join(", "), !left.is_empty())
}

fn file() -> String {
    in_repository(INFINIBAND).display().to_string()
}

fn up(file: &str, substrate: Substrate) -> [&str; 6] {
    ["up", file, "--name", "one", "--backend", substrate.name()]
}

/// Races for one name, each with its seed.
pub fn races(campaign: &mut Campaign) {
    for seed in 1..=RACES {
        campaign.part(&format!("seed {seed}"), || race(seed));
    }
}
