//! Rate and gap of a pacing group over time: integrals for the run, extremes and integrals for bins.

use proto::congestion::ReactionState;
use proto::counters::{FlowReading, Gauge, Span};
use proto::units::{Duration, Instant};

/// What a group shows, over time.
pub struct PacingHistory {
    pub gap: PacingGauge,
    pub rate: PacingGauge,
}

impl PacingHistory {
    /// It has state `state` since then.
    pub fn new(state: &ReactionState, since: Instant) -> PacingHistory {
        PacingHistory {
            gap: PacingGauge::new(state.gap.as_ps(), since),
            rate: PacingGauge::new(state.rate.get(), since),
        }
    }

    /// It shows `state` from `now` on.
    pub fn set(&mut self, state: &ReactionState, now: Instant) {
        self.gap.gauge.set(state.gap.as_ps(), now);
        self.rate.gauge.set(state.rate.get(), now);
    }

    /// It begins to move at `now`, from `state`, in a bin as old as `age`.
    pub fn on_first_move(&mut self, state: &ReactionState, age: Duration, now: Instant) {
        self.gap.on_first_move(state.gap.as_ps(), age, now);
        self.rate.on_first_move(state.rate.get(), age, now);
    }

    /// Copies the account into a flow's reading, closed at `now`.
    pub fn read(&mut self, now: Instant, reading: &mut FlowReading) {
        self.gap.gauge.close(now);
        self.rate.gauge.close(now);
        reading.gap = self.gap.gauge;
        reading.rate = self.rate.gauge;
    }
}

/// A gauge, and its integral when the open bin began: negative where the gauge was not there yet. A flow counts
/// for the whole of the bin in which it begins, as those do that are told of together.
pub struct PacingGauge {
    gauge: Gauge,
    before: i128,
}

impl PacingGauge {
    pub fn new(value: u64, now: Instant) -> PacingGauge {
        let gauge = Gauge { value, min: value, max: value, since: now, ..Gauge::default() };
        PacingGauge { gauge, before: 0 }
    }

    /// The level moves at `now` for the first time; so far it has been `level`, in a bin as old as `age`.
    pub fn on_first_move(&mut self, level: u64, age: Duration, now: Instant) {
        let in_bin = u128::from(level) * u128::from(age.as_ps());
        self.before = self.gauge.integral_at(now).cast_signed() - in_bin.cast_signed();
    }

    /// What it has been in the bin that ends at `now`.
    pub fn read_bin(&mut self, now: Instant) -> Span {
        self.gauge.close(now);
        let Gauge { min, max, integral, .. } = self.gauge;
        Span { min, max, integral: integral.saturating_add_signed(-self.before) }
    }

    /// The next bin begins at `now`.
    pub fn begin_bin(&mut self, now: Instant) {
        self.gauge.close(now);
        self.gauge.restart_watermarks();
        self.before = self.gauge.integral.cast_signed();
    }
}
