//! When the worker looks up: not for every frame, but often enough that none is late for it.
//!
//! A wake-up costs more than a frame, so what is due close together is done together. Three facts
//! make that harmless. A frame on a cable is not due before the link's delay has passed, so a socket
//! may be read that much later than it was filled. What a device computes depends on the instants of
//! things, not on when this thread got round to them. And a last bit that leaves a few hundredths of
//! a frame time early or late is far inside what the verdict allows; being late is measured.

use crate::cable::lines::{Destination, Lines};
use crate::clock::Clock;
use proto::units::Duration;

/// Wake-ups lie on a grid of this share of the shortest frame time, in thousandths.
const TICK_THOUSANDTHS: u64 = 30;
/// Sockets may wait unread for this share of the shortest delay, in percent; the rest is for the
/// sender's own grid and for the host's wake-ups.
const LINGER_PERCENT: u64 = 40;

/// The worker's pace, fixed for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Wake-ups lie on multiples of this, in nanoseconds of wall time.
    pub tick_ns: u64,
    /// How long a filled socket may wait, in nanoseconds of wall time.
    pub linger_ns: u64,
    /// Last bits due so soon are sent with those due now.
    pub early: Duration,
}

impl Pace {
    /// The pace for the cables of `lines`.
    pub fn new(clock: &Clock, lines: &Lines) -> Pace {
        let wall_ns = |length: Duration| {
            u64::try_from(clock.wall(length).as_nanos()).unwrap_or(u64::MAX)
        };
        let shortest = lines.all_outgoing().map(|line| line.frame_time).min();
        let tick_ns = shortest.map_or(0, wall_ns) / 1_000 * TICK_THOUSANDTHS;
        let by_socket = |to: &Destination| matches!(to, Destination::Process(_));
        let delays = lines.all_outgoing().filter(|line| by_socket(&line.to)).map(|line| line.delay);
        let linger_ns = delays.min().map_or(0, wall_ns) / 100 * LINGER_PERCENT;
        Pace { tick_ns: tick_ns.max(1), linger_ns, early: clock.fabric(tick_ns / 2) }
    }

    /// When to wake for something due at `due_ns`.
    pub fn wake_ns(&self, due_ns: u64) -> u64 {
        due_ns.div_ceil(self.tick_ns).saturating_mul(self.tick_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_woken_for_before_it_is_due_nor_a_whole_tick_after() {
        let pace = Pace { tick_ns: 60, linger_ns: 0, early: Duration::ZERO };
        for due in 0..1_000 {
            let wake = pace.wake_ns(due);
            assert!(wake >= due && wake < due + 60, "{due} wakes at {wake}");
        }
        let exact = Pace { tick_ns: 1, ..pace };
        assert_eq!(exact.wake_ns(17), 17);
    }
}
