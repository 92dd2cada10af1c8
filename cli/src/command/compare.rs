//! `pausebed compare DIR…`: compares finished runs.

use crate::exit::{Exit, Failure, Outcome};
use report::compare::exact::first_difference;
use report::compare::{Side, distinguish, figure, is_conclusive, json, table};
use std::path::PathBuf;

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Run directories, as `pausebed run --out DIR` leaves them
    #[arg(value_name = "DIR", required = true, num_args = 1..)]
    folders: Vec<PathBuf>,
    /// Also write a figure: throughput over time, how long messages took
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Check that two runs are the same to the octet, but for host, wall times, pace and backend. Exit code 1 and the
    /// first difference if they are not
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    exact: bool,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    if options.exact {
        return exact(&options.folders);
    }
    let load = |folder: &PathBuf| Side::load(folder).map_err(no_run_directory);
    let mut sides = options.folders.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    distinguish(&mut sides);
    match options.json {
        true => println!("{}", json(&sides)),
        false => say!("{}", table(&sides)),
    }
    if let Some(file) = &options.svg {
        std::fs::write(file, figure::svg(&sides)).map_err(Failure::cannot_write(file))?;
        eprintln!("figure: {}", file.display());
    }
    Ok(if is_conclusive(&sides) { Exit::Good } else { Exit::Inconclusive })
}

/// Compares two run directories to the octet.
fn exact(folders: &[PathBuf]) -> Outcome {
    let [a, b] = folders else {
        return Err(Failure::usage("--exact compares two run directories".to_owned()));
    };
    match first_difference(a, b).map_err(no_run_directory)? {
        None => {
            println!("{} and {} are the same", a.display(), b.display());
            Ok(Exit::Good)
        }
        Some(difference) => {
            println!("{} and {} differ: {difference}", a.display(), b.display());
            Ok(Exit::Failed)
        }
    }
}

/// A run directory that cannot be read.
pub(super) fn no_run_directory(error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{error}\n  hint: pausebed run FILE --out DIR makes a run directory"))
}
