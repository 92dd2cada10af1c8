//! The congestion point of BCN: the selection of samples, and the notifications to their sources.
//!
//! Source: the Zurich Hotspot Benchmark, equation 3, with the sign of its range; claims 1, 4 and 5 of
//! US 8792352 (variables, maximal feedback above a level, tags that name a congestion point).

use super::{BcnParams, SamplingMode, UNIT, feedback};
use crate::congestion::schemes::OnOff;
use crate::congestion::{
    BcnBody, BcnFlags, CongestionPoint, Marking, Notification, Place, QueueSample,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::CongestionPointId;
use crate::random::Random;
use crate::units::{Bytes, Instant};

/// P_sample is in millionths.
const MILLION: u64 = 1_000_000;

/// The selection of samples.
#[derive(Clone, Copy, Debug)]
enum Sampling {
    /// Each frame with this probability, in millionths.
    Random(u64),
    /// The frame that completes `every` octets since the last sample.
    Octets { every: u64, left: u64 },
}

/// Totals for operators.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    samples: u64,
    negative: u64,
    positive: u64,
    stops: u64,
}

/// The congestion point of one output and priority.
#[derive(Debug)]
pub struct Sampler {
    cpid: CongestionPointId,
    weight: i64,
    /// Qeq.
    equilibrium: u64,
    severe: u64,
    /// Above this level BCN_MAX is sent, if in use.
    maximal: Option<u64>,
    stops: bool,
    sampling: Sampling,
    /// The queue at the previous sample.
    queue_before: u64,
    random: Random,
    totals: Totals,
}

impl Sampler {
    /// `None` if the place has no congestion point identifier.
    pub fn new(params: &BcnParams, place: Place) -> Option<Sampler> {
        let [equilibrium, severe, maximal] = params.levels(place.buffer);
        let every = params.sample_octets.get();
        Some(Sampler {
            cpid: place.congestion_point?,
            weight: params.w,
            equilibrium,
            severe,
            maximal: (params.bcn_max == OnOff::On).then_some(maximal),
            stops: params.bcn_zero == OnOff::On,
            sampling: match params.sampling {
                SamplingMode::Octets => Sampling::Octets { every, left: every },
                SamplingMode::Random => Sampling::Random(params.p_sample.0.max(1)),
            },
            queue_before: 0,
            random: place.random,
            totals: Totals::default(),
        })
    }

    fn picks(&mut self, size: Bytes) -> bool {
        match &mut self.sampling {
            Sampling::Random(chance) => self.random.chance(*chance, MILLION),
            Sampling::Octets { every, left } => {
                let picked = size.get() >= *left;
                *left = if picked { *every } else { *left - size.get() };
                picked
            }
        }
    }

    /// The message for a queue of this many octets, which becomes the previous sample.
    fn sample(&mut self, queue: u64) -> BcnBody {
        let limit = |value: i128, most: u64| {
            let units = i128::from(most / UNIT).min(i16::MAX.into());
            (value / i128::from(UNIT)).clamp(-units, units) as i16
        };
        let (now, before) = (i128::from(queue), i128::from(self.queue_before));
        self.queue_before = queue;
        let largest = self.equilibrium.saturating_mul(2);
        let body = BcnBody {
            cpid: self.cpid,
            q_offset: limit(i128::from(self.equilibrium) - now, self.equilibrium),
            q_delta: limit(now - before, largest),
            flags: BcnFlags {
                mild: queue > self.equilibrium,
                severe: queue > self.severe,
                stop: false,
            },
            timestamp: 0,
        };
        if body.flags.severe && self.stops {
            let flags = BcnFlags { stop: true, ..body.flags };
            return BcnBody { q_offset: 0, q_delta: 0, flags, ..body };
        }
        if self.maximal.is_some_and(|level| queue > level) {
            let q_offset = limit(i128::MIN / 2, self.equilibrium);
            return BcnBody { q_offset, q_delta: limit(i128::MAX / 2, largest), ..body };
        }
        body
    }
}

impl CongestionPoint for Sampler {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if headers.class != FrameClass::Data || !self.picks(headers.size) {
            return Marking::Pass;
        }
        let queue = sample.queue.get();
        let body = self.sample(queue);
        self.totals.samples += 1;
        let feedback = feedback(&body, self.weight);
        let is_regulated = headers.regulated_by == Some(self.cpid);
        let total = if body.flags.stop {
            &mut self.totals.stops
        } else if feedback < 0 {
            &mut self.totals.negative
        } else if feedback > 0 && is_regulated && queue < self.equilibrium {
            &mut self.totals.positive
        } else {
            return Marking::Pass;
        };
        *total += 1;
        Marking::Notify(Notification::Bcn(body))
    }

    fn read(&self, prefix: &str, named: &mut Vec<(String, u64)>) {
        let Totals { samples, negative, positive, stops } = self.totals;
        if samples > 0 {
            named.push((format!("{prefix}_bcn_samples"), samples));
            named.push((format!("{prefix}_bcn_negative"), negative));
            named.push((format!("{prefix}_bcn_positive"), positive));
            named.push((format!("{prefix}_bcn_stop"), stops));
        }
    }
}

#[cfg(test)]
mod tests;
