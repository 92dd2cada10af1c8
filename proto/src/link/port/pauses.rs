//! Effects of pauses and outages on the lanes of an Ethernet port: ended holds and logged events.

use super::LinkPort;
use super::state::PortState;
use crate::events::{Direction, EventKind, EventLog};
use crate::ids::VirtualLane;
use crate::link::flow_control::{FlowControl, PauseControl};
use crate::link::pause::{ALL, PauseChange, each};
use crate::units::{Bytes, Instant};

impl LinkPort {
    /// Ends the pauses that expired by `now`, each at its own instant.
    #[inline]
    pub(super) fn end_pauses(&mut self, now: Instant, log: &mut EventLog) {
        if let FlowControl::Pause(pause) = &mut self.flow {
            pause.end_expired(&mut self.state, now, log);
        }
    }
}

impl PauseControl {
    pub(super) fn end_expired(&mut self, state: &mut PortState, now: Instant, log: &mut EventLog) {
        while let Some((at, priorities)) = self.flow.poll_expired(now) {
            state.log_pause(at, priorities, EventKind::PauseExpired { priorities }, log);
            state.end_holds(priorities, at, log);
        }
    }

    /// Applies the outages that began or ended by `now`. Each cancels all pauses; from then on only the
    /// link itself holds frames back.
    pub(super) fn apply_outages(
        &mut self,
        state: &mut PortState,
        now: Instant,
        log: &mut EventLog,
    ) {
        while let Some(at) = self.outages.poll_edge(now) {
            self.forget_pauses(state, at, log);
        }
    }

    /// The other end of the link is gone, or back.
    pub(super) fn sever(
        &mut self,
        is_severed: bool,
        state: &mut PortState,
        now: Instant,
        log: &mut EventLog,
    ) {
        self.outages.is_severed = is_severed;
        self.forget_pauses(state, now, log);
    }

    fn forget_pauses(&mut self, state: &mut PortState, at: Instant, log: &mut EventLog) {
        self.flow.forget(at);
        state.end_holds(ALL, at, log);
    }
}

impl PortState {
    /// Logs what a received PAUSE or PFC frame changed at `at`, and ends the holds of resumed
    /// priorities.
    pub(super) fn apply_received(&mut self, change: PauseChange, at: Instant, log: &mut EventLog) {
        self.log_change(change, Direction::Rx, at, log);
        self.end_holds(change.xon, at, log);
    }

    /// No pause holds `priorities` from `at` on.
    fn end_holds(&mut self, priorities: u8, at: Instant, log: &mut EventLog) {
        for priority in each(priorities) {
            self.end_hold(VirtualLane::truncate(priority as u8), at, log);
        }
    }

    /// Logs XOFF and XON as sent or received.
    pub(super) fn log_change(
        &self,
        change: PauseChange,
        dir: Direction,
        at: Instant,
        log: &mut EventLog,
    ) {
        let PauseChange { xoff, quanta, xon } = change;
        let fill = |priorities: u8| match dir {
            Direction::Tx => {
                let occupied = each(priorities).map(|lane| self.lanes[lane].in_queue.value);
                Bytes::new(occupied.sum())
            }
            // A received frame concerns the peer's buffer, which is unknown here.
            Direction::Rx => Bytes::ZERO,
        };
        let kind = EventKind::Xoff { priorities: xoff, quanta, fill: fill(xoff), dir };
        self.log_pause(at, xoff, kind, log);
        let kind = EventKind::Xon { priorities: xon, fill: fill(xon), dir };
        self.log_pause(at, xon, kind, log);
    }

    /// Logs an event of `priorities` at the lowest of them; nothing for an empty set.
    fn log_pause(&self, at: Instant, priorities: u8, kind: EventKind, log: &mut EventLog) {
        if priorities != 0 {
            let lowest = VirtualLane::truncate(priorities.trailing_zeros() as u8);
            self.log(log, at, lowest, kind);
        }
    }
}
