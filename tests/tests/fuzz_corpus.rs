//! The fuzz targets on stable Rust: all inputs in `proving/fuzz/corpus`, and seconds of random ones.
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
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../proving/fuzz/corpus").join(target.name);
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proving/fuzz/fuzz_targets");
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

/// Time for the random inputs of a target: that of the environment (`test.sh` gives ten seconds), or one.
fn seconds() -> f64 {
    let given = std::env::var("PAUSEBED_FUZZ_SECONDS").ok();
    given.map_or(1.0, |given| given.parse().expect("PAUSEBED_FUZZ_SECONDS is a number of seconds"))
}

macro_rules! random_inputs_pass {
    ($($name:ident)+) => {
        const WITH_RANDOM_INPUTS: &[&str] = &[$(stringify!($name)),+];

        mod random_inputs_pass {
            $(#[test]
            fn $name() {
                let (target, stopwatch) = (super::target(stringify!($name)), super::Stopwatch::start());
                // New inputs each time; a failure names the seed.
                let (seed, kept) = (super::realtime_ns(), super::corpus(target).1);
                let (mut rounds, seconds) = (0, super::seconds());
                super::mutate::run(target, &kept, seed, |round| {
                    rounds = round;
                    stopwatch.seconds() < seconds
                });
                println!("{}: {rounds} inputs of seed {seed}", target.name);
                assert!(rounds > 0, "no input");
            })+
        }
    };
}

random_inputs_pass! {
    packet link_packet ethernet congestion datagram offload capture text scenario trace api http join switch ethernet_switch
    nic roce_nic
}

#[test]
fn every_target_gets_random_inputs() {
    let names = TARGETS.iter().map(|target| target.name);
    assert!(names.eq(WITH_RANDOM_INPUTS.iter().copied()), "{WITH_RANDOM_INPUTS:?}");
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
