//! Rules of messages: First, Middle, Last and Only in their order, full packets in the middle, and the announced length.
//!
//! Only runs of consecutive sequence numbers are judged: in a gap, whatever its reason, a message may begin or end
//! unseen. Source: IBTA Vol 1, 9.4 (which packets a message has), 9.7.4.1.2 and 9.8 (payload of each).

use super::flows::{FlowKey, FlowPacket, Role, follow};
use super::rule::rules;
use super::{Check, Family};
use proto::ids::Psn;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Position};
use std::collections::HashMap;

rules! {
    ORDER "message-order" "a message is First, Middle and Last of one operation, or Only",
        "IBTA Vol 1, 9.4 and 9.7.4.1.1";
    MTU "full-mtu" "First and Middle carry one whole MTU, the same all through the message", "IBTA Vol 1, 9.7.4.1.2";
    LAST "last-size" "Last carries at least one octet and at most what the others carried", "IBTA Vol 1, 9.7.4.1.2";
    DMA_LENGTH "dma-length" "a WRITE carries as much as its RETH announces", "IBTA Vol 1, 9.3.3 and 9.7.4.1.2";
}

/// All MTUs, octets. Source: IBTA Vol 1, 9.2 (PMTU).
const MTUS: [usize; 5] = [256, 512, 1024, 2048, 4096];

/// A message whose last packet has not yet come.
#[derive(Clone, Copy, Debug)]
struct Open {
    operation: Operation,
    /// Payload of First and so of each Middle, octets; `None` if that of First is not an MTU.
    mtu: Option<usize>,
    /// Payload so far, octets.
    carried: u64,
    /// Length that the RETH announced, octets; `None` for other operations.
    announced: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    next: Psn,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The beginning of the message was not seen.
    Unknown,
    Between,
    Within(Open),
}

/// The family.
#[derive(Default)]
pub struct Messages {
    flows: HashMap<FlowKey, Flow>,
}

impl Family for Messages {
    fn check(&mut self, check: &mut Check<'_>) {
        let Ok(packet) = FlowPacket::of(check.seen) else { return };
        // A datagram is a whole message.
        if packet.key.role == Role::Datagram {
            return;
        }
        check.checked("message packets");
        let state = step(self.before(&packet), packet.row, check);
        follow(&mut self.flows, packet.key, Flow { next: packet.bth.psn.next(), state }, check);
    }
}

impl Messages {
    /// The state of the flow when `packet` came.
    fn before(&self, packet: &FlowPacket) -> State {
        match self.flows.get(&packet.key) {
            Some(flow) if flow.next == packet.bth.psn => flow.state,
            // The answer to the READ before this one took another path.
            Some(Flow { state: State::Between, .. }) if packet.row.begins_message() => {
                State::Between
            }
            _ => State::Unknown,
        }
    }
}

/// Judges one packet; returns the state of the flow after it.
fn step(before: State, row: &OpcodeRow, check: &mut Check<'_>) -> State {
    let payload = check.seen.headers.and_then(|headers| headers.payload()).unwrap_or(0);
    let open = match (before, row.begins_message()) {
        // The rest of a READ was requested again: the response begins anew at its number.
        (State::Within(_), true) if row.operation == Operation::ReadResponse => None,
        (State::Within(open), begins) if begins || open.operation != row.operation => {
            let expected = format_args!("the rest of a {:?} message", open.operation);
            check.breaks(&ORDER, row.name, expected);
            None
        }
        (State::Between, false) => {
            check.breaks(&ORDER, row.name, "First or Only");
            None
        }
        (State::Within(open), _) => Some(open),
        (State::Between | State::Unknown, _) => None,
    };
    sizes(open, row, payload, check);
    let reth = check.seen.headers.and_then(|headers| headers.extended?.reth);
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
        check.breaks(&DMA_LENGTH, format_args!("{carried} octets"), announced);
    }
    State::Between
}

fn sizes(open: Option<Open>, row: &OpcodeRow, payload: usize, check: &mut Check<'_>) {
    let found = format_args!("{payload} octets in {}", row.name);
    let mtu = open.and_then(|open| open.mtu);
    match (row.position, mtu) {
        (Position::Middle, Some(mtu)) if payload != mtu => {
            check.breaks(&MTU, found, format_args!("{mtu} as in First"));
        }
        (Position::First | Position::Middle, _) if !MTUS.contains(&payload) => {
            check.breaks(&MTU, found, "256, 512, 1024, 2048 or 4096");
        }
        (Position::Last, mtu) => {
            let most = mtu.unwrap_or(MTUS[MTUS.len() - 1]);
            if payload == 0 || payload > most {
                check.breaks(&LAST, found, format_args!("1 to {most}"));
            }
        }
        _ => {}
    }
}
