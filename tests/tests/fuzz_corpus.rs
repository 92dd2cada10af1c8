//! The fuzz targets on stable Rust: all inputs in `fuzz/corpus`, and thousands of random inputs.
//!
//! `fuzz.sh` searches for new inputs. An input that found a fault stays in the corpus after the fix.

use pausebed_fuzz::{TARGETS, Target};
use proto::random::Random;
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

/// Half of the inputs are random octets; the other half are corpus inputs with random changes.
fn smoke(name: &str, rounds: u32) {
    let target = target(name);
    let kept = corpus(target);
    let mut random = Random::stream(7, name, "smoke");
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    for round in 0..rounds {
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
        holds(target, &input, &format!("round {round}"));
    }
}

#[test]
fn thousands_of_random_packets_pass() {
    smoke("packet", 20_000);
    smoke("link_packet", 20_000);
    smoke("congestion", 20_000);
}

#[test]
fn thousands_of_random_ethernet_frames_pass() {
    smoke("ethernet", 20_000);
}

#[test]
fn thousands_of_random_datagrams_pass() {
    smoke("datagram", 10_000);
}

#[test]
fn thousands_of_random_captures_pass() {
    smoke("capture", 4_000);
}

#[test]
fn thousands_of_random_texts_pass() {
    smoke("text", 4_000);
}

#[test]
fn thousands_of_random_scenarios_pass() {
    smoke("scenario", 2_000);
}

#[test]
fn thousands_of_random_switch_operations_pass() {
    smoke("switch", 3_000);
}

#[test]
fn thousands_of_random_ethernet_switch_operations_pass() {
    smoke("ethernet_switch", 3_000);
}

#[test]
fn thousands_of_random_nic_operations_pass() {
    smoke("nic", 3_000);
}

#[test]
fn thousands_of_random_roce_nic_operations_pass() {
    smoke("roce_nic", 3_000);
}
