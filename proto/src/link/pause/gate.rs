//! The gate: a timer a priority, and until it runs out no frame of that priority starts.

use super::{each, quanta};
use crate::counters::Condition;
use crate::ids::VirtualLane;
use crate::units::{BitRate, Duration, Instant};
use crate::wire::ethernet::Pfc;

/// One priority's timer.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// Holds from when the pause is obeyed.
    silence: Condition,
    /// When it runs out, while it runs.
    until: Instant,
    /// When the latest pause ended.
    opened_at: Instant,
    /// Pauses that ended, by XON or by themselves.
    transitions: u64,
}

/// Eight timers that know nothing of each other.
#[derive(Clone, Debug)]
pub(super) struct PauseGate {
    rate: BitRate,
    response: Duration,
    timers: [Timer; Pfc::PRIORITIES],
    /// The priorities whose timers run.
    running: u8,
    /// The earliest of their ends.
    next_expiry: Instant,
}

impl PauseGate {
    pub(super) fn new(rate: BitRate, response: Duration) -> PauseGate {
        let timers = [Timer::default(); Pfc::PRIORITIES];
        PauseGate { rate, response, timers, running: 0, next_expiry: Instant::NEVER }
    }

    /// A pause of `time` quanta arrived; true if none held before. One that arrives during another
    /// takes its place, be it longer or shorter.
    ///
    /// It is obeyed, and its time begins, once the response time has passed. One that carries
    /// another on leaves no gap between the two.
    pub(super) fn silence(&mut self, priority: usize, time: u16, arrived: Instant) -> bool {
        let from = arrived + self.response;
        let timer = &mut self.timers[priority];
        timer.until = from + quanta(time, self.rate);
        let begins = timer.silence.begin(from);
        self.running |= 1 << priority;
        self.schedule();
        begins
    }

    /// XON; true if a pause held before.
    pub(super) fn release(&mut self, priority: usize, at: Instant) -> bool {
        let held = self.running >> priority & 1 == 1;
        if held {
            self.end(priority, at);
            self.schedule();
        }
        held
    }

    /// True while a pause of `lane` is heard of, obeyed already or not.
    pub(super) fn is_paused(&self, lane: VirtualLane) -> bool {
        self.running >> lane.get() & 1 == 1
    }

    /// From when on the present pause of `lane` is obeyed.
    pub(super) fn silent_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.timers[lane.index()].silence.since()
    }

    /// When the latest pause of `lane` ended.
    pub(super) fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.timers[lane.index()].opened_at
    }

    /// Time in which a priority was silent up to `now`, and how often that ended.
    pub(super) fn history(&self, priority: usize, now: Instant) -> (Duration, u64) {
        let timer = &self.timers[priority];
        (timer.silence.total(now), timer.transitions)
    }

    /// Frames of `lane` may start from `at` on, though its pause goes on.
    pub(super) fn opened(&mut self, lane: VirtualLane, at: Instant) {
        self.timers[lane.index()].opened_at = at;
    }

    /// No pause holds any more, and nothing starts before `at`.
    pub(super) fn forget(&mut self, at: Instant) {
        each(self.running).for_each(|priority| self.end(priority, at));
        self.timers.iter_mut().for_each(|timer| timer.opened_at = at);
        self.schedule();
    }

    fn end(&mut self, priority: usize, at: Instant) {
        let timer = &mut self.timers[priority];
        timer.silence.end(at);
        timer.opened_at = at;
        timer.transitions += 1;
        self.running &= !(1 << priority);
    }

    fn schedule(&mut self) {
        let ends = each(self.running).map(|priority| self.timers[priority].until);
        self.next_expiry = ends.min().unwrap_or(Instant::NEVER);
    }

    pub(super) fn next_expiry(&self) -> Instant {
        self.next_expiry
    }

    /// The earliest pauses that have run out by `now`, and when.
    pub(super) fn poll_expired(&mut self, now: Instant) -> Option<(Instant, u8)> {
        let at = self.next_expiry;
        if at > now {
            return None;
        }
        let over = |priority: &usize| self.timers[*priority].until == at;
        let expired = each(self.running).filter(over).fold(0, |all, priority| all | 1 << priority);
        each(expired).for_each(|priority| self.end(priority, at));
        self.schedule();
        Some((at, expired))
    }
}
