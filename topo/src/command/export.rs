//! `pausebed export DIR --to FORMAT`: a finished run for other programs.

use super::Exit;
use crate::export::{self, FORMATS};
use std::path::PathBuf;

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// For which program.
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS.iter().map(|row| row.name).collect::<Vec<_>>())]
    to: String,
    /// Write to this file instead of one in DIR.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let Some(format) = export::find(&options.to) else { return Exit::Usage };
    let octets = match (format.make)(&options.folder) {
        Ok(octets) => octets,
        Err(error) => {
            eprintln!("{error}\n  hint: pausebed run FILE --out DIR makes a run directory");
            return Exit::Usage;
        }
    };
    let file = options.output.clone().unwrap_or_else(|| options.folder.join(format.file));
    if let Err(error) = std::fs::write(&file, octets) {
        eprintln!("cannot write {}: {error}", file.display());
        return Exit::Host;
    }
    println!("{}", file.display());
    Exit::Good
}
