//! BCN: switches sample frames that come to an output's queue and tell the source of the sampled frame
//! how far the queue is from its equilibrium and which way it moves; rate limiters in the senders obey.
//!
//! Sources: Bergamasco's proposal to IEEE 802.1 (backward congestion notification) as the Zurich
//! Hotspot Benchmark sets it up; where its slides slip in signs and units: algorithms.md 4.1, 4.3.
//!
//! ```text
//!   switch output                                        sender, towards one destination
//!   each frame with P_sample:                            Fb < 0: r ×= 1 + Gd·Fb        (≥ Rmin)
//!     Qoff = Qeq − q, Qdelta = q − q before       BCN            remembers whose CPID it was
//!     Fb = Qoff − W·Qdelta                        ──▶    Fb > 0: r += Gi·Fb·Ru          (≤ C)
//!     Fb < 0: to anybody                                         if it is that CPID's
//!     Fb > 0: if the frame's tag names this CPID         tags its frames with the CPID
//!             and q < Qeq                                r = C and nothing waits: gone
//! ```
//!
//! Fb is in octets, Gi and Gd are per octet. What is told is in whole units of 64 octets, so both ends
//! reckon with the same Fb. [`congestion_point`] and [`reaction_point`] hold the roles; a receiver has
//! no part in it.

use super::params::{self, Kind, Param};
use super::{Scheme, none};
use crate::congestion::{BcnBody, ParamError, Scope};
use crate::units::Bytes;

mod congestion_point;
mod reaction_point;

use congestion_point::Sampler;
use reaction_point::Limiter;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "bcn",
    source: "Bergamasco, Data center Ethernet congestion management: backward congestion notification",
    check,
    scope: |_| Scope::Destination,
    reaction_points: |_| usize::MAX,
    congestion_point: |place| match Sampler::new(place) {
        Some(sampler) => Box::new(sampler),
        None => Box::new(none::Silent),
    },
    notification_point: |_| Box::new(none::Silent),
    reaction_point: |place| Box::new(Limiter::new(place)),
};

/// Defaults are the benchmark's base set, which goes with a memory of 600 KB: whoever has another one
/// scales the gains with it.
const PARAMS: &[Param] = &[
    // Both roles: the weight of the queue's change.
    Param { name: "w", kind: Kind::Integer(0, 64) },
    // The congestion point. Without `q_eq` a quarter of an input's buffer.
    Param { name: "q_eq", kind: Kind::Size },
    // Each frame with the chance P_sample, or one frame in so many octets.
    Param { name: "sampling", kind: Kind::Word(&["random", "octets"]) },
    Param { name: "p_sample", kind: Kind::Fraction },
    Param { name: "sample_octets", kind: Kind::Size },
    // Above `q_sc` congestion is severe, and with `bcn_zero` sources are told to stop. Above `q_max`
    // with `bcn_max` they are told the largest feedback there is. Without them 3 and 3.5 times `q_eq`.
    Param { name: "q_sc", kind: Kind::Size },
    Param { name: "q_max", kind: Kind::Size },
    Param { name: "bcn_zero", kind: Kind::Word(&["off", "on"]) },
    Param { name: "bcn_max", kind: Kind::Word(&["off", "on"]) },
    // The reaction point: gains per octet, as a decimal or as "1/600000".
    Param { name: "gi", kind: Kind::Gain },
    Param { name: "gd", kind: Kind::Gain },
    Param { name: "ru", kind: Kind::Rate },
    Param { name: "rmin", kind: Kind::Rate },
    // A limiter that hears nothing for so long grows by so much; without `self_increase` it waits.
    Param { name: "self_increase", kind: Kind::Rate },
    Param { name: "self_increase_every", kind: Kind::Time },
    // Who is told to stop does so for a random time up to this one, and begins anew with this share
    // of its line.
    Param { name: "stop_max", kind: Kind::Time },
    Param { name: "restart", kind: Kind::Fraction },
    // Feedback to a frame that left longer than this before the last decrease is not heeded; without
    // it all is.
    Param { name: "rtt", kind: Kind::Time },
];

fn check(table: &toml::Table) -> Vec<ParamError> {
    let mut faults = params::check(table, &[PARAMS]);
    for key in ["q_eq", "sample_octets"] {
        if params::quantity::<Bytes>(table, key).is_some_and(|size| size < Bytes::new(UNIT)) {
            let (field, value) = (key.to_owned(), table[key].to_string());
            faults.push(ParamError { field, value, allowed: "at least 64 octets".to_owned() });
        }
    }
    faults
}

/// W, which both roles have to know.
fn weight(table: &toml::Table) -> i64 {
    params::integer(table, "w", 2)
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
