//! The objective: one key by which settings are compared. This is the formula; `docs/tasks/tune.md` and
//! `pausebed tune --help` state it in words.
//!
//! The *miss* of a run is how much further than the goal allows cold traffic is from its ideal.
//! Its *cost* is the weighted sum of four flaws, each zero at best. A candidate has the largest miss
//! and the largest cost of all its runs; the smaller miss wins, and among equals the smaller cost.
//! The order is lexicographic, because a setting that slows innocent traffic is not an answer, however fair;
//! and the cost is a sum, because fairness, swing and a busy hot port can be traded for one another.

use results::lossless::LosslessDrops;
use scenario::tune::Weights;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A hot port is asked to carry this share of its line; acknowledgements and credits take the rest
/// (docs/spec/algorithms.md 10.1).
pub const HOT_SHARE: f64 = 0.96;

/// The score of one run in its window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Octets that cold ports received, as a share of those posted for them.
    pub cold: f64,
    /// Octets that hot ports received, as a share of their lines; the least of them.
    pub hot: f64,
    /// Jain's index of what hot flows sent; the least of all hot ports.
    pub fairness: f64,
    /// Standard deviation, from bin to bin, of what cold ports received less what was posted for
    /// them, as a share of the latter's mean.
    pub swing: f64,
    /// Frames of lossless lanes that congestion dropped up to the end of the window. No setting of a scheme may cause
    /// them, so they fail the search and rank no candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless_drops: Option<LosslessDrops>,
}

/// The key by which settings are compared; smaller is better.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Key {
    /// Excess over the goal.
    pub miss: f64,
    /// Weighted sum of flaws.
    pub cost: f64,
}

/// The goal and the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// How far cold traffic may be from its ideal.
    pub goal: f64,
    /// Weight of each flaw.
    pub weights: Weights,
}

impl Key {
    /// Orders keys; less is better.
    pub fn compare(&self, other: &Key) -> Ordering {
        self.miss.total_cmp(&other.miss).then(self.cost.total_cmp(&other.cost))
    }
}

impl Objective {
    /// The key of one run.
    pub fn judge(&self, score: &Score) -> Key {
        let astray = (1.0 - score.cold).abs();
        let w = &self.weights;
        Key {
            miss: (astray - self.goal).max(0.0),
            cost: w.effectiveness * astray
                + w.utilisation * (HOT_SHARE - score.hot).max(0.0)
                + w.fairness * (1.0 - score.fairness)
                + w.stability * score.swing,
        }
    }

    /// The key of several runs: the greatest miss and the greatest cost, zero without runs.
    pub fn key_of<'a>(&self, scores: impl Iterator<Item = &'a Score>) -> Key {
        let keys = scores.map(|score| self.judge(score));
        keys.fold(Key::default(), |a, b| Key { miss: a.miss.max(b.miss), cost: a.cost.max(b.cost) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTIVE: Objective = Objective {
        goal: 0.03,
        weights: Weights { effectiveness: 1.0, utilisation: 2.0, fairness: 1.0, stability: 0.5 },
    };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn a_run_costs_the_weighted_sum_of_its_flaws() {
        let score =
            Score { cold: 0.98, hot: 0.86, fairness: 0.9, swing: 0.04, lossless_drops: None };
        // 1·0.02 + 2·(0.96 - 0.86) + 1·0.1 + 0.5·0.04 = 0.34; 2 % astray is within the goal.
        let key = OBJECTIVE.judge(&score);
        assert!(near(key.cost, 0.34) && key.miss == 0.0, "{key:?}");
        // A rate above the ideal counts as astray too: it drains an earlier backlog. 0.05 - 0.03 = 0.02.
        let key = OBJECTIVE.judge(&Score { cold: 1.05, hot: 0.99, ..score });
        assert!(near(key.miss, 0.02) && near(key.cost, 0.05 + 0.1 + 0.02), "{key:?}");
    }

    #[test]
    fn a_candidate_is_as_good_as_its_worst_run_and_the_goal_goes_first() {
        let fair = Score { cold: 0.9, hot: 0.97, fairness: 1.0, swing: 0.0, lossless_drops: None };
        let restored = Score { cold: 1.0, hot: 0.5, fairness: 0.5, swing: 0.2, ..fair.clone() };
        let (a, b) = (
            OBJECTIVE.key_of([&fair, &fair].into_iter()),
            OBJECTIVE.key_of([&restored].into_iter()),
        );
        assert!(a.cost < b.cost && b.compare(&a) == Ordering::Less);
        let both = OBJECTIVE.key_of([&fair, &restored].into_iter());
        assert_eq!((both.miss, both.cost), (a.miss, b.cost));
    }
}
