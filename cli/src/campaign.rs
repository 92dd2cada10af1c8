//! The runs of one command: side by side on the virtual clock, one after another live. Each is printed when it
//! ends, and all are summarised at the end.

use crate::exit::{Exit, Failure, Outcome};
use crate::options::{RunOptions, cores};
use crate::shards::ShardOptions;
use crate::terminal::progress::{RunProgress, SearchProgress};
use crate::terminal::summary;
use dashmap::DashMap;
use emulation::clock::Stopwatch;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment};
use launch::{LaunchError, interrupt, output, substrate, with_sources};
use proto::congestion::schemes::{self, Scheme};
use results::run_directory::result::RunResult;
use scenario::Scenario;
use scenario::files::Loaded;
use scenario::render::render;
use scenario::run::Pace;
use search::parallel::map_in_parallel;
use search::shard::{Plan, Planned};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(crate) mod duration;
mod sums;

/// The number of devices for each thread of a run. With fewer devices the threads mostly wait for each other:
/// measured with two threads, 20 devices run ten times slower, 44 a fifth faster, 152 three quarters faster.
const DEVICES_A_THREAD: usize = 64;

/// One run.
#[derive(Clone, Debug)]
struct Task {
    loaded: Loaded,
    /// Its run directory, relative to that of the command.
    name: PathBuf,
    folder: Option<PathBuf>,
}

/// How one task ended.
type Ending = Result<Box<Experiment>, LaunchError>;

/// A task and how it ended.
type Run<'a> = (&'a Task, Ending);

/// A task, its run directory, and its result or why it has none.
struct Concluded<'a> {
    task: &'a Task,
    folder: Option<&'a Path>,
    result: Result<&'a RunResult, String>,
    exit: Exit,
}

/// The runs that a command asks for.
pub(crate) struct Campaign {
    /// Options of the command.
    pub common: RunOptions,
    /// The command line, for the record.
    pub line: String,
    /// One scenario file: the run directory is the folder itself.
    pub single: bool,
}

impl Campaign {
    /// Makes all runs, or says how long they would take.
    pub(crate) fn run(&self, loaded: &[Loaded]) -> Exit {
        interrupt::install_handlers();
        if self.common.quiet {
            output::be_quiet();
        }
        let tasks = self.tasks(loaded);
        let live = tasks.iter().any(|task| substrate(task.loaded.scenario.run.backend).is_live);
        let cores = cores();
        let asked = self.common.threads.map(NonZeroUsize::get);
        let (at_once, threads) = match tasks.as_slice() {
            [task] => {
                let devices = task.loaded.scenario.fabric.topology.nodes.len();
                (1, asked.unwrap_or((devices / DEVICES_A_THREAD).clamp(1, cores)))
            }
            _ if live => (1, 1),
            _ => {
                let threads = asked.unwrap_or(1);
                ((cores / threads).max(1), threads)
            }
        };
        if let Some(exit) = self.announce(&tasks, at_once, threads) {
            return exit;
        }
        let runs = match tasks.len() == 1 || live {
            true => self.one_by_one(&tasks, threads),
            false => self.side_by_side(&tasks, at_once, threads),
        };
        let concluded = runs.iter().map(|(task, ending)| Concluded {
            task,
            folder: task.folder.as_deref(),
            result: ending.as_ref().map(|run| &run.result).map_err(|error| with_sources(error)),
            exit: exit_of(ending),
        });
        self.conclude(&concluded.collect::<Vec<_>>())
    }

    /// Makes the runs of a share, merges those of all shares, or prints what would be run; all runs if nothing of that is
    /// asked for. `name` is that of the suite.
    ///
    /// # Errors
    /// If run directories cannot be merged, or no job can be written.
    pub(crate) fn shared(&self, name: &str, shards: &ShardOptions, loaded: &[Loaded]) -> Outcome {
        if self.common.dry_run {
            return Ok(self.run(loaded));
        }
        let tasks = self.tasks(loaded);
        let planned = |task: &Task| Planned {
            folder: task.name.display().to_string(),
            scenario: task.loaded.scenario.clone(),
        };
        let plan = || Ok(Plan::new(tasks.iter().map(planned).collect()));
        let is_live = |task: &Task| substrate(task.loaded.scenario.run.backend).is_live;
        let threads = self.common.threads.map_or(1, NonZeroUsize::get);
        let at_once = if tasks.iter().any(is_live) { 1 } else { (cores() / threads).max(1) };
        let run = |planned: &Planned, folder: &Path| {
            let substrate = substrate(planned.scenario.run.backend);
            let conditions = Conditions::new(substrate, &self.line);
            let conditions = Conditions { threads, folder: Some(folder), ..conditions };
            perform(&planned.scenario, conditions, true).map(drop)
        };
        let place = (name, self.common.out.as_deref());
        if let Some(exit) = shards.instead(place, plan, at_once, run)? {
            return Ok(exit);
        }
        if shards.merge.is_empty() {
            return Ok(self.run(loaded));
        }
        let merged = shards.merged(&plan()?)?;
        let concluded = tasks.iter().zip(&merged).map(|(task, (folder, result))| Concluded {
            task,
            folder: Some(folder),
            result: Ok(result),
            exit: result.into(),
        });
        Ok(self.conclude(&concluded.collect::<Vec<_>>()))
    }

