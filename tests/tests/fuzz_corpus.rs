//! The fuzz targets on stable Rust: all inputs in `fuzz/corpus`, and thousands of random inputs.
//!
//! `fuzz.sh` searches for new inputs. An input that found a fault stays in the corpus after the fix.

use emulation::clock::{Stopwatch, realtime_ns};
use pausebed_fuzz::mutate::{self, holds};
use pausebed_fuzz::{TARGETS, Target, ethernet_switch, nic, roce_nic, switch};
use proto::congestion::schemes::SCHEMES;
use proto::technology::Technology;
use std::fs;
use std::path::{Path, PathBuf};

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("TARGETS has a row for the target")
}

/// Inputs of a target's corpus with their paths, sorted by name.
fn corpus(target: &Target) -> (Vec<PathBuf>, Vec<Vec<u8>>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    let inputs = paths.iter().map(|path| fs::read(path).expect("a file")).collect();
    (paths, inputs)
}

#[test]
fn every_corpus_input_passes() {
    for target in TARGETS {
        let (paths, inputs) = corpus(target);
        assert!(inputs.len() >= 12, "{} has {} inputs", target.name, inputs.len());
        for (path, input) in paths.into_iter().zip(inputs) {
            holds(target, &input, &path.display());
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

macro_rules! rounds {
    ($($name:ident $rounds:literal)+) => {
        /// How many random inputs each target gets, which is about a second of each.
        const ROUNDS: &[(&str, u64)] = &[$((stringify!($name), $rounds)),+];

        mod random_inputs_pass {
            $(#[test]
            fn $name() {
                let target = super::target(stringify!($name));
                super::mutate::run(target, &super::corpus(target).1, 7, |round| round < $rounds);
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
        mutate::run(target, &corpus(target).1, seed, |round| {
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
