//! Rules of packet sequence numbers, flow by flow.
//!
//! Retransmission is legal. A number that comes again is classified by what precedes it: a NAK, an RNR NAK, a copy by
//! the network, a READ whose response was lost, or the requester's timer. Only what was provably too early is
//! reported. Times are those of the port of the capture: a queue between requester and port can bring two
//! transmissions closer together. A skipped number is missing at the port; a loss before it looks the same. Datagrams
//! to all destinations of a queue pair share one sequence, and a queue pair that is made again begins anywhere, so
//! repeated datagrams are only noted. After a management datagram between two ends, and at a number far away, a flow
//! begins anew.
//! Source: IBTA Vol 1, 9.7.1 (PSN), 9.7.5 (acknowledgements), 9.7.6.1.3 (time-outs), 9.8.

mod history;
mod pairs;
mod requester;
mod setup;
mod timer;

use super::flows::{FLOWS_MAX, FlowKey, FlowPacket, MANAGEMENT, Role, entry};
use super::frame::Carried;
use super::rule::rules;
use super::{At, Check, Family, Report, Seen, Settings, Tally};
use history::Packet;
use pairs::{Ends, Owner, Pairs, Where};
use proto::ids::Psn;
use proto::units::Duration;
use proto::wire::infiniband::opcode::{Operation, Transport};
use proto::wire::infiniband::{Aeth, Syndrome};
use proto::wire::internet::Ipv4View;
use requester::{Answer, Cause, Requester};
use std::collections::HashMap;
use timer::{Repeat, Stated};

rules! {
    GAP "psn-gap" Note "no sequence number is missing at this port", "IBTA Vol 1, 9.7.2 and 9.8.2";
    REPEAT "psn-repeat" "an unreliable connection sends no sequence number twice", "IBTA Vol 1, 9.8.2";
    COPY "psn-copy" Note "no frame comes twice, octet for octet", "IBTA Vol 1, 9.7.1; the network may duplicate";
    EARLY "retry-early" Deviation
        "without a NAK, a request is sent again only after 4.096 µs · 2^timeout without progress (takes --timeout)",
        "IBTA Vol 1, 9.7.6.1.3, as far as checked";
    RNR_EARLY "rnr-early" Deviation "after an RNR NAK, a request is sent again only when the time in it is over",
        "IBTA Vol 1, 9.7.5.2.8";
}

/// The smallest MTU, octets: a READ request uses at most one number for each.
const MTU_MIN: u32 = 256;
/// A jump by more numbers than this is a new connection.
const FAR: i32 = 1 << 20;
/// How far back repetitions are followed.
const BACK: i32 = 1 << 22;
/// Packets remembered of all requesters while there are few, and of one requester.
const HELD_MAX: usize = 1 << 19;
const HELD_EACH: usize = 512;
/// Frames with the same octets that are this close are copies, nanoseconds.
const COPY_NS: u64 = 1_000_000;
/// Retransmissions kept until their flow ends.
const REPEATS_MAX: u64 = 1 << 16;
/// Pairs of ends remembered for management, and connection requests; beyond, some are overlooked.
const ENDS_MAX: usize = 1 << 16;

#[derive(Debug)]
struct Flow {
    /// The first number seen, or one not too far back.
    first: Psn,
    /// The first number not yet seen.
    next: Psn,
    /// After a READ request: how many more numbers its responses may use.
    slack: u32,
    /// The number that continues a repetition.
    again: Option<Psn>,
    /// Damaged frames at the place when the last packet of this flow came.
    damaged: u64,
    /// Management datagrams between its ends when the flow began.
    set_up: u32,
    /// Of requests: what their sender does.
    requester: Option<Box<Requester>>,
}

/// The family.
pub struct Sequences {
    flows: HashMap<FlowKey, Flow>,
    pairs: Pairs,
    /// Management datagrams at each port between two ends, the lesser end first.
    set_up: HashMap<Ends, u32>,
    /// Timeouts that connection requests state: requester, responder and the responder's queue pair.
    stated: HashMap<(Ends, u32), Stated>,
    /// The timeout that the user states.
    timeout: Option<u8>,
    /// Retransmissions kept so far.
    repeats: u64,
}

