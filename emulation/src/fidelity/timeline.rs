//! Lateness over time in a bounded number of bins, which merge in pairs when there are too many.

use crate::clock::Clock;
use hdrhistogram::Histogram;
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Maximum number of bins.
const BINS_MAX: usize = 512;
/// One significant digit is enough for a colour scale and keeps a bin at a few kilobytes.
const DIGITS: u8 = 1;
/// A minute of fabric time.
const GREATEST_PS: u64 = 1 << 46;

/// One row of `fidelity.csv`. Lateness is in picoseconds of fabric time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityBin {
    /// Start of the bin.
    pub t_ps: u64,
    /// Length of the bin.
    pub dt_ps: u64,
    /// Number of the worker's process; the launcher fills it in.
    pub worker: u32,
    /// Wall time that it took, in nanoseconds.
    pub wall_ns: u64,
    /// Departures in it.
    pub departures: u64,
    /// Median lateness.
    pub late_ps_p50: u64,
    /// 99th percentile of lateness.
    pub late_ps_p99: u64,
    /// Largest lateness.
    pub late_ps_max: u64,
    /// Frames found missing.
    pub lost: u64,
    /// CPU time of the process over wall time, in thousandths of one core.
    pub cpu_permille: u64,
    /// Wall time over fabric time at its start; 0 in files of older versions.
    #[serde(default)]
    pub dilation: u64,
}

/// Running totals of the process, read at the edge of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadSample {
    /// Nanoseconds of the monotonic clock.
    pub wall_ns: u64,
    /// CPU time used, in nanoseconds.
    pub cpu_ns: u64,
    /// Frames found missing.
    pub lost: u64,
}

#[derive(Debug)]
struct Bin {
    begin: Instant,
    late_ps: Histogram<u32>,
    departures: u64,
    until: LoadSample,
}

/// The open bin and those closed.
#[derive(Debug)]
pub(crate) struct Timeline {
    width: Duration,
    closed: Vec<Bin>,
    open: Bin,
    /// Totals at the start of the run.
    before: Option<LoadSample>,
    end: Instant,
}

impl Bin {
    fn new(begin: Instant) -> Bin {
        let late_ps = Histogram::new_with_bounds(1, GREATEST_PS, DIGITS);
        let late_ps = late_ps.expect("the bounds and digits are legal constants");
        Bin { begin, late_ps, departures: 0, until: LoadSample::default() }
    }

    /// Merges the bin that follows into this one.
    fn absorb(&mut self, next: &Bin) {
        self.late_ps.add(&next.late_ps).expect("all bins have the same bounds");
        self.departures += next.departures;
        self.until = next.until;
    }
}

impl Timeline {
    /// A timeline of bins of `width` from fabric zero.
    pub fn new(width: Duration) -> Timeline {
        let width = width.max(Duration::from_ps(1));
        let open = Bin::new(Instant::ZERO);
        Timeline { width, closed: Vec::new(), open, before: None, end: Instant::ZERO }
    }

    /// Counts a departure that left this much fabric time too late.
    pub fn record(&mut self, late: Duration) {
        self.open.late_ps.saturating_record(late.as_ps());
        self.open.departures += 1;
    }

    /// Closes the open bin if `now` is past it. `moment` is called only then.
    pub fn advance(&mut self, now: Instant, moment: impl FnOnce() -> LoadSample) {
        if self.before.is_none() {
            self.before = Some(moment());
        } else if now >= self.open.begin + self.width {
            self.close(now, moment());
        }
    }

    /// Closes the open bin at `now`.
    ///
    /// If a worker slept through several bins, they become one.
    pub fn close(&mut self, now: Instant, moment: LoadSample) {
        self.open.until = moment;
        let whole = now.since(self.open.begin).as_ps() / self.width.as_ps();
        let next = self.open.begin + self.width * whole;
        let begin = if whole == 0 { now } else { next };
        self.closed.push(std::mem::replace(&mut self.open, Bin::new(begin)));
        self.end = begin;
        if self.closed.len() > BINS_MAX {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let mut merged: Vec<Bin> = Vec::with_capacity(BINS_MAX);
        for (index, bin) in self.closed.drain(..).enumerate() {
            match merged.last_mut() {
                Some(last) if index % 2 == 1 => last.absorb(&bin),
                _ => merged.push(bin),
            }
        }
        self.closed = merged;
        self.width = self.width * 2;
    }

    /// The closed bins as rows of `fidelity.csv`.
    pub fn bins(&self, clock: &Clock) -> Vec<FidelityBin> {
        let mut before = self.before.unwrap_or_default();
        let mut rows = Vec::with_capacity(self.closed.len());
        for (index, bin) in self.closed.iter().enumerate() {
            let end = self.closed.get(index + 1).map_or(self.end, |next| next.begin);
            let wall_ns = bin.until.wall_ns.saturating_sub(before.wall_ns);
            let cpu_ns = bin.until.cpu_ns.saturating_sub(before.cpu_ns);
            rows.push(FidelityBin {
                t_ps: bin.begin.as_ps(),
                dt_ps: end.since(bin.begin).as_ps(),
                worker: 0,
                wall_ns,
                departures: bin.departures,
                late_ps_p50: bin.late_ps.value_at_quantile(0.5),
                late_ps_p99: bin.late_ps.value_at_quantile(0.99),
                late_ps_max: bin.late_ps.max(),
                lost: bin.until.lost.saturating_sub(before.lost),
                cpu_permille: cpu_ns.saturating_mul(1_000) / wall_ns.max(1),
                dilation: clock.piece(bin.begin).dilation.get(),
            });
            before = bin.until;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    fn moment(n: u64) -> LoadSample {
        LoadSample { wall_ns: 1_000 * n, cpu_ns: 500 * n, lost: n }
    }

    #[test]
    fn bins_are_contiguous_and_hold_differences() {
        let mut timeline = Timeline::new(Duration::from_ps(10));
        timeline.advance(at(0), || moment(1));
        timeline.record(Duration::from_ps(7));
        timeline.advance(at(9), || panic!("not over yet"));
        timeline.advance(at(12), || moment(2));
        timeline.close(at(15), moment(4));
        let rows = timeline.bins(&Clock::new(0, NonZeroU64::new(10).expect("not zero")));
        let shape: Vec<_> = rows.iter().map(|row| (row.t_ps, row.dt_ps)).collect();
        assert_eq!(shape, [(0, 10), (10, 5)]);
        assert_eq!((rows[0].departures, rows[0].late_ps_max), (1, 7));
        assert_eq!((rows[1].wall_ns, rows[1].lost, rows[1].cpu_permille), (2_000, 2, 500));
    }

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_bins_and_every_departure() {
        let mut timeline = Timeline::new(Duration::from_ps(10));
        for turn in 0..20_000 {
            timeline.advance(at(turn * 10), || moment(turn));
            timeline.record(Duration::from_ps(turn));
        }
        timeline.close(at(200_000), moment(20_000));
        let rows = timeline.bins(&Clock::new(0, NonZeroU64::MIN));
        assert!(rows.len() <= BINS_MAX + 1, "{} bins", rows.len());
        assert_eq!(rows.iter().map(|row| row.departures).sum::<u64>(), 20_000);
        assert_eq!(rows.iter().map(|row| row.dt_ps).sum::<u64>(), 200_000);
        assert!(rows.windows(2).all(|pair| pair[0].t_ps + pair[0].dt_ps == pair[1].t_ps));
    }
}
