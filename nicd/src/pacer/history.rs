//! Rate and gap of a pacing group over time: integrals over the run, and extremes and integrals per bin.

use proto::congestion::ReactionState;
use proto::counters::{FlowReading, Gauge, Span};
use proto::units::{Duration, Instant};

/// Gap in ps and rate in bit/s over time.
pub struct PacingHistory {
    pub gap: PacingGauge,
    pub rate: PacingGauge,
}

impl PacingHistory {
    /// A record that has held `state` since `since`.
    pub fn new(state: &ReactionState, since: Instant) -> PacingHistory {
        PacingHistory {
            gap: PacingGauge::new(state.gap.as_ps(), since),
            rate: PacingGauge::new(state.rate.get(), since),
        }
    }

    /// The state is `state` from `now` on.
    pub fn set(&mut self, state: &ReactionState, now: Instant) {
        self.gap.gauge.set(state.gap.as_ps(), now);
        self.rate.gauge.set(state.rate.get(), now);
    }

    /// The state changes for the first time, at `now`. It has been `state` so far; the current bin has lasted
    /// `age`.
    pub fn on_first_move(&mut self, state: &ReactionState, age: Duration, now: Instant) {
        self.gap.on_first_move(state.gap.as_ps(), age, now);
        self.rate.on_first_move(state.rate.get(), age, now);
    }

    /// Copies the gauges into `reading`, closed at `now`.
    pub fn read(&mut self, now: Instant, reading: &mut FlowReading) {
        self.gap.gauge.close(now);
        self.rate.gauge.close(now);
        reading.gap = self.gap.gauge.into();
        reading.rate = self.rate.gauge.into();
    }
}

/// A gauge, and its integral at the start of the current bin. That integral is negative if the gauge began
/// within the bin: a flow counts for the whole bin in which it begins, as flows do that are reported
/// together.
pub struct PacingGauge {
    gauge: Gauge,
    before: i128,
}

impl PacingGauge {
    pub fn new(value: u64, now: Instant) -> PacingGauge {
        let gauge = Gauge { value, min: value, max: value, since: now, ..Gauge::default() };
        PacingGauge { gauge, before: 0 }
    }

    /// The value changes for the first time, at `now`. It has been `level` so far; the current bin has lasted
    /// `age`.
    pub fn on_first_move(&mut self, level: u64, age: Duration, now: Instant) {
        let in_bin = u128::from(level) * u128::from(age.as_ps());
        self.before = self.gauge.integral_at(now).cast_signed() - in_bin.cast_signed();
    }

    /// Extremes and integral over the bin that ends at `now`.
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
