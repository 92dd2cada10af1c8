//! Congestion marks and CNPs on RoCE.
//!
//! No standard states how far apart CNPs are or which DSCP they have: adapters configure both. They are judged only if
//! the user states them; otherwise the observed values are noted. Marks on CNPs and acknowledgements are noted as
//! well: these frames are usually sent as not capable of ECN, and no switch may mark such a frame, but nothing forbids
//! a sender to declare them capable. Queues before the port of the capture can bring CNPs closer together than they
//! were sent.

use super::flows::{FLOWS_MAX, entry};
use super::packet::{Endpoint, PacketHeaders};
use super::ports::Place;
use super::rule::rules;
use super::{Check, Family, Report, Settings};
use proto::ids::{Dscp, Ecn};
use proto::units::Duration;
use proto::wire::infiniband::Opcode;
use proto::wire::infiniband::opcode::OpcodeRow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

rules! {
    PACE "cnp-pace" "CNPs of a flow are an interval apart (asks for --cnp-interval)",
        "Zhu et al., SIGCOMM 2015, 3.2 (NP); adapters' min_time_between_cnps";
    CLASS "cnp-dscp" "CNPs have the DSCP of their class (asks for --cnp-dscp)",
        "adapters' configuration; by habit 48";
}

/// The flow that CNPs are about: place of the capture, source, destination and destination queue pair.
type CnpFlow = (Place, Endpoint, Endpoint, u32);

/// The family.
pub struct Congestion {
    interval: Option<Duration>,
    dscp: Option<Dscp>,
    /// Time of the last CNP of each flow, nanoseconds.
    last: HashMap<CnpFlow, u64>,
    /// Least time between two CNPs of a flow.
    closest: Option<Duration>,
}

impl Congestion {
    /// Judges by what is known of the adapters.
    pub fn new(settings: &Settings) -> Congestion {
        let Settings { cnp_interval: interval, cnp_dscp: dscp, .. } = *settings;
        Congestion { interval, dscp, last: HashMap::new(), closest: None }
    }

    fn on_cnp(&mut self, check: &mut Check<'_>, headers: &PacketHeaders, queue_pair: u32) {
        let seen = check.seen;
        check.checked("CNPs");
        if let (Some(asked), Some(found)) = (self.dscp, headers.dscp)
            && found != asked
        {
            check.breaks(&CLASS, found.get(), asked.get());
        }
        let flow = (seen.place, headers.source, headers.destination, queue_pair);
        let Some(entry) = entry(&mut self.last, flow, FLOWS_MAX) else {
            return check.not_checked("CNPs of more flows than are followed at once");
        };
        let Entry::Occupied(mut last) = entry else {
            entry.insert_entry(seen.at_ns);
            return;
        };
        let apart = Duration::from_ns(seen.at_ns.saturating_sub(last.insert(seen.at_ns)));
        self.closest = Some(self.closest.map_or(apart, |closest| closest.min(apart)));
        // The file counts whole nanoseconds.
        let is_early = |least: &Duration| apart + Duration::from_ns(1) < *least;
        if let Some(interval) = self.interval.filter(is_early) {
            let found = format_args!("{apart} after the one before");
            check.breaks(&PACE, found, format_args!("at least {interval}"));
        }
    }
}

impl Family for Congestion {
    fn check(&mut self, check: &mut Check<'_>) {
        let believed = check.seen.believed().filter(|headers| headers.dscp.is_some());
        let Some((headers, bth)) = believed.and_then(|headers| Some((headers, headers.bth?)))
        else {
            return;
        };
        let is_cnp = bth.opcode == Opcode::ROCEV2_CNP;
        if headers.ecn == Ecn::CongestionExperienced {
            let is_ack = bth.opcode.row().is_some_and(OpcodeRow::is_acknowledgement);
            let what = match (is_cnp, is_ack) {
                (true, _) => "CNPs with CE",
                (_, true) => "acknowledgements with CE",
                _ => "data packets with CE",
            };
            check.report.tally.noted(what, 1);
        }
        if is_cnp {
            self.on_cnp(check, headers, bth.destination.get());
        }
    }

    fn finish(&mut self, report: &mut Report, _kept: u64) {
        if let (Some(closest), None) = (self.closest, self.interval) {
            report.tally.noted("ns at least between two CNPs of a flow", closest.as_ps() / 1_000);
        }
    }
}

#[cfg(test)]
mod tests;
