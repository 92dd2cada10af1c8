//! Makes the runs of a search on several threads; the order of the scores is that of the jobs.

use crate::parallel::map_in_parallel;
use crate::tune::ideal::{Ideal, Window, first_overload};
use crate::tune::objective::Score;
use crate::tune::search::{Bench, Job, Length};
use crate::tune::space::Space;
use crate::tune::store::Store;
use crate::tune::{Conditions, TuneError, trial};
use proto::units::{Duration, Instant};
use scenario::Scenario;
use scenario::render::render;
use scenario::tune::Case;

/// A short run covers this fraction of the time from the onset to the end of the window.
const SHORT: u64 = 3;

/// Without a window in the file, this last part of the overload is measured: the last 3000 of the
/// 8000 MTU times of the hot-spot paper.
const MEASURED: (u64, u64) = (3, 8);

/// A case that is ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its name.
    pub name: String,
    /// The scenario with its traffic.
    pub scenario: Scenario,
    /// The ideal throughput in the window.
    pub ideal: Ideal,
    /// Begin of the overload.
    pub onset: Instant,
    /// Window of the measurement.
    pub window: Window,
}

impl Prepared {
    /// `scenario` with the traffic of `case`.
    ///
    /// # Errors
    /// If no port is hot in the window.
    pub fn new(
        scenario: &Scenario,
        case: &Case,
        window: Option<Window>,
    ) -> Result<Prepared, TuneError> {
        let mut scenario = scenario.clone();
        scenario.traffic = case.traffic.clone();
        let lab = render(&scenario);
        let none = || TuneError::NoHotPort(case.name.clone());
        let (onset, end) = first_overload(&lab).ok_or_else(none)?;
        let (part, whole) = MEASURED;
        let settling = end.since(onset).as_ps() / whole * (whole - part);
        let window = window.unwrap_or((onset + Duration::from_ps(settling), end));
        let ideal = Ideal::of(&lab, window);
        if ideal.hot.is_empty() {
            return Err(none());
        }
        Ok(Prepared { name: case.name.clone(), scenario, ideal, onset, window })
    }

    /// The window of a run of this length.
    pub fn window(&self, length: Length) -> Window {
        match length {
            Length::Full => self.window,
            Length::Short => {
                let sooner = |at: Instant| {
                    self.onset.min(at) + Duration::from_ps(at.since(self.onset).as_ps() / SHORT)
                };
                (sooner(self.window.0), sooner(self.window.1))
            }
        }
    }
}

/// Makes the runs of a search.
pub struct Runner<'a> {
    /// The cases.
    pub cases: &'a [Prepared],
    /// The grid of the points.
    pub space: &'a Space,
    /// Threads and callbacks.
    pub conditions: &'a Conditions<'a>,
    /// The scores of several machines.
    pub store: Option<Store<'a>>,
    /// Rounds so far.
    pub round: usize,
}

impl Runner<'_> {
    fn run(&self, job: &Job) -> Result<Score, TuneError> {
        let case = &self.cases[job.case];
        let mut scenario = case.scenario.clone();
        scenario.run.seed = job.seed;
        scenario.scheme = self.space.apply(&job.point, &scenario.scheme);
        let score = trial::run(&scenario, &case.ideal, case.window(job.length));
        (self.conditions.ran)();
        score
    }

    /// The scores of a round of several machines: makes the own share of it, and waits for the others.
    fn share(&self, store: &Store<'_>, jobs: &[Job]) -> Result<Vec<Score>, TuneError> {
        if let Some(share) = store.shared.share {
            let own = jobs.iter().enumerate().filter(|(index, _)| share.has(*index));
            let own: Vec<&Job> = own.map(|(_, job)| job).collect();
            let make = |job: &&Job| match store.score(job)? {
                Some(_) => Ok(()),
                None => Ok(store.add(job, self.run(job)?, share)?),
            };
            map_in_parallel(&own, self.conditions.threads, make)
                .into_iter()
                .collect::<Result<(), TuneError>>()?;
        }
        let scores = || jobs.iter().map(|job| store.score(job)).collect::<Result<Vec<_>, _>>();
        // An error ends the wait, too.
        (store.shared.wait)(&|| scores().map_or(true, |scores| scores.iter().all(Option::is_some)));
        let scores = scores()?;
        let due = jobs.iter().zip(&scores).filter(|(_, score)| score.is_none());
        let due: Vec<Job> = due.map(|(job, _)| job.clone()).collect();
        if due.is_empty() {
            return Ok(scores.into_iter().flatten().collect());
        }
        Err(TuneError::Due { round: self.round, jobs: due, of: jobs.len() })
    }
}

impl Bench for Runner<'_> {
    fn is_over(&self) -> bool {
        (self.conditions.enough)()
    }

    fn perform(&mut self, jobs: &[Job]) -> Result<Vec<Score>, TuneError> {
        self.round += 1;
        if let Some(store) = &self.store {
            return self.share(store, jobs);
        }
        let threads = self.conditions.threads;
        map_in_parallel(jobs, threads, |job| self.run(job)).into_iter().collect()
    }
}
