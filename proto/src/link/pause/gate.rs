//! The pause receiver: a timer per priority. While it runs, no frame of that priority starts.

use super::{each, quanta};
use crate::counters::Condition;
use crate::ids::VirtualLane;
use crate::units::{BitRate, Duration, Instant};
use crate::wire::ethernet::Pfc;

/// The timer of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// Holds from the end of the response time to the end of the pause.
    paused: Condition,
    /// When the timer expires, while it runs.
    until: Instant,
    /// When the latest pause ended.
    opened_at: Instant,
    /// Pauses that ended, by XON or by expiry.
    transitions: u64,
}

/// Eight independent timers.
#[derive(Clone, Debug)]
pub(super) struct PauseGate {
    rate: BitRate,
    response: Duration,
    timers: [Timer; Pfc::PRIORITIES],
    /// The priorities whose timers run.
    running: u8,
    /// The earliest expiry of a running timer.
    next_expiry: Instant,
}

impl PauseGate {
    pub(super) fn new(rate: BitRate, response: Duration) -> PauseGate {
        let timers = [Timer::default(); Pfc::PRIORITIES];
        PauseGate { rate, response, timers, running: 0, next_expiry: Instant::NEVER }
    }

    /// Applies a pause of `time` quanta that arrived at `arrived`; true if no pause was in force. A later
    /// pause replaces the present one, be it longer or shorter.
    ///
    /// The pause and its time begin after the response time. A pause that follows another leaves no gap
    /// between the two.
    pub(super) fn pause(&mut self, priority: usize, time: u16, arrived: Instant) -> bool {
        let from = arrived + self.response;
        let timer = &mut self.timers[priority];
        timer.until = from + quanta(time, self.rate);
        let begins = timer.paused.begin(from);
        self.running |= 1 << priority;
        self.schedule();
        begins
    }

    /// Applies XON; true if a pause was in force.
    pub(super) fn release(&mut self, priority: usize, at: Instant) -> bool {
        let held = self.running >> priority & 1 == 1;
        if held {
            self.end(priority, at);
            self.schedule();
        }
        held
    }

    /// Whether a pause of `lane` is in force, even within the response time.
    pub(super) fn is_paused(&self, lane: VirtualLane) -> bool {
        self.running >> lane.get() & 1 == 1
    }

    /// The end of the response time of the present pause of `lane`.
    pub(super) fn paused_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.timers[lane.index()].paused.since()
    }

    /// When the latest pause of `lane` ended.
    pub(super) fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.timers[lane.index()].opened_at
    }

    /// The time for which a priority has been paused up to `now`, and the number of ended pauses.
    pub(super) fn history(&self, priority: usize, now: Instant) -> (Duration, u64) {
        let timer = &self.timers[priority];
        (timer.paused.total(now), timer.transitions)
    }

    /// Lets frames of `lane` start from `at` on, although its timer still runs.
    pub(super) fn opened(&mut self, lane: VirtualLane, at: Instant) {
        self.timers[lane.index()].opened_at = at;
    }

    /// Ends all pauses; no frame starts before `at`.
    pub(super) fn forget(&mut self, at: Instant) {
        each(self.running).for_each(|priority| self.end(priority, at));
        self.timers.iter_mut().for_each(|timer| timer.opened_at = at);
        self.schedule();
    }

    fn end(&mut self, priority: usize, at: Instant) {
        let timer = &mut self.timers[priority];
        timer.paused.end(at);
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

    /// The earliest pauses that expired by `now`, and when.
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
