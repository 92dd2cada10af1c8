//! The fuzz targets on stable Rust: all inputs in `fuzz/corpus`, and thousands of random inputs.
//!
//! `fuzz.sh` searches for new inputs. An input that found a fault stays in the corpus after the fix.

use emulation::clock::{Stopwatch, realtime_ns};
use pausebed_fuzz::{TARGETS, Target, ethernet_switch, nic, roce_nic, switch};
use proto::congestion::schemes::SCHEMES;
use proto::random::Random;
use proto::technology::Technology;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("TARGETS has a row for the target")
}

/// Inputs of a target's corpus, sorted by name.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

fn holds(target: &Target, input: &[u8], name: &str) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    assert!(outcome.is_ok(), "{} panicked on {name}: {input:02x?}", target.name);
}

#[test]
fn every_corpus_input_passes() {
    for target in TARGETS {
        let inputs = corpus(target);
        assert!(inputs.len() >= 12, "{} has {} inputs", target.name, inputs.len());
        for (path, input) in inputs {
            holds(target, &input, &path.display().to_string());
        }
    }
}

#[test]
fn every_target_has_a_program_and_every_program_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let mut programs: Vec<String> = fs::read_dir(folder)
        .expect("the folder of targets")
        .map(|entry| entry.expect("a readable folder").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    programs.sort();
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    assert_eq!(programs, targets);
}

/// Random inputs until `go_on` says no: half of them are random octets, the others corpus inputs with random changes.
fn smoke(name: &str, seed: u64, mut go_on: impl FnMut(u32) -> bool) {
    let target = target(name);
    let kept = corpus(target);
    let mut random = Random::stream(seed, name, "smoke");
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    for round in (0..).take_while(|round| go_on(*round)) {
        let mut input: Vec<u8> = match round % 2 {
            0 => (0..below(600)).map(|_| below(256) as u8).collect(),
            _ => kept[below(kept.len())].1.clone(),
        };
        for _ in 0..below(8) {
            if input.is_empty() {
                break;
            }
            let at = below(input.len());
            match below(4) {
                0 => input.truncate(at),
                1 => input.insert(at, below(256) as u8),
                2 => input[at] = below(256) as u8,
                _ => input[at] ^= 1 << below(8),
            }
        }
        holds(target, &input, &format!("round {round} of seed {seed}"));
    }
}

macro_rules! rounds {
    ($($name:ident $rounds:literal)+) => {
        /// How many random inputs each target gets, which is about a second of each.
        const ROUNDS: &[(&str, u32)] = &[$((stringify!($name), $rounds)),+];

        mod random_inputs_pass {
            $(#[test]
            fn $name() {
                super::smoke(stringify!($name), 7, |round| round < $rounds);
            })+
        }
    };
}

rounds! {
    packet 20_000
    link_packet 20_000
    ethernet 20_000
    congestion 20_000
    datagram 10_000
    offload 20_000
    capture 4_000
    text 4_000
    scenario 2_000
    trace 10_000
    api 10_000
    http 1_000
    join 1_000
    switch 3_000
    ethernet_switch 3_000
    nic 3_000
    roce_nic 3_000
}

#[test]
fn every_target_gets_random_inputs() {
    let names = TARGETS.iter().map(|target| target.name);
    assert!(names.eq(ROUNDS.iter().map(|(name, _)| *name)), "{ROUNDS:?}");
}

#[test]
#[ignore = "slow: three minutes"]
fn fuzz_ten_seconds_of_random_inputs_of_each_target_pass() {
    // New inputs each time; a failure names the seed.
    let seed = realtime_ns();
    for target in TARGETS {
        let stopwatch = Stopwatch::start();
        let mut rounds = 0;
        smoke(target.name, seed, |round| {
            rounds = round;
            stopwatch.seconds() < 10.0
        });
        println!("{}: {rounds} inputs of seed {seed}", target.name);
    }
}

#[test]
fn every_scheme_has_a_switch_and_an_adapter() {
    let adapters = |technology| match technology {
        Technology::Infiniband => nic::SCHEMES.to_vec(),
        Technology::Ethernet => roce_nic::SCHEMES.map(|(kind, _)| kind).to_vec(),
    };
    let switches = |technology| match technology {
        Technology::Infiniband => switch::SCHEMES.to_vec(),
        Technology::Ethernet => ethernet_switch::SCHEMES.to_vec(),
    };
    for scheme in SCHEMES {
        for technology in scheme.technologies {
            let both = [adapters(*technology), switches(*technology)];
            let has = both.iter().all(|kinds| kinds.contains(&scheme.name));
            assert!(has, "{} on {technology:?}", scheme.name);
        }
    }
}
