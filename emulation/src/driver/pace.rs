//! When the worker looks up: not for every frame, but often enough that none is late for it.
//!
//! A wake-up costs more than a frame, so what is due close together is done together, on a grid of
//! ticks. Three facts make that harmless:
//!
//! * What a device computes depends on the instants of things, not on when this thread got round to
//!   them, as long as it learns of everything in order.
//! * A frame on a cable is not due before the link's delay has passed. Whatever is due within most
//!   of that delay has therefore been sent, and is in the socket: the worker may *run ahead* of the
//!   wall by so much without missing anything. A worker with a single cable hears everything in
//!   order and may run ahead as far as it has heard.
//! * A stamp says when a last bit left, and whose first bit is on the line is not called back. So a
//!   frame is sent a tick or two before its last bit is due: nobody handles it before its time.
//!   Lateness, the other side, is measured and judged: of departures past their stamp, and of
//!   frames that reach a worker which has already gone on.
//!
//! A bare cable has no stamps: what leaves early arrives early. There a worker is never ahead of the
//! wall, and its ticks are finer, since each of them is late by as much as it is wide.

use crate::cable::lines::{Destination, Lines};
use crate::clock::Clock;
use proto::units::{Duration, Instant};

/// A tick is this share of the shortest frame time, in thousandths.
const TICK_THOUSANDTHS: u64 = 50;
/// The same where many more processes than cores compete for wake-ups.
const TICK_CROWDED_THOUSANDTHS: u64 = 110;
/// The same without stamps.
const TICK_BARE_THOUSANDTHS: u64 = 20;
/// A frame is sent so long before its last bit is due, in thousandths of the shortest frame time:
/// two or three ticks, so that a tick that comes late does not make a frame late.
const EARLY_THOUSANDTHS: u64 = 150;
/// The same with crowded ticks.
const EARLY_CROWDED_THOUSANDTHS: u64 = 220;
/// How much of the shortest delay a worker runs ahead at most, in percent; the rest covers senders
/// that are themselves a little late.
const AHEAD_PERCENT: u64 = 80;
/// It never runs ahead by more than this share of the shortest frame time, in thousandths: on a long
/// cable there is nothing to gain by more.
const AHEAD_THOUSANDTHS: u64 = 100;

/// Whether so many processes crowd the cores of this host.
pub fn crowd(processes: usize) -> bool {
    processes > 2 * cores()
}

/// Whether so many processes wake each other all the time that no core sleeps long enough to be lent out, while
/// one that is kept busy must be interrupted for each of them. With 10 and with 14 on two cores it is still
/// better to keep both awake, with 44 it is worse.
pub fn throng(processes: usize) -> bool {
    processes > 8 * cores()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The worker's pace, fixed for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Wake-ups lie on multiples of this, in nanoseconds of wall time.
    tick_ns: u64,
    /// How far the worker runs ahead of the wall.
    ahead: Duration,
    /// Last bits due so soon leave with those due now.
    early: Duration,
    /// Everything from outside comes by one cable.
    has_one_line: bool,
}

impl Pace {
    /// The pace for the cables of `lines`, whose frames are `stamped` or not, on a host whose cores
    /// are crowded with processes or not.
    pub fn new(clock: &Clock, lines: &Lines, stamped: bool, crowded: bool) -> Pace {
        let shortest = lines.all_outgoing().map(|line| line.frame_time).min().unwrap_or_default();
        let share = |thousandths| Duration::from_ps(shortest.as_ps() / 1_000 * thousandths);
        let (tick, early) = match (stamped, crowded) {
            (false, _) => (TICK_BARE_THOUSANDTHS, 0),
            (true, false) => (TICK_THOUSANDTHS, EARLY_THOUSANDTHS),
            (true, true) => (TICK_CROWDED_THOUSANDTHS, EARLY_CROWDED_THOUSANDTHS),
        };
        let ahead_max = share(if stamped { AHEAD_THOUSANDTHS } else { 0 });
        let by_socket = |to: &Destination| !matches!(to, Destination::Device { .. });
        let delays = lines.all_outgoing().filter(|line| by_socket(&line.to)).map(|line| line.delay);
        let ahead = match delays.min() {
            Some(delay) => ahead_max.min(Duration::from_ps(delay.as_ps() / 100 * AHEAD_PERCENT)),
            None => ahead_max,
        };
        let tick_ns = u64::try_from(clock.wall(share(tick)).as_nanos()).unwrap_or(u64::MAX).max(1);
        let has_one_line = lines.all_outgoing().count() == 1;
        Pace { tick_ns, ahead, early: share(early), has_one_line }
    }

    /// Up to when things may happen at `now`, having heard of arrivals up to `heard`.
    pub fn horizon(&self, now: Instant, heard: Instant) -> Instant {
        let ahead = now + self.ahead;
        if self.has_one_line { ahead.max(heard) } else { ahead }
    }

    /// Up to when last bits leave at `now`.
    pub fn leaving(&self, now: Instant) -> Instant {
        now + self.early
    }

    /// When to wake for a departure and for anything else, in nanoseconds of wall time.
    pub fn wake_ns(&self, clock: &Clock, departure: Instant, other: Instant) -> u64 {
        let before =
            |at: Instant, lead: Duration| Instant::from_ps(at.as_ps().saturating_sub(lead.as_ps()));
        let due = before(departure, self.early).min(before(other, self.ahead));
        clock.wall_ns_of(due).div_ceil(self.tick_ns).saturating_mul(self.tick_ns)
    }

    /// Until when a socket that has just been filled may wait for more.
    pub fn read_by_ns(&self, now_ns: u64) -> u64 {
        if self.has_one_line {
            return now_ns;
        }
        now_ns.div_ceil(self.tick_ns).saturating_mul(self.tick_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    const CLOCK: Clock = Clock::new(0, NonZeroU64::MIN);

    fn pace(ahead_ns: u64, early_ns: u64) -> Pace {
        let (ahead, early) = (Duration::from_ns(ahead_ns), Duration::from_ns(early_ns));
        Pace { tick_ns: 60, ahead, early, has_one_line: false }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_ps(ns * 1_000)
    }

    #[test]
    fn with_a_tick_of_lead_nothing_is_woken_for_late() {
        let pace = pace(60, 60);
        for due in 100..1_000 {
            for wake in [
                pace.wake_ns(&CLOCK, at(due), Instant::NEVER),
                pace.wake_ns(&CLOCK, Instant::NEVER, at(due)),
            ] {
                assert!(wake < due && wake + 60 >= due, "{due} wakes at {wake}");
                assert!(
                    pace.leaving(at(wake)) >= at(due) && pace.horizon(at(wake), at(0)) >= at(due)
                );
            }
        }
    }

    #[test]
    fn without_lead_nothing_is_woken_for_early_nor_a_whole_tick_late() {
        let pace = pace(0, 0);
        for due in 0..500 {
            let wake = pace.wake_ns(&CLOCK, Instant::NEVER, at(due));
            assert!(wake >= due && wake < due + 60);
        }
    }

    #[test]
    fn a_single_cable_is_followed_as_far_as_it_was_heard() {
        let single = Pace { has_one_line: true, ..pace(10, 10) };
        assert_eq!(single.horizon(at(100), at(500)), at(500));
        assert_eq!(single.horizon(at(100), at(50)), at(110));
        assert_eq!(pace(10, 10).horizon(at(100), at(500)), at(110));
    }
}
