//! The congestion point of BCN: which frames are sampled, what their sources are told.
//!
//! Source: the Zurich Hotspot Benchmark, equation 3, with the sign of its range; claims 1, 4 and 5 of
//! US 8792352 (variables, maximal feedback above a level, tags that name a congestion point).

use super::{UNIT, feedback, weight};
use crate::congestion::schemes::params;
use crate::congestion::{
    BcnBody, BcnFlags, CongestionPoint, Marking, Notification, Place, QueueSample,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::CongestionPointId;
use crate::random::Random;
use crate::units::{Bytes, Instant};

/// P_sample is counted in millionths.
const MILLION: u64 = 1_000_000;

/// Which frames are sampled.
#[derive(Clone, Copy, Debug)]
enum Sampling {
    /// Each with this chance, in millionths.
    Random(u64),
    /// The one that completes so many octets since the last one.
    Octets { every: u64, left: u64 },
}

/// What was told, for operators.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
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
    /// Above it BCN_MAX is told, if at all.
    maximal: Option<u64>,
    stops: bool,
    sampling: Sampling,
    /// The queue at the sample before.
    queue_before: u64,
    random: Random,
    told: Told,
}

impl Sampler {
    /// `None` where a congestion point has no name to speak under.
    pub fn new(place: Place<'_>) -> Option<Sampler> {
        let size = |key| params::quantity::<Bytes>(place.params, key).map(Bytes::get);
        let is_on = |key| params::word(place.params, key, "off") == "on";
        let equilibrium = size("q_eq").unwrap_or(place.buffer.get() / 4).max(UNIT);
        let every = size("sample_octets").unwrap_or(75_000);
        let chance = params::millionths(place.params, "p_sample").unwrap_or(20_000).max(1);
        Some(Sampler {
            cpid: place.congestion_point?,
            weight: weight(place.params),
            equilibrium,
            severe: size("q_sc").unwrap_or(equilibrium.saturating_mul(3)),
            maximal: is_on("bcn_max")
                .then(|| size("q_max").unwrap_or(equilibrium.saturating_mul(7) / 2)),
            stops: is_on("bcn_zero"),
            sampling: match params::word(place.params, "sampling", "random") {
                "octets" => Sampling::Octets { every, left: every },
                _ => Sampling::Random(chance),
            },
            queue_before: 0,
            random: place.random,
            told: Told::default(),
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

    /// What there is to say about a queue of so many octets; takes it as the one before.
    fn sample(&mut self, queue: u64) -> BcnBody {
        let limit = |value: i128, most: u64| {
            let units = i128::from(most / UNIT).min(i16::MAX.into());
            (value / i128::from(UNIT)).clamp(-units, units) as i16
        };
        let (now, before) = (i128::from(queue), i128::from(self.queue_before));
        self.queue_before = queue;
        let largest = self.equilibrium.saturating_mul(2);
        let said = BcnBody {
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
        if said.flags.severe && self.stops {
            let flags = BcnFlags { stop: true, ..said.flags };
            return BcnBody { q_offset: 0, q_delta: 0, flags, ..said };
        }
        if self.maximal.is_some_and(|level| queue > level) {
            let q_offset = limit(i128::MIN / 2, self.equilibrium);
            return BcnBody { q_offset, q_delta: limit(i128::MAX / 2, largest), ..said };
        }
        said
    }
}

impl CongestionPoint for Sampler {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if headers.class != FrameClass::Data || !self.picks(headers.size) {
            return Marking::Pass;
        }
        let queue = sample.queue.get();
        let body = self.sample(queue);
        self.told.samples += 1;
        let feedback = feedback(&body, self.weight);
        let is_regulated = headers.regulated_by == Some(self.cpid);
        let told = if body.flags.stop {
            &mut self.told.stops
        } else if feedback < 0 {
            &mut self.told.negative
        } else if feedback > 0 && is_regulated && queue < self.equilibrium {
            &mut self.told.positive
        } else {
            return Marking::Pass;
        };
        *told += 1;
        Marking::Notify(Notification::Bcn(body))
    }

    fn read(&self, prefix: &str, named: &mut Vec<(String, u64)>) {
        let Told { samples, negative, positive, stops } = self.told;
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
