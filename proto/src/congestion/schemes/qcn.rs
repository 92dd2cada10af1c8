//! QCN, the standardised form of backward congestion notification. Switches sample their queues every
//! so many octets and send congestion notification messages with the degree of congestion. Senders cut
//! their rate and recover without further messages, in stages.
//!
//! Source: IEEE 802.1Q, clauses 30 to 33 (802.1Qau), names and defaults of IEEE8021-CN-MIB. The
//! pseudo-code of 2007 to 2009 differs in some details.
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
//! [`congestion_point`] and [`reaction_point`] hold the roles; a receiver has none. A sender has
//! `max_rps` reaction points in a priority. With one, congestion towards one destination slows all of
//! its traffic; with n, its first n − 1 destinations have their own and all others share the last.

use super::{OnOff, Scheme, Signals, Throttling, none};
use crate::congestion::{CongestionPoint, Place, ReactionPoint, Roles, Scope};
use crate::params::{Complaint, Params};
use crate::technology::Technology;
use crate::units::{BitRate, Bytes, Duration};
use std::sync::Arc;

mod congestion_point;
mod reaction_point;

use congestion_point::Sampler;
use reaction_point::RateLimiter;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "qcn",
    about: "Switches sample their queues and send quantised feedback; senders cut their rate and recover in stages.",
    source: "IEEE 802.1Q, clauses 30 to 33 (802.1Qau)",
    technologies: &[Technology::Ethernet],
    keys: &[QcnParams::KEYS],
    parse: |reader| {
        let params = QcnParams::read(reader)?;
        let QcnParams { cp_q_sp, cp_sample_base, rpg_byte_reset, .. } = params;
        let least = [
            ("cp_q_sp", cp_q_sp, 100),
            ("cp_sample_base", cp_sample_base, 10_000),
            ("rpg_byte_reset", rpg_byte_reset, 100),
        ];
        for (key, _, least) in least.into_iter().filter(|(_, size, least)| size.get() < *least) {
            reader.refuse(key, Complaint::new("too small", format!("at least {least} B")));
        }
        Some(Arc::new(params))
    },
    signals: Some(Signals { marks: "marks", notifications: "CNMs" }),
    shows: Throttling::Gap,
};

crate::params! {
    /// Parameters of QCN: names and ranges of IEEE8021-CN-MIB, in this project's spelling.
    #[derive(Copy)]
    struct QcnParams {
        /// cpQSp, the set point: the queue length to aim for.
        cp_q_sp: Bytes = Octets, Default("26 KB"), "IEEE8021-CN-MIB, ieee8021CnCpQueueSizeSetPoint";
        /// Exponent of cpW, the weight of the queue's change: W = 2^n.
        cp_weight: i64 = Whole(-10, 10), Default("1"), "IEEE8021-CN-MIB, ieee8021CnCpFeedbackWeight";
        /// cpSampleBase, octets between two samples of an uncongested queue.
        cp_sample_base: Bytes = Octets, Default("150 KB"), "IEEE8021-CN-MIB, ieee8021CnCpMinSampleBase";
        /// rpgTimeReset, the period of the timer.
        rpg_time_reset: Duration = Span, Default("15 ms"), "IEEE8021-CN-MIB, ieee8021CnRpgTimeReset";
        /// rpgByteReset, the period of the byte counter.
        rpg_byte_reset: Bytes = Octets, Default("150 KB"), "IEEE8021-CN-MIB, ieee8021CnRpgByteReset";
        /// rpgThreshold, stages of fast recovery.
        rpg_threshold: u32 = Whole(1, 100), Default("5"), "IEEE8021-CN-MIB, ieee8021CnRpgThreshold";
        /// rpgMaxRate, the highest rate.
        rpg_max_rate: Option<BitRate> = Rate, Else("the line's rate"), "IEEE8021-CN-MIB, ieee8021CnRpgMaxRate";
        /// rpgAiRate, the increase of the target in a stage of active increase.
        rpg_ai_rate: BitRate = Rate, Default("5 Mbps"), "IEEE8021-CN-MIB, ieee8021CnRpgAiRate";
        /// rpgHaiRate, the increase of the target in a stage of hyper-active increase.
        rpg_hai_rate: BitRate = Rate, Default("50 Mbps"), "IEEE8021-CN-MIB, ieee8021CnRpgHaiRate";
        /// Exponent of rpgGd, the gain of a cut: Gd = 2^-n.
        rpg_gd: i64 = Whole(-10, 10), Default("7"), "IEEE8021-CN-MIB, ieee8021CnRpgGd";
        /// rpgMinDecFac, the percentage of the rate that one cut leaves at least.
        rpg_min_dec_fac: u64 = Whole(1, 100), Default("50"), "IEEE8021-CN-MIB, ieee8021CnRpgMinDecFac";
        /// rpgMinRate, the lowest rate.
        rpg_min_rate: BitRate = Rate, Default("5 Mbps"), "IEEE8021-CN-MIB, ieee8021CnRpgMinRate";
        /// Whether a counter's period is halved once its own stage is past the threshold, as in the pseudo-code
        /// of 2009; the standard waits for both.
        halve_in_active: OnOff = OnOff::KIND, Default("off"), "QCN pseudo-code 2.3";
        /// Reaction points of a sender in one priority. The MIB's range ends at 100, its default is 1.
        max_rps: usize = Whole(1, 65_535), Default("100"), "IEEE8021-CN-MIB, ieee8021CnRpPortPriMaxRps";
    }
}

impl Roles for QcnParams {
    fn scope(&self) -> Scope {
        Scope::Destination
    }

    fn reaction_points(&self) -> usize {
        self.max_rps
    }

    fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        none::or_silent(Sampler::new(self, place))
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        Box::new(RateLimiter::new(self, &place))
    }

    fn in_force(&self, place: &Place) -> Vec<(&'static str, String)> {
        vec![("rpg_max_rate", self.rpg_max_rate.unwrap_or(place.line_rate).to_string())]
    }

    fn set_point(&self) -> Option<Bytes> {
        Some(self.cp_q_sp)
    }
}

#[cfg(test)]
mod tests;
