//! What pauses do to the lanes of a port of Ethernet: who waits no longer, and what is told of it.

use super::LinkPort;
use crate::events::{Direction, EventKind, EventLog};
use crate::ids::VirtualLane;
use crate::link::flow::Flow;
use crate::link::pause::{ALL, Said, each};
use crate::units::{Bytes, Instant};

impl LinkPort {
    /// Ends the pauses that have run out by `now`, each at its own instant.
    #[inline]
    pub(super) fn end_pauses(&mut self, now: Instant, log: &mut EventLog) {
        if matches!(self.flow, Flow::Pause(_)) {
            self.end_expired(now, log);
        }
    }

    fn end_expired(&mut self, now: Instant, log: &mut EventLog) {
        while let Flow::Pause(pauses) = &mut self.flow
            && let Some((at, priorities)) = pauses.flow.poll_expired(now)
        {
            self.log_pause(at, priorities, EventKind::PauseExpired { priorities }, log);
            self.free_all(priorities, at, log);
        }
    }

    /// The link has gone down or come up by `now`: no pause of before holds, and what waits does so for
    /// the link alone.
    pub(super) fn meet_outages(&mut self, now: Instant, log: &mut EventLog) {
        while let Flow::Pause(pauses) = &mut self.flow
            && let Some(at) = pauses.outages.poll_edge(now)
        {
            pauses.flow.forget(at);
            self.free_all(ALL, at, log);
        }
    }

    /// A frame of the peer changed this much at `at`.
    pub(super) fn obey(&mut self, changed: Said, at: Instant, log: &mut EventLog) {
        self.log_said(changed, Direction::Rx, at, log);
        self.free_all(changed.xon, at, log);
    }

    /// No pause forbids `priorities` any more since `at`.
    fn free_all(&mut self, priorities: u8, at: Instant, log: &mut EventLog) {
        for priority in each(priorities) {
            self.free(VirtualLane::truncate(priority as u8), at, log);
        }
    }

    /// Logs XOFF and XON as sent or received.
    pub(super) fn log_said(&self, said: Said, dir: Direction, at: Instant, log: &mut EventLog) {
        let Said { xoff, quanta, xon } = said;
        let fill = |priorities: u8| match dir {
            Direction::Tx => {
                let standing = each(priorities).map(|lane| self.lanes[lane].in_queue.value);
                Bytes::new(standing.sum())
            }
            // The buffer that it is about is the peer's.
            Direction::Rx => Bytes::ZERO,
        };
        let kind = EventKind::Xoff { priorities: xoff, quanta, fill: fill(xoff), dir };
        self.log_pause(at, xoff, kind, log);
        let kind = EventKind::Xon { priorities: xon, fill: fill(xon), dir };
        self.log_pause(at, xon, kind, log);
    }

    /// Logs what happened to `priorities`, if there are any, at the lowest of them.
    fn log_pause(&self, at: Instant, priorities: u8, kind: EventKind, log: &mut EventLog) {
        if priorities != 0 {
            self.log(log, at, priorities.trailing_zeros() as u8, kind);
        }
    }
}
