//! `pausebed run FILE…`: runs scenarios and says whether they came out as expected.

use super::Exit;
use super::files::load_all;
use super::overrides::Overrides;
use crate::campaign::{Campaign, Plan};
use launch::BACKENDS;
use scenario::files::Loaded;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What runs have in common, whatever names them.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Run on this substrate instead of the file's.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    pub backend: Option<String>,
    #[command(flatten)]
    instead: Overrides,
    /// The seed, instead of the file's.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Several seeds, as in 1..10 (both included): mean and spread of every measure.
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Threads for each run on the virtual clock; no result depends on it. Left out: one for every
    /// 64 devices of a single run, as the cores allow, and one for each of several side by side.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Write run directories here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write no report.html into run directories.
    #[arg(long)]
    pub no_report: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// Seeds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// Options of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Scenario files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Reads `1..10`.
///
/// # Errors
/// If it is no range.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    let (first, last) = text.split_once("..").ok_or("write it as 1..10")?;
    let number =
        |text: &str| text.trim_start_matches('=').parse::<u64>().map_err(|e| e.to_string());
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        Err("the first is above the last".to_owned())
    } else {
        Ok(Seeds { first, last })
    }
}

impl Common {
    /// The overrides that the options amount to.
    pub fn overrides(&self) -> Vec<String> {
        let mut sets = self.instead.keys(self.backend.as_deref());
        sets.extend(self.seed.iter().map(|seed| format!("run.seed={seed}")));
        sets
    }
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    let loaded = match load_all(&options.files, &options.common.overrides()) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    if let Some(twin) = twins(&loaded) {
        eprintln!("two files are called {twin}: their run directories would be one");
        return Exit::Usage;
    }
    let single = loaded.len() == 1;
    let plan = Plan { common: options.common.clone(), line: line.to_owned(), single, suite: false };
    Campaign::new(plan).run(loaded)
}

/// The name that two files share, if any do.
fn twins(loaded: &[Loaded]) -> Option<&str> {
    let mut stems: Vec<&str> = loaded.iter().map(|file| file.stem.as_str()).collect();
    stems.sort_unstable();
    stems.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
