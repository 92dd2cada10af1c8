//! The congestion point of QCN: the times of samples, and the feedback of each.
//!
//! Source: IEEE 802.1Q, 32.7 and 32.8 (congestion point variables and procedures).

use super::QcnParams;
use crate::congestion::{CnmBody, CongestionPoint, Marking, Notification, Place, QueueSample};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::CongestionPointId;
use crate::random::Random;
use crate::units::{Bytes, Instant};

/// Octets until the next sample by the upper three bits of QntzFb, for a base of 150 000.
const SAMPLING: [u64; 8] = [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500];

/// Jitter is uniform from 0.85 to 1.15, in millionths. Source: IEEE 802.1Q, 32.8.3.
const JITTER: (u64, u64) = (850_000, 1_150_000);
const MILLION: u64 = 1_000_000;

/// Binary places of W, whose exponent is -10 at least.
const PLACES: u32 = 10;

/// The largest QntzFb.
const FEEDBACK_MAX: i128 = 63;

/// The result of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// QntzFb.
    pub quantized: u8,
    /// cpQSp − q, in octets.
    pub offset: i64,
    /// q − q before, in octets.
    pub delta: i64,
}

/// cpQSp and W, from which feedback is computed.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    set_point: i64,
    /// W with [`PLACES`].
    weight: i64,
}

impl Gauge {
    /// W is two to the power of `exponent`, -10 to 10.
    pub fn new(set_point: Bytes, exponent: i64) -> Gauge {
        let set_point = i64::try_from(set_point.get()).unwrap_or(i64::MAX);
        Gauge { set_point, weight: 1 << (exponent + i64::from(PLACES)).clamp(0, 20) }
    }

    /// QntzFb = 63·|Fb| / ((2W + 1)·cpQSp) to the nearest, for Fb = offset − W·delta below zero.
    pub fn find(&self, queue: u64, before: u64) -> Finding {
        let octets = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (queue, before) = (octets(queue), octets(before));
        let (offset, delta) = (self.set_point.saturating_sub(queue), queue - before);
        let one = 1i128 << PLACES;
        let feedback = i128::from(offset) * one - i128::from(self.weight) * i128::from(delta);
        let largest = i128::from(self.set_point) * (one + 2 * i128::from(self.weight));
        let bad = (-feedback).clamp(0, largest);
        let quantized = (2 * FEEDBACK_MAX * bad + largest) / (2 * largest);
        Finding { quantized: quantized as u8, offset, delta }
    }
}

/// The congestion point of one output and priority.
#[derive(Debug)]
pub struct Sampler {
    cpid: CongestionPointId,
    gauge: Gauge,
    /// cpSampleBase.
    base: u64,
    /// Octets until the next sample; below zero it is due.
    left: i64,
    /// cpQLenOld.
    queue_before: u64,
    random: Random,
    samples: u64,
    /// ieee8021CnCpTransmittedCnms: messages sent.
    transmitted: u64,
}

impl Sampler {
    /// `None` if the place has no congestion point identifier.
    pub fn new(params: &QcnParams, place: Place) -> Option<Sampler> {
        let mut sampler = Sampler {
            cpid: place.congestion_point?,
            gauge: Gauge::new(params.cp_q_sp, params.cp_weight),
            base: params.cp_sample_base.get(),
            left: 0,
            queue_before: 0,
            random: place.random,
            samples: 0,
            transmitted: 0,
        };
        sampler.left = sampler.until_next(0);
        Some(sampler)
    }

    /// Octets until the next sample after feedback of `quantized`.
    fn until_next(&mut self, quantized: u8) -> i64 {
        let (low, high) = JITTER;
        let jitter = low + self.random.below(high - low + 1);
        let octets = u128::from(SAMPLING[usize::from(quantized >> 3) & 7])
            * u128::from(self.base)
            * u128::from(jitter)
            / u128::from(SAMPLING[0] * MILLION);
        i64::try_from(octets).unwrap_or(i64::MAX)
    }

    fn count(&mut self, size: Bytes) {
        self.left = self.left.saturating_sub_unsigned(size.get());
    }

    /// Samples a queue of this many octets and plans the next sample; the message, if congested.
    fn sample(&mut self, queue: u64) -> Option<CnmBody> {
        let Finding { quantized, offset, delta } = self.gauge.find(queue, self.queue_before);
        self.queue_before = queue;
        self.left = self.until_next(quantized);
        self.samples += 1;
        let units = |octets: i64| (octets / 64).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        (quantized > 0).then(|| CnmBody {
            quantized_feedback: quantized,
            cpid: self.cpid,
            q_offset: units(offset),
            q_delta: units(delta),
        })
    }
}

impl CongestionPoint for Sampler {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if headers.class != FrameClass::Data {
            return Marking::Pass;
        }
        self.count(headers.size);
        if self.left >= 0 {
            return Marking::Pass;
        }
        match self.sample(sample.queue.get()) {
            Some(body) => Marking::Notify(Notification::Cnm(body)),
            None => Marking::Pass,
        }
    }

    /// A dropped frame counts towards the next sample, which the next admitted frame takes. Source: IEEE 802.1Q, 32.7.4 (cpEnqued counts what is offered).
    fn on_drop(&mut self, size: Bytes, _: &QueueSample, _: Instant) {
        self.count(size);
    }

    fn on_message(&mut self) {
        self.transmitted += 1;
    }

    fn read(&self, prefix: &str, named: &mut Vec<(String, u64)>) {
        if self.samples > 0 {
            named.push((format!("{prefix}_cp_samples"), self.samples));
            named.push((format!("{prefix}_cp_transmitted_cnms"), self.transmitted));
        }
    }
}

#[cfg(test)]
mod tests;
