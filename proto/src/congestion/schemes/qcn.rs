//! QCN: what became of backward congestion notification in the standard. Switches sample their queues
//! every so many octets and send congestion notification messages, which only ever say how bad it is;
//! senders cut their rate, and recover by themselves in stages.
//!
//! Source: IEEE 802.1Q, clauses 30 to 33 (802.1Qau), names and defaults of IEEE8021-CN-MIB; where its
//! pseudo-code of 2007 to 2009 differs: algorithms.md 5.2, 5.3.
//!
//! ```text
//!   switch output                                     sender, towards one destination
//!   every cpSampleBase octets, the sooner the         CNM: target = current (after a stage),
//!   worse it was, ± 15 %:                      CNM         current ×= 1 − Gd·QntzFb
//!     Fb = (cpQSp − q) − W·(q − q before)      ──▶    each 150 KB and each 15 ms: a stage.
//!     QntzFb = 63·|Fb| / ((2W + 1)·cpQSp)             Both below 5: current = (current + target) / 2
//!     above 0: to the frame's source                  one from 5 on: target += 5 Mb/s as well
//!                                                     both from 5 on: target += i·50 Mb/s as well
//! ```
//!
//! [`congestion_point`] and [`reaction_point`] hold the roles; a receiver has no part in it. A sender
//! has `max_rps` reaction points in a priority. With one, all that it sends is slowed for the one
//! destination that is congested; with n, the first n − 1 destinations that it sends to have their own
//! and all others share the last.

use super::params::{self, Kind, Param};
use super::{Scheme, none};
use crate::congestion::{ParamError, Scope};
use crate::units::Bytes;

mod congestion_point;
mod reaction_point;

use congestion_point::Sampler;
use reaction_point::RateLimiter;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "qcn",
    source: "IEEE 802.1Q, clauses 30 to 33 (802.1Qau)",
    check,
    scope: |_| Scope::Destination,
    reaction_points: |table| params::integer(table, "max_rps", MAX_RPS) as usize,
    congestion_point: |place| match Sampler::new(place) {
        Some(sampler) => Box::new(sampler),
        None => Box::new(none::Silent),
    },
    notification_point: |_| Box::new(none::Silent),
    reaction_point: |place| Box::new(RateLimiter::new(&place)),
};

/// As many as the MIB has room for, and not the one that is its default. Source: IEEE8021-CN-MIB,
/// ieee8021CnRpPortPriMaxRps.
const MAX_RPS: i64 = 100;

/// Names and ranges of IEEE8021-CN-MIB, in this project's spelling.
const PARAMS: &[Param] = &[
    // The congestion point: set point, exponent of the weight, octets between samples.
    Param { name: "cp_q_sp", kind: Kind::Size },
    Param { name: "cp_weight", kind: Kind::Integer(-10, 10) },
    Param { name: "cp_sample_base", kind: Kind::Size },
    // The reaction point.
    Param { name: "rpg_time_reset", kind: Kind::Time },
    Param { name: "rpg_byte_reset", kind: Kind::Size },
    Param { name: "rpg_threshold", kind: Kind::Integer(1, 100) },
    Param { name: "rpg_max_rate", kind: Kind::Rate },
    Param { name: "rpg_ai_rate", kind: Kind::Rate },
    Param { name: "rpg_hai_rate", kind: Kind::Rate },
    // Gd is two to the power of minus this.
    Param { name: "rpg_gd", kind: Kind::Integer(-10, 10) },
    // Percent of the rate that one cut leaves at least.
    Param { name: "rpg_min_dec_fac", kind: Kind::Integer(1, 100) },
    Param { name: "rpg_min_rate", kind: Kind::Rate },
    // Not of the standard: a counter's period is halved as soon as its own stage is past the
    // threshold, as in the pseudo-code; the standard waits for both.
    Param { name: "halve_in_active", kind: Kind::Word(&["off", "on"]) },
    // Beyond the range of the MIB, for sources with more destinations than that.
    Param { name: "max_rps", kind: Kind::Integer(1, 65_535) },
];

/// The smallest cpSampleBase and, here, rpgByteReset that is of any use.
fn check(table: &toml::Table) -> Vec<ParamError> {
    let mut faults = params::check(table, &[PARAMS]);
    let least = [("cp_q_sp", 100), ("cp_sample_base", 10_000), ("rpg_byte_reset", 100)];
    for (key, octets) in least {
        if params::quantity::<Bytes>(table, key).is_some_and(|size| size < Bytes::new(octets)) {
            let (field, value) = (key.to_owned(), table[key].to_string());
            faults.push(ParamError { field, value, allowed: format!("at least {octets} B") });
        }
    }
    faults
}

#[cfg(test)]
mod tests;
