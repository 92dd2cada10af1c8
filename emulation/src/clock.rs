//! Wall time: the only place that reads clocks, and that converts between wall time and fabric time.
//!
//! `CLOCK_MONOTONIC` is the same for all processes of a host. Daemons with the same origin and pieces
//! therefore agree on fabric time without communication, and steps of the calendar clock change no protocol
//! timer.

#![expect(clippy::disallowed_methods, reason = "this file is where clocks are read")]

use nix::time::{ClockId, clock_gettime};
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

const PS_PER_NS: u128 = 1_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Fabric time as a function of wall time: an origin, and pieces that each begin at an instant of fabric time and have
/// one integer factor, the dilation.
///
/// Lengths add up in picoseconds, so processes with the same pieces agree on the wall time since their origins to the
/// nanosecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    origin_ns: u64,
    /// At least one, ascending; the first begins at fabric zero.
    pieces: Vec<Piece>,
}

/// A stretch of fabric time with one dilation. It ends where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub from: Instant,
    /// Wall time over fabric time.
    pub dilation: NonZeroU64,
    /// Its begin on the wall, in picoseconds since the origin.
    wall_ps: u128,
}

/// From `at` on, fabric time runs `dilation` times slower than wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockChange {
    /// Where the new piece begins.
    pub at: Instant,
    /// Its dilation.
    pub dilation: NonZeroU64,
}

impl Piece {
    /// The wall time that a length of fabric time takes, rounded up to nanoseconds.
    pub fn wall(&self, length: Duration) -> std::time::Duration {
        std::time::Duration::from_nanos(whole_ns(self.scaled(length)))
    }

    /// The fabric time that passes in `wall_ns` nanoseconds of wall time, rounded down.
    pub fn fabric(&self, wall_ns: u64) -> Duration {
        self.unscaled(u128::from(wall_ns) * PS_PER_NS)
    }

    fn scaled(&self, length: Duration) -> u128 {
        u128::from(length.as_ps()) * u128::from(self.dilation.get())
    }

