//! Rules of packet sequence numbers, a flow at a time.
//!
//! A number that was skipped and one that comes again are told apart. A number may come again after
//! a NAK that names it; one that comes again without (a duplicate, or a requester that ran into its
//! timer) is reported. Datagrams count for all destinations of their queue pair together, so at most
//! a number that comes again can be told there. A queue pair may be set up anew and then begins where it
//! likes: after a management datagram between two ends, what they send next is not judged.
//! Source: IBTA Vol 1, 9.7.1 (PSN), 9.7.5.1.3 (retries), 9.8.

use super::anatomy::Endpoint;
use super::flows::{self, FlowPacket, Flows, Role};
use super::ports::Place;
use super::{Family, Findings, Rule, Seen, Tally};
use proto::ids::Psn;
use proto::wire::infiniband::Syndrome;
use proto::wire::infiniband::opcode::Operation;
use std::collections::HashMap;

/// The rules of this file.
pub const RULES: &[Rule] = &[GAP, REPEAT];

const GAP: Rule = Rule {
    id: "psn-gap",
    title: "no sequence number is skipped",
    source: "IBTA Vol 1, 9.7.2 and 9.8.2",
};
const REPEAT: Rule = Rule {
    id: "psn-repeat",
    title: "no sequence number comes again, unless a NAK has asked for it",
    source: "IBTA Vol 1, 9.7.5 and 9.8.2",
};

/// The smallest MTU: a READ request takes up a number for each this many octets, at most.
const MTU_MIN: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The first number not yet seen.
    next: Psn,
    /// A READ request came last: as many more numbers may be its responses'.
    slack: u32,
    /// Numbers come again from here on, and that was reported or asked for.
    again: Option<Psn>,
    /// Damaged frames at the place when the last packet of this flow came.
    damaged: u64,
    /// Management datagrams between its ends when the flow began.
    set_up: u32,
}

/// The family.
#[derive(Default)]
pub struct Sequences {
    flows: Flows<Flow>,
    /// The number each NAK named last, by where its requester's packets are seen.
    asked: HashMap<(u32, Endpoint, Endpoint), Psn>,
    /// Management datagrams seen at each port between two ends, the lesser first.
    set_up: HashMap<(u32, Endpoint, Endpoint), u32>,
    retransmitted: u64,
}

/// Pairs of ends remembered; between more, queue pairs set up anew are called repeats.
const SET_UP_MAX: usize = 1 << 16;

/// NAKs remembered; more requesters than that and some retries are called repeats.
const ASKED_MAX: usize = 1 << 16;

impl Family for Sequences {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        self.hear_nak(seen);
        let packet = match FlowPacket::of(seen) {
            Ok(packet) => packet,
            Err("") => return,
            Err(why) => {
                if why == flows::MANAGEMENT {
                    self.hear_management(seen);
                }
                return tally.not_checked(why, 1);
            }
        };
        let set_up = ends(seen).and_then(|ends| self.set_up.get(&ends)).copied().unwrap_or(0);
        let slack = match packet.row.operation {
            Operation::ReadRequest => {
                let reth = seen.anatomy.and_then(|anatomy| anatomy.extended?.reth);
                reth.map_or(0, |reth| reth.dma_length.div_ceil(MTU_MIN).saturating_sub(1))
            }
            _ => 0,
        };
        let psn = packet.bth.psn;
        let damaged = seen.damaged_before;
        let fresh = Flow { next: psn.next(), slack, again: None, damaged, set_up };
        let Some(flow) = self.flows.get_mut(&packet.key) else {
            return self.flows.begin(packet.key, fresh, tally);
        };
        if flow.set_up != set_up {
            *flow = fresh;
            return;
        }
        tally.checked("psn", 1);
        let ahead = psn.distance_from(flow.next);
        let begins = packet.row.begins_message();
        if ahead < 0 && !(packet.role() == Role::ReadResponse && begins) {
            let ends = seen.anatomy.map(|anatomy| (anatomy.source, anatomy.destination));
            let key = ends.map(|(from, to)| (seen.place.port, from, to));
            let asked = key.is_some_and(|key| self.asked.get(&key) == Some(&psn));
            if asked || flow.again == Some(psn) {
                self.retransmitted += 1;
            } else {
                let found = || format!("PSN {psn} again, {} behind", -ahead);
                findings.report(&REPEAT, seen, found, || flow.next.to_string());
            }
            flow.again = Some(psn.next());
        } else {
            let may_skip = match packet.role() {
                Role::Datagram => true,
                // Each answer begins where its request was numbered.
                Role::ReadResponse => begins,
                Role::Request => ahead as u32 <= flow.slack,
            };
            let lost = seen.damaged_before - flow.damaged;
            if ahead > 0 && !may_skip && ahead as u64 > lost {
                let found = || format!("PSN {psn}, {ahead} skipped");
                findings.report(&GAP, seen, found, || flow.next.to_string());
            }
            *flow = Flow { next: psn.next(), slack, again: None, ..*flow };
        }
        flow.damaged = seen.damaged_before;
    }

    fn finish(&mut self, tally: &mut Tally) {
        tally.checked("flows", self.flows.len());
        if self.retransmitted > 0 {
            tally.checked("retransmissions after a NAK", self.retransmitted);
        }
    }
}

/// The port and both ends of a packet, the lesser first.
fn ends(seen: &Seen<'_>) -> Option<(u32, Endpoint, Endpoint)> {
    let anatomy = seen.believed()?;
    let (one, other) = (anatomy.source, anatomy.destination);
    Some((seen.place.port, one.min(other), one.max(other)))
}

impl Sequences {
    /// Connections are made and ended by management datagrams.
    fn hear_management(&mut self, seen: &Seen<'_>) {
        let Some(ends) = ends(seen) else { return };
        if self.set_up.len() < SET_UP_MAX || self.set_up.contains_key(&ends) {
            *self.set_up.entry(ends).or_default() += 1;
        }
    }

    /// A NAK names the number that its requester goes back to.
    fn hear_nak(&mut self, seen: &Seen<'_>) {
        let Some(anatomy) = seen.believed() else { return };
        let aeth = anatomy.extended.and_then(|extended| extended.aeth);
        let (Some(bth), Some(aeth)) = (anatomy.bth, aeth) else { return };
        if !matches!(aeth.syndrome, Syndrome::Rnr { .. } | Syndrome::Nak(_)) {
            return;
        }
        let Place { port, .. } = seen.place;
        let key = (port, anatomy.destination, anatomy.source);
        if self.asked.len() < ASKED_MAX || self.asked.contains_key(&key) {
            self.asked.insert(key, bth.psn);
        }
    }
}
