//! `pausebed suite DIR`: runs every scenario of a folder and sums up.

use super::Exit;
use super::files::{load_all, of_folder};
use super::run::Common;
use crate::campaign::{Campaign, Plan};
use std::path::PathBuf;

/// Options of `suite`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The folder; folders below it are not run.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    let loaded =
        of_folder(&options.folder).and_then(|files| load_all(&files, &options.common.overrides()));
    let plan =
        Plan { common: options.common.clone(), line: line.to_owned(), single: false, suite: true };
    match loaded {
        Ok(loaded) => Campaign::new(plan).run(loaded),
        Err(exit) => exit,
    }
}
