//! Random inputs of one target, without coverage: `cargo run --release --example mutate SECONDS TARGET FOLDER…`, where
//! the folders hold kept inputs. Prints the number of executions as libFuzzer does.

use emulation::clock::{Stopwatch, realtime_ns};
use pausebed_fuzz::{TARGETS, mutate};
use std::cell::Cell;
use std::fs;

/// Inputs between two looks at the clock.
const BETWEEN: u64 = 64;

fn main() {
    let mut words = std::env::args().skip(1);
    let seconds: f64 = words.next().and_then(|word| word.parse().ok()).expect("SECONDS");
    let name = words.next().expect("TARGET");
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let read = |folder| fs::read_dir(folder).into_iter().flatten().flatten();
    let kept: Vec<Vec<u8>> =
        words.flat_map(read).filter_map(|entry| fs::read(entry.path()).ok()).collect();
    assert!(!kept.is_empty(), "no kept inputs");
    let (stopwatch, count) = (Stopwatch::start(), Cell::new(0));
    mutate::run(target, &kept, realtime_ns(), |round| {
        count.set(round);
        !round.is_multiple_of(BETWEEN) || stopwatch.seconds() < seconds
    });
    println!("stat::number_of_executed_units: {}", count.get());
}
