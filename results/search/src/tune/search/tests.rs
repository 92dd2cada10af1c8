//! Searches with a bench that answers by arithmetic.

use super::*;
use proto::congestion::SchemeConfig;
use scenario::tune::{Searched, Values, Weights};

const OBJECTIVE: Objective = Objective {
    goal: 0.03,
    weights: Weights { effectiveness: 1.0, utilisation: 1.0, fairness: 1.0, stability: 1.0 },
};

/// Cold traffic falls short with the distance from a point of the grid, another one in each case.
#[derive(Default)]
struct Bowl {
    jobs: Vec<Job>,
    batches: usize,
    over_after: Option<usize>,
}

impl Bench for Bowl {
    fn perform(&mut self, jobs: &[Job]) -> Result<Vec<Score>, TuneError> {
        self.batches += 1;
        self.jobs.extend_from_slice(jobs);
        Ok(jobs.iter().map(score).collect())
    }

    fn is_over(&self) -> bool {
        self.over_after.is_some_and(|batches| self.batches >= batches)
    }
}

fn score(job: &Job) -> Score {
    let centre = [(20.0, 9.0), (22.0, 9.0)][job.case];
    let (a, b) = (job.point.0[0] as f64 - centre.0, job.point.0[1] as f64 - centre.1);
    let short = (a * a + b * b).sqrt() / 100.0;
    let noise = if job.length == Length::Short { 0.02 * (job.seed % 2) as f64 } else { 0.0 };
    Score { cold: 1.0 - short - noise, hot: 1.0, fairness: 1.0, swing: 0.0, lossless_drops: None }
}

fn space() -> Space {
    let searched = |name: &str, n| Searched { name: name.into(), values: Values::Whole(1, n) };
    let params = "a = 1\nb = 1".parse().expect("TOML");
    let scheme = SchemeConfig { kind: "none".to_owned(), params };
    Space::new(&[searched("a", 33), searched("b", 15)], &scheme)
}

fn plan(runs: u64) -> Plan {
    Plan { cases: 2, seeds: vec![7, 8], runs, seed: 7 }
}

fn search(runs: u64, bench: &mut Bowl) -> (Stop, Vec<Trial>, Option<usize>, u64) {
    let space = space();
    let mut search = Search::new(&space, &OBJECTIVE, plan(runs), bench);
    let stop = search.run().expect("arithmetic does not fail");
    let (trials, best, spent) = search.into_result();
    (stop, trials, best, spent)
}

#[test]
fn the_point_between_the_centres_is_found_and_the_search_ends_there() {
    let (stop, trials, best, spent) = search(600, &mut Bowl::default());
    assert_eq!(stop, Stop::Settled);
    assert!(spent < 600);
    let best = &trials[best.expect("there is one")];
    assert_eq!(best.point, Point(vec![21, 9]), "the worse of both cases is least there");
    assert!(best.is_complete && best.judged().count() == 4);
}

#[test]
fn the_best_is_no_worse_than_anything_judged_completely_or_dropped() {
    let (_, trials, best, _) = search(600, &mut Bowl::default());
    let key = |trial: &Trial| OBJECTIVE.key_of(trial.judged());
    let least = key(&trials[best.expect("there is one")]);
    let judged = trials.iter().filter(|trial| trial.judged().next().is_some());
    for trial in judged {
        let order = key(trial).compare(&least);
        assert_ne!(order, Ordering::Less, "{trial:?} was dropped too early");
    }
    let saved = trials.iter().filter(|trial| (1..4).contains(&trial.judged().count()));
    assert!(saved.count() > 10, "most of those that lose lose before their last run");
}

#[test]
fn the_budget_is_kept_and_whoever_waits_may_stop_it() {
    let mut bench = Bowl::default();
    let (stop, _, _, spent) = search(60, &mut bench);
    assert_eq!((stop, spent), (Stop::Budget, 60));
    assert_eq!(bench.jobs.len(), 60);
    let mut bench = Bowl { over_after: Some(3), ..Bowl::default() };
    let (stop, ..) = search(600, &mut bench);
    assert_eq!((stop, bench.batches), (Stop::Enough, 3));
}

#[test]
fn the_smallest_budget_that_a_file_may_name_judges_a_candidate() {
    let (_, trials, best, _) = search(8, &mut Bowl::default());
    assert!(best.is_some(), "{trials:?}");
}

#[test]
fn the_files_own_settings_are_raced_even_if_screening_drops_them() {
    let (_, trials, ..) = search(600, &mut Bowl::default());
    let own = trials.iter().find(|trial| trial.point == Point(vec![0, 0])).expect("it was tried");
    assert!(own.judged().next().is_some());
}

#[test]
fn the_same_seed_makes_the_same_runs() {
    let (mut a, mut b) = (Bowl::default(), Bowl::default());
    assert_eq!(search(300, &mut a), search(300, &mut b));
    assert_eq!(a.jobs, b.jobs);
}