impl Family for Sequences {
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        self.on_answer(seen);
        let packet = match FlowPacket::of(seen) {
            Ok(packet) => packet,
            Err(why) => {
                if why == Some(MANAGEMENT) {
                    self.on_management(seen);
                }
                return why.map_or((), |why| check.not_checked(why));
            }
        };
        let set_up = both_ends(seen).and_then(|ends| self.set_up.get(&ends)).copied().unwrap_or(0);
        let room = (HELD_MAX / self.flows.len().max(1)).min(HELD_EACH);
        match self.flows.get_mut(&packet.key) {
            Some(flow) if flow.set_up == set_up && !flow.begins_anew(&packet) => {
                check.checked("psn");
                flow.follow(&packet, room, &mut self.repeats, check);
            }
            _ => self.begin(&packet, set_up, check),
        }
    }

    fn finish(&mut self, report: &mut Report, kept: u64) {
        report.tally.checked("flows", self.flows.len() as u64);
        // In the order of the file: of each rule the first findings are kept.
        let mut flows: Vec<_> =
            self.flows.values_mut().filter_map(|flow| flow.requester.as_mut()).collect();
        flows.sort_by_key(|requester| requester.timer.first_repeat());
        flows.into_iter().for_each(|requester| requester.settle(report, kept));
    }
}

/// The port and both ends of a packet, the lesser end first.
fn both_ends(seen: &Seen<'_>) -> Option<Ends> {
    let headers = seen.believed()?;
    let (one, other) = (headers.source, headers.destination);
    Some((seen.place.port, one.min(other), one.max(other)))
}

impl Sequences {
    /// Follows flows of requesters, with the timeout if the user states it.
    pub fn new(settings: &Settings) -> Sequences {
        Sequences {
            flows: HashMap::new(),
            pairs: Pairs::default(),
            set_up: HashMap::new(),
            stated: HashMap::new(),
            timeout: settings.timeout,
            repeats: 0,
        }
    }

    /// The first packet of a flow, or of a new connection with the same queue pair.
    fn begin(&mut self, packet: &FlowPacket, set_up: u32, check: &mut Check<'_>) {
        let (seen, psn) = (check.seen, packet.bth.psn);
        let is_request = packet.key.role == Role::Request;
        let ends = seen.headers.map(|ends| (seen.place.port, ends.source, ends.destination));
        let requester = ends.filter(|_| is_request).map(|ends| {
            let asked = self.timeout.map(|timeout| Stated { timeout, frame: None });
            let stated = self.stated.get(&(ends, packet.bth.destination.get())).copied();
            let mut requester = Requester::new(asked.or(stated));
            let is_reliable = packet.row.transport != Transport::Uc;
            if is_reliable && !self.pairs.add(ends, packet.key) {
                requester.doubt(requester::CROWDED);
            }
            requester.send(&sent(packet, seen), HELD_EACH);
            Box::new(requester)
        });
        let fresh = Flow {
            first: psn,
            next: psn.next(),
            slack: slack(packet, seen),
            again: None,
            damaged: seen.damaged_before,
            set_up,
            requester,
        };
        let Some(entry) = entry(&mut self.flows, packet.key, FLOWS_MAX) else {
            return check.not_checked("packets of more flows than are followed at once");
        };
        if let std::collections::hash_map::Entry::Occupied(mut old) = entry {
            let old = old.insert(fresh);
            if let Some(mut requester) = old.requester {
                requester.settle(check.report, check.kept);
            }
        } else {
            entry.insert_entry(fresh);
        }
    }

    /// Management datagrams set connections up and end them.
    fn on_management(&mut self, seen: &Seen<'_>) {
        if let Some(count) =
            both_ends(seen).and_then(|ends| entry(&mut self.set_up, ends, ENDS_MAX))
        {
            *count.or_default() += 1;
        }
        let Some((headers, (queue_pair, timeout))) = seen.believed().zip(setup::timeout(seen))
        else {
            return;
        };
        let ends = (seen.place.port, headers.destination, headers.source);
        if let Some(stated) = entry(&mut self.stated, (ends, queue_pair), ENDS_MAX) {
            stated.insert_entry(Stated { timeout, frame: Some(seen.number) });
        }
    }

