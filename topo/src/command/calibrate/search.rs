//! The search for the smallest dilation that a host holds: a bisection on a scale of factors.

/// By how much the first steps go up or down, while only one side is known.
const STRIDE: f64 = 1.7;
/// The two sides are close enough.
const CLOSE: f64 = 1.05;

/// What is known of dilations: one that held, one that did not, or only where to begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    begin: u64,
    /// The smallest that held.
    held: Option<u64>,
    /// The greatest that did not.
    failed: Option<u64>,
}

impl Search {
    /// A search that begins at a guess.
    pub fn new(begin: u64) -> Search {
        Search { begin: begin.max(1), held: None, failed: None }
    }

    /// The dilation to try next, or nothing if another try would tell nothing new.
    pub fn next(&self) -> Option<u64> {
        let scaled =
            |dilation: u64, factor: f64| ((dilation as f64 * factor).round() as u64).max(1);
        match (self.held, self.failed) {
            (None, None) => Some(self.begin),
            (Some(1), None) => None,
            (Some(held), None) => Some(scaled(held, 1.0 / STRIDE)),
            (None, Some(failed)) => Some(scaled(failed, STRIDE).max(failed + 1)),
            (Some(held), Some(failed)) if held as f64 <= failed as f64 * CLOSE => None,
            (Some(held), Some(failed)) => {
                let middle = scaled(failed, (held as f64 / failed as f64).sqrt());
                (failed < middle && middle < held).then_some(middle)
            }
        }
    }

    /// Takes note of a try. What held although something greater had failed is chance, and what
    /// failed above what held likewise: the cautious side wins.
    pub fn learn(&mut self, dilation: u64, held: bool) {
        if !held {
            self.failed = Some(self.failed.map_or(dilation, |failed| failed.max(dilation)));
            self.held = self.held.filter(|held| *held > dilation);
        } else if self.failed.is_none_or(|failed| failed < dilation) {
            self.held = Some(self.held.map_or(dilation, |held| held.min(dilation)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a search finds on a host that holds `limit` and everything slower.
    fn search(begin: u64, limit: u64, tries: usize) -> Option<u64> {
        let mut search = Search::new(begin);
        for _ in 0..tries {
            let Some(dilation) = search.next() else { break };
            search.learn(dilation, dilation >= limit);
        }
        search.held
    }

    #[test]
    fn five_tries_find_the_limit_to_a_fifth_wherever_it_is_near_the_guess() {
        for limit in [350, 500, 800, 1000, 1300, 2000, 2800] {
            let found = search(1000, limit, 5).expect("something holds");
            let above = found as f64 / limit as f64;
            assert!((1.0..1.25).contains(&above), "limit {limit}: {found}");
        }
    }

    #[test]
    fn a_host_that_holds_nothing_near_the_guess_is_told_so() {
        assert_eq!(search(1000, 1_000_000, 5), None);
    }

    #[test]
    fn a_host_that_holds_everything_ends_at_no_dilation_at_all() {
        assert_eq!(search(10, 1, 50), Some(1));
        let mut done = Search::new(1);
        done.learn(1, true);
        assert_eq!(done.next(), None);
    }

    #[test]
    fn what_contradicts_itself_is_settled_on_the_cautious_side() {
        let mut search = Search::new(100);
        search.learn(100, true);
        search.learn(200, false);
        assert_eq!(search.held, None);
        search.learn(150, true);
        assert_eq!(search.held, None);
        assert_eq!(search.next(), Some(340));
    }
}
