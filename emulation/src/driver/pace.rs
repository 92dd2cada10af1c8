//! The worker's wake-ups: fewer than one a frame, but often enough that no frame is late.
//!
//! A wake-up costs more than a frame. The worker therefore wakes on a grid of ticks and handles everything due
//! at once. This changes no result, for three reasons:
//!
//! * What a device computes depends on the instants of its inputs and on their order, not on when the thread
//!   handles them.
//! * A frame is due only after the link's delay. Everything due within that delay has already been sent and is
//!   in the socket, so the worker may run ahead of wall time by the shortest delay without missing a frame. A
//!   worker with a single cable gets all frames in order and may run ahead to the latest arrival it has seen.
//! * A stamp is the instant at which a frame's last bit left, and a transmission that has begun is never cancelled. So the
//!   worker sends a frame when its transmission begins, without another wake-up at its end. Fidelity counts the
//!   opposite cases: departures after their stamp, and frames that reach a worker which is already past their
//!   arrival.
//!
//! A bare cable has no stamps: a frame sent early arrives early. There the worker never runs ahead, and its
//! ticks are finer, because each tick adds its width to the lateness.

use crate::cable::lines::Lines;
use crate::clock::{Clock, Piece};
use proto::units::{Duration, Instant};

/// Tick as a share of the shortest frame time, in thousandths.
const TICK_THOUSANDTHS: u64 = 50;
/// The same on a host with more than two processes a core.
const TICK_OVERCOMMITTED_THOUSANDTHS: u64 = 110;
/// The same on cables without stamps.
const TICK_BARE_THOUSANDTHS: u64 = 20;
/// Limit of running ahead as a share of the shortest frame time, in thousandths. On a long cable a larger lead
/// than two overcommitted ticks gains nothing, and fidelity judges lateness against it.
const AHEAD_THOUSANDTHS: u64 = 250;
/// Transmissions, of full frames, that a single cable may announce ahead of time; longer frames exist.
const LEAD_FRAMES: u64 = 4;

/// Whether `processes` processes are more than two a core of this host.
pub(crate) fn is_overcommitted(processes: usize) -> bool {
    processes > 2 * cores()
}

/// Whether `processes` processes are more than eight a core of this host. They wake each other so often that no
/// core sleeps long enough for a hypervisor to lend it out, and a core kept busy has to be interrupted for each
/// of them. Measured on two cores: keeping both awake helps 10 and 14 processes and harms 44.
pub fn is_heavily_overcommitted(processes: usize) -> bool {
    processes > 8 * cores()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The worker's pace, constant for a piece of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The distance of wake-ups, in fabric time.
    tick: Duration,
    /// Wake-ups lie on multiples of this: the same in nanoseconds of wall time.
    tick_ns: u64,
    /// How far the worker runs ahead of wall time, in fabric time.
    ahead: Duration,
    /// If all frames from outside this process come by one cable: how far beyond `ahead` the worker follows their
    /// arrivals. No honest stamp is further in the future than the end of a transmission that has begun.
    lead: Option<Duration>,
}

impl Pace {
    /// The pace for the cables of `lines`. `stamped`: frames carry stamps. `overcommitted`: see
    /// [`is_overcommitted`].
    pub fn new(clock: &Clock, lines: &Lines, stamped: bool, overcommitted: bool) -> Pace {
        let shortest = lines.all_outgoing().map(|line| line.frame_time).min().unwrap_or_default();
        let share = |thousandths| Duration::from_ps(shortest.as_ps() / 1_000 * thousandths);
        let tick = match (stamped, overcommitted) {
            (false, _) => TICK_BARE_THOUSANDTHS,
            (true, false) => TICK_THOUSANDTHS,
            (true, true) => TICK_OVERCOMMITTED_THOUSANDTHS,
        };
        let delays = lines.all_outgoing().filter(|line| line.is_by_socket()).map(|line| line.delay);
        let ahead_max = share(if stamped { AHEAD_THOUSANDTHS } else { 0 });
        let ahead = delays.min().map_or(ahead_max, |delay| delay.min(ahead_max));
        let tick = share(tick);
        let mut all = lines.all_outgoing();
        let only = all.next().filter(|_| all.next().is_none());
        let lead = only.map(|line| line.delay + line.frame_time * LEAD_FRAMES);
        Pace { tick, tick_ns: tick_ns(clock.piece(Instant::ZERO), tick), ahead, lead }
    }

