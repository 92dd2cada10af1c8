//! The reaction point of BCN: a rate limiter that exists from the first negative feedback until it has
//! the full line rate again and no frame waits in it.
//!
//! ```text
//!              Fb < 0                    Fb < 0, Fb > 0 of its CPID
//!   Free ───────────────▶ Regulated ─────────┐ ▲
//!    ▲                    │ ▲   ▲  └─────────┘ │
//!    └────────────────────┘ │   └── over ── Stopped
//!     r = C, nothing waits  └─── BCN(0,0) ──▶
//! ```
//!
//! Rates are whole bit/s, each step rounded to the nearest. Source: Bergamasco's proposal; Jiang and
//! Jain, "Analysis of backward congestion notification (BCN) for Ethernet in datacenter
//! applications", INFOCOM 2007 (the same law).

use super::{BcnParams, feedback};
use crate::congestion::schemes::pace::Pace;
use crate::congestion::{
    BcnBody, Effect, Notification, Permission, Place, ReactionPoint, ReactionState, Tag,
};
use crate::ids::CongestionPointId;
use crate::params::Ratio;
use crate::random::Random;
use crate::units::{BitRate, Bytes, Duration, Instant};

/// The law of rates: from a rate in bit/s and feedback in octets to the new rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    gi: Ratio,
    gd: Ratio,
    ru: u64,
    rmin: u64,
    line: u64,
}

impl Law {
    fn new(params: &BcnParams, line: BitRate) -> Law {
        let BcnParams { gi, gd, ru, rmin, .. } = *params;
        let line = line.get();
        Law { gi, gd, ru: ru.get(), rmin: rmin.get().min(line), line }
    }

    /// r·(1 + Gd·Fb) for Fb below zero, r + Gi·Fb·Ru above; within Rmin and C.
    pub fn apply(&self, rate: u64, feedback: i64) -> u64 {
        let (rate, feedback) = (i128::from(rate), i128::from(feedback));
        let change = match feedback {
            ..0 => self.gd.of(rate * feedback),
            _ => self.gi.of(i128::from(self.ru) * feedback),
        };
        (rate + change).clamp(self.rmin.into(), self.line.into()) as u64
    }
}

/// The state of a limiter, with the congestion point that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// No limit.
    Free,
    /// Limited to `current`.
    Regulated { by: CongestionPointId },
    /// No departure until then.
    Stopped { by: CongestionPointId, until: Instant },
}

/// The reaction point towards one destination.
#[derive(Debug)]
pub struct Limiter {
    params: BcnParams,
    law: Law,
    pace: Pace,
    limit: Limit,
    /// r, in bit/s.
    current: u64,
    last_decrease: Instant,
    /// The next growth without a notification.
    grows_at: Instant,
    random: Random,
}

impl Limiter {
    /// A limiter in the state `Free`.
    pub fn new(params: &BcnParams, place: Place) -> Limiter {
        Limiter {
            params: *params,
            law: Law::new(params, place.line_rate),
            pace: Pace::new(&place),
            limit: Limit::Free,
            current: place.line_rate.get(),
            last_decrease: Instant::ZERO,
            grows_at: Instant::NEVER,
            random: place.random,
        }
    }

    /// Whether the sampled frame left long before the last decrease. No frame takes 2^32 ns; timestamp 0
    /// means that there is none.
    fn is_stale(&self, timestamp: u32, now: Instant) -> bool {
        let Some(rtt) = self.params.rtt.filter(|_| timestamp != 0) else { return false };
        let Limit::Regulated { .. } = self.limit else { return false };
        let age = Duration::from_ns((nanoseconds(now).wrapping_sub(timestamp)).into());
        age > now.since(self.last_decrease) + rtt
    }

    fn stop(&mut self, by: CongestionPointId, now: Instant) {
        let pause = Duration::from_ps(1 + self.random.below(self.params.stop_max.as_ps()));
        let restart = u128::from(self.law.line) * u128::from(self.params.restart.0) / 1_000_000;
        self.current = (restart as u64).clamp(self.law.rmin, self.law.line);
        self.last_decrease = now;
        self.limit = Limit::Stopped { by, until: now + pause };
    }

    fn apply_feedback(&mut self, body: &BcnBody, now: Instant) -> Effect {
        let feedback = feedback(body, self.params.w);
        match (self.limit, feedback) {
            (_, 0) => return Effect::Refused,
            (Limit::Stopped { .. }, _) => return Effect::Ignored,
            (Limit::Regulated { by }, 1..) if by == body.cpid => {}
            (_, 1..) => return Effect::Ignored,
            (_, ..0) => {
                self.limit = Limit::Regulated { by: body.cpid };
                self.last_decrease = now;
            }
        }
        self.current = self.law.apply(self.current, feedback);
        Effect::Valid
    }

    /// Restarts the time without notification at `now`.
    fn restart_growth(&mut self, now: Instant) {
        let grows = matches!(self.limit, Limit::Regulated { .. }) && !self.is_released();
        let every = self.params.self_increase.map(|_| self.params.self_increase_every);
        self.grows_at = every.filter(|_| grows).map_or(Instant::NEVER, |every| now + every);
    }
}

/// Nanoseconds since the start of the run, modulo 2^32.
fn nanoseconds(now: Instant) -> u32 {
    (now.as_ps() / 1_000) as u32
}

impl ReactionPoint for Limiter {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Effect {
        let Notification::Bcn(body) = notification else { return Effect::Refused };
        if self.is_stale(body.timestamp, now) {
            return Effect::Ignored;
        }
        let effect = match (body.flags.stop, body.q_offset, body.q_delta) {
            (true, 0, 0) => {
                self.stop(body.cpid, now);
                Effect::Valid
            }
            (true, ..) => Effect::Refused,
            (false, ..) => self.apply_feedback(body, now),
        };
        if effect == Effect::Valid {
            self.restart_growth(now);
        }
        effect
    }

    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.pace.on_transmit(size);
    }

    fn on_queue_empty(&mut self, _: Instant) {
        if self.is_released() {
            self.limit = Limit::Free;
        }
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        match self.limit {
            Limit::Stopped { .. } => Permission::Stopped,
            _ => self.pace.next(last_departure, self.current),
        }
    }

    fn tag(&self, now: Instant) -> Option<Tag> {
        let (Limit::Regulated { by: cpid } | Limit::Stopped { by: cpid, .. }) = self.limit else {
            return None;
        };
        let timestamp = nanoseconds(now).max(1);
        Some(Tag::RateRegulated { cpid, timestamp })
    }

    fn is_released(&self) -> bool {
        self.current >= self.law.line && !matches!(self.limit, Limit::Stopped { .. })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Limit::Stopped { by, until } = self.limit
            && until <= now
        {
            self.limit = Limit::Regulated { by };
            self.restart_growth(until);
        }
        while let Some(by) = self.params.self_increase.filter(|_| self.grows_at <= now) {
            self.current = self.current.saturating_add(by.get()).min(self.law.line);
            self.restart_growth(self.grows_at);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let stopped = match self.limit {
            Limit::Stopped { until, .. } => until,
            _ => Instant::NEVER,
        };
        let due = self.grows_at.min(stopped);
        (due < Instant::NEVER).then_some(due)
    }

    /// The scalar is the rate in thousandths of the line; 0 while it is stopped.
    fn state(&self) -> ReactionState {
        let current = match self.limit {
            Limit::Stopped { .. } => 0,
            _ => self.current,
        };
        ReactionState { gap: self.pace.full_gap(self.current), ..self.pace.state(current) }
    }
}

#[cfg(test)]
mod tests;
