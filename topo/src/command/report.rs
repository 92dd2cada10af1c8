//! `pausebed report DIR [BASELINE]`: makes the page of a finished run again.

use super::Exit;
use crate::report;
use std::path::PathBuf;

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Another one to lay beside it: the same experiment without the scheme.
    #[arg(value_name = "BASELINE")]
    baseline: Option<PathBuf>,
    /// Write to this file instead of DIR/report.html.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let Options { folder, baseline, output } = options;
    let page = match report::page(folder, baseline.as_deref()) {
        Ok(page) => page,
        Err(error) => {
            eprintln!("{error}\n  hint: pausebed run FILE --out DIR makes a run directory");
            return Exit::Usage;
        }
    };
    let file = output.clone().unwrap_or_else(|| folder.join(report::FILE));
    if let Err(error) = std::fs::write(&file, page) {
        eprintln!("cannot write {}: {error}", file.display());
        return Exit::Host;
    }
    println!("{}", file.display());
    Exit::Good
}
