//! Shipped scenarios on the virtual clock: list them, run them, check their expectations.

use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::run::Backend;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder of shipped scenarios.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios").join(name)
}

/// The scenario files of such a folder, sorted by name.
pub fn files(name: &str) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder(name)).expect("the folder of scenarios is readable");
    let mut files: Vec<PathBuf> = listing.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

fn run(text: &str, sets: &[String]) -> RunResult {
    let scenario = Scenario::parse(text, sets).unwrap_or_else(|faults| panic!("{faults}"));
    let conditions = Conditions::new(substrate(Backend::Virtual), "a test");
    Experiment::run(&scenario, conditions, &mut |_| {}).expect("the run succeeds").result
}

/// Runs a file. It must meet all its expectations, and its frame balance must close.
pub fn passes(file: &Path) -> RunResult {
    passes_as(file, &scenario::files::read(file).expect("the scenario file is readable").text, &[])
}

/// Like [`passes`], with another text and with overrides.
pub fn passes_as(file: &Path, text: &str, sets: &[String]) -> RunResult {
    let result = run(text, sets);
    let missed = result.expectations.iter().filter(|e| e.verdict != Verdict::Pass);
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{}: {missed:#?}", file.display());
    assert_eq!(result.verdict, Verdict::Pass, "{}: {:?}", file.display(), result.conservation);
    result
}

/// Runs the files two at a time; all must pass.
pub fn all_pass(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            passes(file);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
}
