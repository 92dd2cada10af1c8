//! `pausebed sweep FILE`: runs a scenario over values of its keys, and makes one table and one figure.

use crate::campaign::duration;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::options::{Seeds, cores, seeds};
use crate::shards::ShardOptions;
use crate::terminal::progress::SearchProgress;
use launch::{interrupt, output};
use search::shard::Planned;
use search::sweep::{Sweep, SweepError, Swept, file, picture, report};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of `sweep`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A sweep file, or a scenario file and --set with several values
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Values of a key, as in scheme.gd=0.1,0.2,0.4: an axis. With one value it is an override, as
    /// for run. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE,…", add = completion::keys())]
    sets: Vec<String>,
    /// Several seeds, as in 1..10 (both included): means and spreads
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds)]
    seeds: Option<Seeds>,
    /// Runs side by side (default: the number of cores). It changes no result
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
    /// Say how many runs there are and how long they will take, and make none
    #[arg(long)]
    dry_run: bool,
    /// Print no progress and no messages, only results and errors
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    shards: ShardOptions,
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    if options.quiet {
        output::be_quiet();
    }
    let Some(path) = options.file.as_deref().filter(|_| !options.schema) else {
        println!("{:#}", file::schema());
        return Ok(Exit::Good);
    };
    let mut sweep = Sweep::load(path, &options.sets).map_err(failure)?;
    if let Some(seeds) = &options.seeds {
        sweep.sets.push(format!("run.seed={}", seeds.start()));
        sweep.seeds = seeds.end() - seeds.start() + 1;
    }
    let threads = options.threads.map_or_else(cores, NonZeroUsize::get);
    let place = (sweep.name.as_str(), options.out.as_deref());
    let plan = || sweep.plan().map_err(failure);
    if options.dry_run {
        let plan = plan()?;
        let runs = plan.runs.iter().map(|planned| &planned.scenario);
        let seconds = duration::all(runs, 1, true).iter().sum::<f64>() / threads as f64;
        match options.json {
            true => println!("{:#}", json!({ "runs": plan.runs.len(), "seconds": seconds })),
            false => say!("{} runs: {}", plan.runs.len(), duration::words(seconds)),
        }
        return Ok(Exit::Good);
    }
    let run = |planned: &Planned, folder: &Path| {
        search::sweep::perform(planned, line, Some(folder)).map(drop)
    };
    if let Some(exit) = options.shards.instead(place, plan, threads, run)? {
        return Ok(exit);
    }
    interrupt::install_handlers();
    let swept = if options.shards.merge.is_empty() {
        let progress = SearchProgress::of(&sweep.name, sweep.runs());
        let swept = sweep.run(threads, line, &|| progress.count_run());
        progress.finish();
        swept.map_err(failure)?
    } else {
        let merged = options.shards.merged(&plan()?)?;
        sweep.gather(&merged.into_iter().map(|(_, result)| result).collect::<Vec<_>>())
    };
    let json = || format!("{:#}", report::json(&sweep, &swept));
    match options.json {
        true => println!("{}", json()),
        false => say!("{}", report::text(&sweep, &swept)),
    }
    if let Some(folder) = &options.out {
        write(folder, &sweep, &swept).map_err(Failure::cannot_write(folder))?;
        eprintln!("table and figure: {}", folder.display());
    }
    Ok(swept.verdict().into())
}

fn failure(error: SweepError) -> Failure {
    match error {
        SweepError::File(faults) => Failure::usage(faults),
        SweepError::Run(error) => error.into(),
    }
}

fn write(folder: &Path, sweep: &Sweep, swept: &Swept) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("sweep.svg"), picture::svg(sweep, swept))?;
    std::fs::write(folder.join("sweep.json"), format!("{:#}\n", report::json(sweep, swept)))?;
    report::csv(sweep, swept, std::fs::File::create(folder.join("sweep.csv"))?)?;
    Ok(())
}
