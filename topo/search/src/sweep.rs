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
use grid::{Axis, Point};
use judgement::Judged;
use launch::experiment::{Conditions, Experiment};
use launch::{LaunchError, substrate};
use outcome::Row;
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

    /// The index of each point and its scenario, with each seed.
    ///
    /// # Errors
    /// If the base cannot be read, a value is refused, or a measure is not the scenario's.
    fn tasks(&self) -> Result<Vec<(usize, Scenario)>, SweepError> {
        let mut tasks = Vec::new();
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
                tasks.push((index, scenario));
            }
        }
        Ok(tasks)
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
        let tasks = self.tasks()?;
        let perform = |(point, scenario): &(usize, Scenario)| {
            let conditions = Conditions::new(substrate(Backend::Virtual), command);
            let run = Experiment::run(scenario, conditions, &mut |_| {});
            ran();
            run.map(|experiment| (*point, experiment.result))
        };
        let results = map_in_parallel(&tasks, threads, perform);
        let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let row = |(index, point)| {
            let of_point = results.iter().filter(|(at, _)| *at == index);
            Row::new(point, &of_point.map(|(_, result)| result).collect::<Vec<_>>())
        };
        let rows: Vec<Row> = self.points().into_iter().enumerate().map(row).collect();
        let judged = self.expectations.iter().map(|expected| expected.judge(&rows)).collect();
        Ok(Swept { rows, judged })
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

#[cfg(test)]
mod tests;
