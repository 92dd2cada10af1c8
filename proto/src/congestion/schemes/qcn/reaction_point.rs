//! The reaction point of QCN: the standard's rate control machine, byte counter and timer.
//!
//! ```text
//!                 CNM                    a counter expires: its stage grows, the rates change
//!   Disabled ───────────▶ FastRecovery ──────────────▶ FastRecovery         both below rpgThreshold
//!     ▲                       ▲    ▲                   ActiveIncrease       one of them is not
//!     │ current = rpgMaxRate, │    └───── CNM ──────── HyperActiveIncrease  neither is
//!     └ nothing waits
//! ```
//!
//! Rates are whole bit/s. A cut is rounded to the nearest, an average up, so that recovery reaches the
//! full rate. Source: IEEE 802.1Q, 32.10 to 32.15 (reaction point variables, procedures and machines).

use super::QcnParams;
use crate::congestion::schemes::OnOff;
use crate::congestion::schemes::pace::Pace;
use crate::congestion::{Effect, Notification, Permission, Place, ReactionPoint, ReactionState};
use crate::units::{Bytes, Duration, Instant};

/// A state of the rate control machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No limit.
    Disabled,
    /// Each stage goes half-way back to the target.
    FastRecovery,
    /// The target grows by rpgAiRate.
    ActiveIncrease,
    /// The target grows by rpgHaiRate, by more with each stage.
    HyperActiveIncrease,
}

/// The reaction point towards one destination.
#[derive(Debug)]
pub struct RateLimiter {
    params: QcnParams,
    /// rpgMaxRate and rpgMinRate on this line, in bit/s.
    max_rate: u64,
    min_rate: u64,
    pace: Pace,
    pub state: State,
    /// rpTargetRate and rpCurrentRate, in bit/s.
    pub target: u64,
    pub current: u64,
    /// rpByteStage and rpTimeStage.
    pub byte_stage: u32,
    pub time_stage: u32,
    /// rpByteCount: octets until the next stage.
    pub byte_count: u64,
    /// rpWhile: when the timer expires.
    pub timer: Instant,
}

impl RateLimiter {
    /// A limiter in the state `Disabled`.
    pub fn new(params: &QcnParams, place: &Place) -> RateLimiter {
        let max_rate = params.rpg_max_rate.unwrap_or(place.line_rate).min(place.line_rate).get();
        RateLimiter {
            params: *params,
            max_rate,
            min_rate: params.rpg_min_rate.get().min(max_rate),
            pace: Pace::new(place),
            state: State::Disabled,
            target: max_rate,
            current: max_rate,
            byte_stage: 0,
            time_stage: 0,
            byte_count: params.rpg_byte_reset.get(),
            timer: Instant::NEVER,
        }
    }

    /// The state CNM_RECEIVED. A cut before the end of the first byte cycle leaves the target, so that
    /// several notifications of one congestion keep the rate from before it.
    fn cut(&mut self, quantized_feedback: u8, now: Instant) {
        if self.byte_stage != 0 {
            self.target = self.current;
            self.byte_count = self.params.rpg_byte_reset.get();
        }
        (self.byte_stage, self.time_stage) = (0, 0);
        self.current = self.decreased(quantized_feedback);
        self.timer = now + self.params.rpg_time_reset;
        self.state = State::FastRecovery;
    }

    /// current·max(rpgMinDecFac, 1 − Gd·QntzFb), no less than rpgMinRate.
    fn decreased(&self, quantized_feedback: u8) -> u64 {
        let product = u128::from(self.current) * u128::from(quantized_feedback);
        let part = match u32::try_from(self.params.rpg_gd) {
            Ok(0) => product,
            Ok(n) => (product + (1 << (n - 1))) >> n,
            Err(_) => product << self.params.rpg_gd.unsigned_abs(),
        };
        let least = u128::from(self.current) * u128::from(self.params.rpg_min_dec_fac) / 100;
        let kept = u128::from(self.current).saturating_sub(part).max(least);
        (kept as u64).max(self.min_rate)
    }

    /// Derives state and rates from the stages after one of them has grown.
    fn expire(&mut self) {
        let QcnParams { rpg_threshold: threshold, rpg_ai_rate, rpg_hai_rate, .. } = self.params;
        let (least, most) =
            (self.byte_stage.min(self.time_stage), self.byte_stage.max(self.time_stage));
        let (state, increase) = if most < threshold {
            (State::FastRecovery, 0)
        } else if least < threshold {
            (State::ActiveIncrease, rpg_ai_rate.get())
        } else {
            let times = u64::from(least - threshold + 1);
            (State::HyperActiveIncrease, rpg_hai_rate.get().saturating_mul(times))
        };
        self.state = state;
        let is_first = self.byte_stage == 1 || self.time_stage == 1;
        self.target = if is_first && self.target > self.current.saturating_mul(10) {
            self.target / 8
        } else {
            self.target.saturating_add(increase).min(self.max_rate)
        };
        self.current = self.current.midpoint(self.target + 1).min(self.max_rate);
        if self.is_released() {
            self.timer = Instant::NEVER;
        }
    }

    /// Whether the period of a counter in this stage is halved.
    fn is_halved(&self, stage: u32) -> bool {
        self.state == State::HyperActiveIncrease
            || (self.params.halve_in_active == OnOff::On && stage >= self.params.rpg_threshold)
    }

    fn on_byte_counter(&mut self) {
        self.byte_stage = self.byte_stage.saturating_add(1);
        self.expire();
        let halves = u64::from(self.is_halved(self.byte_stage));
        self.byte_count = (self.params.rpg_byte_reset.get() >> halves).max(1);
    }

    fn on_timer(&mut self) {
        let due = self.timer;
        self.time_stage = self.time_stage.saturating_add(1);
        self.expire();
        if !self.is_released() {
            let halves = u64::from(self.is_halved(self.time_stage));
            let period = Duration::from_ps((self.params.rpg_time_reset.as_ps() >> halves).max(1));
            self.timer = due + period;
        }
    }
}

impl ReactionPoint for RateLimiter {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Effect {
        let Notification::Cnm(body) = notification else { return Effect::Refused };
        if !(1..=63).contains(&body.quantized_feedback) {
            return Effect::Refused;
        }
        self.cut(body.quantized_feedback, now);
        Effect::Valid
    }

    /// The byte counter counts frames when they have passed the limiter.
    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.pace.on_transmit(size);
        if self.is_released() {
            return;
        }
        self.byte_count = self.byte_count.saturating_sub(size.get());
        if self.byte_count == 0 {
            self.on_byte_counter();
        }
    }

    fn on_queue_empty(&mut self, _: Instant) {
        if self.is_released() {
            self.state = State::Disabled;
            self.target = self.max_rate;
            (self.byte_stage, self.time_stage) = (0, 0);
            self.byte_count = self.params.rpg_byte_reset.get();
        }
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        self.pace.next(last_departure, self.current)
    }

    fn is_released(&self) -> bool {
        self.current >= self.max_rate
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.timer <= now {
            self.on_timer();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.timer < Instant::NEVER).then_some(self.timer)
    }

    /// The scalar is the rate in thousandths of the line.
    fn state(&self) -> ReactionState {
        self.pace.state(self.current)
    }
}

#[cfg(test)]
mod tests;
