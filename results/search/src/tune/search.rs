//! The search: screening by short runs, races of the best, steps around the winner.
//!
//! 1. *Screen.* Points spread over the whole grid make short runs, one case after another; after
//!    each, the worse part is dropped (successive halving).
//! 2. *Race.* The best of them, and the file's own settings, make full runs, one case and seed after
//!    another, the cases that dropped most candidates first. A candidate worse than the best candidate's
//!    worst run is dropped at once: its worst run can only get worse.
//! 3. *Refine.* The best one's neighbours race against it, at ever smaller steps, until the
//!    smallest step brings nothing.
//!
//! Sources: Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
//! optimization" (AISTATS 2016), for 1; Maron and Moore, "Hoeffding races" (NIPS 1993), for 2, where
//! a worst case in place of a mean makes the bound exact; Hooke and Jeeves, "Direct search solution
//! of numerical and statistical problems" (1961), for 3.

use crate::tune::TuneError;
use crate::tune::objective::{Key, Objective, Score};
use crate::tune::space::{Point, Space};
use launch::FailureKind;
use proto::random::Random;
use std::cmp::Ordering;

/// Share of the screened candidates that are kept after each case.
const KEPT: (usize, usize) = (3, 5);

/// Greatest share of all runs for screening.
const SCREENING: (u64, u64) = (2, 5);

/// With a budget for fewer candidates than this there is no screening.
const TOO_FEW: u64 = 6;

/// Candidates that race at the same time. A constant, not the number of cores: results must not depend on
/// the machine.
const HEAT: usize = 8;

/// The first steps around the best candidate are the length of the grid divided by 2 this many times.
const FIRST_HALVING: u32 = 2;

/// The part of a case that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The time from onset to the window's end, cut to a third.
    Short,
    /// Up to the window's end.
    Full,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The settings.
    pub point: Point,
    /// Index of the case.
    pub case: usize,
    /// The seed.
    pub seed: u64,
    /// Its length.
    pub length: Length,
}

/// Makes runs.
pub trait Bench {
    /// The scores of `jobs`, in their order.
    ///
    /// # Errors
    /// If a run fails.
    fn perform(&mut self, jobs: &[Job]) -> Result<Vec<Score>, TuneError>;

    /// True if no further batch is wanted.
    fn is_over(&self) -> bool {
        false
    }
}

/// The bounds of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of cases.
    pub cases: usize,
    /// Seeds of each case.
    pub seeds: Vec<u64>,
    /// Greatest number of runs.
    pub runs: u64,
    /// Seed of the search itself.
    pub seed: u64,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The smallest steps around the best candidate are no better.
    Settled,
    /// The budget of runs is used up.
    Budget,
    /// The time is up.
    Enough,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// A completed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Index of the case.
    pub case: usize,
    /// The seed.
    pub seed: u64,
    /// Its length.
    pub length: Length,
    /// Its score.
    pub score: Score,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The settings.
    pub point: Point,
    /// Its runs.
    pub runs: Vec<Run>,
    /// True if it was judged in every case with every seed.
    pub is_complete: bool,
}

impl Trial {
    /// The scores of full runs, the only ones that count.
    pub fn judged(&self) -> impl Iterator<Item = &Score> {
        self.of(Length::Full)
    }

    /// The scores of runs of one length.
    fn of(&self, length: Length) -> impl Iterator<Item = &Score> {
        self.runs.iter().filter(move |run| run.length == length).map(|run| &run.score)
    }
}

/// A search under way.
pub struct Search<'a> {
    space: &'a Space,
    objective: &'a Objective,
    plan: Plan,
    bench: &'a mut dyn Bench,
    trials: Vec<Trial>,
    best: Option<usize>,
    spent: u64,
    /// Number of candidates that each case dropped.
    drops: Vec<u64>,
}

/// Why a step of a search ends early.
enum Halt {
    Stop(Stop),
    Error(TuneError),
}