    fn unscaled(&self, wall_ps: u128) -> Duration {
        let ps = wall_ps / u128::from(self.dilation.get());
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl Clock {
    /// A clock whose fabric time is zero at `origin_ns` of [`monotonic_ns`] and then runs `dilation` times
    /// slower than wall time.
    pub fn new(origin_ns: u64, dilation: NonZeroU64) -> Clock {
        Clock { origin_ns, pieces: vec![Piece { from: Instant::ZERO, dilation, wall_ps: 0 }] }
    }

    /// Begins a new piece. One that would begin before the last begins with it and takes its place.
    pub fn change(&mut self, change: ClockChange) {
        let last = self.pieces[self.pieces.len() - 1];
        let from = change.at.max(last.from);
        if from == last.from {
            self.pieces.pop();
        }
        let wall_ps = last.wall_ps + last.scaled(from.since(last.from));
        self.pieces.push(Piece { from, dilation: change.dilation, wall_ps });
    }

    /// The fabric time now; [`Instant::ZERO`] before the origin.
    pub fn now(&self) -> Instant {
        self.at_wall_ns(monotonic_ns())
    }

    /// The fabric time when the wall clock shows `wall_ns`; zero before the origin.
    pub fn at_wall_ns(&self, wall_ns: u64) -> Instant {
        let wall_ps = u128::from(wall_ns.saturating_sub(self.origin_ns)) * PS_PER_NS;
        let piece = self.last_piece(|piece| piece.wall_ps <= wall_ps);
        piece.from + piece.unscaled(wall_ps - piece.wall_ps)
    }

    /// The first nanosecond of wall time at which [`Clock::now`] is not before `instant`.
    pub fn wall_ns_of(&self, instant: Instant) -> u64 {
        let piece = self.piece(instant);
        let wall_ps = piece.wall_ps + piece.scaled(instant.since(piece.from));
        self.origin_ns.saturating_add(whole_ns(wall_ps))
    }

    /// The piece in force at `instant`.
    pub fn piece(&self, instant: Instant) -> &Piece {
        self.last_piece(|piece| piece.from <= instant)
    }

    /// All pieces, ascending.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Fabric zero, in nanoseconds of [`monotonic_ns`].
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Time passes, so the piece is one of the last.
    fn last_piece(&self, has_begun: impl Fn(&Piece) -> bool) -> &Piece {
        let begun = self.pieces.iter().rev().find(|piece| has_begun(piece));
        begun.unwrap_or(&self.pieces[0])
    }
}

fn whole_ns(ps: u128) -> u64 {
    u64::try_from(ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX)
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

    fn by(dilation: u64) -> NonZeroU64 {
        NonZeroU64::new(dilation).expect("not zero")
    }

    #[test]
    fn a_dilated_clock_runs_slower_by_its_factor() {
        let clock = Clock::new(5_000, by(1000));
        assert_eq!(clock.at_wall_ns(5_000 + 2_048_000), Instant::from_ps(2_048_000));
        let piece = clock.piece(Instant::ZERO);
        assert_eq!(piece.wall(Duration::from_ns(2)), std::time::Duration::from_micros(2));
        assert_eq!(piece.fabric(2_000), Duration::from_ns(2));
    }

    #[test]
    fn a_change_takes_effect_at_its_instant_and_not_before() {
        let before = Clock::new(7_000, by(10));
        let mut after = before.clone();
        after.change(ClockChange { at: Instant::from_ps(1_000_000), dilation: by(30) });
        for ps in [0, 999_999, 1_000_000] {
            assert_eq!(
                after.wall_ns_of(Instant::from_ps(ps)),
                before.wall_ns_of(Instant::from_ps(ps))
            );
        }
        assert_eq!(after.wall_ns_of(Instant::from_ps(1_100_000)), 7_000 + 10_000 + 3_000);
        assert_eq!(after.at_wall_ns(7_000 + 10_000 + 3_000), Instant::from_ps(1_100_000));
        assert_eq!(after.piece(Instant::from_ps(999_999)).dilation, by(10));
        assert_eq!(after.piece(Instant::from_ps(1_000_000)).dilation, by(30));
        after.change(ClockChange { at: Instant::ZERO, dilation: by(20) });
        let pieces: Vec<_> = after.pieces().iter().map(|piece| piece.dilation.get()).collect();
        assert_eq!(pieces, [10, 20], "a piece that begins with the last takes its place");
    }

    proptest! {
        #[test]
        fn an_instant_has_come_at_its_wall_time_and_not_before(
            origin in 0u64..1 << 50, dilation in 1u64..100_000, ps in 1u64..1 << 50,
            changes in proptest::collection::vec((1u64..1 << 50, 1u64..100_000), 0..4),
        ) {
            let mut clock = Clock::new(origin, by(dilation));
            for (at, dilation) in changes {
                clock.change(ClockChange { at: Instant::from_ps(at), dilation: by(dilation) });
            }
            let instant = Instant::from_ps(ps);
            let wall = clock.wall_ns_of(instant);
            prop_assert!(clock.at_wall_ns(wall) >= instant);
            prop_assert!(clock.at_wall_ns(wall - 1) < instant);
        }

        #[test]
        fn processes_with_other_origins_agree_on_the_wall_time_since_them(
            origins in (0u64..1 << 40, 0u64..1 << 40), at in 1u64..1 << 40, ps in 1u64..1 << 50,
        ) {
            let clock = |origin| {
                let mut clock = Clock::new(origin, by(999));
                clock.change(ClockChange { at: Instant::from_ps(at), dilation: by(7_001) });
                clock.wall_ns_of(Instant::from_ps(ps)) - origin
            };
            prop_assert_eq!(clock(origins.0), clock(origins.1));
        }
    }
}
