//! The sender's rules a second time, as the paper has them, for traces to be held against: rates as
//! numbers with a fraction, nothing rounded to whole bits.
//!
//! Source: Zhu et al., SIGCOMM 2015, section 3 (RP), and IEEE 802.1Q, 32.11 (hyper increase).

use crate::prelude::*;

/// The inputs of the rules. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The line.
    pub line: f64,
    /// g.
    pub gain: f64,
    /// K.
    pub alpha_interval: Duration,
    /// α changes before the cut, which goes by it.
    pub alpha_first: bool,
    /// T.
    pub time: Duration,
    /// B, in octets.
    pub octets: u64,
    /// F.
    pub stages: u32,
    /// R_AI.
    pub additive: f64,
    /// R_HAI.
    pub hyper: f64,
    /// The least rate.
    pub least: f64,
}

/// What happens to a sender from outside. Of one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// A frame of so many octets begins to leave; its last bit leaves then.
    Frame(Instant, u64),
    /// A CNP comes.
    Cnp,
}

/// The sender.
#[derive(Clone, Debug)]
pub struct Reference {
    numbers: Numbers,
    /// RC.
    pub current: f64,
    /// RT.
    pub target: f64,
    /// α.
    pub alpha: f64,
    alpha_at: Instant,
    time_at: Instant,
    octets_at: Instant,
    octets: u64,
    by_time: u32,
    by_octets: u32,
    /// Stages of fast recovery, additive and hyper increase that there were.
    pub counts: [u32; 3],
}

impl Reference {
    /// One that sends at the line's rate.
    pub fn new(numbers: Numbers) -> Reference {
        Reference {
            current: numbers.line,
            target: numbers.line,
            alpha: 1.0,
            alpha_at: Instant::NEVER,
            time_at: Instant::NEVER,
            octets_at: Instant::NEVER,
            octets: 0,
            by_time: 0,
            by_octets: 0,
            counts: [0; 3],
            numbers,
        }
    }

    /// Whether it is as good as at the line's rate.
    fn is_free(&self) -> bool {
        self.current > self.numbers.line - 0.5
    }

    /// Lets its timers and counters do what is due up to and at `now`.
    pub fn advance(&mut self, now: Instant) {
        loop {
            let due = self.octets_at.min(self.time_at).min(self.alpha_at);
            if due > now || due == Instant::NEVER {
                break;
            }
            if due == self.octets_at {
                self.octets_at = Instant::NEVER;
                self.increase();
                self.by_octets += 1;
            } else if due == self.time_at {
                self.time_at = due + self.numbers.time;
                self.increase();
                self.by_time += 1;
            } else {
                self.alpha *= 1.0 - self.numbers.gain;
                self.alpha_at = due + self.numbers.alpha_interval;
            }
        }
    }

    /// Something happens at `now`; what is due then has been done.
    pub fn happens(&mut self, what: Happening, now: Instant) {
        match what {
            Happening::Frame(ends, octets) if !self.is_free() => {
                self.octets += octets;
                if self.octets >= self.numbers.octets {
                    self.octets %= self.numbers.octets;
                    self.octets_at = ends;
                }
            }
            Happening::Frame(..) => {}
            Happening::Cnp => self.notice(now),
        }
    }

    fn notice(&mut self, now: Instant) {
        let raised = (1.0 - self.numbers.gain) * self.alpha + self.numbers.gain;
        let cut_by = if self.numbers.alpha_first { raised } else { self.alpha };
        self.target = self.current;
        self.current = (self.current * (1.0 - cut_by / 2.0)).max(self.numbers.least);
        self.alpha = raised;
        self.alpha_at = now + self.numbers.alpha_interval;
        self.time_at = now + self.numbers.time;
        self.octets_at = Instant::NEVER;
        (self.octets, self.by_time, self.by_octets) = (0, 0, 0);
    }

    fn increase(&mut self) {
        let (most, least) = (self.by_time.max(self.by_octets), self.by_time.min(self.by_octets));
        let stage = if most < self.numbers.stages {
            0
        } else if least > self.numbers.stages {
            self.target += self.numbers.hyper * f64::from(least - self.numbers.stages);
            2
        } else {
            self.target += self.numbers.additive;
            1
        };
        self.counts[stage] += 1;
        self.target = self.target.min(self.numbers.line);
        self.current = f64::midpoint(self.current, self.target);
    }
}
