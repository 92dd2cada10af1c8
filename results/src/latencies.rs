//! Histograms of message latencies of several receivers and traffic items, merged, and their statistics.

use proto::counters::LatencyReading;

/// A histogram that readings can be added to and taken from.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    buckets: Vec<i128>,
    sum_ns: i128,
}

impl Latencies {
    /// Adds a reading, or with a sign of -1 subtracts an earlier reading of the same counter.
    pub fn add(&mut self, reading: &LatencyReading, sign: i128) {
        if self.buckets.len() < reading.buckets.len() {
            self.buckets.resize(reading.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&reading.buckets) {
            *mine += sign * i128::from(*theirs);
        }
        self.sum_ns += sign * reading.sum_ns as i128;
    }

    /// Number of messages.
    pub fn messages(&self) -> u64 {
        self.occupied().map(|(_, n)| n).sum()
    }

    /// Sum of all latencies in nanoseconds, exact.
    pub fn sum_ns(&self) -> f64 {
        self.sum_ns as f64
    }

    /// The latency that `numerator / denominator` of the messages do not exceed, in nanoseconds, in
    /// the middle of its bucket; `None` without messages.
    pub fn quantile_ns(&self, numerator: u64, denominator: u64) -> Option<f64> {
        let messages = self.messages();
        let wanted = u128::from(messages) * u128::from(numerator);
        let rank = wanted.div_ceil(u128::from(denominator)).max(1) as u64;
        let mut passed = 0;
        let found = self.occupied().find(|(_, n)| {
            passed += n;
            passed >= rank
        });
        found.map(|(bucket, _)| middle(bucket))
    }

    /// The least latency, in nanoseconds: the beginning of its bucket.
    pub fn min_ns(&self) -> Option<f64> {
        self.occupied().next().map(|(bucket, _)| LatencyReading::bucket_floor(bucket) as f64)
    }

    /// The greatest latency, in nanoseconds: the end of its bucket.
    pub fn max_ns(&self) -> Option<f64> {
        self.occupied().last().map(|(bucket, _)| last(bucket) as f64)
    }

    /// The standard deviation over messages, in nanoseconds, from the middles of buckets.
    pub fn deviation_ns(&self) -> Option<f64> {
        let messages = self.messages() as f64;
        let weighted =
            |f: fn(f64) -> f64| self.occupied().map(|(b, n)| f(middle(b)) * n as f64).sum::<f64>();
        let (mean, square) = (weighted(|ns| ns) / messages, weighted(|ns| ns * ns) / messages);
        (messages > 0.0).then(|| (square - mean * mean).max(0.0).sqrt())
    }

    fn occupied(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.buckets.iter().enumerate();
        counts.filter(|(_, n)| **n > 0).map(|(bucket, n)| (bucket, *n as u64))
    }
}

fn last(bucket: usize) -> u64 {
    LatencyReading::bucket_floor(bucket + 1) - 1
}

fn middle(bucket: usize) -> f64 {
    (LatencyReading::bucket_floor(bucket) + last(bucket)) as f64 / 2.0
}
