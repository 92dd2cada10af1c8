//! `pausebed export --to FORMAT [DIR]`: a finished run, or a board for labs, for other programs.

use super::Exit;
use report::export::{self, FORMATS, Format, Make};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it; grafana needs none.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// For which program.
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS.iter().map(|row| row.name).collect::<Vec<_>>())]
    to: String,
    /// Write to this file instead of one in DIR, or without DIR to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let Some(format) = export::find(&options.to) else { return Exit::Usage };
    let octets = match make(format, options.folder.as_deref()) {
        Ok(octets) => octets,
        Err(reason) => {
            eprintln!("{reason}\n  hint: pausebed run FILE --out DIR makes a run directory");
            return Exit::Usage;
        }
    };
    let beside = options.folder.as_ref().map(|folder| folder.join(format.file));
    let Some(file) = options.output.clone().or(beside) else {
        // Who reads no more has seen enough.
        let _ = std::io::stdout().write_all(&octets);
        return Exit::Good;
    };
    if let Err(error) = std::fs::write(&file, octets) {
        eprintln!("cannot write {}: {error}", file.display());
        return Exit::Host;
    }
    println!("{}", file.display());
    Exit::Good
}

fn make(format: &Format, folder: Option<&Path>) -> Result<Vec<u8>, String> {
    match (format.make, folder) {
        (Make::Alone(make), _) => Ok(make()),
        (Make::Run(make), Some(folder)) => make(folder).map_err(|error| error.to_string()),
        (Make::Run(_), None) => Err(format!("{} is made from a run directory", format.name)),
    }
}
