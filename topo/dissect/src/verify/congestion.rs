//! Congestion on RoCE: what marks there are and on what, and how CNPs come.
//!
//! No standard says how far apart CNPs are or which DSCP they have: that is the adapters' configuration.
//! Whoever knows it may say it and have it judged; otherwise what is there is noted, and nothing is
//! called wrong. So are marks on CNPs and acknowledgements: nobody sends those as capable of it by
//! habit, and no switch may mark what is not, but nothing forbids a sender to say that it is.
//! Where queues stand before the port of the capture, CNPs may come closer together than they were sent.

use super::anatomy::{Anatomy, Endpoint};
use super::flows::FLOWS_MAX;
use super::ports::Place;
use super::{Family, Findings, Rule, Seen, Settings, Tally};
use proto::ids::{Dscp, Ecn};
use proto::units::Duration;
use proto::wire::infiniband::Opcode;
use proto::wire::infiniband::opcode::OpcodeRow;
use std::collections::HashMap;

/// The rules of this file.
pub const RULES: &[Rule] = &[PACE, CLASS];

const PACE: Rule = Rule {
    id: "cnp-pace",
    title: "CNPs of a flow are an interval apart (asks for --cnp-interval)",
    source: "Zhu et al., SIGCOMM 2015, 3.2 (NP); adapters' min_time_between_cnps",
};
const CLASS: Rule = Rule {
    id: "cnp-dscp",
    title: "CNPs have the DSCP of their class (asks for --cnp-dscp)",
    source: "adapters' configuration; by habit 48",
};

/// The flow that CNPs are about: where they are seen, from whom, to whom and to which queue pair.
type CnpFlow = (Place, Endpoint, Endpoint, u32);

/// The family.
pub struct Congestion {
    interval: Option<Duration>,
    dscp: Option<Dscp>,
    /// When the last CNP of each flow came, in nanoseconds.
    last: HashMap<CnpFlow, u64>,
    /// The least time between two of a flow.
    closest: Option<Duration>,
}

impl Congestion {
    /// Judges by what is known of the adapters.
    pub fn new(settings: &Settings) -> Congestion {
        let Settings { cnp_interval: interval, cnp_dscp: dscp, .. } = *settings;
        Congestion { interval, dscp, last: HashMap::new(), closest: None }
    }

    fn on_cnp(
        &mut self,
        seen: &Seen<'_>,
        anatomy: &Anatomy,
        queue_pair: u32,
        findings: &mut Findings,
        tally: &mut Tally,
    ) {
        tally.checked("CNPs", 1);
        let is_other = |dscp: &Dscp| anatomy.dscp.is_some_and(|found| found != *dscp);
        if let Some(asked) = self.dscp.filter(is_other) {
            let found = || anatomy.dscp.map_or_else(String::new, |dscp| dscp.get().to_string());
            findings.report(&CLASS, seen, found, || asked.get().to_string());
        }
        let flow = (seen.place, anatomy.source, anatomy.destination, queue_pair);
        if self.last.len() >= FLOWS_MAX && !self.last.contains_key(&flow) {
            return tally.not_checked("CNPs of more flows than are followed at once", 1);
        }
        let Some(last) = self.last.insert(flow, seen.at_ns) else { return };
        let apart = Duration::from_ns(seen.at_ns.saturating_sub(last));
        self.closest = Some(self.closest.map_or(apart, |closest| closest.min(apart)));
        // The file's clock ticks in nanoseconds.
        if let Some(interval) = self.interval.filter(|least| apart + Duration::from_ns(1) < *least)
        {
            let found = || format!("{apart} after the one before");
            findings.report(&PACE, seen, found, || format!("at least {interval}"));
        }
    }
}

impl Family for Congestion {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let Some(anatomy) = seen.believed().filter(|anatomy| anatomy.dscp.is_some()) else {
            return;
        };
        let Some(bth) = anatomy.bth else { return };
        let is_cnp = bth.opcode == Opcode::ROCEV2_CNP;
        if anatomy.ecn == Ecn::CongestionExperienced {
            let is_ack = bth.opcode.row().is_some_and(OpcodeRow::is_acknowledgement);
            tally.noted(
                match (is_cnp, is_ack) {
                    (true, _) => "CNPs with CE",
                    (_, true) => "acknowledgements with CE",
                    _ => "data packets with CE",
                },
                1,
            );
        }
        if is_cnp {
            self.on_cnp(seen, anatomy, bth.destination.get(), findings, tally);
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        if let (Some(closest), None) = (self.closest, self.interval) {
            tally.noted("ns at least between two CNPs of a flow", closest.as_ps() / 1_000);
        }
    }
}

#[cfg(test)]
mod tests;
