//! Spikes of a queue that is otherwise low: how often it comes back, and after how long.
//!
//! The level of a bin is ∫q² dt / ∫q dt: the queue as an average octet in it experiences it, between mean and maximum.
//! A spike much shorter than a bin counts in full, wherever the edges of the bin are.

use super::{RunData, growth, number_in, ports, reduce, time_in};
use proto::counters::{Gauge, PortReading};
use proto::units::{Duration, Instant};
use scenario::measure::windows::samples;
use scenario::measure::{Measure, Per};

/// Time for which the queue must be low before a spike.
const QUIET: Duration = Duration::from_us(5_000);

/// The number of spikes.
pub fn count(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    number_in(Per::One, spikes(measure, run)?.len() as f64)
}

/// The time from one spike to the next.
pub fn interval(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let spikes = spikes(measure, run)?;
    let gaps: Vec<f64> =
        spikes.windows(2).map(|pair| pair[1].since(pair[0]).as_ps() as f64).collect();
    if gaps.is_empty() {
        return Err(format!("{} spikes have no time between them", spikes.len()));
    }
    time_in(Per::One, reduce(gaps, measure.reduce)?, run)
}

/// The beginnings of the bins in which spikes began.
fn spikes(measure: &Measure, run: &RunData<'_>) -> Result<Vec<Instant>, String> {
    let Per::Size(level) = measure.per else {
        return Err("it needs a size to compare the queue with: per".to_owned());
    };
    let &[port] = ports(measure)? else {
        return Err("it is taken at one port".to_owned());
    };
    let sum = |of: fn(&Gauge) -> u128| {
        move |reading: &PortReading| -> u128 {
            reading.lanes.iter().map(|lane| of(&lane.counters.out_queue)).sum()
        }
    };
    let mut bins = Vec::new();
    for sample in samples(measure) {
        let (from, to) = sample[0];
        let (octets, _) = growth(run, port.0, &sample, sum(|queue| queue.integral))?;
        let (squares, _) = growth(run, port.0, &sample, sum(|queue| queue.square_integral))?;
        bins.push((from, to, if octets > 0.0 { squares / octets } else { 0.0 }));
    }
    Ok(found(&bins, level.get() as f64))
}

/// Where the level of a bin, (from, to, level), is above half of `level`, the bins before it having been
/// below a quarter for long enough. A bin in between ends no quiet.
fn found(bins: &[(Instant, Instant, f64)], level: f64) -> Vec<Instant> {
    let mut spikes = Vec::new();
    let mut quiet_since = None;
    let mut is_armed = false;
    for (from, to, seen) in bins {
        if *seen < level / 4.0 {
            let since = *quiet_since.get_or_insert(*from);
            is_armed |= to.since(since) >= QUIET;
        } else {
            quiet_since = None;
        }
        if *seen > level / 2.0 {
            if is_armed {
                spikes.push(*from);
            }
            is_armed = false;
        }
    }
    spikes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins of a millisecond with these means.
    fn bins(means: &[f64]) -> Vec<(Instant, Instant, f64)> {
        let at = |n: usize| Instant::ZERO + Duration::from_us(1_000) * n as u64;
        means.iter().enumerate().map(|(n, mean)| (at(n), at(n + 1), *mean)).collect()
    }

    fn ms(means: &[f64]) -> Vec<u64> {
        let spikes = found(&bins(means), 100.0);
        spikes.iter().map(|at| at.as_ps() / 1_000_000_000).collect()
    }

    #[test]
    fn a_spike_needs_quiet_before_it_and_half_the_level() {
        assert_eq!(ms(&[90.0, 0.0, 0.0, 0.0, 0.0, 90.0]), [0; 0], "four are too few");
        assert_eq!(ms(&[0.0, 0.0, 0.0, 0.0, 24.0, 51.0, 90.0, 60.0]), [5]);
        assert_eq!(ms(&[0.0, 0.0, 0.0, 0.0, 0.0, 40.0, 60.0]), [6], "it may rise in steps");
        assert_eq!(ms(&[0.0, 0.0, 0.0, 26.0, 0.0, 0.0, 90.0]), [0; 0], "quiet was interrupted");
    }
}
