//! Elastic pace: the rule by which a run that falls behind stretches its clock. A value: it reads no clock and sends
//! nothing.
//!
//! ```text
//!            late, and not by one stall alone
//!   STEADY ──────────────────────────────────────────────▶ stretch by p99 over the goal ──┐
//!    ▲  ▲ │ calm, and long after a stretch                                                │
//!    │  │ └─────────────────────────────▶ tighten to three quarters ──┐                   │
//!    │  └────────────── SETTLING until the change is in force ◀───────┴───────────────────┘
//! ```
//!
//! A run may have one departure in a hundred that is later than the limit, so the rule judges as the run is judged: by the p99
//! of all departures, here of the last seconds. A host that stalls for some milliseconds every second or two is punctual in
//! that sense, and a stretch would cost wall time for nothing. A run is *late* if the p99 of three seconds is above half of
//! the limit, and a quarter of the late departures that the whole run may have has been used: a short disturbance of a long
//! run is paid from that allowance. One stall is not a reason, because no dilation would shorten it: there must be two late
//! intervals that are not neighbours. A lateness in wall time hardly depends on the dilation, so it falls in frame times as the dilation grows: the
//! rule computes the new dilation and does not feel its way. A stretch too many costs wall time and one too few the run, so it
//! stretches at once and tightens slowly. Each stretch that a tightening has provoked doubles the time until the next
//! tightening: there is no oscillation. A tightening that fails costs seconds with late departures, more than a run of some
//! minutes may have, so only a longer run tightens.

use emulation::fidelity::Recent;
use emulation::fidelity::verdict::LATENESS_LIMIT;
use std::collections::VecDeque;

/// The p99 that a stretch aims at, and above which a time is late, in thousandths of a frame time.
const GOAL: u64 = LATENESS_LIMIT / 2;
/// A time is calm if no more than one departure in so many is later than this. One in a hundred would be the limit itself:
/// beside busy processes a little less time makes the p99 jump from nothing to the length of their time slices.
const CALM: u64 = LATENESS_LIMIT / 5;
const CALM_ONE_IN: u64 = 200;
/// A stretch is due once one departure in so many of the whole run is late: a quarter of what may be.
const USED_ONE_IN: u64 = 400;
/// The least number of departures of an interval: a 99th percentile of fewer says nothing.
const COUNT_MIN: u64 = 200;
/// The least number of intervals that are judged together.
const INTERVALS_MIN: usize = 4;
/// The time at the beginning that is not judged: processes touch their memory for the first time.
const BEGINNING_NS: u64 = 250_000_000;
/// How far back lateness counts for a stretch.
const LATE_NS: u64 = 3_000_000_000;
/// The least and the largest factor of one stretch, in percent.
const STRETCH_PERCENT: (u64, u64) = (150, 800);
/// The largest dilation over that of the start. A host that needs more is not meant for live runs.
pub(crate) const STRETCH_MAX: u64 = 16;
/// The factor of one tightening, in percent.
const TIGHTEN_PERCENT: u64 = 75;
/// How long a run must be calm before it tightens.
const CALM_NS: u64 = 10_000_000_000;
/// Only a run whose whole wall time is at least this tightens. One that fails takes some 5 s with up to a fifth of the
/// departures late: a second, and so a quarter of what a run of 400 s may have.
const TIGHTENS_FROM_NS: u64 = 400_000_000_000;
/// The first tightening comes no sooner than this after a stretch.
const HOLD_NS: u64 = 30_000_000_000;

/// The state of the rule for one run.
#[derive(Clone, Debug)]
pub(crate) struct Elastic {
    /// The dilation of the start: that which this host needs when it is quiet.
    estimate: u64,
    /// Wall time of the whole run with this dilation.
    run_ns: u64,
    /// The dilation announced last.
    dilation: u64,
    /// Lateness of the whole run so far.
    all: Recent,
    /// Lateness that is not judged yet.
    open: Recent,
    /// The intervals under this dilation of the last ten seconds, each with its end, the newest last.
    intervals: VecDeque<(u64, Recent)>,
    /// Wall time before which intervals may belong to the dilation before; unknown before the first interval.
    settled_ns: Option<u64>,
    /// Wall time before which nothing is tightened.
    held_until_ns: u64,
    hold_ns: u64,
    /// The last change was a tightening.
    has_tightened: bool,
}