impl<'a> Search<'a> {
    /// A search without runs.
    pub fn new(
        space: &'a Space,
        objective: &'a Objective,
        plan: Plan,
        bench: &'a mut dyn Bench,
    ) -> Search<'a> {
        let drops = vec![0; plan.cases];
        Search { space, objective, plan, bench, trials: Vec::new(), best: None, spent: 0, drops }
    }

    /// Runs the search to its end.
    ///
    /// # Errors
    /// If a run fails.
    pub fn run(&mut self) -> Result<Stop, TuneError> {
        match self.steps() {
            Ok(()) => Ok(Stop::Settled),
            Err(Halt::Stop(stop)) => Ok(stop),
            Err(Halt::Error(TuneError::Launch(error)))
                if error.kind == FailureKind::Interrupted =>
            {
                Ok(Stop::Interrupted)
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    /// All candidates, the index of the best, and the number of runs.
    pub fn into_result(self) -> (Vec<Trial>, Option<usize>, u64) {
        (self.trials, self.best, self.spent)
    }

    fn steps(&mut self) -> Result<(), Halt> {
        let finalists = self.screen()?;
        for heat in finalists.chunks(HEAT) {
            self.race(heat)?;
        }
        self.refine()
    }

    /// Makes short runs; returns the candidates for full runs: the best, then the file's own settings.
    fn screen(&mut self) -> Result<Vec<usize>, Halt> {
        let judging = (self.plan.cases * self.plan.seeds.len()).max(1) as u64;
        let candidates = self.plan.runs / judging;
        if candidates < TOO_FEW {
            let mut field = self.spread(candidates as usize);
            field.truncate(candidates as usize);
            return Ok(field);
        }
        let finalists = (candidates / 8).clamp(2, HEAT as u64) as usize;
        let mut field = self.spread(self.screened());
        let own = field.first().copied().filter(|_| self.space.own.is_some());
        let seed = self.plan.seeds[0];
        for case in 0..self.plan.cases {
            self.perform(&mut field, case, seed, Length::Short)?;
            self.sort(&mut field, Length::Short);
            let (part, whole) = KEPT;
            field.truncate((field.len() * part).div_ceil(whole).max(finalists));
        }
        field.truncate(finalists);
        let own = own.filter(|own| !field.contains(own));
        field.extend(own);
        Ok(field)
    }

    /// The file's own settings, and `n` points spread over the grid.
    fn spread(&mut self, n: usize) -> Vec<usize> {
        let own = self.space.own.clone();
        let points = own.into_iter().chain(self.space.sample(n, self.plan.seed));
        let mut field = Vec::new();
        for point in points {
            let trial = self.trial(point);
            if !field.contains(&trial) {
                field.push(trial);
            }
        }
        field
    }

    /// Number of points that the budget of screening allows.
    fn screened(&self) -> usize {
        let share = KEPT.0 as f64 / KEPT.1 as f64;
        let runs_a_point: f64 = (0..self.plan.cases).map(|case| share.powi(case as i32)).sum();
        let runs = (self.plan.runs * SCREENING.0 / SCREENING.1) as f64;
        ((runs / runs_a_point) as usize).max(2)
    }

    /// Makes full runs of `entrants` as long as they may still be the best.
    fn race(&mut self, entrants: &[usize]) -> Result<(), Halt> {
        let bound = self.best.map(|best| self.key(best, Length::Full));
        let mut order: Vec<usize> = (0..self.plan.cases).collect();
        order.sort_by_key(|case| std::cmp::Reverse(self.drops[*case]));
        let mut alive = entrants.to_vec();
        for seed in self.plan.seeds.clone() {
            for case in order.clone() {
                self.perform(&mut alive, case, seed, Length::Full)?;
                let before = alive.len();
                alive.retain(|trial| {
                    let key = self.key(*trial, Length::Full);
                    bound.is_none_or(|bound| key.compare(&bound) == Ordering::Less)
                });
                self.drops[case] += (before - alive.len()) as u64;
                if alive.is_empty() {
                    return Ok(());
                }
            }
        }
        for trial in &alive {
            self.trials[*trial].is_complete = true;
        }
        self.sort(&mut alive, Length::Full);
        self.best = alive.first().copied().or(self.best);
        Ok(())
    }

    /// Races the neighbours of the best candidate.
    fn refine(&mut self) -> Result<(), Halt> {
        let mut random = Random::stream(self.plan.seed, "tune", "refine");
        let mut halvings = FIRST_HALVING;
        while let Some(best) = self.best {
            let centre = self.trials[best].point.clone();
            let near = self.space.around(&centre, halvings, &mut random);
            let near: Vec<usize> = near.into_iter().map(|point| self.trial(point)).collect();
            let is_new = |trial: &usize| self.trials[*trial].judged().next().is_none();
            let new: Vec<usize> = near.into_iter().filter(is_new).collect();
            for heat in new.chunks(HEAT) {
                self.race(heat)?;
            }
            if self.best == Some(best) {
                if self.space.is_finest(halvings) {
                    break;
                }
                halvings += 1;
            }
        }
        Ok(())
    }

    /// Makes a run of each of `field`, or of as many as the budget allows.
    fn perform(
        &mut self,
        field: &mut Vec<usize>,
        case: usize,
        seed: u64,
        length: Length,
    ) -> Result<(), Halt> {
        if self.bench.is_over() {
            return Err(Halt::Stop(Stop::Enough));
        }
        let left = usize::try_from(self.plan.runs - self.spent).unwrap_or(usize::MAX);
        field.truncate(left);
        if field.is_empty() {
            return Err(Halt::Stop(Stop::Budget));
        }
        let job =
            |trial: &usize| Job { point: self.trials[*trial].point.clone(), case, seed, length };
        let jobs: Vec<Job> = field.iter().map(job).collect();
        let scores = self.bench.perform(&jobs).map_err(Halt::Error)?;
        self.spent += jobs.len() as u64;
        for (trial, score) in field.iter().zip(scores) {
            self.trials[*trial].runs.push(Run { case, seed, length, score });
        }
        Ok(())
    }

    /// The trial of `point`, a new one if there is none.
    fn trial(&mut self, point: Point) -> usize {
        let known = self.trials.iter().position(|trial| trial.point == point);
        known.unwrap_or_else(|| {
            self.trials.push(Trial { point, runs: Vec::new(), is_complete: false });
            self.trials.len() - 1
        })
    }

    fn key(&self, trial: usize, length: Length) -> Key {
        self.objective.key_of(self.trials[trial].of(length))
    }

    /// Sorts the best first; among equals the one that was tried first.
    fn sort(&self, field: &mut [usize], length: Length) {
        field.sort_by(|a, b| self.key(*a, length).compare(&self.key(*b, length)).then(a.cmp(b)));
    }
}

#[cfg(test)]
mod tests;
