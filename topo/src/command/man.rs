//! `pausebed man DIR`: manual pages of all commands.

use crate::exit::{Exit, Failure, Outcome};
use clap::Command;
use std::path::PathBuf;

/// Options of `man`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The folder for pausebed.1, pausebed-run.1 and so on.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes a page for `command` and for each of its commands.
pub(super) fn run(options: &Options, command: Command) -> Outcome {
    let folder = &options.folder;
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(Failure::cannot_write(folder))?;
    Ok(Exit::Good)
}
