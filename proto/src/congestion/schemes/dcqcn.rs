//! DCQCN: switches mark with CE by the length of an output's queue, receivers answer with CNPs, senders
//! cut their rate by what they believe of the congestion (α) and recover in stages.
//!
//! Sources: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015 (profile
//! `paper`); NVIDIA DOC-2790 and firmware defaults of ConnectX adapters (`cx`); the public ns-3 model
//! that came with HPCC (`hpcc`). What they disagree in: algorithms.md 8.3, 8.4.
//!
//! ```text
//!   switch output           receiver                    sender
//!   p = Pmax·(q − Kmin)     CE on data: a CNP at        CNP: RT = RC, RC −= RC·α/2, α += g·(1 − α)
//!       / (Kmax − Kmin) ──▶ once, then none for N   ──▶ none for K: α −= g·α
//!   p = 1 above Kmax                                    each T, each B octets: a stage. The first F:
//!   sets CE                                             RC = (RC + RT) / 2; later RT grows as well
//! ```
//!
//! [`profile`] holds the numbers, [`red`] the congestion point, [`alpha`] and [`sender`] the reaction
//! point; the notification point is here.

use super::Scheme;
use super::none::Unhurt;
use super::params::{self, Kind, Param};
use crate::congestion::{NotificationPoint, ParamError, Scope, TransportNote, Travel};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::Ecn;
use crate::units::{Bytes, Duration, Instant};

mod alpha;
mod profile;
mod red;
mod sender;

use profile::Settings;
use red::Red;
use sender::Sender;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "dcqcn",
    source: "Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015",
    check,
    scope: |_| Scope::QueuePair,
    reaction_points: |_| usize::MAX,
    congestion_point: |place| {
        let settings = Settings::new(&place);
        Box::new(Red::new(&settings, place.random))
    },
    notification_point: |place| Box::new(Receiver::new(Settings::new(&place).cnp_interval)),
    reaction_point: |place| match params::word(place.params, "reaction", "obeys") {
        "frozen" => Box::new(Unhurt::new(place.line_rate)),
        _ => Box::new(Sender::new(&place, Settings::new(&place))),
    },
};

/// What is written counts as it stands; what is not is the profile's, scaled to the line.
const PARAMS: &[Param] = &[
    Param { name: "profile", kind: Kind::Word(&["paper", "cx", "hpcc"]) },
    // The congestion point.
    Param { name: "kmin", kind: Kind::Size },
    Param { name: "kmax", kind: Kind::Size },
    Param { name: "pmax", kind: Kind::Fraction },
    Param { name: "mark_at", kind: Kind::Word(&["dequeue", "enqueue"]) },
    // The notification point: N.
    Param { name: "cnp_interval", kind: Kind::Time },
    // The reaction point. One that is frozen sends on at the line's rate, whatever it is told.
    Param { name: "reaction", kind: Kind::Word(&["obeys", "frozen"]) },
    Param { name: "g", kind: Kind::Fraction },
    // K, and whether it begins anew with each CNP or runs freely and asks whether there was one.
    Param { name: "alpha_interval", kind: Kind::Time },
    Param { name: "alpha_timer", kind: Kind::Word(&["since-cnp", "free"]) },
    // Binary places of α.
    Param { name: "alpha_bits", kind: Kind::Integer(8, 48) },
    // With `alpha_timer` = `since-cnp`: what a CNP changes first.
    Param { name: "cnp_order", kind: Kind::Word(&["cut-alpha", "alpha-cut"]) },
    // A cut for each CNP, or one at the end of each period in which there was one.
    Param { name: "cut", kind: Kind::Word(&["per-cnp", "per-period"]) },
    Param { name: "cut_period", kind: Kind::Time },
    // The most that one cut takes.
    Param { name: "cut_max", kind: Kind::Fraction },
    // With `cut` = `per-period`: the rate set by a flow's first CNP, as a share of what it was.
    Param { name: "first_cnp_rate", kind: Kind::Fraction },
    // Whether the target follows each cut, or only the first after an increase.
    Param { name: "clamp_target", kind: Kind::Word(&["always", "after-increase"]) },
    // T, B (0 octets: no such counter) and F.
    Param { name: "time_reset", kind: Kind::Time },
    Param { name: "byte_reset", kind: Kind::Size },
    Param { name: "stages", kind: Kind::Integer(1, 31) },
    // How the target grows past the additive stage: i·R_HAI once both counters are past it, or R_HAI
    // as soon as one is.
    Param { name: "hyper", kind: Kind::Word(&["growing", "flat"]) },
    Param { name: "rate_ai", kind: Kind::Rate },
    Param { name: "rate_hai", kind: Kind::Rate },
    Param { name: "rate_min", kind: Kind::Rate },
];

fn check(table: &toml::Table) -> Vec<ParamError> {
    let mut faults = params::check(table, &[PARAMS]);
    let size = |key| params::quantity::<Bytes>(table, key);
    if let (Some(kmin), Some(kmax)) = (size("kmin"), size("kmax"))
        && kmin > kmax
    {
        let allowed = format!("at most kmax, {kmax}");
        faults.push(ParamError { field: "kmin".to_owned(), value: kmin.to_string(), allowed });
    }
    faults
}

/// The notification point of one flow: a CNP with the first CE, then at most one an interval.
#[derive(Debug)]
struct Receiver {
    interval: Duration,
    last: Option<Instant>,
}

impl Receiver {
    fn new(interval: Duration) -> Receiver {
        Receiver { interval, last: None }
    }
}

impl NotificationPoint for Receiver {
    /// Only data is answered: a CNP for a marked CNP would go round for ever.
    fn on_receive(
        &mut self,
        headers: &FrameHeaders,
        _: Bytes,
        now: Instant,
    ) -> Option<TransportNote> {
        let answers = headers.ecn == Ecn::CongestionExperienced
            && headers.class == FrameClass::Data
            && !headers.multicast
            && self.last.is_none_or(|last| now.since(last) >= self.interval);
        answers.then(|| {
            self.last = Some(now);
            TransportNote::becn(Travel::Cnp)
        })
    }
}

#[cfg(test)]
mod tests;
