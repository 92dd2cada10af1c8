//! Random inputs without coverage: many times as many as a guided search makes, on stable Rust.

use crate::Target;
use proto::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Octets of the longest random input.
const LENGTH_MAX: usize = 600;
/// Changes of a kept input, at most.
const CHANGES_MAX: usize = 8;

/// Gives `target` inputs until `go_on`, which gets the number of them so far, says no: one in four is random octets, the
/// others are `kept` inputs with random changes.
///
/// # Panics
/// If the target panics; the message holds the input.
pub fn run(target: &Target, kept: &[Vec<u8>], seed: u64, mut go_on: impl FnMut(u64) -> bool) {
    let mut random = Random::stream(seed, target.name, "smoke");
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let mut input = Vec::new();
    for round in (0..).take_while(|round| go_on(*round)) {
        input.clear();
        match round % 4 {
            0 => input.extend((0..below(LENGTH_MAX)).map(|_| below(256) as u8)),
            _ => input.extend_from_slice(&kept[below(kept.len())]),
        }
        for _ in 0..below(CHANGES_MAX) {
            if input.is_empty() {
                break;
            }
            let at = below(input.len());
            match below(5) {
                0 => input.truncate(at),
                1 => input.insert(at, below(256) as u8),
                2 => input[at] = below(256) as u8,
                3 => input[at] ^= 1 << below(8),
                _ => {
                    let other = &kept[below(kept.len())];
                    input.truncate(at);
                    input.extend_from_slice(&other[at.min(other.len())..]);
                }
            }
        }
        holds(target, &input, &format_args!("round {round} of seed {seed}"));
    }
}

/// Gives `target` one input.
///
/// # Panics
/// If the target panics; the message holds the input.
pub fn holds(target: &Target, input: &[u8], name: &impl std::fmt::Display) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    assert!(outcome.is_ok(), "{} panicked on {name}: {input:02x?}", target.name);
}
