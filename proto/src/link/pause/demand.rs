//! The pause initiator: the priorities that the peer must pause, and those last announced to it.

use super::each;
use crate::counters::Condition;
use crate::units::{Duration, Instant};
use crate::wire::ethernet::Pfc;

/// The request for one priority.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Holds from XOFF to XON.
    pause: Condition,
    /// When XOFF must be repeated.
    refresh_at: Instant,
    /// Requests that ended.
    transitions: u64,
}

/// The wanted pauses beside the announced ones. A frame is due while the two differ. So one frame
/// announces all changes before its departure, and a change that was reverted is never announced.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// From one XOFF to its repetition.
    interval: Duration,
    wanted: u8,
    announced: u8,
    /// Since when the two differ, while they do.
    changed_at: Instant,
    requests: [Request; Pfc::PRIORITIES],
    /// The earliest repetition that is not due yet.
    next_refresh: Instant,
}

impl Demand {
    /// No requests. XOFF is repeated after `interval`.
    pub(super) fn new(interval: Duration) -> Demand {
        let request =
            Request { pause: Condition::default(), refresh_at: Instant::NEVER, transitions: 0 };
        Demand {
            interval,
            wanted: 0,
            announced: 0,
            changed_at: Instant::ZERO,
            requests: [request; Pfc::PRIORITIES],
            next_refresh: Instant::NEVER,
        }
    }

    /// Requests the pause of `wanted` and no others.
    pub(super) fn set(&mut self, wanted: u8, now: Instant) {
        if self.wanted == self.announced {
            self.changed_at = now;
        }
        self.wanted = wanted;
    }

    /// The priorities whose XOFF must be repeated by `now`.
    fn stale(&self, now: Instant) -> impl Iterator<Item = usize> {
        each(self.announced & self.wanted).filter(move |n| self.requests[*n].refresh_at <= now)
    }

    /// Since when a frame waits for the line at `now`, if one does.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.wanted | self.announced == 0 {
            return None;
        }
        let change = (self.wanted != self.announced).then_some(self.changed_at);
        let repetition = self.stale(now).map(|priority| self.requests[priority].refresh_at).min();
        change.into_iter().chain(repetition).min()
    }

    /// The XOFF and XON priorities of a frame that leaves at `at`; they count as announced.
    pub(super) fn announce(&mut self, at: Instant) -> (u8, u8) {
        let repeated = self.stale(at).fold(0, |all, priority| all | 1 << priority);
        let joined = self.wanted & !self.announced;
        let (xoff, xon) = (joined | repeated, self.announced & !self.wanted);
        for priority in each(xoff) {
            self.requests[priority].pause.begin(at);
            self.requests[priority].refresh_at = at + self.interval;
        }
        for priority in each(xon) {
            self.requests[priority].pause.end(at);
            self.requests[priority].refresh_at = Instant::NEVER;
            self.requests[priority].transitions += 1;
        }
        self.announced = self.wanted;
        self.schedule(at);
        (xoff, xon)
    }

    /// Discards what was announced before `at`.
    pub(super) fn forget(&mut self, at: Instant) {
        for priority in each(self.announced) {
            self.requests[priority].pause.end(at);
            self.requests[priority].refresh_at = Instant::NEVER;
            self.requests[priority].transitions += 1;
        }
        (self.announced, self.changed_at) = (0, at);
        self.schedule(at);
    }

    fn schedule(&mut self, now: Instant) {
        let coming = each(self.announced).map(|priority| self.requests[priority].refresh_at);
        self.next_refresh = coming.filter(|at| *at > now).min().unwrap_or(Instant::NEVER);
    }

    pub(super) fn next_refresh(&self) -> Instant {
        self.next_refresh
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next_refresh <= now {
            self.schedule(now);
        }
    }

    /// The time for which a pause has been requested up to `now`, and the number of ended requests.
    pub(super) fn history(&self, priority: usize, now: Instant) -> (Duration, u64) {
        let request = &self.requests[priority];
        (request.pause.total(now), request.transitions)
    }
}
