//! Wall time: the only place that reads clocks, and that converts between wall time and fabric time.
//!
//! `CLOCK_MONOTONIC` is the same for all processes of a host. Daemons with the same origin and dilation
//! therefore agree on fabric time without communication, and steps of the calendar clock change no protocol
//! timer.

#![expect(clippy::disallowed_methods, reason = "this file is where clocks are read")]

use nix::time::{ClockId, clock_gettime};
use proto::units::{Duration, Instant};
use std::num::NonZeroU64;

const PS_PER_NS: u128 = 1_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Fabric time as a function of wall time: one origin, one integer factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    origin_ns: u64,
    dilation: NonZeroU64,
}

impl Clock {
    /// A clock whose fabric time is zero at `origin_ns` of [`monotonic_ns`] and then runs `dilation` times
    /// slower than wall time.
    pub const fn new(origin_ns: u64, dilation: NonZeroU64) -> Clock {
        Clock { origin_ns, dilation }
    }

    /// The fabric time now; [`Instant::ZERO`] before the origin.
    pub fn now(&self) -> Instant {
        self.at_wall_ns(monotonic_ns())
    }

    /// The fabric time when the wall clock shows `wall_ns`; zero before the origin.
    pub fn at_wall_ns(&self, wall_ns: u64) -> Instant {
        Instant::ZERO + self.fabric(wall_ns.saturating_sub(self.origin_ns))
    }

    /// The first nanosecond of wall time at which [`Clock::now`] is not before `instant`.
    pub fn wall_ns_of(&self, instant: Instant) -> u64 {
        let ps = u128::from(instant.as_ps()) * u128::from(self.dilation.get());
        let ns = u64::try_from(ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX);
        self.origin_ns.saturating_add(ns)
    }

    /// The wall time that a length of fabric time takes, rounded up to nanoseconds.
    pub fn wall(&self, length: Duration) -> std::time::Duration {
        let ps = u128::from(length.as_ps()) * u128::from(self.dilation.get());
        let ns = u64::try_from(ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX);
        std::time::Duration::from_nanos(ns)
    }

    /// The fabric time that passes in `wall_ns` nanoseconds of wall time, rounded down.
    pub fn fabric(&self, wall_ns: u64) -> Duration {
        let ps = u128::from(wall_ns) * PS_PER_NS / u128::from(self.dilation.get());
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Fabric zero, in nanoseconds of [`monotonic_ns`].
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// The dilation: wall time over fabric time.
    pub const fn dilation(&self) -> NonZeroU64 {
        self.dilation
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_REALTIME`: calendar time, and the clock of the kernel's packet time stamps. It may step, so
/// to measure use only its difference to a reading of [`monotonic_ns`] taken at the same moment.
pub fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// Nanoseconds of CPU time that all threads of this process have used. Unlike `/proc/stat`, which samples at
/// ticks, it counts short bursts of timer-driven load.
pub fn process_cpu_ns() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux always has these clocks");
    time.tv_sec() as u64 * NS_PER_S + time.tv_nsec() as u64
}

/// A stopwatch on wall time, for progress and reports.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began_ns: u64,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch { began_ns: monotonic_ns() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        (monotonic_ns() - self.began_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fabric_time_stands_at_zero_until_the_origin() {
        let clock = Clock::new(monotonic_ns() + 1_000_000_000_000, NonZeroU64::MIN);
        assert_eq!(clock.now(), Instant::ZERO);
    }

    #[test]
    fn a_dilated_clock_runs_slower_by_its_factor() {
        let clock = Clock::new(5_000, NonZeroU64::new(1000).expect("not zero"));
        assert_eq!(clock.at_wall_ns(5_000 + 2_048_000), Instant::from_ps(2_048_000));
        assert_eq!(clock.wall(Duration::from_ns(2)), std::time::Duration::from_micros(2));
    }

    proptest! {
        #[test]
        fn an_instant_has_come_at_its_wall_time_and_not_before(
            origin in 0u64..1 << 50, dilation in 1u64..100_000, ps in 1u64..1 << 50,
        ) {
            let clock = Clock::new(origin, NonZeroU64::new(dilation).expect("not zero"));
            let instant = Instant::from_ps(ps);
            let wall = clock.wall_ns_of(instant);
            prop_assert!(clock.at_wall_ns(wall) >= instant);
            prop_assert!(clock.at_wall_ns(wall - 1) < instant);
        }
    }
}
