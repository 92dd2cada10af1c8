//! The congestion point: random early marking by the instantaneous queue of one output and priority.
//!
//! ```text
//!   chance
//!   1     |              ┌──────
//!   Pmax  |           _.─┘
//!         |     __.─'
//!   0     |────'─────────┴────── queue
//!            Kmin       Kmax
//! ```
//!
//! Every ECN-capable frame may be marked, acknowledgements too: a switch does not look behind the IP
//! header. Only CNPs are never marked, although some adapters send them as capable.
//! Source: the public ns-3 model, `ShouldSendCN`; RFC 3168, 5 (which packets may be marked).

use super::profile::{MarkAt, Settings};
use crate::congestion::{CongestionPoint, Marking, QueueSample};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::Ecn;
use crate::random::Random;
use crate::units::{Bytes, Instant};

const MILLION: u64 = 1_000_000;

/// The congestion point of one output and priority.
#[derive(Debug)]
pub struct Red {
    kmin: Bytes,
    kmax: Bytes,
    pmax: u64,
    at_enqueue: bool,
    random: Random,
    /// Up to Kmax, and above.
    sloping: Band,
    full: Band,
}

/// Frames that could be marked at some range of queue lengths, and those that were.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    frames: u64,
    marked: u64,
}

impl Red {
    /// A congestion point that draws from `random`.
    pub fn new(settings: &Settings, random: Random) -> Red {
        Red {
            kmin: settings.kmin,
            kmax: settings.kmax,
            pmax: settings.pmax.0,
            at_enqueue: settings.mark_at == MarkAt::Enqueue,
            random,
            sloping: Band::default(),
            full: Band::default(),
        }
    }

    fn judge(&mut self, headers: &FrameHeaders, queue: Bytes) -> Marking {
        let markable = headers.class != FrameClass::Notification
            && matches!(headers.ecn, Ecn::Capable0 | Ecn::Capable1);
        if !markable || queue <= self.kmin {
            return Marking::Pass;
        }
        if queue > self.kmax {
            self.full.frames += 1;
            self.full.marked += 1;
            return Marking::Ce { limit: self.kmax };
        }
        self.sloping.frames += 1;
        let (above, span) = (queue - self.kmin, self.kmax - self.kmin);
        let numerator = self.pmax.saturating_mul(above.get());
        if self.random.chance(numerator, span.get().saturating_mul(MILLION)) {
            self.sloping.marked += 1;
            Marking::Ce { limit: self.kmin }
        } else {
            Marking::Pass
        }
    }
}

impl CongestionPoint for Red {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if self.at_enqueue { self.judge(headers, sample.queue) } else { Marking::Pass }
    }

    fn on_dequeue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if self.at_enqueue { Marking::Pass } else { self.judge(headers, sample.queue) }
    }

    fn read(&self, prefix: &str, named: &mut Vec<(String, u64)>) {
        for (band, totals) in [("between_k", self.sloping), ("above_kmax", self.full)] {
            if totals.frames > 0 {
                named.push((format!("{prefix}_ecn_{band}_packets"), totals.frames));
                named.push((format!("{prefix}_ecn_{band}_marked"), totals.marked));
            }
        }
    }
}

#[cfg(test)]
mod tests;
