//! `pausebed tune FILE`: searches a scheme's parameters, and writes the scenario with the winner.

use super::files::load_one;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::options::cores;
use crate::shards::{ShardOptions, exit_of};
use crate::terminal::progress::SearchProgress;
use emulation::clock::Stopwatch;
use launch::{interrupt, output, with_sources};
use scenario::files::Loaded;
use search::tune::{self, Conditions, Shared, TuneError, Tuning, report, search::Stop, tuned_file};
use std::path::{Path, PathBuf};

/// How a candidate is judged, for `--help`.
const JUDGED: &str = "\
How candidates are judged. Each run is scored over its window (by default the last 3/8 of the overload):
  cold      octets that cold ports received / octets posted for them; ideal 1
  hot       octets that the hot port received / what its line carries; 0.96 is as good as 1
  fairness  Jain's index of what the hot flows sent; ideal 1
  swing     standard deviation of cold from bin to bin; ideal 0
A run misses the goal by max(0, |1 - cold| - goal). It costs
  w.effectiveness·|1 - cold| + w.utilisation·max(0, 0.96 - hot) + w.fairness·(1 - fairness) + w.stability·swing
A candidate has the largest miss and the largest cost of all cases and seeds. The smaller miss wins,
then the smaller cost.

Exit code 0 if the best candidate meets the goal in every case with every seed, 1 if not, or if congestion
dropped lossless frames in any run.";

/// Options of `tune`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = JUDGED)]
pub(super) struct Options {
    /// A scenario file with a [tune] table.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Override a key of the file, as in tune.runs=100; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Write tuned.toml, tune.json and tune.csv here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs side by side (default: the number of cores). It changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Stop after this many minutes with the best candidate so far. The result then depends on the host.
    #[arg(long, value_name = "M", conflicts_with_all = ["shard", "merge", "plan"])]
    minutes: Option<f64>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
    /// Print no progress and no messages, only results and errors.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    shards: ShardOptions,
}

impl Options {
    /// Where the scores of several machines are.
    fn folders(&self) -> Vec<PathBuf> {
        let own = self.out.iter().filter(|_| self.shards.merge.is_empty());
        self.shards.merge.iter().chain(own).cloned().collect()
    }

    /// The machines that make the runs, if there are several. `--plan` reads what they have made below `--out`.
    fn shared<'a>(
        &self,
        folders: &'a [PathBuf],
        wait: &'a (dyn Fn(&dyn Fn() -> bool) -> bool + Sync),
    ) -> Option<Shared<'a>> {
        let shards = &self.shards;
        let is_shared = shards.plan || shards.shard.is_some() || !shards.merge.is_empty();
        is_shared.then_some(Shared { folders, share: shards.shard, wait })
    }
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    if options.quiet {
        output::be_quiet();
    }
    let loaded = load_one(&options.file, &options.sets)?;
    if options.shards.prints_job(&loaded.scenario.name, options.out.as_deref())? {
        return Ok(Exit::Good);
    }
    interrupt::install_handlers();
    let stopwatch = Stopwatch::start();
    let runs = loaded.scenario.tune.as_ref().map_or(0, |tune| tune.runs);
    let progress = SearchProgress::at_most(&loaded.scenario.name, runs);
    let threads = options.threads.map_or_else(cores, usize::from);
    let (folders, shards) = (options.folders(), &options.shards);
    let wait = |found: &dyn Fn() -> bool| shards.awaited(|| found().then_some(())).is_some();
    let conditions = Conditions {
        threads,
        enough: &|| options.minutes.is_some_and(|minutes| stopwatch.seconds() > minutes * 60.0),
        ran: &|| progress.count_run(),
        shared: options.shared(&folders, &wait),
    };
    let tuning = tune::tune(&loaded.scenario, &conditions);
    progress.finish();
    let tuning = match tuning {
        Err(TuneError::Due { jobs, .. }) if options.shards.plan => {
            jobs.iter().for_each(|job| println!("{}", tune::written(job)));
            return Ok(Exit::Good);
        }
        Err(error @ TuneError::Due { .. }) if options.shards.shard.is_some() => {
            println!("{}: {error} from other shards", loaded.scenario.name);
            return Ok(Exit::Good);
        }
        other => other.map_err(|error| failure(error).of(options.file.display()))?,
    };
    let host = serde_json::json!({
        "wall_seconds": stopwatch.seconds(), "threads": threads, "command": line,
        "version": env!("CARGO_PKG_VERSION"), "commit": launch::COMMIT,
    });
    let json = report::json(&tuning, &loaded.scenario.name, host);
    if options.json {
        println!("{json:#}");
    } else {
        say!("{}, {:.0} s", report::text(&tuning), stopwatch.seconds());
    }
    if let Some(folder) = &options.out {
        let written = write(folder, &loaded, options, &tuning, &json);
        written.map_err(|error| Failure::host(error).of(folder.display()))?;
    }
    Ok(match tuning.stop {
        Stop::Interrupted => Exit::Interrupted,
        _ => tuning.verdict().into(),
    })
}

fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::NoTable => Failure::usage(format!(
            "{error}\n    hint: [tune] search = {{ ccti_increase = \"1..60\" }}"
        )),
        TuneError::NoHotPort(_) => Failure::usage(error),
        TuneError::Launch(error) => error.into(),
        TuneError::NoReadings => Failure::new(Exit::Died, error),
        TuneError::Violation(_) => Failure::new(Exit::Failed, error),
        TuneError::Shard(error) => Failure::new(exit_of(&error), with_sources(&error)),
        TuneError::Due { .. } => Failure::new(Exit::Incomplete, error),
    }
}

fn write(
    folder: &Path,
    loaded: &Loaded,
    options: &Options,
    tuning: &Tuning,
    json: &serde_json::Value,
) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("tune.json"), format!("{json:#}\n"))?;
    report::csv(tuning, std::fs::File::create(folder.join("tune.csv"))?)?;
    let Some(best) = tuning.best else { return Ok(()) };
    let text = std::fs::read_to_string(&loaded.file)?;
    let tuned =
        tuned_file::text(&text, &options.sets, &loaded.scenario, tuning, &tuning.trials[best])?;
    let file = folder.join("tuned.toml");
    std::fs::write(&file, tuned)?;
    if !options.json {
        eprintln!("settings and expectations: {}", file.display());
    }
    Ok(())
}
