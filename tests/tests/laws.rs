//! Random scenarios against laws that need no reference.
//!
//! A scenario is drawn from the declarations of keys, run for a short time on the virtual clock, and checked. Of a scenario
//! that breaks a law a smaller one is made that breaks the same law, and written to a file.
//!
//! `PAUSEBED_LAWS_FIRST` and `PAUSEBED_LAWS_COUNT` choose the scenarios:
//!
//! ```text
//! PAUSEBED_LAWS_FIRST=1000 PAUSEBED_LAWS_COUNT=500 cargo test --profile quick -p pausebed-tests --test laws -- --nocapture
//! ```

use crate::accept::Drawn;
use crate::watch::Violation;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Table;

#[path = "laws/accept.rs"]
mod accept;
#[path = "laws/draw.rs"]
mod draw;
#[path = "laws/generate.rs"]
mod generate;
#[path = "laws/laws.rs"]
mod laws;
#[path = "laws/run.rs"]
mod run;
#[path = "laws/shrink.rs"]
mod shrink;
#[path = "laws/text.rs"]
mod text;
#[path = "laws/twins.rs"]
mod twins;
#[path = "laws/watch.rs"]
mod watch;

/// Scenarios of the quick suite: half a minute on two cores that have other work too.
const QUICK: u64 = 600;
/// Scenarios of the slow suite: an hour.
const SLOW: u64 = 60_000;
/// Seeds of scenarios that broke a law once.
const ONCE: [u64; 10] =
    [187, 607, 11_712, 15_626, 17_912, 22_233, 22_245, 1_012_056, 1_015_591, 1_057_660];
/// Violations after which a test ends.
const BROKEN_MAX: usize = 20;

#[test]
fn random_scenarios_keep_the_laws() {
    explore(1, QUICK);
}

#[test]
fn scenarios_that_broke_a_law_once_keep_it() {
    run::keep_panics();
    for seed in ONCE {
        let drawn = generate::scenario(seed).unwrap_or_else(|refusal| panic!("{seed}: {refusal}"));
        laws::check(&drawn, seed).unwrap_or_else(|violation| panic!("{seed}: {violation:?}"));
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn an_hour_of_random_scenarios_keeps_the_laws() {
    explore(1_000_000, SLOW);
}

/// Checks `count` scenarios from seed `first` on, or those that the environment names.
fn explore(first: u64, count: u64) {
    run::keep_panics();
    let first = number("PAUSEBED_LAWS_FIRST", first);
    let count = number("PAUSEBED_LAWS_COUNT", count);
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    let mut broken = Vec::new();
    for seed in first..first + count {
        if (seed - first) % 1_000 == 999 {
            let refusals: u64 = refused.values().sum();
            println!("seed {seed}: {} laws broken, {refusals} refused", broken.len());
        }
        match generate::scenario(seed) {
            Err(refusal) => *refused.entry(refusal).or_default() += 1,
            Ok(drawn) => broken.extend(laws::check(&drawn, seed).err().map(|violation| {
                let report = report(seed, &drawn, &violation);
                println!("{report}");
                report
            })),
        }
        if broken.len() >= BROKEN_MAX {
            break;
        }
    }
    let refusals: u64 = refused.values().sum();
    println!("{count} scenarios from seed {first}, {refusals} refused");
    refused.iter().for_each(|(refusal, n)| println!("  {n}: {refusal}"));
    // Each is one that people cannot draw either, and too many hide what is not looked at.
    assert!(refusals * 20 <= count, "{refusals} of {count} scenarios are refused");
    assert!(broken.is_empty(), "{} laws are broken:\n{}", broken.len(), broken.join("\n"));
}

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    let written = std::env::var(name).ok();
    written
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Writes a small scenario that breaks the law, and says where.
fn report(seed: u64, drawn: &Drawn, violation: &Violation) -> String {
    let again = |table: &Table| {
        let scenario = Scenario::parse(&text::print(table), &[]).ok()?;
        let drawn = Drawn { table: table.clone(), scenario };
        laws::check(&drawn, seed).err().filter(|other| other.law == violation.law)
    };
    let small = shrink::smaller(&drawn.table, |table| again(table).is_some());
    let Violation { law, what } = again(&small).unwrap_or_else(|| violation.clone());
    let file = folder().join(format!("{}-{seed}.toml", law.replace(' ', "-")));
    let comment = what.replace('\n', "\n# ");
    let content = format!("# seed {seed}: {law}\n# {comment}\n{}", text::print(&small));
    std::fs::write(&file, content).expect("the folder of test files can be written");
    format!("seed {seed}: {law}: {what}\n    {}", file.display())
}

/// Where small scenarios are written.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("laws");
    std::fs::create_dir_all(&folder).expect("the folder of test files can be made");
    folder
}
