//! When the worker looks up: not for every frame, but often enough that none is late for it.
//!
//! A wake-up costs more than a frame, so what is due close together is done together, on a grid of
//! ticks. Three facts make that harmless:
//!
//! * What a device computes depends on the instants of things, not on when this thread got round to
//!   them, as long as it learns of everything in order.
//! * A frame on a cable is not due before the link's delay has passed. Whatever is due within that
//!   delay has therefore been sent, and is in the socket: the worker may *run ahead* of the wall by
//!   so much without missing anything. If it does so by all of the delay, a departure that is late by
//!   the wall is late by as much for whoever receives it, and one that is not is in time. A worker
//!   with a single cable hears everything in order and may run ahead as far as it has heard.
//! * A stamp says when a last bit left, and whose first bit is on the line is not called back. So a
//!   frame is sent as its transmission begins, without a wake-up of its own at the end: it is in the
//!   receiver's socket long before its time. Lateness, the other side, is measured and judged: of
//!   departures past their stamp, and of frames that reach a worker which has already gone on.
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
/// It never runs ahead by more than this share of the shortest frame time, in thousandths: on a long
/// cable there is nothing to gain by more than two crowded ticks, and lateness is judged the more strictly.
const AHEAD_THOUSANDTHS: u64 = 250;

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
    /// Everything from outside comes by one cable.
    has_one_line: bool,
}

impl Pace {
    /// The pace for the cables of `lines`, whose frames are `stamped` or not, on a host whose cores
    /// are crowded with processes or not.
    pub fn new(clock: &Clock, lines: &Lines, stamped: bool, crowded: bool) -> Pace {
        let shortest = lines.all_outgoing().map(|line| line.frame_time).min().unwrap_or_default();
        let share = |thousandths| Duration::from_ps(shortest.as_ps() / 1_000 * thousandths);
        let tick = match (stamped, crowded) {
            (false, _) => TICK_BARE_THOUSANDTHS,
            (true, false) => TICK_THOUSANDTHS,
            (true, true) => TICK_CROWDED_THOUSANDTHS,
        };
        let by_socket = |to: &Destination| !matches!(to, Destination::Device { .. });
        let delays = lines.all_outgoing().filter(|line| by_socket(&line.to)).map(|line| line.delay);
        let ahead_max = share(if stamped { AHEAD_THOUSANDTHS } else { 0 });
        let ahead = delays.min().map_or(ahead_max, |delay| delay.min(ahead_max));
        let tick_ns = u64::try_from(clock.wall(share(tick)).as_nanos()).unwrap_or(u64::MAX).max(1);
        let has_one_line = lines.all_outgoing().count() == 1;
        Pace { tick_ns, ahead, has_one_line }
    }

    /// Up to when things may happen at `now`, having heard of arrivals up to `heard`.
    pub fn horizon(&self, now: Instant, heard: Instant) -> Instant {
        let ahead = now + self.ahead;
        if self.has_one_line { ahead.max(heard) } else { ahead }
    }

    /// When to wake for a departure that waits for its instant and for anything else, in nanoseconds of
    /// wall time.
    pub fn wake_ns(&self, clock: &Clock, departure: Instant, other: Instant) -> u64 {
        let begin = Instant::from_ps(other.as_ps().saturating_sub(self.ahead.as_ps()));
        let due = departure.min(begin);
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
    use crate::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
    use proto::ids::PortNumber;
    use std::num::NonZeroU64;

    const CLOCK: Clock = Clock::new(0, NonZeroU64::MIN);

    fn pace(ahead_ns: u64) -> Pace {
        Pace { tick_ns: 60, ahead: Duration::from_ns(ahead_ns), has_one_line: false }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_ps(ns * 1_000)
    }

    #[test]
    fn with_a_tick_of_lead_nothing_is_woken_for_late() {
        let pace = pace(60);
        for due in 100..1_000 {
            let wake = pace.wake_ns(&CLOCK, Instant::NEVER, at(due));
            assert!(wake < due && wake + 60 >= due, "{due} wakes at {wake}");
            assert!(pace.horizon(at(wake), at(0)) >= at(due));
        }
    }

    #[test]
    fn without_lead_nothing_is_woken_for_early_nor_a_whole_tick_late() {
        let lead = pace(60);
        for due in 0..500 {
            for wake in [
                pace(0).wake_ns(&CLOCK, Instant::NEVER, at(due)),
                lead.wake_ns(&CLOCK, at(due), Instant::NEVER),
            ] {
                assert!(wake >= due && wake < due + 60);
            }
        }
    }

    /// A device with a cable of each of these delays to other processes; a frame takes 1 µs.
    fn lines(delays_ns: &[u64]) -> Lines {
        let count = delays_ns.len();
        let node = |node| NodeWiring {
            name: format!("n{node}"),
            kind: NodeKind::Switch,
            ports: count as u8,
            level: 0,
        };
        let end = |node, port| End { node, port: PortNumber::from_index(port) };
        let link = |(index, delay_ns): (usize, &u64)| LinkWiring {
            a: end(0, index),
            b: end(index + 1, 0),
            delay: Duration::from_ns(*delay_ns),
            frame_time: Duration::from_us(1),
        };
        let wiring = Wiring {
            nodes: (0..=count).map(node).collect(),
            links: delays_ns.iter().enumerate().map(link).collect(),
            ..Wiring::default()
        };
        let hosts: Vec<_> = (0..=count).collect();
        Lines::new(&wiring, &hosts, 0, true).expect("a good wiring")
    }

    #[test]
    fn a_worker_runs_ahead_by_the_shortest_delay_that_a_socket_has() {
        let horizon = |delays: &[u64], stamped| {
            Pace::new(&CLOCK, &lines(delays), stamped, false).horizon(at(0), at(0))
        };
        assert_eq!(horizon(&[200, 125], true), at(125));
        assert_eq!(horizon(&[3_000, 4_000], true), at(250), "a quarter of a frame time at most");
        assert_eq!(horizon(&[200, 125], false), at(0), "bare cables have no stamps");
    }

    #[test]
    fn a_single_cable_is_followed_as_far_as_it_was_heard() {
        let single = Pace { has_one_line: true, ..pace(10) };
        assert_eq!(single.horizon(at(100), at(500)), at(500));
        assert_eq!(single.horizon(at(100), at(50)), at(110));
        assert_eq!(pace(10).horizon(at(100), at(500)), at(110));
    }
}
