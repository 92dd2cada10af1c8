//! Flows that are followed through a file, bounded in number.

use super::Check;
use super::Seen;
use super::packet::Endpoint;
use super::ports::Place;
use proto::wire::infiniband::Bth;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

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
    /// The sequence that the numbers belong to.
    pub role: Role,
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

/// Why a management datagram belongs to no flow.
pub const MANAGEMENT: &str = "management datagrams (numbered as their sender likes)";

/// Queue pairs 0 and 1 are for management; their senders number packets freely.
const MANAGEMENT_QUEUE_PAIRS: u32 = 2;

impl FlowPacket {
    /// The flow of an undamaged packet.
    ///
    /// # Errors
    /// What the report counts as not checked; `None` if packets of this kind have no sequence, or the packet is damaged
    /// or cut.
    pub fn of(seen: &Seen<'_>) -> Result<FlowPacket, Option<&'static str>> {
        let headers = seen.believed().ok_or(None)?;
        let bth = headers.bth.ok_or(None)?;
        let row = bth.opcode.row().ok_or(Some("packets of unknown opcode"))?;
        let (role, source) = match (row.transport, row.operation) {
            (Transport::Cnp, _) => return Err(None),
            (Transport::Rd, _) => {
                return Err(Some("reliable datagrams (sequence numbers of a context)"));
            }
            (Transport::Ud, _) => {
                let deth = headers.extended.and_then(|extended| extended.deth);
                let source = deth.ok_or(None)?.source.get();
                if source.min(bth.destination.get()) < MANAGEMENT_QUEUE_PAIRS {
                    return Err(Some(MANAGEMENT));
                }
                (Role::Datagram, source)
            }
            (_, Operation::Acknowledge | Operation::AtomicAcknowledge) => return Err(None),
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
}

/// Keeps the state of a flow in `flows`, if there is room.
pub fn follow<T>(flows: &mut HashMap<FlowKey, T>, key: FlowKey, state: T, check: &mut Check<'_>) {
    match entry(flows, key, FLOWS_MAX) {
        Some(entry) => drop(entry.insert_entry(state)),
        None => check.not_checked("packets of more flows than are followed at once"),
    }
}

/// The entry of `key`; `None` if it is new and there are `max` others.
pub fn entry<K: Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: K,
    max: usize,
) -> Option<Entry<'_, K, V>> {
    (map.len() < max || map.contains_key(&key)).then(|| map.entry(key))
}
