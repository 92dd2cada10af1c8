//! Measures the worker's lateness.

use super::recent::Recent;
use super::spread::Spread;
use super::timeline::{FidelityBin, LoadSample, Timeline};
use crate::clock::Clock;
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Half of the time over which a run without an end states its lateness, in nanoseconds of wall time.
const HALF_NS: u64 = 30_000_000_000;

/// Lateness of departures inside the measured windows, and of arrivals that were handled late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// In thousandths of the link's frame time.
    pub frames: Spread,
    /// In nanoseconds of wall time.
    pub wall_ns: Spread,
}

impl Lateness {
    /// Adds the lateness of another worker.
    pub fn merge(&mut self, other: &Lateness) {
        self.frames.merge(&other.frames);
        self.wall_ns.merge(&other.wall_ns);
    }

    /// Counts a lateness in nanoseconds of wall time and in thousandths of a frame time, if there is one.
    fn count(&mut self, late_ns: u64, frames: Option<u64>) {
        self.wall_ns.record(late_ns);
        frames.into_iter().for_each(|thousandths| self.frames.record(thousandths));
    }
}

/// A lateness in thousandths of a frame time. A port without a rate has none.
fn thousandths(late: Duration, frame_time: Duration) -> Option<u64> {
    let late = u128::from(late.as_ps()) * 1_000;
    let thousandths = late.checked_div(u128::from(frame_time.as_ps()))?;
    Some(u64::try_from(thousandths).unwrap_or(u64::MAX))
}

/// Collects departures, and computes their lateness once the sockets have sent them.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Ascending and disjoint; empty means the whole run.
    windows: Vec<(Instant, Instant)>,
    /// Lateness of the departures in the windows, and of frames handled late.
    pub lateness: Lateness,
    timeline: Timeline,
    /// Departures and frames handled late, measured or not, since [`Meter::take_recent`].
    recent: Recent,
    /// What [`Meter::take_recent`] has returned in this and in the last half minute.
    halves: [Recent; 2],
    half_ends_ns: u64,
    /// Pending departures: scheduled instant, and frame time of the link.
    leaving: Vec<(Instant, Duration)>,
    pub departures: u64,
}

impl Meter {
    /// A meter for departures inside `windows`, with a timeline of bins of `bin`.
    pub fn new(windows: Vec<(Instant, Instant)>, bin: Duration) -> Meter {
        Meter {
            windows,
            lateness: Lateness::default(),
            timeline: Timeline::new(bin),
            recent: Recent::default(),
            halves: Default::default(),
            half_ends_ns: 0,
            leaving: Vec::new(),
            departures: 0,
        }
    }

    /// A departure scheduled for `at` is handed to the sockets.
    pub fn leaves(&mut self, at: Instant, frame_time: Duration) {
        self.leaving.push((at, frame_time));
    }

    /// Number of pending departures.
    pub fn pending(&self) -> usize {
        self.leaving.len()
    }

    /// All pending departures were sent at `wall_ns`.
    pub fn left(&mut self, clock: &Clock, wall_ns: u64) {
        self.departures += self.leaving.len() as u64;
        for (at, frame_time) in self.leaving.drain(..) {
            let late_ns = wall_ns.saturating_sub(clock.wall_ns_of(at));
            let late = clock.piece(at).fabric(late_ns);
            self.timeline.record(late);
            let frames = thousandths(late, frame_time);
            self.recent.count(frames);
            if is_measured(&self.windows, at) {
                self.lateness.count(late_ns, frames);
            }
        }
    }

    /// A frame that arrived at `at` was handled at the later instant `now`. It counts in addition to the
    /// departures; arrivals in time are not counted.
    pub(crate) fn handled_late(
        &mut self,
        clock: &Clock,
        at: Instant,
        now: Instant,
        frame_time: Option<Duration>,
    ) {
        let Some(frame_time) = frame_time else { return };
        let late = now.since(at);
        let frames = thousandths(late, frame_time);
        self.recent.count(frames);
        if is_measured(&self.windows, at) {
            let late_ns = clock.piece(at).wall(late).as_nanos() as u64;
            self.lateness.count(late_ns, frames);
        }
    }

    /// The lateness since the last call, at `wall_ns`.
    pub(crate) fn take_recent(&mut self, wall_ns: u64) -> Recent {
        let recent = std::mem::take(&mut self.recent);
        if wall_ns >= self.half_ends_ns {
            self.half_ends_ns = wall_ns + HALF_NS;
            self.halves.swap(0, 1);
            self.halves[0] = Recent::default();
        }
        self.halves[0].merge(&recent);
        recent
    }

    /// p99 of lateness in thousandths of a frame time: so far, or of the last minute where a run has no end.
    pub(crate) fn p99(&self, has_end: bool) -> u64 {
        if has_end {
            return self.lateness.frames.p99();
        }
        let mut minute = self.halves[0].clone();
        minute.merge(&self.halves[1]);
        minute.p99()
    }

