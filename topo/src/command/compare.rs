//! `pausebed compare DIR…`: lays runs side by side.

use super::Exit;
use report::compare::{Side, distinguish, figure, is_conclusive, json, table};
use std::path::PathBuf;

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Run directories, as `pausebed run --out DIR` leaves them
    #[arg(value_name = "DIR", required = true, num_args = 1..)]
    folders: Vec<PathBuf>,
    /// Also write a figure: throughput over time, how long messages took
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let mut sides = Vec::new();
    for folder in &options.folders {
        match Side::load(folder) {
            Ok(side) => sides.push(side),
            Err(error) => {
                eprintln!("{error}\n  hint: pausebed run FILE --out DIR makes a run directory");
                return Exit::Usage;
            }
        }
    }
    distinguish(&mut sides);
    if options.json {
        println!("{}", json(&sides));
    } else {
        println!("{}", table(&sides));
    }
    if let Some(file) = &options.svg {
        if let Err(error) = std::fs::write(file, figure::svg(&sides)) {
            eprintln!("cannot write {}: {error}", file.display());
            return Exit::Host;
        }
        eprintln!("figure: {}", file.display());
    }
    if is_conclusive(&sides) { Exit::Good } else { Exit::Inconclusive }
}
