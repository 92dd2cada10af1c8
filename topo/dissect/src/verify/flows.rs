//! Flows followed through a file, as many as memory is granted for.

use super::{Seen, Tally};
use crate::verify::anatomy::Endpoint;
use crate::verify::ports::Place;
use proto::wire::infiniband::Bth;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use std::collections::HashMap;

/// No more flows than this are followed a family; frames of others are counted as not checked.
pub const FLOWS_MAX: usize = 1 << 17;

/// Who talks to whom, at which port and in which direction.
///
/// Requests and responses of a pair carry sequence numbers of opposite ends, so they are two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    place: Place,
    from: Endpoint,
    /// `None` where all destinations count together.
    to: Option<Endpoint>,
    destination: u32,
    source: u32,
    role: Role,
}

/// Whose sequence numbers a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The sender's own.
    Request,
    /// Those of the READ request it answers.
    ReadResponse,
    /// A datagram's: its source queue pair counts for all its destinations together.
    Datagram,
}

/// A packet of a flow that is followed.
#[derive(Clone, Copy, Debug)]
pub struct FlowPacket {
    /// Its flow.
    pub key: FlowKey,
    /// Its transport header.
    pub bth: Bth,
    /// What its opcode says.
    pub row: &'static OpcodeRow,
}

/// Queue pairs 0 and 1 are those of management, whose senders number as they like.
const MANAGEMENT_QUEUE_PAIRS: u32 = 2;

/// Why their datagrams are of no flow.
pub const MANAGEMENT: &str = "management datagrams (numbered as their sender likes)";

impl FlowPacket {
    /// The flow of a believed packet; why there is none, otherwise (empty for what never has one).
    pub fn of(seen: &Seen<'_>) -> Result<FlowPacket, &'static str> {
        let anatomy = seen.believed().ok_or("")?;
        let bth = anatomy.bth.ok_or("")?;
        let row = bth.opcode.row().ok_or("packets of unknown opcode")?;
        let (role, source) = match (row.transport, row.operation) {
            (Transport::Cnp, _) => return Err(""),
            (Transport::Rd, _) => return Err("reliable datagrams (sequence numbers of a context)"),
            (Transport::Ud, _) => {
                let deth = anatomy.extended.and_then(|extended| extended.deth).ok_or("")?;
                let (source, destination) = (deth.source.get(), bth.destination.get());
                if source.min(destination) < MANAGEMENT_QUEUE_PAIRS {
                    return Err(MANAGEMENT);
                }
                (Role::Datagram, source)
            }
            (_, Operation::Acknowledge | Operation::AtomicAcknowledge) => return Err(""),
            (_, Operation::ReadResponse) => (Role::ReadResponse, 0),
            _ => (Role::Request, 0),
        };
        let one_to_many = role == Role::Datagram;
        let key = FlowKey {
            place: seen.place,
            from: anatomy.source,
            to: (!one_to_many).then_some(anatomy.destination),
            destination: if one_to_many { 0 } else { bth.destination.get() },
            source,
            role,
        };
        Ok(FlowPacket { key, bth, row })
    }

    /// Whose sequence numbers it carries.
    pub fn role(&self) -> Role {
        self.key.role
    }
}

/// States of flows, bounded in number.
#[derive(Clone, Debug)]
pub struct Flows<T>(HashMap<FlowKey, T>);

impl<T> Default for Flows<T> {
    fn default() -> Flows<T> {
        Flows(HashMap::new())
    }
}

impl<T> Flows<T> {
    /// The state of a flow followed already.
    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        self.0.get_mut(key)
    }

    /// Begins to follow a flow, if there is room.
    pub fn begin(&mut self, key: FlowKey, state: T, tally: &mut Tally) {
        if self.0.len() < FLOWS_MAX {
            self.0.insert(key, state);
        } else {
            tally.not_checked("packets of more flows than are followed at once", 1);
        }
    }

    /// How many are followed.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// None is followed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
