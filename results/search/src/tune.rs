//! Searches a scheme's parameters on the virtual clock for settings that are effective, fair and
//! stable in several traffic cases with several seeds.
//!
//! ```text
//!   [tune] of a scenario ──▶ space      the grid of settings            ideal   rates of each case
//!                              │                                          │     to cold ports
//!                              ▼                                          ▼
//!                           search ──── batches of runs ────────────▶ runner ──▶ trial: one run
//!                              ▲                                          │      to a score
//!                              └── objective: a run's flaws as one key ◀──┘
//! ```
//!
//! A candidate is as good as its worst run. Its result so far can only get worse, so a candidate that is already
//! worse than the best one makes no further runs. Decisions depend on scores alone, never on which thread was faster:
//! the same file gives the same answer on one core and on many.

use crate::shard::ShardError;
use launch::LaunchError;
use objective::Objective;
use results::lossless::LosslessDrops;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::tune::Case;
use search::{Plan, Search, Stop};
use space::Space;
use store::Store;

mod ideal;
mod objective;
pub mod report;
mod runner;
pub mod search;
mod space;
mod store;
mod trial;
pub mod tuned_file;

pub use store::{Shared, written};

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The scenario has no `[tune]` table.
    #[error("there is no [tune] in it")]
    NoTable,
    /// No port is asked for more than its line carries.
    #[error("case {0}: no port is asked for more than its line carries: there is nothing to tune")]
    NoHotPort(String),
    /// A run failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A frame broke a law of physics.
    #[error("{0}")]
    Violation(String),
    /// A run ended without readings.
    #[error("a run left no readings at the edges of its window")]
    NoReadings,
    /// The scores of other machines cannot be used.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Runs of a round are due, and this machine does not make them.
    #[error("{} of {of} runs of round {round} are due", jobs.len())]
    Due {
        /// The round, from 1.
        round: usize,
        /// The runs.
        jobs: Vec<search::Job>,
        /// All runs of the round.
        of: usize,
    },
}

/// The result of a search.
#[derive(Debug)]
pub struct Tuning {
    /// The grid that was searched.
    pub space: Space,
    /// The objective.
    pub objective: Objective,
    /// The cases, in the order of the file.
    pub cases: Vec<runner::Prepared>,
    /// All candidates, in the order of their first run.
    pub trials: Vec<search::Trial>,
    /// Index of the best candidate that was judged in all cases with all seeds.
    pub best: Option<usize>,
    /// Number of runs.
    pub spent: u64,
    /// Why the search ended.
    pub stop: Stop,
}

impl Tuning {
    /// The best candidate, if it meets the goal in every case with every seed.
    pub fn winner(&self) -> Option<&search::Trial> {
        let best = &self.trials[self.best?];
        (self.objective.key_of(best.judged()).miss <= 0.0).then_some(best)
    }

    /// The frames of lossless lanes that congestion dropped in all runs, if there were any.
    pub fn lossless_drops(&self) -> Option<LosslessDrops> {
        let runs = self.trials.iter().flat_map(|trial| &trial.runs);
        LosslessDrops::sum(runs.filter_map(|run| run.score.lossless_drops.clone()))
    }

    /// Whether the best candidate meets the goal, and no run lost lossless frames that the scenario does not expect.
    pub fn verdict(&self) -> Verdict {
        let goal = if self.winner().is_some() { Verdict::Pass } else { Verdict::Fail };
        let lost = self.lossless_drops().map(|drops| drops.verdict(true));
        Verdict::worst(lost.into_iter().chain([goal]))
    }
}

/// The conditions of a search.
pub struct Conditions<'a> {
    /// Number of runs at a time.
    pub threads: usize,
    /// Called before each batch: true ends the search with what was found.
    pub enough: &'a (dyn Fn() -> bool + Sync),
    /// Called after each run.
    pub ran: &'a (dyn Fn() + Sync),
    /// The machines that make the runs, if there are several.
    pub shared: Option<Shared<'a>>,
}

/// Runs the search that the scenario's `[tune]` table describes.
///
/// # Errors
/// If there is nothing to tune, or a run fails.
pub fn tune(scenario: &Scenario, conditions: &Conditions<'_>) -> Result<Tuning, TuneError> {
    let asked = scenario.tune.as_ref().ok_or(TuneError::NoTable)?;
    let own = [Case { name: scenario.name.clone(), traffic: scenario.traffic.clone() }];
    let cases = if asked.cases.is_empty() { &own[..] } else { &asked.cases[..] };
    let cases = cases
        .iter()
        .map(|case| runner::Prepared::new(scenario, case, asked.window))
        .collect::<Result<Vec<_>, _>>()?;
    let space = Space::new(&asked.search, &scenario.scheme);
    let objective = Objective { goal: asked.goal, weights: asked.weights };
    let plan = Plan {
        cases: cases.len(),
        seeds: (0..asked.seeds).map(|n| scenario.run.seed.wrapping_add(n)).collect(),
        runs: asked.runs,
        seed: scenario.run.seed,
    };
    let store = conditions.shared.as_ref().map(|shared| Store::new(shared, scenario));
    let mut runner = runner::Runner { cases: &cases, space: &space, conditions, store, round: 0 };
    let mut search = Search::new(&space, &objective, plan, &mut runner);
    let stop = search.run()?;
    let (trials, best, spent) = search.into_result();
    Ok(Tuning { trials, best, spent, stop, space, objective, cases })
}

#[cfg(test)]
mod tests;
