//! A histogram that can be serialised and merged: recorded in a worker, merged in the launcher.

use hdrhistogram::Histogram;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Three significant digits distinguish 0.100 from 0.101 frame times.
const DIGITS: u8 = 3;
/// Values above it count as it: 17 minutes in nanoseconds.
const GREATEST: u64 = 1 << 40;

/// A histogram of values with quantiles of three significant digits, in constant memory.
///
/// Serialised as pairs of value and count. Recorded with hdrhistogram.
#[derive(Clone, Debug, PartialEq)]
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

    /// The smallest value that at least `numerator / denominator` of all values do not exceed; 0 without
    /// values.
    pub fn quantile(&self, numerator: u32, denominator: u32) -> u64 {
        self.0.value_at_quantile(f64::from(numerator) / f64::from(denominator))
    }

    /// The median.
    pub fn p50(&self) -> u64 {
        self.quantile(1, 2)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> u64 {
        self.quantile(99, 100)
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.0.max()
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

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = |value: hdrhistogram::iterators::IterationValue<u64>| {
            (value.value_iterated_to(), value.count_at_value())
        };
        serializer.collect_seq(self.0.iter_recorded().map(pair))
    }
}

impl<'de> Deserialize<'de> for Spread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spread, D::Error> {
        let mut spread = Spread::default();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            spread.0.record_n(value, count).map_err(D::Error::custom)?;
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
        assert_eq!((back.count(), back.p50(), back.p99()), (1001, 500, spread.p99()));
        back.merge(&spread);
        assert_eq!((back.count(), back.p50()), (2002, 500));
    }

    #[test]
    fn nothing_recorded_is_zero() {
        let empty = Spread::default();
        assert_eq!((empty.count(), empty.p99(), empty.max()), (0, 0, 0));
    }
}
