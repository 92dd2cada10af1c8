//! Rules of packet sequence numbers, flow by flow.
//!
//! A skipped number and a repeated number are different findings. A number may be repeated after a NAK that names it;
//! a repeat without one (a duplicate, or a timeout of the requester) is reported. Datagrams to all destinations of a
//! queue pair share one sequence, so only a repeat can be found there. A queue pair that is set up again may begin at
//! any number: after a management datagram between two ends, the next packet between them is not judged.
//! Source: IBTA Vol 1, 9.7.1 (PSN), 9.7.5.1.3 (retries), 9.8.

use super::flows::{FlowKey, FlowPacket, MANAGEMENT, Role, entry, follow};
use super::packet::Endpoint;
use super::rule::rules;
use super::{Check, Family, Seen, Tally};
use proto::ids::Psn;
use proto::wire::infiniband::Syndrome;
use proto::wire::infiniband::opcode::Operation;
use std::collections::HashMap;

rules! {
    GAP "psn-gap" "no sequence number is skipped", "IBTA Vol 1, 9.7.2 and 9.8.2";
    REPEAT "psn-repeat" "no sequence number comes again, unless a NAK has asked for it", "IBTA Vol 1, 9.7.5 and 9.8.2";
}

/// The smallest MTU, octets: a READ request uses at most one number for each.
const MTU_MIN: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The first number not yet seen.
    next: Psn,
    /// After a READ request: how many more numbers its responses may use.
    slack: u32,
    /// The number that continues a repeat which was reported or requested.
    again: Option<Psn>,
    /// Damaged frames at the place when the last packet of this flow came.
    damaged: u64,
    /// Management datagrams between its ends when the flow began.
    set_up: u32,
}

/// A port and two network addresses.
type Ends = (u32, Endpoint, Endpoint);

/// The family.
#[derive(Default)]
pub struct Sequences {
    flows: HashMap<FlowKey, Flow>,
    /// The number in the last NAK to each requester, by port, requester and responder.
    requested: HashMap<Ends, Psn>,
    /// Management datagrams at each port between two ends, the lesser end first.
    set_up: HashMap<Ends, u32>,
    retransmitted: u64,
}

/// Pairs of ends remembered for NAKs and for management; beyond, some retries and queue pairs set up again are reported
/// as repeats.
const ENDS_MAX: usize = 1 << 16;

impl Family for Sequences {
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        self.on_nak(seen);
        let packet = match FlowPacket::of(seen) {
            Ok(packet) => packet,
            Err(why) => {
                if why == Some(MANAGEMENT) {
                    self.on_management(seen);
                }
                return why.map_or((), |why| check.not_checked(why));
            }
        };
        let set_up = ends(seen).and_then(|ends| self.set_up.get(&ends)).copied().unwrap_or(0);
        let slack = match packet.row.operation {
            Operation::ReadRequest => {
                let reth = seen.headers.and_then(|headers| headers.extended?.reth);
                reth.map_or(0, |reth| reth.dma_length.div_ceil(MTU_MIN).saturating_sub(1))
            }
            _ => 0,
        };
        let psn = packet.bth.psn;
        let damaged = seen.damaged_before;
        let fresh = Flow { next: psn.next(), slack, again: None, damaged, set_up };
        let Some(flow) = self.flows.get_mut(&packet.key) else {
            return follow(&mut self.flows, packet.key, fresh, check);
        };
        if flow.set_up != set_up {
            *flow = fresh;
            return;
        }
        check.checked("psn");
        let ahead = psn.distance_from(flow.next);
        let begins = packet.row.begins_message();
        if ahead < 0 && !(packet.key.role == Role::ReadResponse && begins) {
            let ends = seen.headers.map(|a| (seen.place.port, a.source, a.destination));
            let requested = ends.is_some_and(|ends| self.requested.get(&ends) == Some(&psn));
            if requested || flow.again == Some(psn) {
                self.retransmitted += 1;
            } else {
                let found = format_args!("PSN {psn} again, {} behind", -ahead);
                check.breaks(&REPEAT, found, flow.next);
            }
            flow.again = Some(psn.next());
            flow.damaged = damaged;
            return;
        }
        let may_skip = match packet.key.role {
            Role::Datagram => true,
            // A response begins with the number of its request.
            Role::ReadResponse => begins,
            Role::Request => ahead as u32 <= flow.slack,
        };
        let lost = damaged - flow.damaged;
        if ahead > 0 && !may_skip && ahead as u64 > lost {
            check.breaks(&GAP, format_args!("PSN {psn}, {ahead} skipped"), flow.next);
        }
        *flow = fresh;
    }

    fn finish(&mut self, tally: &mut Tally) {
        tally.checked("flows", self.flows.len() as u64);
        tally.checked("retransmissions after a NAK", self.retransmitted);
    }
}

/// The port and both ends of a packet, the lesser end first.
fn ends(seen: &Seen<'_>) -> Option<Ends> {
    let headers = seen.believed()?;
    let (one, other) = (headers.source, headers.destination);
    Some((seen.place.port, one.min(other), one.max(other)))
}

impl Sequences {
    /// Management datagrams set connections up and end them.
    fn on_management(&mut self, seen: &Seen<'_>) {
        if let Some(count) = ends(seen).and_then(|ends| entry(&mut self.set_up, ends, ENDS_MAX)) {
            *count.or_default() += 1;
        }
    }

    /// A NAK names the number that its requester returns to.
    fn on_nak(&mut self, seen: &Seen<'_>) {
        let Some(headers) = seen.believed() else { return };
        let aeth = headers.extended.and_then(|extended| extended.aeth);
        let (Some(bth), Some(aeth)) = (headers.bth, aeth) else { return };
        if !matches!(aeth.syndrome, Syndrome::Rnr { .. } | Syndrome::Nak(_)) {
            return;
        }
        let ends = (seen.place.port, headers.destination, headers.source);
        if let Some(psn) = entry(&mut self.requested, ends, ENDS_MAX) {
            psn.insert_entry(bth.psn);
        }
    }
}