    /// An answer of a reliable connection goes to its requester.
    fn on_answer(&mut self, seen: &Seen<'_>) {
        let Some((psn, queue_pair, answer)) = answer(seen) else { return };
        let Some(headers) = seen.believed() else { return };
        let ends = (seen.place.port, headers.destination, headers.source);
        let place = |key: &FlowKey| self.flows.get(key).map_or(Where::Before, |f| f.place_of(psn));
        let (owners, is_sure) = match self.pairs.owner(ends, queue_pair, place) {
            None => return,
            Some(Owner::One(key)) => (vec![key], true),
            Some(Owner::Several(keys)) => (keys, false),
            Some(Owner::Unsent(key)) => {
                if let Some(requester) = self.requester(&key) {
                    requester.doubt(requester::UNCLEAR);
                }
                return;
            }
        };
        for key in owners {
            match self.requester(&key) {
                Some(requester) if is_sure => {
                    requester.answer(answer, psn, seen.at_ns, seen.number);
                }
                Some(requester) => requester.may_be_answered(answer, psn, seen.at_ns),
                None => {}
            }
        }
    }

    fn requester(&mut self, key: &FlowKey) -> Option<&mut Requester> {
        self.flows.get_mut(key)?.requester.as_deref_mut()
    }
}

/// The number, the queue pair and the kind of an answer of a reliable connection.
fn answer(seen: &Seen<'_>) -> Option<(Psn, u32, Answer)> {
    let headers = seen.believed()?;
    let bth = headers.bth?;
    let row = bth.opcode.row()?;
    if !matches!(row.transport, Transport::Rc | Transport::Xrc) {
        return None;
    }
    let answer = match row.operation {
        Operation::AtomicAcknowledge | Operation::ReadResponse => Answer::Positive,
        Operation::Acknowledge => match headers.extended.and_then(|extended| extended.aeth) {
            Some(Aeth { syndrome: Syndrome::Ack { .. }, .. }) => Answer::Positive,
            Some(Aeth { syndrome: Syndrome::Nak(_), .. }) => Answer::Nak,
            Some(Aeth { syndrome: Syndrome::Rnr { timer }, .. }) => Answer::NotReady(rnr_ns(timer)),
            _ => Answer::Unreadable,
        },
        _ => return None,
    };
    Some((bth.psn, bth.destination.get(), answer))
}

/// The wait that an RNR NAK with this timer code asks for, nanoseconds: 655.36 ms at 0, 10 µs at 1, then 2 and 3 times
/// each power of two. Source: IBTA Vol 1, 9.7.5.2.8.
const fn rnr_ns(timer: u8) -> u64 {
    let code = if timer == 0 { 32 } else { timer };
    let units = match (code, code % 2) {
        (1, _) => 1,
        (_, 0) => 1 << (code / 2),
        _ => 3 << ((code - 3) / 2),
    };
    units * 10_000
}

/// How many more numbers the responses to a READ request may use.
fn slack(packet: &FlowPacket, seen: &Seen<'_>) -> u32 {
    let reth = seen.headers.and_then(|headers| headers.extended?.reth);
    let reth = reth.filter(|_| packet.row.operation == Operation::ReadRequest);
    reth.map_or(0, |reth| reth.dma_length.div_ceil(MTU_MIN).saturating_sub(1))
}

/// What a requester remembers of a packet.
fn sent(packet: &FlowPacket, seen: &Seen<'_>) -> Packet {
    let fetches = matches!(
        packet.row.operation,
        Operation::ReadRequest | Operation::CompareSwap | Operation::FetchAdd
    );
    Packet {
        psn: packet.bth.psn,
        icrc: icrc(seen),
        at_ns: seen.at_ns,
        asks: packet.bth.ack_request || fetches,
        fetches,
    }
}

/// The ICRC of a RoCE frame as it stands there. Networks of InfiniBand make no copies.
fn icrc(seen: &Seen<'_>) -> Option<u32> {
    let frame = seen.ethernet.filter(|_| !seen.is_cut())?;
    let Carried::Roce(layout) = frame.carried else { return None };
    Some(u32::from_le_bytes(*frame.octets.get(layout.icrc_at()..)?.first_chunk()?))
}

/// True if the sender numbers its IP packets, so that its retransmission differs from a copy.
fn is_numbered(seen: &Seen<'_>) -> bool {
    let layout = seen.ethernet.map(|frame| (frame.octets, frame.carried));
    let Some((octets, Carried::Roce(layout))) = layout else { return false };
    let ip = octets.get(layout.network_at..).map(Ipv4View::new);
    matches!(ip, Some(Ok(ip)) if ip.version() == 4 && ip.identification() != 0)
}