    /// Follows the clock into the piece in force at `now`.
    pub fn follow(&mut self, clock: &Clock, now: Instant) {
        self.tick_ns = tick_ns(clock.piece(now), self.tick);
    }

    /// The instant up to which steps may be executed at `now`, when sockets have delivered arrivals up to
    /// `latest_arrival`.
    pub fn horizon(&self, now: Instant, latest_arrival: Instant) -> Instant {
        let ahead = now + self.ahead;
        self.lead.map_or(ahead, |lead| ahead.max(latest_arrival.min(ahead + lead)))
    }

    /// When to wake, in nanoseconds of wall time: for a departure at `departure`, or for any other step at
    /// `other`.
    pub fn wake_ns(&self, clock: &Clock, departure: Instant, other: Instant) -> u64 {
        let begin = Instant::from_ps(other.as_ps().saturating_sub(self.ahead.as_ps()));
        let due = departure.min(begin);
        clock.wall_ns_of(due).div_ceil(self.tick_ns).saturating_mul(self.tick_ns)
    }

    /// Until when frames may wait in a socket that was just found readable, in nanoseconds of wall time.
    pub(crate) fn read_by_ns(&self, now_ns: u64) -> u64 {
        if self.lead.is_some() {
            return now_ns;
        }
        now_ns.div_ceil(self.tick_ns).saturating_mul(self.tick_ns)
    }
}

fn tick_ns(piece: &Piece, tick: Duration) -> u64 {
    u64::try_from(piece.wall(tick).as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockChange;
    use crate::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
    use proto::ids::PortNumber;
    use std::num::NonZeroU64;

    fn clock() -> Clock {
        Clock::new(0, NonZeroU64::MIN)
    }

    fn pace(ahead_ns: u64) -> Pace {
        Pace {
            tick: Duration::from_ns(60),
            tick_ns: 60,
            ahead: Duration::from_ns(ahead_ns),
            lead: None,
        }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_ps(ns * 1_000)
    }

    #[test]
    fn with_a_tick_of_lead_nothing_is_woken_for_late() {
        let pace = pace(60);
        for due in 100..1_000 {
            let wake = pace.wake_ns(&clock(), Instant::NEVER, at(due));
            assert!(wake < due && wake + 60 >= due, "{due} wakes at {wake}");
            assert!(pace.horizon(at(wake), at(0)) >= at(due));
        }
    }

    #[test]
    fn without_lead_nothing_is_woken_for_early_nor_a_whole_tick_late() {
        let lead = pace(60);
        for due in 0..500 {
            for wake in [
                pace(0).wake_ns(&clock(), Instant::NEVER, at(due)),
                lead.wake_ns(&clock(), at(due), Instant::NEVER),
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
            Pace::new(&clock(), &lines(delays), stamped, false).horizon(at(0), at(0))
        };
        assert_eq!(horizon(&[200, 125], true), at(125));
        assert_eq!(horizon(&[3_000, 4_000], true), at(250), "a quarter of a frame time at most");
        assert_eq!(horizon(&[200, 125], false), at(0), "bare cables have no stamps");
    }

    #[test]
    fn ticks_grow_with_the_dilation() {
        let mut clock = clock();
        let mut pace = Pace::new(&clock, &lines(&[200]), true, false);
        assert_eq!(pace.tick_ns, 50);
        clock.change(ClockChange { at: at(500), dilation: NonZeroU64::new(8).expect("not zero") });
        pace.follow(&clock, at(499));
        assert_eq!(pace.tick_ns, 50);
        pace.follow(&clock, at(500));
        assert_eq!(pace.tick_ns, 400);
    }

    #[test]
    fn a_single_cable_is_followed_as_far_as_it_was_heard() {
        let single = Pace { lead: Some(Duration::from_ns(1_000)), ..pace(10) };
        assert_eq!(single.horizon(at(100), at(500)), at(500));
        assert_eq!(single.horizon(at(100), at(50)), at(110));
        assert_eq!(pace(10).horizon(at(100), at(500)), at(110));
        assert_eq!(single.horizon(at(100), Instant::NEVER), at(1_110), "a stamp of 2^64 - 1 ps");
        let lead = |delays: &[u64]| Pace::new(&clock(), &lines(delays), true, false).lead;
        assert_eq!(lead(&[200]), Some(Duration::from_ns(4_200)));
        assert_eq!(lead(&[200, 200]), None);
    }
}
