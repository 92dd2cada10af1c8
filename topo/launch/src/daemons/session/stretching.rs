//! The clock of a run while it runs: lateness comes in with heartbeats, changes of the clock go out to all daemons.
//!
//! No daemon acknowledges a change. It is announced for an instant far enough ahead. If a worker learns of it later, the
//! frames that it handles too late count as late, and without stamps the run is inconclusive (`emulation/src/driver/changes.rs`).

use super::Session;
use crate::daemons::elastic::Elastic;
use daemon::protocol::ToDaemon;
use emulation::clock::{Clock, ClockChange, monotonic_ns};
use emulation::fidelity::Recent;
use proto::units::Instant;
use std::num::NonZeroU64;

/// Time between two decisions: that between two heartbeats.
const INTERVAL_NS: u64 = 125_000_000;
/// Time from the announcement of a change until it takes effect: a base, and a share for each daemon. A worker reads at
/// least every 20 ms whether there is one.
const LEAD_NS: u64 = 150_000_000;
const LEAD_EACH_NS: u64 = 2_000_000;

/// The lateness that heartbeats bring, and the rule that judges it.
pub(super) struct Stretching {
    rule: Elastic,
    recent: Recent,
    interval_ends_ns: u64,
}

impl Stretching {
    /// For a run that begins with this dilation and ends at `stop`.
    pub fn new(estimate: u64, stop: Instant) -> Stretching {
        let run_ns = (stop.as_ps() / 1_000).saturating_mul(estimate);
        let (rule, recent) = (Elastic::new(estimate, run_ns), Recent::default());
        Stretching { rule, recent, interval_ends_ns: 0 }
    }

    /// Adds the lateness of one worker since its heartbeat before.
    pub fn heard(&mut self, recent: &Recent) {
        self.recent.merge(recent);
    }

    /// The change that the rule calls for at `now_ns` of wall time, if it can be in force before `stop`.
    fn change(
        &mut self,
        now_ns: u64,
        lead_ns: u64,
        clock: &Clock,
        stop: Instant,
    ) -> Option<ClockChange> {
        if now_ns < self.interval_ends_ns {
            return None;
        }
        self.interval_ends_ns = now_ns + INTERVAL_NS;
        let recent = std::mem::take(&mut self.recent);
        // Heartbeats of the dilation before still come in for the length of an interval.
        let settled = lead_ns + INTERVAL_NS;
        if clock.wall_ns_of(stop) <= now_ns + settled {
            return None;
        }
        let passed = clock.at_wall_ns(now_ns).as_ps().saturating_mul(1_000) / stop.as_ps().max(1);
        let dilation = NonZeroU64::new(self.rule.interval(now_ns, settled, &recent, passed)?)?;
        Some(ClockChange { at: clock.at_wall_ns(now_ns + lead_ns), dilation })
    }
}

impl Session {
    /// Changes `clock` and those of all daemons if the rule of elastic pace calls for it.
    pub(super) async fn stretch(&mut self, clock: &mut Clock, stop: Instant) {
        let lead_ns = LEAD_NS + LEAD_EACH_NS * self.daemons.len() as u64;
        let Some(stretching) = &mut self.stretching else { return };
        let Some(change) = stretching.change(monotonic_ns(), lead_ns, clock, stop) else { return };
        clock.change(change);
        for daemon in &mut self.daemons {
            // One that has ended is noticed where its messages are read.
            let _ = daemon.send(&ToDaemon::ChangeClock(change)).await;
        }
    }
}
