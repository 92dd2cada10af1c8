//! The runs of one command: side by side on the virtual clock, one after another live. Each is printed when it
//! ends, and all are summarised at the end.

use crate::exit::Exit;
use crate::options::{RunOptions, Seeds, cores};
use crate::terminal::progress::RunProgress;
use crate::terminal::summary;
use dashmap::DashMap;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment, ExperimentError};
use launch::{FailureKind, interrupt, substrate, with_sources};
use results::run_directory::result::RunResult;
use scenario::files::Loaded;
use scenario::render::render;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

mod sums;

/// The number of devices for each thread of a run. With fewer devices the threads mostly wait for each other:
/// measured with two threads, 20 devices run ten times slower, 44 a fifth faster, 152 three quarters faster.
const DEVICES_A_THREAD: usize = 64;

/// The runs that a command asks for.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Options of the command.
    pub common: RunOptions,
    /// The command line, for the record.
    pub line: String,
    /// One scenario file: the run directory is the folder itself.
    pub single: bool,
}

/// One run.
#[derive(Clone, Debug)]
struct Task {
    loaded: Loaded,
    folder: Option<PathBuf>,
}

/// How one task ended.
enum Ending {
    Done(Box<Experiment>),
    Failed(ExperimentError),
}

/// The runs of one command.
pub(crate) struct Campaign {
    plan: Plan,
    host: Calibration,
}

impl Campaign {
    /// A campaign on this host.
    pub(crate) fn new(plan: Plan) -> Campaign {
        Campaign { plan, host: Calibration::load() }
    }

    /// Makes all runs.
    pub(crate) fn run(&self, loaded: Vec<Loaded>) -> Exit {
        interrupt::install_handlers();
        let tasks = self.tasks(&loaded);
        let live = tasks.iter().any(|task| substrate(task.loaded.scenario.run.backend).is_live);
        let cores = cores();
        let asked = self.plan.common.threads.map(NonZeroUsize::get);
        let endings = match tasks.as_slice() {
            [task] => {
                let devices = task.loaded.scenario.fabric.topology.nodes.len();
                let worthwhile = (devices / DEVICES_A_THREAD).clamp(1, cores);
                self.one_by_one(&tasks, asked.unwrap_or(worthwhile))
            }
            _ if live => self.one_by_one(&tasks, 1),
            _ => {
                let threads = asked.unwrap_or(1);
                self.side_by_side(&tasks, (cores / threads).max(1), threads)
            }
        };
        self.conclude(&tasks, &endings)
    }

    /// One task for each file and seed, in the order of the command line.
    fn tasks(&self, loaded: &[Loaded]) -> Vec<Task> {
        let mut tasks = Vec::new();
        for file in loaded {
            let seeds = match self.plan.common.seeds {
                None => vec![None],
                Some(Seeds { first, last }) => (first..=last).map(Some).collect(),
            };
            for seed in seeds {
                let mut loaded = file.clone();
                let mut folder = self.plan.common.out.clone();
                if !self.plan.single {
                    folder = folder.map(|folder| folder.join(&loaded.stem));
                }
                if let Some(seed) = seed {
                    loaded.scenario.run.seed = seed;
                    folder = folder.map(|folder| folder.join(format!("seed-{seed}")));
                }
                tasks.push(Task { loaded, folder });
            }
        }
        tasks
    }

    fn one_by_one(&self, tasks: &[Task], threads: usize) -> Vec<Ending> {
        let mut endings = Vec::new();
        for task in tasks {
            let ending = self.perform(task, threads, false);
            self.show(&ending, task);
            let stop = matches!(
                &ending,
                Ending::Failed(ExperimentError::Launch(error))
                    if error.kind == FailureKind::Interrupted
            );
            endings.push(ending);
            if stop {
                break;
            }
        }
        endings
    }

