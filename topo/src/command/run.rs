//! `pausebed run FILE…` and `pausebed suite DIR`: runs scenarios and judges their expectations.

use super::files::{load_all, of_folder};
use crate::campaign::Campaign;
use crate::exit::{Failure, Outcome};
use crate::options::RunOptions;
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
}

/// Runs the command `run`.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let loaded = load_all(&options.files, &options.common.overrides())?;
    if let Some(stem) = duplicate(&loaded) {
        let message = format!("two files are called {stem}: they would share a run directory");
        return Err(Failure::usage(message));
    }
    let single = loaded.len() == 1;
    Ok(Campaign { common: options.common.clone(), line: line.to_owned(), single }.run(&loaded))
}

/// Runs the command `suite`.
pub(super) fn suite(options: &Suite, line: &str) -> Outcome {
    let loaded = load_all(&of_folder(&options.folder)?, &options.common.overrides())?;
    let (common, line) = (options.common.clone(), line.to_owned());
    Ok(Campaign { common, line, single: false }.run(&loaded))
}

/// The name that two files share, if any.
fn duplicate(loaded: &[Loaded]) -> Option<&str> {
    let mut stems: Vec<&str> = loaded.iter().map(|file| file.stem.as_str()).collect();
    stems.sort_unstable();
    stems.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