    /// One task for each file and seed, in the order of the command line.
    fn tasks(&self, loaded: &[Loaded]) -> Vec<Task> {
        let task = |file: &Loaded, seed: Option<u64>| {
            let (mut loaded, mut name) = (file.clone(), PathBuf::new());
            if !self.single {
                name.push(&file.stem);
            }
            if let Some(seed) = seed {
                loaded.scenario.run.seed = seed;
                name.push(format!("seed-{seed}"));
            }
            let folder = self.common.out.as_ref().map(|folder| folder.join(&name));
            Task { loaded, name, folder }
        };
        let each = |file| match self.common.seeds.clone() {
            None => vec![task(file, None)],
            Some(seeds) => seeds.map(|seed| task(file, Some(seed))).collect(),
        };
        loaded.iter().flat_map(each).collect()
    }

    /// Says how long the runs will take if that is long, or says only that: then there is an exit code.
    fn announce(&self, tasks: &[Task], at_once: usize, threads: usize) -> Option<Exit> {
        let is_dry = self.common.dry_run;
        let seconds =
            duration::all(tasks.iter().map(|task| &task.loaded.scenario), threads, is_dry);
        let whole = seconds.iter().sum::<f64>() / at_once as f64;
        let name = |task: &Task| match task.name.as_os_str().is_empty() {
            true => task.loaded.scenario.name.clone(),
            false => task.name.display().to_string(),
        };
        let total = format!("{} runs: {}", tasks.len(), duration::words(whole));
        if is_dry && self.common.json {
            let run = |(task, seconds)| json!({ "run": name(task), "seconds": seconds });
            let runs: Vec<_> = tasks.iter().zip(&seconds).map(run).collect();
            println!("{:#}", json!({ "runs": runs, "seconds": whole }));
        } else if is_dry {
            let line = |(task, seconds): (&Task, &f64)| {
                say!("{}: {}", name(task), duration::words(*seconds));
            };
            tasks.iter().zip(&seconds).for_each(line);
            if tasks.len() > 1 {
                say!("{total}");
            }
        } else if whole > duration::LONG_S {
            match tasks {
                // A live run is announced with its dilation.
                [task] if substrate(task.loaded.scenario.run.backend).is_live => {}
                [task] => eprintln!("{}: {}", name(task), duration::words(whole)),
                _ => eprintln!("{total}"),
            }
        }
        is_dry.then_some(Exit::Good)
    }

