//! Flows that are followed through a file, bounded in number.

use super::Check;
use super::Seen;
use super::packet::Endpoint;
use super::ports::Place;
use proto::wire::infiniband::Bth;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use std::collections::HashMap;

/// Each family follows at most this many flows; frames of others are counted as not checked.
pub const FLOWS_MAX: usize = 1 << 17;

/// Source, destination, port and direction of a flow.
///
/// Requests and responses of a pair carry sequence numbers of opposite ends, so they are two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    place: Place,
    from: Endpoint,
    /// `None` if all destinations share one sequence.
    to: Option<Endpoint>,
    destination: u32,
    source: u32,
    role: Role,
}

/// The sequence that the packet numbers of a flow belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Numbers of the sender's requests.
    Request,
    /// Numbers of the READ request that the packets answer.
    ReadResponse,
    /// Numbers of a source queue pair for datagrams to all its destinations.
    Datagram,
}

/// A packet of a flow that is followed.
#[derive(Clone, Copy, Debug)]
pub struct FlowPacket {
    /// Its flow.
    pub key: FlowKey,
    /// Its transport header.
    pub bth: Bth,
    /// The row of its opcode.
    pub row: &'static OpcodeRow,
}

/// Why a packet belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFlow {
    /// Packets of this kind have no sequence, or the packet is damaged or cut.
    None,
    /// A management datagram.
    Management,
    /// The opcode is not known.
    UnknownOpcode,
    /// A reliable datagram.
    ReliableDatagram,
}

impl NoFlow {
    /// What the report counts as not checked; `None` if there is nothing to check.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            NoFlow::None => None,
            NoFlow::Management => Some("management datagrams (numbered as their sender likes)"),
            NoFlow::UnknownOpcode => Some("packets of unknown opcode"),
            NoFlow::ReliableDatagram => Some("reliable datagrams (sequence numbers of a context)"),
        }
    }
}

/// Queue pairs 0 and 1 are for management; their senders number packets freely.
const MANAGEMENT_QUEUE_PAIRS: u32 = 2;

impl FlowPacket {
    /// The flow of an undamaged packet.
    ///
    /// # Errors
    /// Why it has none.
    pub fn of(seen: &Seen<'_>) -> Result<FlowPacket, NoFlow> {
        let headers = seen.believed().ok_or(NoFlow::None)?;
        let bth = headers.bth.ok_or(NoFlow::None)?;
        let row = bth.opcode.row().ok_or(NoFlow::UnknownOpcode)?;
        let (role, source) = match (row.transport, row.operation) {
            (Transport::Cnp, _) => return Err(NoFlow::None),
            (Transport::Rd, _) => return Err(NoFlow::ReliableDatagram),
            (Transport::Ud, _) => {
                let deth = headers.extended.and_then(|extended| extended.deth);
                let source = deth.ok_or(NoFlow::None)?.source.get();
                if source.min(bth.destination.get()) < MANAGEMENT_QUEUE_PAIRS {
                    return Err(NoFlow::Management);
                }
                (Role::Datagram, source)
            }
            (_, Operation::Acknowledge | Operation::AtomicAcknowledge) => return Err(NoFlow::None),
            (_, Operation::ReadResponse) => (Role::ReadResponse, 0),
            _ => (Role::Request, 0),
        };
        let one_to_many = role == Role::Datagram;
        let key = FlowKey {
            place: seen.place,
            from: headers.source,
            to: (!one_to_many).then_some(headers.destination),
            destination: if one_to_many { 0 } else { bth.destination.get() },
            source,
            role,
        };
        Ok(FlowPacket { key, bth, row })
    }

    /// The sequence that its number belongs to.
    pub fn role(&self) -> Role {
        self.key.role
    }
}

/// States of flows, at most [`FLOWS_MAX`].
#[derive(Clone, Debug)]
pub struct Flows<T>(HashMap<FlowKey, T>);

impl<T> Default for Flows<T> {
    fn default() -> Flows<T> {
        Flows(HashMap::new())
    }
}

impl<T> Flows<T> {
    /// The state of a flow that is followed.
    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        self.0.get_mut(key)
    }

    /// Begins to follow a flow, if there is room.
    pub fn begin(&mut self, key: FlowKey, state: T, check: &mut Check<'_>) {
        if self.0.len() < FLOWS_MAX {
            self.0.insert(key, state);
        } else {
            check.not_checked("packets of more flows than are followed at once");
        }
    }

    /// How many flows are followed.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }
}
