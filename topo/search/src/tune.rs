//! Searches a scheme's parameters on the virtual clock for settings that are effective, fair and
//! stable in several traffic cases with several seeds.
//!
//! ```text
//!   [tune] of a scenario ──▶ space      the grid of settings            ideal   what each case owes
//!                              │                                          │     to cold ports
//!                              ▼                                          ▼
//!                           search ──── batches of runs ────────────▶ runner ──▶ trial: one run
//!                              ▲                                          │      to a score
//!                              └── objective: a run's flaws as one key ◀──┘
//! ```
//!
//! A candidate is as good as its worst run. So what it has shown so far can only get worse, and
//! one that is already worse than the best candidate's worst run is dropped without loss. Batches
//! depend on scores alone, never on which thread was faster: the same file gives the same answer
//! on one core and on many.

use launch::LaunchError;
use objective::Objective;
use scenario::Scenario;
use scenario::tune::Case;
use search::{Plan, Search, Stop};
use space::Space;

pub mod ideal;
pub mod objective;
pub mod report;
pub mod runner;
pub mod search;
pub mod space;
pub mod trial;
pub mod tuned_file;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The file does not say what to search.
    #[error("there is no [tune] in it")]
    NoTable,
    /// Congestion control has nothing to do.
    #[error("case {0}: no port is asked for more than its line carries: there is nothing to tune")]
    NoHotPort(String),
    /// A run did not come back.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A run came back without readings.
    #[error("a run left no readings at the edges of its window")]
    NoReadings,
}

/// A search that has come to an end, or was ended.
#[derive(Debug)]
pub struct Tuning {
    /// What was searched.
    pub space: Space,
    /// What counted.
    pub objective: Objective,
    /// The cases, in the order of the file.
    pub cases: Vec<runner::Prepared>,
    /// Everything tried, in the order of first trial.
    pub trials: Vec<search::Trial>,
    /// The best candidate judged in all cases with all seeds.
    pub best: Option<usize>,
    /// Runs made.
    pub spent: u64,
    /// Why it ended.
    pub stop: Stop,
}

impl Tuning {
    /// The best candidate, if it meets the goal in every case with every seed.
    pub fn winner(&self) -> Option<&search::Trial> {
        let best = &self.trials[self.best?];
        (self.objective.key_of(best.judged()).miss <= 0.0).then_some(best)
    }
}

/// How a search is carried out this time.
pub struct Conditions<'a> {
    /// Runs side by side.
    pub threads: usize,
    /// Asked before each batch: whether to stop with what was found.
    pub enough: &'a (dyn Fn() -> bool + Sync),
    /// Told of each run that ended.
    pub ran: &'a (dyn Fn() + Sync),
}

/// Searches what the scenario's `[tune]` asks for.
///
/// # Errors
/// If there is nothing to tune, or a run does not come back.
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
    let mut runner = runner::Runner { cases: &cases, space: &space, conditions };
    let mut search = Search::new(&space, &objective, plan, &mut runner);
    let stop = search.run()?;
    let (trials, best, spent) = search.into_result();
    Ok(Tuning { trials, best, spent, stop, space, objective, cases })
}

#[cfg(test)]
mod tests;