impl Elastic {
    /// The rule for a run that begins with this dilation, and would take `run_ns` of wall time with it.
    pub fn new(estimate: u64, run_ns: u64) -> Elastic {
        Elastic {
            estimate,
            run_ns,
            dilation: estimate,
            all: Recent::default(),
            open: Recent::default(),
            intervals: VecDeque::new(),
            settled_ns: None,
            held_until_ns: 0,
            hold_ns: HOLD_NS,
            has_tightened: false,
        }
    }

    /// An interval ends at `now_ns` of wall time, in which all workers together were as late as `recent`; `passed` is the
    /// part of the run's fabric time that has passed, in thousandths. Returns the dilation to change to, if any; it must be
    /// in force `lead_ns` later.
    pub fn interval(
        &mut self,
        now_ns: u64,
        lead_ns: u64,
        recent: &Recent,
        passed: u64,
    ) -> Option<u64> {
        if now_ns < *self.settled_ns.get_or_insert(now_ns + BEGINNING_NS) {
            return None;
        }
        self.open.merge(recent);
        self.all.merge(recent);
        if self.open.count < COUNT_MIN {
            return None;
        }
        self.intervals.push_back((now_ns, std::mem::take(&mut self.open)));
        while self.intervals.front().is_some_and(|(end, _)| end + CALM_NS < now_ns) {
            self.intervals.pop_front();
        }
        let stretched = self.stretched(now_ns).filter(|_| self.has_used_allowance(passed));
        let next = stretched.or_else(|| self.tightened(now_ns))?;
        self.change(next, now_ns, now_ns + lead_ns);
        Some(next)
    }

    /// The larger dilation that the last seconds call for.
    fn stretched(&self, now_ns: u64) -> Option<u64> {
        let last = self.intervals.iter().rev().take_while(|(end, _)| end + LATE_NS > now_ns);
        let last: Vec<&Recent> = last.map(|(_, recent)| recent).collect();
        let is_late = |recent: &&Recent| recent.p99() > GOAL;
        let (first, newest) = (last.iter().rposition(is_late)?, last.iter().position(is_late)?);
        let p99 = together(last.iter().copied()).p99();
        let (least, most) = STRETCH_PERCENT;
        let percent = (p99 * 100 / GOAL).clamp(least, most);
        let next = (self.dilation * percent).div_ceil(100).min(self.estimate * STRETCH_MAX);
        let is_due = last.len() >= INTERVALS_MIN && first > newest + 1 && p99 > GOAL;
        (is_due && next > self.dilation).then_some(next)
    }

    /// Whether late departures have used their part, if what is to come is as much as `passed` lets expect.
    fn has_used_allowance(&self, passed: u64) -> bool {
        let mut whole = self.all.clone();
        whole.count = whole.count.saturating_mul(1_000) / passed.max(1);
        whole.exceeded_by_one_in(USED_ONE_IN) > GOAL
    }

    /// The smaller dilation that a calm host permits.
    fn tightened(&self, now_ns: u64) -> Option<u64> {
        let next = (self.dilation * TIGHTEN_PERCENT).div_ceil(100).max(self.estimate);
        let all = together(self.intervals.iter().map(|(_, recent)| recent));
        let is_calm = all.exceeded_by_one_in(CALM_ONE_IN) <= CALM;
        let has_lasted = self.settled_ns.is_some_and(|settled| now_ns >= settled + CALM_NS);
        let whole_ns =
            u128::from(self.run_ns) * u128::from(next) / u128::from(self.estimate.max(1));
        let is_long = whole_ns >= TIGHTENS_FROM_NS.into();
        let is_due = is_calm && is_long && has_lasted && now_ns >= self.held_until_ns;
        (is_due && next < self.dilation).then_some(next)
    }

    fn change(&mut self, next: u64, now_ns: u64, settled_ns: u64) {
        let stretches = next > self.dilation;
        if stretches {
            self.hold_ns *= if self.has_tightened { 2 } else { 1 };
            self.held_until_ns = now_ns + self.hold_ns;
        }
        self.has_tightened = !stretches;
        self.dilation = next;
        self.intervals.clear();
        self.settled_ns = Some(settled_ns);
    }
}

/// The lateness of several intervals.
fn together<'a>(intervals: impl Iterator<Item = &'a Recent>) -> Recent {
    let mut all = Recent::default();
    intervals.for_each(|recent| all.merge(recent));
    all
}

#[cfg(test)]
mod tests;
