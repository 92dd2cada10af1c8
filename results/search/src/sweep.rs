//! A scenario over values of its keys: a table, a figure, and whether results come in the expected order.
//!
//! ```text
//!   sweep file, or scenario and --set k=a,b,c ──▶ grid     points: which keys are what
//!                                                   │
//!   base scenario ──▶ run for run, side by side ◀───┘
//!                       │
//!                       └──▶ outcome: means over seeds ──▶ judgement, report, picture
//! ```
//!
//! Runs use the virtual clock, one thread each; no result depends on the number of threads.
//! The expectations of the base scenario hold for its own values and are not checked.

use crate::parallel::map_in_parallel;
use crate::shard::{Plan, Planned};
use grid::{Axis, Point};
use judgement::Judged;
use launch::experiment::{Conditions, Experiment};
use launch::{LaunchError, substrate};
use outcome::Row;
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::files;
use scenario::keyfile::problem::Problems;
use scenario::run::Backend;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub mod file;
mod grid;
mod judgement;
mod outcome;
pub mod picture;
pub mod report;

/// A sweep.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Its name in results.
    pub name: String,
    /// Source of its values.
    pub source: String,
    /// The scenario.
    pub base: PathBuf,
    /// Overrides at all points.
    pub sets: Vec<String>,
    /// The axes.
    pub axes: Vec<Axis>,
    /// Measures that are shown; all numbers if empty.
    pub measures: Vec<String>,
    /// Number of seeds, from the scenario's own on.
    pub seeds: u64,
    /// The expectations.
    pub expectations: Vec<judgement::Expected>,
}

/// Why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file cannot be used: all its faults, ready to print.
    #[error("{0}")]
    File(String),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] LaunchError),
}

/// The result of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// One row for each point, in the order of the grid.
    pub rows: Vec<Row>,
    /// The expectations with their verdicts.
    pub judged: Vec<Judged>,
}

impl Swept {
    /// The worst verdict of all runs and expectations.
    pub fn verdict(&self) -> Verdict {
        let rows = self.rows.iter().map(|row| row.verdict);
        Verdict::worst(rows.chain(self.judged.iter().map(|judged| judged.verdict)))
    }
}

impl Sweep {
    /// Reads the sweep or scenario file `path`; `sets` are overrides as for `run`, but may contain lists of
    /// values.
    ///
    /// # Errors
    /// All faults, ready to print.
    pub fn load(path: &Path, sets: &[String]) -> Result<Sweep, SweepError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| SweepError::File(format!("{name}: {error}")))?;
        let in_file = |faults: Problems| SweepError::File(faults.in_file(&name));
        let mut sweep = file::parse(&text, path).map_err(in_file)?;
        for set in sets {
            match grid::axis_of_option(set) {
                Some(axis) => sweep.axes.push(axis),
                None => sweep.sets.push(set.clone()),
            }
        }
        if sweep.axes.is_empty() {
            let fault = format!("{name}: nothing varies\n    hint: --set scheme.gd=0.1,0.2,0.4");
            return Err(SweepError::File(fault));
        }
        Ok(sweep)
    }

    /// The points, in the order of the grid: the last axis varies fastest.
    pub fn points(&self) -> Vec<Point> {
        grid::points(&self.axes)
    }

    /// The runs: every point, with each seed.
    ///
    /// # Errors
    /// If the base cannot be read, a value is refused, or a measure is not the scenario's.
    pub fn plan(&self) -> Result<Plan, SweepError> {
        let mut runs = Vec::new();
        for (index, point) in self.points().iter().enumerate() {
            let sets: Vec<String> = self.sets.iter().chain(&point.sets).cloned().collect();
            let loaded = files::load(&self.base, &sets).map_err(SweepError::File)?;
            let mut scenario = loaded.scenario;
            self.check(&scenario)?;
            scenario.run.backend = Backend::Virtual;
            scenario.capture.clear();
            scenario.expectations.clear();
            for n in 0..self.seeds {
                let mut scenario = scenario.clone();
                scenario.run.seed = scenario.run.seed.wrapping_add(n);
                let folder = format!("point-{:05}-seed-{}", index + 1, scenario.run.seed);
                runs.push(Planned { folder, scenario });
            }
        }
        Ok(Plan::new(runs))
    }

    fn check(&self, scenario: &Scenario) -> Result<(), SweepError> {
        let known = |name: &&String| scenario.measures.iter().any(|known| known.name == **name);
        let expected = self.expectations.iter().map(|expected| &expected.measure);
        let mut named = self.measures.iter().chain(expected);
        let Some(name) = named.find(|name| !known(name)) else { return Ok(()) };
        let has: Vec<&str> = scenario.measures.iter().map(|m| m.name.as_str()).collect();
        let file = self.base.display();
        let fault = format!("{file} measures no {name:?}: it has {}", has.join(", "));
        Err(SweepError::File(fault))
    }

    /// Number of runs.
    pub fn runs(&self) -> u64 {
        self.points().len() as u64 * self.seeds
    }

    /// Makes all runs, `threads` at a time, and calls `ran` after each.
    ///
    /// # Errors
    /// If a file cannot be used or a run fails.
    pub fn run(
        &self,
        threads: usize,
        command: &str,
        ran: &(dyn Fn() + Sync),
    ) -> Result<Swept, SweepError> {
        let plan = self.plan()?;
        let perform = |planned: &Planned| {
            let run = perform(planned, command, None);
            ran();
            run.map(|experiment| experiment.result)
        };
        let results = map_in_parallel(&plan.runs, threads, perform);
        Ok(self.gather(&results.into_iter().collect::<Result<Vec<_>, _>>()?))
    }

    /// The table of the results of all runs, in the order of the plan.
    pub fn gather(&self, results: &[RunResult]) -> Swept {
        let seeds = usize::try_from(self.seeds.max(1)).unwrap_or(usize::MAX);
        let rows = self.points().into_iter().zip(results.chunks(seeds));
        let rows: Vec<Row> = rows.map(|(point, results)| Row::new(point, results)).collect();
        let judged = self.expectations.iter().map(|expected| expected.judge(&rows)).collect();
        Swept { rows, judged }
    }

    /// The measures that are shown: those named, or else all with a number.
    pub fn shown(&self, rows: &[Row]) -> Vec<String> {
        if !self.measures.is_empty() {
            return self.measures.clone();
        }
        let cells = rows.iter().flat_map(|row| &row.cells);
        let numbers = cells.filter(|(_, cell)| cell.mean.is_some()).map(|(name, _)| name.clone());
        numbers.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Makes one run, with files in `folder` if there is one.
///
/// # Errors
/// If the run fails or its files cannot be written.
pub fn perform(
    planned: &Planned,
    command: &str,
    folder: Option<&Path>,
) -> Result<Experiment, LaunchError> {
    let conditions = Conditions::new(substrate(Backend::Virtual), command);
    Experiment::run(&planned.scenario, Conditions { folder, ..conditions }, &mut |_| {})
}

#[cfg(test)]
pub(crate) mod tests;
