//! `pausebed run FILE…` and `pausebed suite DIR`: runs scenarios and judges their expectations.

use super::files::{load_all, load_one, of_folder};
use crate::campaign::Campaign;
use crate::exit::{Failure, Outcome};
use crate::options::RunOptions;
use crate::shards::ShardOptions;
use launch::lab::routes::{self, ManagedRoutes};
use launch::{interrupt, output};
use scenario::files::Loaded;
use std::path::PathBuf;

/// Options of `run`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Scenario files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    common: RunOptions,
}

/// Options of `suite`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Suite {
    /// The folder, without its subfolders.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    common: RunOptions,
    #[command(flatten)]
    shards: ShardOptions,
}

/// Runs the command `run`.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let loaded = load(&options.files, &options.common)?;
    if let Some(stem) = duplicate(&loaded) {
        let message = format!("two files are called {stem}: they would share a run directory");
        return Err(Failure::usage(message));
    }
    let single = loaded.len() == 1;
    Ok(Campaign { common: options.common.clone(), line: line.to_owned(), single }.run(&loaded))
}

/// Runs the command `suite`.
pub(super) fn suite(options: &Suite, line: &str) -> Outcome {
    let loaded = load(&of_folder(&options.folder)?, &options.common)?;
    let (common, line) = (options.common.clone(), line.to_owned());
    let name = options.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Campaign { common, line, single: false }.shared(&name, &options.shards, &loaded)
}

/// Reads all files with the overrides of the command.
fn load(files: &[PathBuf], common: &RunOptions) -> Result<Vec<Loaded>, Failure> {
    if common.quiet {
        output::be_quiet();
    }
    let sets = common.overrides();
    load_all(files, &sets)?.into_iter().map(|file| with_routes(file, &sets)).collect()
}

/// A file whose fabric a subnet manager has gets the routes that OpenSM computes.
fn with_routes(file: Loaded, sets: &[String]) -> Result<Loaded, Failure> {
    if !file.scenario.fabric.managed {
        return Ok(file);
    }
    interrupt::install_handlers();
    let ManagedRoutes { sets: routes, entries, seconds } = routes::of_opensm(&file.scenario, sets)
        .map_err(|error| Failure::from(error).of(&file.stem))?;
    eprintln!("{}: OpenSM took {seconds:.1} s for {entries} routes to NICs", file.stem);
    load_one(&file.file, &[sets, &routes].concat())
}

/// The name that two files share, if any.
fn duplicate(loaded: &[Loaded]) -> Option<&str> {
    let mut stems: Vec<&str> = loaded.iter().map(|file| file.stem.as_str()).collect();
    stems.sort_unstable();
    stems.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
