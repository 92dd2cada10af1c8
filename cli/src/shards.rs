//! Commands whose runs can be made on several machines: the options that share and merge them, and the jobs of engines
//! that start the shares.

use crate::exit::{Exit, Failure};
use crate::terminal::progress::SearchProgress;
use clap::builder::PossibleValuesParser;
use emulation::clock::Stopwatch;
use engines::{ENGINES, Job};
use launch::{LaunchError, interrupt, with_sources};
use results::run_directory::result::RunResult;
use search::parallel::map_in_parallel;
use search::shard::{Made, Plan, Planned, Shard, ShardError};
use std::path::{Path, PathBuf};

mod engines;

/// How often a folder is read for runs of other shards, in nanoseconds.
const LOOK_EVERY_NS: u64 = 500_000_000;

/// Options of commands that can be shared.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "On several machines")]
pub(crate) struct ShardOptions {
    /// Make only share K of N, every N-th run, each in a folder of its own below --out. A run that is there is not
    /// repeated. K counts from 1 to N, or from 0 as some engines do.
    #[arg(
        long,
        value_name = "K/N",
        env = "PAUSEBED_SHARD",
        hide_env_values = true,
        requires = "out"
    )]
    pub shard: Option<Shard>,
    /// Make no run, but tables and figures from what shards have written into these folders.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "shard")]
    pub merge: Vec<PathBuf>,
    /// Wait up to this long for runs of other shards.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub wait: f64,
    /// Print the runs as lines of JSON, and make none.
    #[arg(long)]
    pub plan: bool,
    /// Print a job of this engine that starts all shards, and merges them.
    #[arg(long, value_name = "ENGINE", value_parser = PossibleValuesParser::new(ENGINES), requires = "out")]
    to: Option<String>,
    /// Number of shares of such a job.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    shards: u64,
    /// Image of such a job.
    #[arg(long, default_value = concat!("pausebed:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Storage of such a job, which all its shards mount as their working directory: a volume (Swarm), a claim
    /// (Kubernetes), or a path of every machine.
    #[arg(long, default_value = "pausebed")]
    volume: String,
}

impl ShardOptions {
    /// Does what comes instead of a whole plan on this machine: prints it, prints the job of an engine, or makes the runs of a
    /// share, `threads` at a time. `None` if nothing of that is asked for.
    ///
    /// # Errors
    /// If there is no plan, or a word of the command line cannot be written in a job.
    pub(crate) fn instead(
        &self,
        (name, out): (&str, Option<&Path>),
        plan: impl FnOnce() -> Result<Plan, Failure>,
        threads: usize,
        run: impl Fn(&Planned, &Path) -> Result<(), LaunchError> + Sync,
    ) -> Result<Option<Exit>, Failure> {
        if self.plan {
            plan()?.lines().for_each(|line| println!("{line}"));
            return Ok(Some(Exit::Good));
        }
        if self.prints_job(name, out)? {
            return Ok(Some(Exit::Good));
        }
        let (Some(shard), Some(out)) = (self.shard, out) else { return Ok(None) };
        Ok(Some(make(&plan()?, name, (shard, out), threads, run)))
    }

    /// Prints the job of an engine, if one is asked for.
    ///
    /// # Errors
    /// If a word of the command line cannot be written in a job.
    pub(crate) fn prints_job(&self, name: &str, out: Option<&Path>) -> Result<bool, Failure> {
        let (Some(engine), Some(out)) = (&self.to, out) else { return Ok(false) };
        let job = Job {
            name,
            words: engines::words(std::env::args()),
            out: out.display().to_string(),
            shards: self.shards,
            image: &self.image,
            volume: &self.volume,
        };
        println!("{}", job.for_engine(engine).map_err(Failure::usage)?);
        Ok(true)
    }

    /// The results of all runs of a plan from the folders to merge; waits for those that are missing.
    ///
    /// # Errors
    /// If they cannot be merged.
    pub(crate) fn merged(&self, plan: &Plan) -> Result<Vec<(PathBuf, RunResult)>, Failure> {
        self.awaited(|| plan.is_complete(&self.merge).then_some(()));
        plan.merge(&self.merge).map_err(|error| Failure::new(exit_of(&error), with_sources(&error)))
    }

    /// Looks until there is something, the time is up, or the user pressed Ctrl-C.
    pub(crate) fn awaited<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let stopwatch = Stopwatch::start();
        loop {
            let found = look();
            if found.is_some() || stopwatch.seconds() >= self.wait || interrupt::requested() {
                return found;
            }
            interrupt::pause(LOOK_EVERY_NS);
        }
    }
}

/// Makes the runs of a share, and says what became of them.
fn make(
    plan: &Plan,
    name: &str,
    (shard, folder): (Shard, &Path),
    threads: usize,
    run: impl Fn(&Planned, &Path) -> Result<(), LaunchError> + Sync,
) -> Exit {
    interrupt::install_handlers();
    let share = plan.share(shard);
    let progress = SearchProgress::of(name, share.len() as u64);
    let made = map_in_parallel(&share, threads, |index| {
        let made = plan.make(*index, shard, folder, &run);
        progress.count_run();
        made
    });
    progress.finish();
    let (mut now, mut before, mut exit) = (0, 0, Exit::Good);
    for (index, made) in share.iter().zip(made) {
        let (kind, message) = match made {
            Ok(Made::Now) => {
                now += 1;
                continue;
            }
            Ok(Made::Before) => {
                before += 1;
                continue;
            }
            Ok(Made::Failed(error)) => (error.kind.into(), with_sources(&error)),
            Err(error) => (exit_of(&error), with_sources(&error)),
        };
        if kind != Exit::Interrupted {
            alert!("{}: {message}", plan.runs[*index].folder);
        }
        exit = exit.max(kind);
    }
    let lacks = share.len() - now - before;
    println!(
        "{name}: {now} runs made, {before} there before, {lacks} failed, of {}",
        plan.runs.len()
    );
    exit
}

/// The exit code of an error.
pub(crate) fn exit_of(error: &ShardError) -> Exit {
    match error {
        ShardError::Missing { .. } => Exit::Incomplete,
        ShardError::File { .. } => Exit::Host,
        ShardError::Foreign { .. } | ShardError::Torn { .. } | ShardError::Differ { .. } => {
            Exit::Usage
        }
    }
}