    fn one_by_one<'a>(&self, tasks: &'a [Task], threads: usize) -> Vec<Run<'a>> {
        let mut runs = Vec::new();
        let began = Stopwatch::start();
        for (done, task) in tasks.iter().enumerate() {
            if tasks.len() > 1 {
                let left = began.seconds() / done.max(1) as f64 * (tasks.len() - done) as f64;
                let rest = format!(", {} left", duration::words(left));
                let rest = if done == 0 { String::new() } else { rest };
                eprintln!("run {} of {}{rest}", done + 1, tasks.len());
            }
            let ending = self.perform(task, threads, false);
            self.show(&ending, task);
            let exit = exit_of(&ending);
            runs.push((task, ending));
            if exit == Exit::Interrupted {
                break;
            }
        }
        runs
    }

    /// Independent runs, `at_once` of them at the same time. They are printed in the order of the tasks.
    fn side_by_side<'a>(&self, tasks: &'a [Task], at_once: usize, threads: usize) -> Vec<Run<'a>> {
        let endings: DashMap<usize, Ending> = DashMap::new();
        let progress = SearchProgress::of("runs", tasks.len() as u64);
        // Index of the next run to print. A lock, because runs end on several threads and are printed in order.
        let shown = Mutex::new(0);
        let indexes: Vec<usize> = (0..tasks.len()).collect();
        map_in_parallel(&indexes, at_once, |index| {
            endings.insert(*index, self.perform(&tasks[*index], threads, true));
            let mut shown = shown.lock().expect("printing does not panic");
            while let Some(ending) = endings.get(&shown) {
                progress.suspend(|| self.show(&ending, &tasks[*shown]));
                *shown += 1;
            }
            progress.count_run();
        });
        progress.finish();
        let run = |(index, task)| Some((task, endings.remove(&index)?.1));
        tasks.iter().enumerate().filter_map(run).collect()
    }

    fn perform(&self, task: &Task, threads: usize, quiet: bool) -> Ending {
        let scenario = &task.loaded.scenario;
        let conditions = Conditions {
            threads,
            folder: task.folder.as_deref(),
            ..Conditions::new(substrate(scenario.run.backend), &self.line)
        };
        let mut experiment = perform(scenario, conditions, quiet)?;
        // The files are written, and the summary needs only ports: the rest is freed early.
        experiment.outcome.recordings.iter_mut().for_each(|recording| recording.edges.clear());
        Ok(Box::new(experiment))
    }

    fn show(&self, ending: &Ending, task: &Task) {
        match ending {
            Ok(experiment) if !self.common.json => {
                say!("{}", summary::text(experiment));
                if let Some(folder) = &task.folder {
                    say!("  files   {}\n", folder.display());
                }
            }
            Ok(_) => {}
            Err(error) => {
                let Scenario { name, run, .. } = &task.loaded.scenario;
                let failure = Failure::new(exit_of(ending), with_sources(error)).of(name);
                let topic = format!("--backend {}", run.backend.word());
                alert!("{}", failure.explained(&topic).message);
            }
        }
    }

    /// Makes the report of every run with files, together with its baseline if that was run too.
    ///
    /// A report that cannot be made is a message, and does not change the exit code.
    fn report(&self, runs: &[Concluded<'_>]) {
        for run in runs {
            let (Some(folder), Ok(result)) = (run.folder, &run.result) else { continue };
            match report::write(folder, baseline(run.task, result, runs)) {
                Ok(file) if !self.common.json => say!("report  {}", file.display()),
                Ok(_) => {}
                Err(error) => alert!("{}: no report: {error}", result.scenario),
            }
        }
    }

    /// Prints the summary, writes `suite.json`, and returns the exit code.
    fn conclude(&self, runs: &[Concluded<'_>]) -> Exit {
        let common = &self.common;
        let results: Vec<&RunResult> =
            runs.iter().filter_map(|run| run.result.as_ref().ok().copied()).collect();
        if common.json {
            println!("{}", sums::json(&results));
        } else if common.seeds.is_some() {
            say!("{}", sums::spread(&results));
        } else if runs.len() > 1 {
            say!("{}", sums::comparison(&results));
        }
        if !common.no_report {
            self.report(runs);
        }
        let mut exit = runs.iter().map(|run| run.exit).max().unwrap_or(Exit::Good);
        let rows = runs.iter().map(|run| sums::Row {
            stem: &run.task.loaded.stem,
            folder: &run.task.name,
            result: run.result.clone(),
        });
        if let Some(folder) = common.out.as_deref().filter(|_| !self.single)
            && let Err(error) = sums::write_suite(folder, &rows.collect::<Vec<_>>())
        {
            alert!("cannot write {}: {error}", folder.join("suite.json").display());
            exit = exit.max(Exit::Host);
        }
        exit
    }
}

/// Runs a scenario with its progress on standard error. A live run is slowed down as this host needs it.
pub(crate) fn perform(
    scenario: &Scenario,
    mut conditions: Conditions<'_>,
    quiet: bool,
) -> Result<Experiment, LaunchError> {
    let lab = render(scenario);
    if conditions.substrate.is_live && scenario.run.pace == Pace::Exact {
        eprintln!("{}: exact pace, as fast as this host computes", scenario.name);
    } else if conditions.substrate.is_live {
        let host = Calibration::load();
        let estimate = estimate::run(scenario, &lab, &host);
        (conditions.dilation, conditions.elastic) = (estimate.dilation, estimate.elastic);
        eprintln!(
            "{}: {}× slowed, {:.0} frame-hops/s, about {:.0} s of wall time{}",
            scenario.name,
            estimate.dilation,
            estimate.frame_hops_per_s,
            estimate.wall_seconds,
            if host.measured { "" } else { " (host not calibrated: pausebed calibrate)" },
        );
    }
    let mut bar = RunProgress::new(&scenario.name, &lab, quiet);
    let run = Experiment::of(scenario, lab, conditions, &mut |progress| bar.update(progress));
    bar.finish();
    run
}

/// The run directory of the baseline of a run, with the same seed: that of the scenario that it names, or that of
/// the same experiment without congestion control, whose name differs only in the scheme.
fn baseline<'a>(task: &Task, result: &RunResult, runs: &[Concluded<'a>]) -> Option<&'a Path> {
    fn stem(result: &RunResult) -> Option<&str> {
        result.scenario.strip_suffix(result.scheme.as_str())
    }
    let is_controlled =
        |result: &RunResult| schemes::find(&result.scheme).is_some_and(Scheme::controls_senders);
    let is_baseline = |other: &RunResult| match &task.loaded.scenario.baseline {
        Some(name) => other.scenario == *name,
        None => {
            let differs = is_controlled(result) && !is_controlled(other);
            differs && stem(result).is_some() && stem(other) == stem(result)
        }
    };
    let found = runs.iter().find(|run| {
        run.result.as_ref().is_ok_and(|other| other.seed == result.seed && is_baseline(other))
    });
    found.and_then(|run| run.folder)
}

fn exit_of(ending: &Ending) -> Exit {
    match ending {
        Ok(experiment) => (&experiment.result).into(),
        Err(error) => error.kind.into(),
    }
}
