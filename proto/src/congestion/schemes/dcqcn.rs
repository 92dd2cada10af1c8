//! DCQCN: switches mark with CE by the length of an output's queue, receivers answer with CNPs, senders
//! cut their rate by their estimate of the congestion (α) and recover in stages.
//!
//! Sources: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015 (profile
//! `paper`); NVIDIA DOC-2790 and firmware defaults of ConnectX adapters (`cx`); the public ns-3 model
//! that came with HPCC (`hpcc`). Parameters cover the points in which they disagree.
//!
//! ```text
//!   switch output           receiver                    sender
//!   p = Pmax·(q − Kmin)     CE on data: a CNP at        CNP: RT = RC, RC −= RC·α/2, α += g·(1 − α)
//!       / (Kmax − Kmin) ──▶ once, then none for N   ──▶ none for K: α −= g·α
//!   p = 1 above Kmax                                    each T, each B octets: a stage. The first F:
//!   sets CE                                             RC = (RC + RT) / 2; later RT grows as well
//! ```
//!
//! [`profile`] holds the parameters, [`red`] the congestion point, [`alpha`] and [`sender`] the reaction
//! point; the notification point is here.

use super::{Scheme, Throttling, none};
use crate::congestion::{
    CongestionPoint, NotificationPoint, Place, ReactionPoint, Roles, TransportNote, Travel,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::Ecn;
use crate::params::{Complaint, Params};
use crate::technology::Technology;
use crate::units::{Bytes, Duration, Instant};
use std::sync::Arc;

mod alpha;
mod profile;
mod red;
mod sender;

use profile::{Reaction, Settings};
use red::Red;
use sender::Sender;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "dcqcn",
    about: "Switches mark with CE, receivers send CNPs, senders cut their rate and recover in stages.",
    source: "Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015",
    technologies: &[Technology::Ethernet],
    keys: &[Settings::KEYS],
    parse: |reader| {
        let settings = Settings::read(reader)?;
        let both = ["kmin", "kmax"].iter().all(|key| reader.is_written(key));
        if both && settings.kmin > settings.kmax {
            let hint = format!("at most kmax, {}", settings.kmax);
            reader.refuse("kmin", Complaint::new("above kmax", hint));
        }
        let names = Settings::KEYS.iter().map(|key| key.name);
        let written = names.filter(|name| reader.is_written(name)).collect();
        Some(Arc::new(Dcqcn { settings, written }))
    },
    signals: None,
    shows: Throttling::Rate,
};

/// The scheme with its parameters.
#[derive(Debug)]
struct Dcqcn {
    /// Defaults are for 40 Gb/s.
    settings: Settings,
    /// The parameters that do not scale with the line.
    written: Vec<&'static str>,
}

impl Dcqcn {
    fn at(&self, place: &Place) -> Settings {
        self.settings.on_line(place.line_rate, &self.written)
    }
}

impl Roles for Dcqcn {
    fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        Box::new(Red::new(&self.at(&place), place.random))
    }

    fn notification_point(&self, _: Place) -> Box<dyn NotificationPoint> {
        Box::new(Receiver::new(self.settings.cnp_interval))
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        match self.settings.reaction {
            Reaction::Frozen => Box::new(none::Unlimited::new(place.line_rate)),
            Reaction::Obeys => Box::new(Sender::new(&place, self.at(&place))),
        }
    }

    fn in_force(&self, place: &Place) -> Vec<(&'static str, String)> {
        let Settings { kmin, kmax, byte_reset, rate_ai, rate_hai, rate_min, .. } = self.at(place);
        let sizes = [("kmin", kmin), ("kmax", kmax), ("byte_reset", byte_reset)];
        let rates = [("rate_ai", rate_ai), ("rate_hai", rate_hai), ("rate_min", rate_min)];
        let sizes = sizes.map(|(key, size)| (key, size.to_string()));
        sizes.into_iter().chain(rates.map(|(key, rate)| (key, rate.to_string()))).collect()
    }
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
    /// Only data is answered: a CNP for a marked CNP would cause another one without end.
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
