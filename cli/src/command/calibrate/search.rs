//! The search for the smallest dilation at which a host keeps up: a bisection on a logarithmic scale.

/// The factor of the first steps, while only one bound is known.
const STRIDE: f64 = 1.7;
/// The ratio of the bounds at which the search ends.
const CLOSE: f64 = 1.05;

/// The bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    begin: u64,
    /// The smallest dilation at which the host kept up.
    held: Option<u64>,
    /// The largest dilation at which it did not.
    failed: Option<u64>,
}

impl Search {
    /// A search that begins at `begin`.
    pub fn new(begin: u64) -> Search {
        Search { begin: begin.max(1), held: None, failed: None }
    }

    /// The dilation to try next, or none at the end of the search.
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

    /// Adds a result. If results contradict each other, the larger dilation counts.
    pub fn add(&mut self, dilation: u64, held: bool) {
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
            search.add(dilation, dilation >= limit);
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
    fn a_host_far_from_the_guess_has_no_result() {
        assert_eq!(search(1000, 1_000_000, 5), None);
    }

    #[test]
    fn a_fast_host_ends_at_dilation_one() {
        assert_eq!(search(10, 1, 50), Some(1));
        let mut done = Search::new(1);
        done.add(1, true);
        assert_eq!(done.next(), None);
    }

    #[test]
    fn of_contradicting_results_the_larger_dilation_counts() {
        let mut search = Search::new(100);
        search.add(100, true);
        search.add(200, false);
        assert_eq!(search.held, None);
        search.add(150, true);
        assert_eq!(search.held, None);
        assert_eq!(search.next(), Some(340));
    }
}