impl Flow {
    /// Where a number lies in what was sent.
    fn place_of(&self, psn: Psn) -> Where {
        if psn.distance_from(self.next.plus(self.slack)) >= 0 {
            return Where::Behind;
        }
        if psn.distance_from(self.first) < 0 { Where::Before } else { Where::Within }
    }

    /// True if the number is so far away that the queue pair was made again.
    fn begins_anew(&self, packet: &FlowPacket) -> bool {
        let psn = packet.bth.psn;
        let is_far = psn.distance_from(self.next) > FAR || psn.distance_from(self.first) < -FAR;
        packet.key.role == Role::Request && packet.row.begins_message() && is_far
    }

    /// The next packet of the flow.
    fn follow(&mut self, packet: &FlowPacket, room: usize, kept: &mut u64, check: &mut Check<'_>) {
        let (seen, psn) = (check.seen, packet.bth.psn);
        let ahead = psn.distance_from(self.next);
        let lost = seen.damaged_before - self.damaged;
        self.damaged = seen.damaged_before;
        let begins = packet.row.begins_message();
        if ahead < 0 {
            match packet.key.role {
                Role::Request => return self.behind(packet, room, kept, check),
                Role::ReadResponse if begins => {}
                Role::ReadResponse => {
                    return check.report.tally.noted("READ responses again", 1);
                }
                Role::Datagram => {
                    check.report.tally.noted("datagrams with a number of before", 1);
                }
            }
        }
        let may_skip = match packet.key.role {
            Role::Datagram => true,
            // A response begins with the number of its request.
            Role::ReadResponse => begins,
            Role::Request => ahead as u32 <= self.slack,
        };
        if ahead > 0 && !may_skip && ahead as u64 > lost {
            check.breaks(&GAP, format_args!("PSN {psn}, {ahead} skipped"), self.next);
        }
        if let Some(requester) = &mut self.requester {
            requester.send(&sent(packet, seen), room);
        }
        (self.next, self.again, self.slack) = (psn.next(), None, slack(packet, seen));
        if self.next.distance_from(self.first) > BACK {
            self.first = self.next.plus(Psn::MAX - BACK as u32);
        }
    }

    /// A request packet behind others with higher numbers.
    fn behind(&mut self, packet: &FlowPacket, room: usize, kept: &mut u64, check: &mut Check<'_>) {
        let (seen, psn) = (check.seen, packet.bth.psn);
        let Some(requester) = &mut self.requester else { return };
        let packet_sent = sent(packet, seen);
        let continues = self.again.is_some_and(|again| psn.distance_from(again) >= 0);
        let is_due = continues || requester.is_asked(psn);
        let is_copy = |age: &u64| is_numbered(seen) || (*age <= COPY_NS && !is_due);
        if let Some(age) = requester.history.same(&packet_sent).filter(is_copy) {
            let found = format_args!("PSN {psn} again after {}", Duration::from_ns(age));
            return check.breaks(&COPY, found, self.next);
        }
        if continues {
            self.again = Some(psn.next());
            return requester.send(&packet_sent, room);
        }
        let was_seen = requester.history.holds(psn);
        if matches!(packet.row.transport, Transport::Uc) {
            if was_seen {
                check.breaks(&REPEAT, format_args!("PSN {psn} again"), self.next);
            }
            return requester.send(&packet_sent, room);
        }
        self.again = Some(psn.next());
        if psn.distance_from(self.first) < 0 {
            return check.not_checked("retransmissions of packets before the file");
        }
        let cause = requester.repeat(&packet_sent, seen.number, room);
        requester::count(&mut check.report.tally, cause);
        match cause {
            Cause::TooSoon(waited, wait) => {
                let [waited, wait] = [waited, wait].map(Duration::from_ns);
                let found = format_args!("PSN {psn} again {waited} after the RNR NAK");
                check.breaks(&RNR_EARLY, found, format_args!("at least {wait}"));
            }
            Cause::Timer(Some(_)) if *kept >= REPEATS_MAX => {
                check.not_checked("retransmissions beyond those that are kept");
            }
            Cause::Timer(Some(after_ns)) => {
                *kept += 1;
                let (frame, interface) = (seen.number, check.port.to_owned());
                let direction = seen.place.direction;
                requester.timer.keep(Repeat { frame, interface, direction, psn, after_ns });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
