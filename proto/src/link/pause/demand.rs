//! The demand: which priorities the peer shall be silent on, and what it has been told of that.

use super::each;
use crate::counters::Condition;
use crate::units::{Duration, Instant};
use crate::wire::ethernet::Pfc;

/// What one priority is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Holds from XOFF to XON.
    silence: Condition,
    /// When XOFF is to be sent again.
    refresh_at: Instant,
    /// Silences that ended.
    transitions: u64,
}

/// What is wanted of the peer, beside what it was told. Where the two differ a frame is due, so one
/// frame speaks for all that changed before it left, and what changed back is never spoken of.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// From one XOFF to the next.
    interval: Duration,
    wanted: u8,
    told: u8,
    /// Since when the two differ, while they do.
    changed_at: Instant,
    asked: [Asked; Pfc::PRIORITIES],
    /// The earliest repetition that no frame waits for already.
    next_refresh: Instant,
}

impl Demand {
    /// Nothing is wanted, and nothing was told. XOFF is repeated after `interval`.
    pub(super) fn new(interval: Duration) -> Demand {
        let asked =
            Asked { silence: Condition::default(), refresh_at: Instant::NEVER, transitions: 0 };
        Demand {
            interval,
            wanted: 0,
            told: 0,
            changed_at: Instant::ZERO,
            asked: [asked; Pfc::PRIORITIES],
            next_refresh: Instant::NEVER,
        }
    }

    /// The peer shall be silent on `wanted` alone.
    pub(super) fn set(&mut self, wanted: u8, now: Instant) {
        if self.wanted == self.told {
            self.changed_at = now;
        }
        self.wanted = wanted;
    }

    /// The priorities whose XOFF is to be repeated by `now`.
    fn stale(&self, now: Instant) -> impl Iterator<Item = usize> {
        each(self.told & self.wanted).filter(move |n| self.asked[*n].refresh_at <= now)
    }

    /// Since when a frame waits for the line at `now`, if one does.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.wanted | self.told == 0 {
            return None;
        }
        let change = (self.wanted != self.told).then_some(self.changed_at);
        let repetition = self.stale(now).map(|priority| self.asked[priority].refresh_at).min();
        change.into_iter().chain(repetition).min()
    }

    /// What a frame that leaves at `at` says, XOFF and XON; the peer has been told then.
    pub(super) fn tell(&mut self, at: Instant) -> (u8, u8) {
        let repeated = self.stale(at).fold(0, |all, priority| all | 1 << priority);
        let joined = self.wanted & !self.told;
        let (xoff, xon) = (joined | repeated, self.told & !self.wanted);
        for priority in each(xoff) {
            self.asked[priority].silence.begin(at);
            self.asked[priority].refresh_at = at + self.interval;
        }
        for priority in each(xon) {
            self.asked[priority].silence.end(at);
            self.asked[priority].refresh_at = Instant::NEVER;
            self.asked[priority].transitions += 1;
        }
        self.told = self.wanted;
        self.schedule(at);
        (xoff, xon)
    }

    /// The peer knows nothing of what it was told before `at`.
    pub(super) fn forget(&mut self, at: Instant) {
        for priority in each(self.told) {
            self.asked[priority].silence.end(at);
            self.asked[priority].refresh_at = Instant::NEVER;
            self.asked[priority].transitions += 1;
        }
        (self.told, self.changed_at) = (0, at);
        self.schedule(at);
    }

    fn schedule(&mut self, now: Instant) {
        let coming = each(self.told).map(|priority| self.asked[priority].refresh_at);
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

    /// Time in which a priority was asked to be silent up to `now`, and how often that ended.
    pub(super) fn history(&self, priority: usize, now: Instant) -> (Duration, u64) {
        let asked = &self.asked[priority];
        (asked.silence.total(now), asked.transitions)
    }
}