    /// Closes the timeline's bin if it is over at `now`.
    pub fn advance(&mut self, now: Instant, moment: impl FnOnce() -> LoadSample) {
        self.timeline.advance(now, moment);
    }

    /// Lateness and timeline of the whole run, which ends at `now`.
    pub fn finish(
        mut self,
        clock: &Clock,
        now: Instant,
        moment: LoadSample,
    ) -> (Lateness, Vec<FidelityBin>) {
        self.timeline.close(now, moment);
        (self.lateness, self.timeline.bins(clock))
    }
}

fn is_measured(windows: &[(Instant, Instant)], at: Instant) -> bool {
    let after = windows.partition_point(|(from, _)| *from <= at);
    windows.is_empty() || after.checked_sub(1).is_some_and(|index| at < windows[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockChange;
    use std::num::NonZeroU64;

    #[test]
    fn lateness_is_in_frame_times_of_the_link_and_only_inside_the_windows() {
        let clock = Clock::new(1_000, NonZeroU64::new(1000).expect("not zero"));
        let windows = vec![(Instant::from_ps(10_000_000), Instant::from_ps(20_000_000))];
        let mut meter = Meter::new(windows, Duration::from_us(100));
        let frame_time = Duration::from_ns(2_048);
        let late = |meter: &mut Meter, at_us: u64, late_ns| {
            let at = Instant::from_ps(at_us * 1_000_000);
            meter.leaves(at, frame_time);
            meter.left(&clock, clock.wall_ns_of(at) + late_ns);
        };
        late(&mut meter, 9, 900_000);
        late(&mut meter, 10, 204_800);
        late(&mut meter, 20, 900_000);
        assert_eq!(meter.departures, 3);
        let lateness = &meter.lateness;
        assert_eq!((lateness.frames.count(), lateness.frames.max()), (1, 100));
        assert!(lateness.wall_ns.max().abs_diff(204_800) < 205, "three digits");
        let recent = meter.take_recent(0);
        assert_eq!(recent.count, 3, "measured or not");
        let mut both = recent.clone();
        both.merge(&recent);
        assert_eq!(both.count, 6);
        assert_eq!(meter.take_recent(1), Recent::default());
        // What was late is forgotten within a minute, but not in a run that is judged at its end.
        assert!(meter.p99(false) > 400);
        meter.take_recent(HALF_NS);
        assert!(meter.p99(false) > 400);
        meter.take_recent(2 * HALF_NS);
        assert_eq!((meter.p99(false), meter.p99(true)), (0, 100));
    }

    #[test]
    fn a_frame_that_is_handled_late_counts_and_workers_add_up() {
        let clock = Clock::new(0, NonZeroU64::new(1000).expect("not zero"));
        let mut meter = Meter::new(Vec::new(), Duration::from_us(100));
        let (at, now) = (Instant::from_ps(1_000_000), Instant::from_ps(3_048_000));
        meter.handled_late(&clock, at, now, Some(Duration::from_ns(2_048)));
        assert_eq!(meter.take_recent(0).count, 1);
        let one = meter.lateness;
        let mut both = one.clone();
        both.merge(&one);
        let counts = |lateness: &Lateness| [lateness.frames.count(), lateness.wall_ns.count()];
        assert_eq!((counts(&one), one.frames.max()), ([1, 1], 1_000));
        assert_eq!(counts(&both), [2, 2]);
    }

    #[test]
    fn lateness_is_in_frame_times_of_the_piece_in_force() {
        let mut clock = Clock::new(0, NonZeroU64::new(1000).expect("not zero"));
        let (at, dilation) = (Instant::from_ps(10_000_000), NonZeroU64::new(4000));
        clock.change(ClockChange { at, dilation: dilation.expect("not zero") });
        let mut meter = Meter::new(Vec::new(), Duration::from_us(5));
        let frame_time = Duration::from_ns(2_048);
        for at_us in [9, 10] {
            let at = Instant::from_ps(at_us * 1_000_000);
            meter.advance(at, LoadSample::default);
            meter.leaves(at, frame_time);
            meter.left(&clock, clock.wall_ns_of(at) + 819_200);
        }
        let (lateness, bins) =
            meter.finish(&clock, Instant::from_ps(11_000_000), LoadSample::default());
        assert_eq!((lateness.frames.min(), lateness.frames.max()), (100, 400));
        let dilations: Vec<_> = bins.iter().map(|bin| bin.dilation).collect();
        assert_eq!(dilations, [1000, 4000]);
    }

    #[test]
    fn without_windows_everything_is_measured() {
        assert!(is_measured(&[], Instant::ZERO));
        let windows = [(Instant::from_ps(5), Instant::from_ps(6))];
        assert!(!is_measured(&windows, Instant::from_ps(4)));
    }
}
