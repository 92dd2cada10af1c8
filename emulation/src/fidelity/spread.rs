//! A histogram that can be serialised and merged: recorded in a worker, merged in the launcher.

use hdrhistogram::{Histogram, RecordError};
use serde::{Deserialize, Serialize};

/// Three significant digits distinguish 0.100 from 0.101 frame times.
const DIGITS: u8 = 3;
/// Values above it count as it: 17 minutes in nanoseconds.
const GREATEST: u64 = 1 << 40;

/// A histogram of values with quantiles of three significant digits, in constant memory.
///
/// Serialised as pairs of value and count. Recorded with hdrhistogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Spread(Histogram<u64>);

impl Default for Spread {
    fn default() -> Spread {
        let histogram = Histogram::new_with_bounds(1, GREATEST, DIGITS);
        Spread(histogram.expect("the bounds and digits are legal constants"))
    }
}

impl Spread {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// The 99th percentile.
    pub fn p99(&self) -> u64 {
        self.0.value_at_quantile(0.99)
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The smallest value.
    #[cfg(test)]
    pub(crate) fn min(&self) -> u64 {
        self.0.min()
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Spread) {
        self.0.add(&other.0).expect("all spreads have the same bounds");
    }
}

/// Each recorded value and its count.
impl From<Spread> for Vec<(u64, u64)> {
    fn from(spread: Spread) -> Vec<(u64, u64)> {
        let recorded = spread.0.iter_recorded();
        recorded.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }
}

impl TryFrom<Vec<(u64, u64)>> for Spread {
    type Error = RecordError;

    fn try_from(counts: Vec<(u64, u64)>) -> Result<Spread, RecordError> {
        let mut spread = Spread::default();
        for (value, count) in counts {
            spread.0.record_n(value, count)?;
        }
        Ok(spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_survives_the_journey_and_merges() {
        let mut spread = Spread::default();
        (0..1000).for_each(|value| spread.record(value));
        spread.record(u64::MAX);
        let text = serde_json::to_string(&spread).expect("it serialises");
        let mut back: Spread = serde_json::from_str(&text).expect("it parses");
        assert_eq!(
            (back.count(), back.0.value_at_quantile(0.5), back.p99()),
            (1001, 500, spread.p99())
        );
        back.merge(&spread);
        assert_eq!((back.count(), back.0.value_at_quantile(0.5)), (2002, 500));
    }

    #[test]
    fn nothing_recorded_is_zero() {
        let empty = Spread::default();
        assert_eq!((empty.count(), empty.p99(), empty.max()), (0, 0, 0));
    }
}
