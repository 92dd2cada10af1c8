//! Several runs for one command: side by side on the virtual clock, one after another live; each
//! shown as it ends, all summed up at the end.

use crate::command::Exit;
use crate::command::run::{Common, Seeds};
use crate::terminal::progress::RunProgress;
use crate::terminal::summary;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment, ExperimentError};
use launch::{LaunchError, interrupt, substrate};
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::files::Loaded;
use scenario::render::render;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

mod sums;

/// With fewer devices a thread, the threads of one run spend more time meeting than working: measured
/// with two, 20 devices run ten times slower, 44 a fifth faster, 152 three quarters faster.
const DEVICES_A_THREAD: usize = 64;

/// What a command asks for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Options of the command.
    pub common: Common,
    /// The command line, for the record.
    pub line: String,
    /// One file: its files go straight into the folder.
    pub single: bool,
    /// Write `suite.json` even without being asked for files of one run.
    pub suite: bool,
}

/// One run to make.
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
pub struct Campaign {
    plan: Plan,
    host: Calibration,
}

impl Campaign {
    /// A campaign on this host.
    pub fn new(plan: Plan) -> Campaign {
        Campaign { plan, host: Calibration::load() }
    }

    /// Makes all runs.
    pub fn run(&self, loaded: Vec<Loaded>) -> Exit {
        interrupt::watch();
        let tasks = self.tasks(&loaded);
        let live = tasks.iter().any(|task| substrate(task.loaded.scenario.run.backend).is_live);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
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

    /// One task a file and seed, in the order of the command line.
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
                Ending::Failed(ExperimentError::Launch(LaunchError::Interrupted))
            );
            endings.push(ending);
            if stop {
                break;
            }
        }
        endings
    }

    /// Independent runs, `at_once` of them; shown in order as soon as all before them are shown.
    fn side_by_side(&self, tasks: &[Task], at_once: usize, threads: usize) -> Vec<Ending> {
        let next = AtomicUsize::new(0);
        let shelf: Mutex<(usize, Vec<Option<Ending>>)> =
            Mutex::new((0, tasks.iter().map(|_| None).collect()));
        std::thread::scope(|scope| {
            for _ in 0..at_once.min(tasks.len()) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(task) = tasks.get(index) else { return };
                        let ending = self.perform(task, threads, true);
                        let mut shelf = shelf.lock().expect("no thread panics while it shows");
                        shelf.1[index] = Some(ending);
                        while let Some(Some(ending)) = shelf.1.get(shelf.0) {
                            self.show(ending, &tasks[shelf.0]);
                            shelf.0 += 1;
                        }
                    }
                });
            }
        });
        let shelf = shelf.into_inner().expect("all threads have ended well");
        shelf.1.into_iter().flatten().collect()
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
        let run = Experiment::run(scenario, conditions, &mut |progress| bar.tell(progress, quiet));
        bar.finish();
        match run {
            Ok(mut experiment) => {
                // Tables are written and pictures need only ports: the rest is let go early.
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
            Ending::Failed(error) => eprintln!("{}: {error}", task.loaded.scenario.name),
        }
    }

    /// Makes the page of every run that has files, beside that of its baseline if it was run too.
    ///
    /// A page that cannot be made spoils no run: it is said and that is all.
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

    /// Sums up, writes `suite.json`, and chooses the exit code.
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

/// The run directory to lay beside a run, of the same seed: that of the scenario it names, or of the
/// same experiment without a scheme, which has the same name but for the scheme in it.
fn baseline<'a>(
    task: &Task,
    result: &RunResult,
    tasks: &'a [Task],
    endings: &[Ending],
) -> Option<&'a Path> {
    if let Some(name) = &task.loaded.scenario.baseline {
        let found = tasks.iter().zip(endings).find(|(_, ending)| match ending {
            Ending::Done(other) => {
                other.result.scenario == *name && other.result.seed == result.seed
            }
            Ending::Failed(_) => false,
        });
        return found.and_then(|(task, _)| task.folder.as_deref());
    }
    let stem = |result: &RunResult| {
        result.scenario.strip_suffix(result.scheme.as_str()).map(str::to_owned)
    };
    if result.scheme == "none" {
        return None;
    }
    let own = stem(result)?;
    let found = tasks.iter().zip(endings).find(|(_, ending)| match ending {
        Ending::Done(other) => {
            let other = &other.result;
            other.scheme == "none"
                && other.seed == result.seed
                && stem(other).as_ref() == Some(&own)
        }
        Ending::Failed(_) => false,
    });
    found.and_then(|(task, _)| task.folder.as_deref())
}

/// Each task's folder and result, where it has one.
fn tasks_and<'a>(tasks: &'a [Task], endings: &'a [Ending]) -> Vec<sums::Row<'a>> {
    let rows = tasks.iter().zip(endings).map(|(task, ending)| sums::Row {
        stem: &task.loaded.stem,
        folder: task.folder.as_deref().unwrap_or(Path::new("")),
        result: match ending {
            Ending::Done(experiment) => Ok(&experiment.result),
            Ending::Failed(error) => Err(error.to_string()),
        },
    });
    rows.collect()
}

fn exit_of(ending: &Ending) -> Exit {
    match ending {
        Ending::Done(experiment) => match experiment.result.verdict {
            Verdict::Pass => Exit::Good,
            Verdict::Fail => Exit::Failed,
            Verdict::Inconclusive => Exit::Inconclusive,
        },
        Ending::Failed(error) => exit_of_error(error),
    }
}

/// The exit code for a run that did not come back.
pub fn exit_of_error(error: &ExperimentError) -> Exit {
    match error {
        ExperimentError::Launch(error) => match error {
            LaunchError::Died(_) => Exit::Died,
            LaunchError::Host(_) => Exit::Host,
            LaunchError::Config(_) => Exit::Usage,
            LaunchError::Interrupted => Exit::Interrupted,
        },
        ExperimentError::Write(_) | ExperimentError::Folder(..) => Exit::Host,
    }
}
