//! Rules of messages: First, Middle, Last and Only in their order, full in the middle, as long as
//! announced.
//!
//! Only unbroken runs of sequence numbers are judged: after a hole, whatever its reason, a message may
//! begin or end unseen.
//! Source: IBTA Vol 1, 9.4 (which packets a message has), 9.7.4.1.2 and 9.8 (payload of each).

use super::flows::{FlowKey, FlowPacket, Flows, Role};
use super::{Family, Findings, Rule, Seen, Tally};
use proto::ids::Psn;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Position};

/// The rules of this file.
pub const RULES: &[Rule] = &[ORDER, MTU, LAST, DMA_LENGTH];

const ORDER: Rule = Rule {
    id: "message-order",
    title: "a message is First, Middle and Last of one operation, or Only",
    source: "IBTA Vol 1, 9.4 and 9.7.4.1.1",
};
const MTU: Rule = Rule {
    id: "full-mtu",
    title: "First and Middle carry one whole MTU, the same all through the message",
    source: "IBTA Vol 1, 9.7.4.1.2",
};
const LAST: Rule = Rule {
    id: "last-size",
    title: "Last carries at least one octet and at most what the others carried",
    source: "IBTA Vol 1, 9.7.4.1.2",
};
const DMA_LENGTH: Rule = Rule {
    id: "dma-length",
    title: "a WRITE carries as much as its RETH announces",
    source: "IBTA Vol 1, 9.3.3 and 9.7.4.1.2",
};

/// The MTUs there are. Source: IBTA Vol 1, 9.2 (PMTU).
const MTUS: [usize; 5] = [256, 512, 1024, 2048, 4096];

/// A message of which the last packet has not yet come.
#[derive(Clone, Copy, Debug)]
struct Open {
    operation: Operation,
    /// Payload of First and so of each Middle; `None` if First carried what is no MTU.
    mtu: Option<usize>,
    /// Payload so far.
    carried: u64,
    /// What the RETH announced; `None` for other operations.
    announced: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    next: Psn,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The beginning was not seen.
    Unknown,
    Between,
    Within(Open),
}

/// The family.
#[derive(Default)]
pub struct Messages {
    flows: Flows<Flow>,
}

impl Family for Messages {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let Ok(packet) = FlowPacket::of(seen) else { return };
        // A datagram is a message of its own; nothing to put in order.
        if packet.role() == Role::Datagram {
            return;
        }
        let before = self.before(&packet, tally);
        tally.checked("message packets", 1);
        let payload = seen.anatomy.and_then(|anatomy| anatomy.payload()).unwrap_or(0);
        let after = step(before, &packet, payload, seen, findings);
        if let Some(flow) = self.flows.get_mut(&packet.key) {
            *flow = Flow { next: packet.bth.psn.next(), state: after };
        }
    }
}

impl Messages {
    /// What the flow was in the middle of when `packet` came.
    fn before(&mut self, packet: &FlowPacket, tally: &mut Tally) -> State {
        let psn = packet.bth.psn;
        let key: FlowKey = packet.key;
        match self.flows.get_mut(&key) {
            None => {
                self.flows.begin(key, Flow { next: psn, state: State::Unknown }, tally);
                State::Unknown
            }
            Some(flow) if flow.next == psn => flow.state,
            // The READ before this one was answered elsewhere.
            Some(Flow { state: State::Between, .. }) if packet.row.begins_message() => {
                State::Between
            }
            Some(_) => State::Unknown,
        }
    }
}

/// Judges one packet; what the flow is in the middle of after it.
fn step(
    before: State,
    packet: &FlowPacket,
    payload: usize,
    seen: &Seen<'_>,
    findings: &mut Findings,
) -> State {
    let row = packet.row;
    let open = match (before, row.begins_message()) {
        (State::Within(open), true) => {
            let expected = || format!("the rest of a {:?} message", open.operation);
            findings.report(&ORDER, seen, || row.name.to_owned(), expected);
            None
        }
        (State::Between, false) => {
            let expected = || "First or Only".to_owned();
            findings.report(&ORDER, seen, || row.name.to_owned(), expected);
            None
        }
        (State::Within(open), false) if open.operation != row.operation => {
            let expected = || format!("the rest of a {:?} message", open.operation);
            findings.report(&ORDER, seen, || row.name.to_owned(), expected);
            None
        }
        (State::Within(open), false) => Some(open),
        (State::Between | State::Unknown, _) => None,
    };
    sizes(open, row, payload, seen, findings);
    let reth = seen.anatomy.and_then(|anatomy| anatomy.extended?.reth);
    let announced = reth.filter(|_| row.operation == Operation::Write).map(|r| r.dma_length.into());
    let so_far = match row.position {
        Position::First | Position::Only => Some(Open {
            operation: row.operation,
            mtu: Some(payload).filter(|payload| MTUS.contains(payload)),
            carried: payload as u64,
            announced,
        }),
        Position::Middle | Position::Last => {
            open.map(|open| Open { carried: open.carried + payload as u64, ..open })
        }
    };
    if !row.ends_message() {
        return so_far.map_or(State::Unknown, State::Within);
    }
    if let Some(Open { carried, announced: Some(announced), .. }) = so_far
        && carried != announced
    {
        let found = || format!("{carried} octets");
        findings.report(&DMA_LENGTH, seen, found, || announced.to_string());
    }
    State::Between
}

fn sizes(
    open: Option<Open>,
    row: &OpcodeRow,
    payload: usize,
    seen: &Seen<'_>,
    findings: &mut Findings,
) {
    let found = || format!("{payload} octets in {}", row.name);
    let mtu = open.and_then(|open| open.mtu);
    match (row.position, mtu) {
        (Position::Middle, Some(mtu)) if payload != mtu => {
            findings.report(&MTU, seen, found, || format!("{mtu} as in First"));
        }
        (Position::First | Position::Middle, _) if !MTUS.contains(&payload) => {
            findings.report(&MTU, seen, found, || "256, 512, 1024, 2048 or 4096".to_owned());
        }
        (Position::Last, mtu) => {
            let most = mtu.unwrap_or(MTUS[MTUS.len() - 1]);
            if payload == 0 || payload > most {
                findings.report(&LAST, seen, found, || format!("1 to {most}"));
            }
        }
        _ => {}
    }
}
