//! `pausebed sweep FILE`: runs a scenario over values of its keys; one table, one figure.

use super::Exit;
use super::run::{Seeds, seeds};
use crate::campaign::exit_of_error;
use crate::terminal::progress::SearchProgress;
use launch::interrupt;
use results::verdict::Verdict;
use search::sweep::{Sweep, SweepError, Swept, file, picture, report};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of `sweep`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A sweep file, or a scenario file and --set with several values
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Values of a key, as in scheme.gd=0.1,0.2,0.4: an axis. With one value it is an override, as
    /// for run. May be given again.
    #[arg(long = "set", value_name = "KEY=VALUE,…")]
    sets: Vec<String>,
    /// Several seeds, as in 1..10 (both included): means and spreads
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds)]
    seeds: Option<Seeds>,
    /// Runs side by side; as many as there are cores if left out. Changes no result
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Write sweep.csv, sweep.json and sweep.svg here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of sweep files instead
    #[arg(long)]
    schema: bool,
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    let Some(path) = options.file.as_deref().filter(|_| !options.schema) else {
        println!("{:#}", file::schema());
        return Exit::Good;
    };
    let mut sweep = match Sweep::load(path, &options.sets) {
        Ok(sweep) => sweep,
        Err(error) => return refuse(&error),
    };
    if let Some(Seeds { first, last }) = options.seeds {
        sweep.sets.push(format!("run.seed={first}"));
        sweep.seeds = last - first + 1;
    }
    interrupt::watch();
    let progress = SearchProgress::new(&sweep.name, sweep.runs());
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = options.threads.map_or(cores, NonZeroUsize::get);
    let swept = sweep.run(threads, line, &|| progress.ran());
    progress.finish();
    let swept = match swept {
        Ok(swept) => swept,
        Err(error) => return refuse(&error),
    };
    if options.json {
        println!("{:#}", report::json(&sweep, &swept));
    } else {
        println!("{}", report::text(&sweep, &swept));
    }
    if let Some(folder) = &options.out {
        if let Err(error) = write(folder, &sweep, &swept) {
            eprintln!("cannot write into {}: {error}", folder.display());
            return Exit::Host;
        }
        eprintln!("table and figure: {}", folder.display());
    }
    match swept.verdict() {
        Verdict::Pass => Exit::Good,
        Verdict::Fail => Exit::Failed,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}

fn refuse(error: &SweepError) -> Exit {
    eprintln!("{}", error.to_string().trim_end());
    match error {
        SweepError::File(_) => Exit::Usage,
        SweepError::Run(error) => exit_of_error(error),
    }
}

fn write(folder: &Path, sweep: &Sweep, swept: &Swept) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("sweep.svg"), picture::svg(sweep, swept))?;
    std::fs::write(folder.join("sweep.json"), format!("{:#}\n", report::json(sweep, swept)))?;
    report::csv(sweep, swept, std::fs::File::create(folder.join("sweep.csv"))?)?;
    Ok(())
}
