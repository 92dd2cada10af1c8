//! Elastic pace: the rule by which a run that falls behind stretches its clock. A value: it reads no clock and sends
//! nothing.
//!
//! ```text
//!            late in two intervals that are no neighbours
//!   STEADY ──────────────────────────────────────────────▶ stretch by p99 over the goal ──┐
//!    ▲  ▲ │ calm for some time, and long after a stretch                                  │
//!    │  │ └─────────────────────────────▶ tighten to three quarters ──┐                   │
//!    │  └────────────── SETTLING until the change is in force ◀───────┴───────────────────┘
//! ```
//!
//! An interval is *late* if one departure in a hundred is later than half of what a run may be. Two late intervals side
//! by side may be one stall, which a run survives and which no dilation would shorten. A lateness in wall time hardly
//! depends on the dilation, so it falls in frame times as the dilation grows: the rule computes the new dilation and does
//! not feel its way. A stretch too many costs wall time and one too few the run, so it stretches at once and tightens
//! slowly. Each stretch that a tightening has provoked doubles the time until the next tightening: there is no oscillation.

use emulation::fidelity::Recent;
use emulation::fidelity::verdict::LATENESS_LIMIT;

/// The p99 that a stretch aims at, and above which an interval is late, in thousandths of a frame time.
const GOAL: u64 = LATENESS_LIMIT / 2;
/// The p99 up to which an interval is calm. Three quarters of the dilation make it a third larger at most.
const CALM: u64 = LATENESS_LIMIT / 5;
/// The least number of departures that are judged together: a 99th percentile of fewer says nothing.
const COUNT_MIN: u64 = 200;
/// Intervals that are remembered.
const MEMORY: usize = 5;
/// The least and the largest factor of one stretch, in percent.
const STRETCH_PERCENT: (u64, u64) = (150, 800);
/// The largest dilation over that of the start. A host that needs more is not meant for live runs.
pub(crate) const STRETCH_MAX: u64 = 16;
/// The factor of one tightening, in percent.
const TIGHTEN_PERCENT: u64 = 75;
/// How long a run must be calm before it tightens.
const CALM_NS: u64 = 10_000_000_000;
/// The first tightening comes no sooner than this after a stretch.
const HOLD_NS: u64 = 30_000_000_000;

/// The state of the rule for one run.
#[derive(Clone, Debug)]
pub(crate) struct Elastic {
    /// The dilation of the start: that which this host needs when it is quiet.
    estimate: u64,
    /// The dilation announced last.
    dilation: u64,
    /// Lateness that is not judged yet.
    open: Recent,
    /// The p99 of the latest intervals under this dilation, the newest last.
    p99s: Vec<u64>,
    /// Wall time before which intervals may belong to the dilation before.
    settled_ns: u64,
    /// Wall time since which all intervals are calm.
    calm_since_ns: u64,
    /// Wall time before which nothing is tightened.
    held_until_ns: u64,
    hold_ns: u64,
    /// The last change was a tightening.
    has_tightened: bool,
}

impl Elastic {
    /// The rule for a run that begins with this dilation.
    pub fn new(estimate: u64) -> Elastic {
        Elastic {
            estimate,
            dilation: estimate,
            open: Recent::default(),
            p99s: Vec::new(),
            settled_ns: 0,
            calm_since_ns: 0,
            held_until_ns: 0,
            hold_ns: HOLD_NS,
            has_tightened: false,
        }
    }

    /// An interval ends at `now_ns` of wall time, in which all workers together were as late as `recent`. Returns the
    /// dilation to change to, if any; it must be in force `lead_ns` later.
    pub fn interval(&mut self, now_ns: u64, lead_ns: u64, recent: &Recent) -> Option<u64> {
        if now_ns < self.settled_ns {
            return None;
        }
        self.open.merge(recent);
        if self.open.count < COUNT_MIN {
            return None;
        }
        let p99 = std::mem::take(&mut self.open).p99();
        if p99 > CALM {
            self.calm_since_ns = now_ns;
        }
        self.p99s.push(p99);
        if self.p99s.len() > MEMORY {
            self.p99s.remove(0);
        }
        let next = self.stretched().or_else(|| self.tightened(now_ns))?;
        self.change(next, now_ns, now_ns + lead_ns);
        Some(next)
    }

    /// The larger dilation that the latest intervals call for.
    fn stretched(&self) -> Option<u64> {
        let (newest, before) = self.p99s.split_last()?;
        let (_, before) = before.split_last()?;
        let p99 = (*newest).min(before.iter().copied().max()?);
        let (least, most) = STRETCH_PERCENT;
        let percent = (p99 * 100 / GOAL).clamp(least, most);
        let next = (self.dilation * percent).div_ceil(100).min(self.estimate * STRETCH_MAX);
        (p99 > GOAL && next > self.dilation).then_some(next)
    }

    /// The smaller dilation that a calm host permits.
    fn tightened(&self, now_ns: u64) -> Option<u64> {
        let next = (self.dilation * TIGHTEN_PERCENT).div_ceil(100).max(self.estimate);
        let is_calm = now_ns >= self.held_until_ns && now_ns >= self.calm_since_ns + CALM_NS;
        (is_calm && next < self.dilation).then_some(next)
    }

    fn change(&mut self, next: u64, now_ns: u64, settled_ns: u64) {
        let stretches = next > self.dilation;
        if stretches {
            self.hold_ns *= if self.has_tightened { 2 } else { 1 };
            self.held_until_ns = now_ns + self.hold_ns;
        }
        self.has_tightened = !stretches;
        self.dilation = next;
        self.p99s.clear();
        (self.settled_ns, self.calm_since_ns) = (settled_ns, settled_ns);
    }
}

#[cfg(test)]
mod tests;
