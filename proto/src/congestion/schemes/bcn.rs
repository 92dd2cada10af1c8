//! BCN: switches sample frames that join an output's queue and send the queue's distance from its
//! equilibrium and its change to the source of the frame; rate limiters in the senders react.
//!
//! Source: Bergamasco's proposal to IEEE 802.1 (backward congestion notification), with the numbers of
//! the Zurich Hotspot Benchmark. Signs and units are corrected where its slides contradict themselves.
//!
//! ```text
//!   switch output                                        sender, towards one destination
//!   each frame with P_sample:                            Fb < 0: r ×= 1 + Gd·Fb        (≥ Rmin)
//!     Qoff = Qeq − q, Qdelta = q − q before       BCN            stores the CPID of its sender
//!     Fb = Qoff − W·Qdelta                        ──▶    Fb > 0: r += Gi·Fb·Ru          (≤ C)
//!     Fb < 0: to every source                                    if it is that CPID's
//!     Fb > 0: if the frame's tag names this CPID         tags its frames with the CPID
//!             and q < Qeq                                r = C and nothing waits: gone
//! ```
//!
//! Fb is in octets, Gi and Gd are per octet. Messages carry whole units of 64 octets, so both ends
//! compute the same Fb. [`congestion_point`] and [`reaction_point`] hold the roles; a receiver has none.

use super::{OnOff, Scheme, Signals, Throttling, none};
use crate::congestion::{BcnBody, CongestionPoint, Place, ReactionPoint, Roles, Scope};
use crate::params::{Complaint, Millionths, Params, Ratio};
use crate::technology::Technology;
use crate::units::{BitRate, Bytes, Duration};
use std::sync::Arc;

mod congestion_point;
mod reaction_point;

use congestion_point::Sampler;
use reaction_point::Limiter;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "bcn",
    about: "Switches sample frames and send the queue's state to their sources, which limit their rate.",
    source: "Bergamasco, Data center Ethernet congestion management: backward congestion notification",
    technologies: &[Technology::Ethernet],
    keys: &[BcnParams::KEYS],
    parse: |reader| {
        let params = BcnParams::read(reader)?;
        for (key, size) in [("q_eq", params.q_eq), ("sample_octets", Some(params.sample_octets))] {
            if size.is_some_and(|size| size < Bytes::new(UNIT)) {
                reader.refuse(key, Complaint::new("too small", "at least 64 octets"));
            }
        }
        Some(Arc::new(params))
    },
    signals: Some(Signals { marks: "marks", notifications: "BCNs" }),
    shows: Throttling::Gap,
};

crate::params! {
    /// Parameters of BCN. Defaults are the base set of the Zurich Hotspot Benchmark for a memory of 600 KB;
    /// with another memory, scale the gains.
    #[derive(Copy)]
    struct BcnParams {
        /// W, the weight of the queue's change; of both roles.
        w: i64 = Whole(0, 64), Default("2"), "Bergamasco";
        /// Qeq, the queue length to aim for.
        q_eq: Option<Bytes> = Octets, Else("a quarter of an input's buffer"), "Bergamasco";
        /// What selects a sample: each frame with the probability `p_sample`, or one frame in `sample_octets`.
        sampling: SamplingMode = SamplingMode::KIND, Default("random");
        /// Probability of a sample.
        p_sample: Millionths = Real(0.0, 1.0), Default("0.02"), "Bergamasco" => Is("sampling", &["random"]);
        /// Octets between two samples.
        sample_octets: Bytes = Octets, Default("75 KB") => Is("sampling", &["octets"]);
        /// Qsc: above this queue length congestion is severe, and `bcn_zero` stops sources.
        q_sc: Option<Bytes> = Octets, Else("3 times q_eq"), "Bergamasco";
        /// Above this queue length `bcn_max` sends the largest feedback.
        q_max: Option<Bytes> = Octets, Else("3.5 times q_eq"), "US 8792352" => Is("bcn_max", &["on"]);
        /// Whether severe congestion stops sources.
        bcn_zero: OnOff = OnOff::KIND, Default("off"), "Bergamasco";
        /// Whether a queue above `q_max` sends the largest feedback.
        bcn_max: OnOff = OnOff::KIND, Default("off"), "US 8792352";
        /// Gi, the gain of an increase, per octet of feedback.
        gi: Ratio = Gain, Default("1/1500"), "Bergamasco";
        /// Gd, the gain of a decrease, per octet of feedback.
        gd: Ratio = Gain, Default("1/600000"), "Bergamasco";
        /// Ru, the unit of an increase.
        ru: BitRate = Rate, Default("10 Mbps"), "Bergamasco";
        /// Rmin, the lowest rate.
        rmin: BitRate = Rate, Default("10 Mbps"), "Bergamasco";
        /// Growth of a limiter that receives no notification for `self_increase_every`.
        self_increase: Option<BitRate> = Rate, Optional;
        /// Time without notification after which a limiter grows.
        self_increase_every: Duration = Span, Default("10 ms") => Written("self_increase");
        /// Longest time for which BCN(0,0) stops a source; the time is random.
        stop_max: Duration = Span, Default("10 us"), "Bergamasco" => Is("bcn_zero", &["on"]);
        /// Share of the line's rate at which a stopped source starts again.
        restart: Millionths = Real(0.0, 1.0), Default("0.1"), "Bergamasco" => Is("bcn_zero", &["on"]);
        /// Feedback to a frame that left longer than this before the last decrease is ignored.
        rtt: Option<Duration> = Span, Optional;
    }
}

crate::words! {
    /// What selects a sample.
    enum SamplingMode {
        /// Chance.
        Random = "random",
        /// A count of octets.
        Octets = "octets",
    }
}

impl BcnParams {
    /// Qeq, Qsc and the level of BCN_MAX, in octets, for an input with this buffer.
    fn levels(&self, buffer: Bytes) -> [u64; 3] {
        let equilibrium = self.q_eq.map_or(buffer.get() / 4, Bytes::get).max(UNIT);
        let severe = self.q_sc.map_or(equilibrium.saturating_mul(3), Bytes::get);
        let maximal = self.q_max.map_or(equilibrium.saturating_mul(7) / 2, Bytes::get);
        [equilibrium, severe, maximal]
    }
}

impl Roles for BcnParams {
    fn scope(&self) -> Scope {
        Scope::Destination
    }

    fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        none::or_silent(Sampler::new(self, place))
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        Box::new(Limiter::new(self, place))
    }

    fn in_force(&self, place: &Place) -> Vec<(&'static str, String)> {
        let levels = self.levels(place.buffer).map(|octets| Bytes::new(octets).to_string());
        ["q_eq", "q_sc", "q_max"].into_iter().zip(levels).collect()
    }
}

/// Octets in a unit of Qoff and Qdelta.
const UNIT: u64 = 64;

/// Fb = Qoff − W·Qdelta, in octets.
fn feedback(body: &BcnBody, weight: i64) -> i64 {
    let units = i64::from(body.q_offset) - weight * i64::from(body.q_delta);
    units * UNIT as i64
}

#[cfg(test)]
mod tests;
