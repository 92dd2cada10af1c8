//! α: a sender's estimate of congestion, a moving average of "there was a CNP".
//!
//! Its unit is 2^-48, and each step rounds to the nearest: an error of at most 2^-49. A step keeps 1 − g
//! of the earlier error, so the error of α is at most 2^-49 / g after any number of steps: 2^-41 for
//! g = 1/256, a hundredth of a bit/s in the rate of a cut at 40 Gb/s. A profile with fewer places
//! (adapters have ten) truncates after each step, as the adapter does.
//!
//! α needs no timer event. The next CNP computes the steps that were due before it.

use super::profile::{AlphaTimer, ONE, PLACES, Settings};
use crate::units::{Duration, Instant};

/// α of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Alpha {
    value: u64,
    g: u64,
    /// Mask of the places in use.
    kept: u64,
    timer: AlphaTimer,
    interval: Duration,
    /// Next expiry of the timer; never before the first CNP.
    tick: Instant,
    /// There was a CNP since its last expiry.
    seen: bool,
}

impl Alpha {
    /// One, until the first CNP.
    pub fn new(settings: &Settings) -> Alpha {
        Alpha {
            value: ONE,
            g: settings.g.0,
            kept: u64::MAX << (PLACES - settings.alpha_bits.min(PLACES)),
            timer: settings.alpha_timer,
            interval: settings.alpha_interval,
            tick: Instant::NEVER,
            seen: false,
        }
    }

    /// Its value with [`PLACES`], as of the last [`Alpha::advance`].
    pub fn get(&self) -> u64 {
        self.value
    }

    /// The first CNP of the flow: the timer starts.
    pub fn start(&mut self, now: Instant) {
        self.value = ONE;
        self.tick = now + self.interval;
    }

    /// A CNP came. [`Alpha::advance`] has been called for `now`.
    pub fn on_cnp(&mut self, now: Instant) {
        match self.timer {
            AlphaTimer::Free => self.seen = true,
            AlphaTimer::SinceCnp => {
                self.step(true);
                self.tick = now + self.interval;
            }
        }
    }

    /// Computes the expiries of the timer up to and at `now`.
    pub fn advance(&mut self, now: Instant) {
        while self.tick <= now {
            let (before, seen) = (self.value, std::mem::take(&mut self.seen));
            self.step(seen);
            self.tick = self.tick + self.interval;
            if self.value == before && !seen && self.tick <= now {
                // It is at its minimum: the other ticks change nothing.
                let ticks = now.since(self.tick).as_ps() / self.interval.as_ps() + 1;
                self.tick = self.tick + self.interval * ticks;
            }
        }
    }

    /// α := (1 − g)·α, and + g if there was a CNP.
    fn step(&mut self, rises: bool) {
        let product = u128::from(self.value) * u128::from(ONE - self.g);
        let fallen = ((product + u128::from(ONE / 2)) >> PLACES) as u64;
        self.value = (fallen + if rises { self.g } else { 0 }) & self.kept;
    }
}

#[cfg(test)]
mod tests;
