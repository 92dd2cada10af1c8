//! `pausebed export --to FORMAT [DIR]`: exports a finished run, or a dashboard for labs, for other programs.

use super::compare::no_run_directory;
use crate::exit::{Exit, Failure, Outcome};
use report::export::{self, FORMATS, Make};
use std::io::Write;
use std::path::PathBuf;

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it; grafana needs none.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS.iter().map(|row| row.name).collect::<Vec<_>>())]
    to: String,
    /// Write to this file instead of one in DIR, or without DIR to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    // The parser accepts only formats of the table.
    let format = export::find(&options.to).ok_or_else(|| Failure::usage("unknown format"))?;
    let octets = match (format.make, &options.folder) {
        (Make::Alone(octets), _) => octets.to_vec(),
        (Make::Run(make), Some(folder)) => make(folder).map_err(no_run_directory)?,
        (Make::Run(_), None) => {
            return Err(no_run_directory(format!("{} is made from a run directory", format.name)));
        }
    };
    let beside = options.folder.as_ref().map(|folder| folder.join(format.file));
    let Some(file) = options.output.clone().or(beside) else {
        // A closed pipe is not an error: the reader needs no more.
        let _ = std::io::stdout().write_all(&octets);
        return Ok(Exit::Good);
    };
    std::fs::write(&file, octets).map_err(Failure::cannot_write(&file))?;
    println!("{}", file.display());
    Ok(Exit::Good)
}
