//! `pausebed suite DIR`: runs every scenario of a folder and prints a summary.

use super::files::{load_all, of_folder};
use crate::campaign::{Campaign, Plan};
use crate::exit::Outcome;
use crate::options::RunOptions;
use std::path::PathBuf;

/// Options of `suite`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The folder, without its subfolders.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    common: RunOptions,
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let loaded = load_all(&of_folder(&options.folder)?, &options.common.overrides())?;
    let plan = Plan { common: options.common.clone(), line: line.to_owned(), single: false };
    Ok(Campaign::new(plan).run(loaded))
}
