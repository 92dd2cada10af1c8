//! The reaction point: the rate of one flow, its target, and the stages of recovery.
//!
//! Rates are whole bit/s, each step rounded to the nearest: an error of at most half a bit/s. Each average
//! halves the earlier error and a cut does not add to it. [`super::alpha`] states the error of α.

use super::alpha::Alpha;
use super::profile::{ClampTarget, CnpOrder, Cut, Hyper, ONE, PLACES, Settings};
use crate::congestion::schemes::pace::Pace;
use crate::congestion::{Effect, Notification, Permission, Place, ReactionPoint, ReactionState};
use crate::units::{Bytes, Instant};

/// The reaction point of one flow, which starts at the line's rate.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    /// In bit/s.
    rate_min: u64,
    pace: Pace,
    /// RC and RT, in bit/s.
    current: u64,
    target: u64,
    alpha: Alpha,
    first_cnp: Option<Instant>,
    /// A pending cut at the end of its period.
    cut_at: Instant,
    recovery: Recovery,
}

/// Progress since the last cut.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Stages that the timer and the byte counter have counted.
    by_time: u32,
    by_bytes: u32,
    octets: u64,
    /// Expiry of the timer.
    time_at: Instant,
    /// Expiry of the byte counter: the last bit of the frame that fills it leaves then.
    bytes_at: Instant,
}

impl Recovery {
    const NONE: Recovery = Recovery {
        by_time: 0,
        by_bytes: 0,
        octets: 0,
        time_at: Instant::NEVER,
        bytes_at: Instant::NEVER,
    };
}

impl Sender {
    /// A sender with `settings`, which are scaled to its line.
    pub fn new(place: &Place, settings: Settings) -> Sender {
        let line = place.line_rate.get();
        Sender {
            rate_min: settings.rate_min.get().min(line),
            pace: Pace::new(place),
            current: line,
            target: line,
            alpha: Alpha::new(&settings),
            settings,
            first_cnp: None,
            cut_at: Instant::NEVER,
            recovery: Recovery::NONE,
        }
    }

    fn on_cnp(&mut self, now: Instant) {
        let period = self.settings.cut_period;
        match (self.settings.cut, self.first_cnp) {
            (Cut::PerCnp, first) => {
                if first.is_none() {
                    self.alpha.start(now);
                }
                if self.settings.cnp_order == CnpOrder::AlphaCut {
                    self.alpha.on_cnp(now);
                    self.cut(now);
                } else {
                    self.cut(now);
                    self.alpha.on_cnp(now);
                }
            }
            (Cut::PerPeriod, None) => {
                self.alpha.start(now);
                self.current =
                    share(self.current, self.settings.first_cnp_rate.0).max(self.rate_min);
                self.target = self.current;
                self.cut_at = now + period;
            }
            (Cut::PerPeriod, Some(first)) => {
                self.alpha.on_cnp(now);
                let periods = now.since(first).as_ps() / period.as_ps() + 1;
                self.cut_at = self.cut_at.min(first + period * periods);
            }
        }
        self.first_cnp.get_or_insert(now);
    }

    /// RT := RC where it is clamped, RC := RC·(1 − α/2); recovery begins anew.
    fn cut(&mut self, now: Instant) {
        let has_increased = self.recovery.by_time + self.recovery.by_bytes > 0;
        if self.settings.clamp_target == ClampTarget::Always || has_increased {
            self.target = self.current;
        }
        let part = (self.alpha.get() / 2).min(self.settings.cut_max.0);
        self.current = share(self.current, ONE - part).max(self.rate_min);
        let time_at = now + self.settings.time_reset;
        self.recovery = Recovery { time_at, ..Recovery::NONE };
    }

    /// Raises the target as the stages allow; then the current rate goes half-way to it.
    fn increase(&mut self) {
        let (stages, Recovery { by_time, by_bytes, .. }) = (self.settings.stages, self.recovery);
        let (most, least) = (by_time.max(by_bytes), by_time.min(by_bytes));
        let grows = match self.settings.hyper {
            _ if most < stages => 0,
            Hyper::Growing if least > stages => {
                self.settings.rate_hai.get().saturating_mul((least - stages).into())
            }
            Hyper::Flat if most > stages => self.settings.rate_hai.get(),
            Hyper::Growing | Hyper::Flat => self.settings.rate_ai.get(),
        };
        self.target = self.target.saturating_add(grows).min(self.pace.line_rate.get());
        self.current = (self.current + self.target).div_ceil(2);
    }

    /// Handles all that was due up to and at `now`, in order; of one instant: cut, octets, timer.
    fn catch_up(&mut self, now: Instant) {
        loop {
            let Recovery { time_at, bytes_at, .. } = self.recovery;
            let due = self.cut_at.min(bytes_at).min(time_at);
            if due > now || due == Instant::NEVER {
                break;
            }
            if due == self.cut_at {
                self.alpha.advance(due);
                self.cut_at = Instant::NEVER;
                self.cut(due);
                continue;
            }
            self.increase();
            if due == bytes_at {
                self.recovery.bytes_at = Instant::NEVER;
                self.recovery.by_bytes += 1;
            } else {
                self.recovery.time_at = due + self.settings.time_reset;
                self.recovery.by_time += 1;
            }
            if self.is_released() && self.target == self.pace.line_rate.get() {
                // Recovery is complete. The stages stay, because the next cut reads them.
                self.recovery.time_at = Instant::NEVER;
                self.recovery.bytes_at = Instant::NEVER;
            }
        }
        self.alpha.advance(now);
    }
}

/// `share`, with [`PLACES`], of `rate`, to the nearest.
fn share(rate: u64, share: u64) -> u64 {
    let product = u128::from(rate) * u128::from(share);
    ((product + u128::from(ONE / 2)) >> PLACES) as u64
}

impl ReactionPoint for Sender {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Effect {
        if !notification.transport().is_some_and(|note| note.becn) {
            return Effect::Refused;
        }
        self.catch_up(now);
        self.on_cnp(now);
        Effect::Valid
    }

    fn on_transmit(&mut self, size: Bytes, now: Instant) {
        self.pace.on_transmit(size);
        let byte_reset = self.settings.byte_reset;
        if byte_reset == Bytes::ZERO || self.is_released() {
            return;
        }
        self.recovery.octets += size.get();
        if self.recovery.octets >= byte_reset.get() {
            self.recovery.octets %= byte_reset.get();
            self.recovery.bytes_at = self.recovery.bytes_at.min(now);
        }
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        self.pace.next(last_departure, self.current)
    }

    fn is_released(&self) -> bool {
        self.current >= self.pace.line_rate.get()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.catch_up(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.cut_at.min(self.recovery.bytes_at).min(self.recovery.time_at);
        (due < Instant::NEVER).then_some(due)
    }

    /// The scalar is α in thousandths, as of the last event.
    fn state(&self) -> ReactionState {
        let scalar = share(1_000, self.alpha.get());
        ReactionState { scalar, ..self.pace.state(self.current) }
    }
}

#[cfg(test)]
mod tests;