    /// Independent runs, `at_once` of them at the same time. They are printed in the order of the tasks.
    fn side_by_side(&self, tasks: &[Task], at_once: usize, threads: usize) -> Vec<Ending> {
        let next = AtomicUsize::new(0);
        let endings: DashMap<usize, Ending> = DashMap::new();
        let shown = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..at_once.min(tasks.len()) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(index) else { return };
                        let ending = self.perform(task, threads, true);
                        endings.insert(index, ending);
                        let mut shown = shown.lock().expect("printing does not panic");
                        while let Some(ending) = endings.get(&shown) {
                            self.show(&ending, &tasks[*shown]);
                            *shown += 1;
                        }
                    }
                });
            }
        });
        (0..tasks.len()).filter_map(|index| Some(endings.remove(&index)?.1)).collect()
    }

    fn perform(&self, task: &Task, threads: usize, quiet: bool) -> Ending {
        let scenario = &task.loaded.scenario;
        let substrate = substrate(scenario.run.backend);
        let lab = render(scenario);
        let mut dilation = 0;
        if substrate.is_live {
            let estimate = estimate::live(scenario, &lab, &self.host);
            dilation = estimate.dilation;
            eprintln!(
                "{}: {dilation}× slowed, {:.0} frame-hops/s, about {:.0} s of wall time{}",
                scenario.name,
                estimate.frame_hops_per_s,
                estimate.wall_seconds,
                if self.host.measured { "" } else { " (host not calibrated: pausebed calibrate)" },
            );
        }
        let phases = lab.phases.iter().map(|phase| (phase.start, phase.name.clone())).collect();
        let mut bar =
            RunProgress::new(&scenario.name, lab.fabric.tau, lab.plan.stop, phases, quiet);
        let conditions = Conditions {
            substrate,
            dilation,
            threads,
            folder: task.folder.as_deref(),
            command: self.plan.line.clone(),
            injections: Vec::new(),
        };
        let run =
            Experiment::of(scenario, lab, conditions, &mut |progress| bar.update(progress, quiet));
        bar.finish();
        match run {
            Ok(mut experiment) => {
                // The files are written, and the summary needs only ports: the rest is freed early.
                for recording in &mut experiment.outcome.recordings {
                    recording.edges.clear();
                }
                Ending::Done(Box::new(experiment))
            }
            Err(error) => Ending::Failed(error),
        }
    }

    fn show(&self, ending: &Ending, task: &Task) {
        match ending {
            Ending::Done(experiment) if !self.plan.common.json => {
                println!("{}", summary::text(experiment));
                if let Some(folder) = &task.folder {
                    println!("  files   {}\n", folder.display());
                }
            }
            Ending::Done(_) => {}
            Ending::Failed(error) => {
                eprintln!("{}: {}", task.loaded.scenario.name, with_sources(error));
            }
        }
    }

    /// Makes the report of every run with files, together with its baseline if that was run too.
    ///
    /// A report that cannot be made is a message, and does not change the exit code.
    fn report(&self, tasks: &[Task], endings: &[Ending]) {
        if self.plan.common.no_report {
            return;
        }
        for (task, ending) in tasks.iter().zip(endings) {
            let (Some(folder), Ending::Done(experiment)) = (&task.folder, ending) else { continue };
            let baseline = baseline(task, &experiment.result, tasks, endings);
            match report::write(folder, baseline) {
                Ok(file) if !self.plan.common.json => println!("report  {}", file.display()),
                Ok(_) => {}
                Err(error) => eprintln!("{}: no report: {error}", task.loaded.scenario.name),
            }
        }
    }

    /// Prints the summary, writes `suite.json`, and returns the exit code.
    fn conclude(&self, tasks: &[Task], endings: &[Ending]) -> Exit {
        let results: Vec<&RunResult> = endings
            .iter()
            .filter_map(|ending| match ending {
                Ending::Done(experiment) => Some(&experiment.result),
                Ending::Failed(_) => None,
            })
            .collect();
        if self.plan.common.json {
            println!("{}", sums::json(&results));
        } else if self.plan.common.seeds.is_some() {
            println!("{}", sums::spread(&results));
        } else if tasks.len() > 1 {
            println!("{}", sums::comparison(&results));
        }
        self.report(tasks, endings);
        let mut exit = endings.iter().map(exit_of).max().unwrap_or(Exit::Good);
        if let Some(folder) = self.plan.common.out.as_deref().filter(|_| !self.plan.single)
            && let Err(error) = sums::write_suite(folder, tasks_and(tasks, endings))
        {
            eprintln!("cannot write {}: {error}", folder.join("suite.json").display());
            exit = exit.max(Exit::Host);
        }
        exit
    }
}

/// The run directory of the baseline of a run, with the same seed: that of the scenario that it names, or that of
/// the same experiment without a scheme, whose name differs only in the scheme.
fn baseline<'a>(
    task: &Task,
    result: &RunResult,
    tasks: &'a [Task],
    endings: &[Ending],
) -> Option<&'a Path> {
    fn stem(result: &RunResult) -> Option<&str> {
        result.scenario.strip_suffix(result.scheme.as_str())
    }
    let is_baseline = |other: &RunResult| match &task.loaded.scenario.baseline {
        Some(name) => other.scenario == *name,
        None => {
            let has_scheme = result.scheme != "none" && other.scheme == "none";
            has_scheme && stem(result).is_some() && stem(other) == stem(result)
        }
    };
    let found = tasks.iter().zip(endings).find(|(_, ending)| match ending {
        Ending::Done(other) => other.result.seed == result.seed && is_baseline(&other.result),
        Ending::Failed(_) => false,
    });
    found.and_then(|(task, _)| task.folder.as_deref())
}

/// The folder and the result of each task.
fn tasks_and<'a>(tasks: &'a [Task], endings: &'a [Ending]) -> Vec<sums::Row<'a>> {
    let rows = tasks.iter().zip(endings).map(|(task, ending)| sums::Row {
        stem: &task.loaded.stem,
        folder: task.folder.as_deref().unwrap_or(Path::new("")),
        result: match ending {
            Ending::Done(experiment) => Ok(&experiment.result),
            Ending::Failed(error) => Err(with_sources(error)),
        },
    });
    rows.collect()
}

fn exit_of(ending: &Ending) -> Exit {
    match ending {
        Ending::Done(experiment) => experiment.result.verdict.into(),
        Ending::Failed(error) => error.into(),
    }
}
