//! Changes of the clock while the worker runs (elastic pace).
//!
//! The launcher announces a change for an instant that is some time ahead. Every process then maps fabric time to wall
//! time by the same pieces, so nothing that is computed or sent depends on the change. A worker that has read its clock
//! beyond that instant before it learned of the change has acted by a clock that was not in force. With stamps, what that
//! does is lateness and counts as such: each frame that it handles too late, and once the span itself. Without stamps the
//! arrivals in that span have wrong instants, which no lateness shows, so the run does not count.

use super::assignment::Change;
use super::{Supervisor, Worker};
use crate::clock::ClockChange;
use proto::units::Instant;
use serde::{Deserialize, Serialize};

/// Changes of the clock during a run, as one worker learned of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockChanges {
    /// All.
    pub learned: u64,
    /// Those that had taken effect already, on cables without stamps.
    pub late: u64,
}

impl Worker {
    /// Fabric time now. It does not run back, even if the worker learns late that the clock is stretched.
    pub(super) fn read_clock(&mut self) -> Instant {
        self.clock_read = self.clock_read.max(self.run.clock.now());
        self.pace.follow(&self.run.clock, self.clock_read);
        self.clock_read
    }

    /// Applies changes before the clock is read, so that a worker that slept has not acted by the old one.
    pub(super) fn learn_changes(&mut self, supervisor: &impl Supervisor) {
        while let Some(change) = supervisor.change() {
            match change {
                Change::Clock(change) => self.change_clock(change),
                Change::Gone(process) => self.part_from(process),
                Change::Replaced(process, peer, adapters) => self.meet(process, peer, &adapters),
            }
        }
    }

    fn change_clock(&mut self, change: ClockChange) {
        self.changes.learned += 1;
        if self.clock_read > change.at {
            self.count_late_change(change.at);
        }
        self.run.clock.change(change);
        self.run.exchange.change_clock(change);
    }

    /// The worker has acted by a clock that was not in force from `since` until now.
    fn count_late_change(&mut self, since: Instant) {
        if !self.run.exchange.is_stamped() {
            self.changes.late += 1;
        }
        let shortest = self.run.lines.all_outgoing().map(|line| line.frame_time).min();
        self.meter.handled_late(&self.run.clock, since, self.clock_read, shortest);
    }
}
