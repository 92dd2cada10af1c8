//! Partitions of the node's ports: their tables, their enforcement, and packets with a bad P_Key.
//!
//! An end port takes only packets that match its table. A switch checks packets where its manager has set so, in or out.
//! Source: IBTA Vol 1, 10.9.4 (enforcement by switches), 14.2.5.6 (PortInfo), 16.1.3.5 (constraint errors).

use super::{Agents, trap};
use crate::attribute::subnet::port_info as fields;
use crate::partitions::{BadPartition, PartitionTable};
use proto::ids::PortNumber;
use proto::units::Instant;

/// Violations stop here.
const VIOLATIONS_MAX: u64 = 0xffff;

/// Where a packet with a bad P_Key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// At its end: the port of an adapter, or port 0 of a switch.
    End,
    /// Where it came into the switch.
    Inbound(PortNumber),
    /// Where it would have left the switch.
    Outbound(PortNumber),
}

impl Agents {
    /// The P_Key table of a port; 0 is that of the port with the LID.
    pub fn partitions(&self, port: u8) -> PartitionTable {
        let index = if port == 0 { self.home() } else { usize::from(port) };
        PartitionTable::new(&self.ports[index].p_keys)
    }

    /// Whether a switch checks the P_Keys of packets that come in by a port, and of those that leave by it.
    pub fn enforces(&self, port: PortNumber) -> (bool, bool) {
        let info = &self.ports[usize::from(port.get())].info;
        let is_set = |field: crate::attribute::Field| field.get(info) == 1;
        (is_set(fields::ENFORCE_PARTITIONS_IN), is_set(fields::ENFORCE_PARTITIONS_OUT))
    }

    /// Counts a packet that was dropped because of its P_Key, and raises the trap of its kind.
    pub fn note_bad_partition(&mut self, at: Checkpoint, packet: &BadPartition, now: Instant) {
        let (lid, kind) = (self.lid(), self.kind);
        let index = match at {
            Checkpoint::End => self.home(),
            Checkpoint::Inbound(port) | Checkpoint::Outbound(port) => usize::from(port.get()),
        };
        let port = &mut self.ports[index];
        let violations = fields::P_KEY_VIOLATIONS.get(&port.info);
        fields::P_KEY_VIOLATIONS.set(&mut port.info, (violations + 1).min(VIOLATIONS_MAX));
        let notice = match at {
            Checkpoint::End => trap::bad_partition(lid, kind, packet),
            Checkpoint::Inbound(_) => {
                port.constraint_errors.received += 1;
                trap::bad_partition_at_switch(lid, index as u8, packet)
            }
            Checkpoint::Outbound(_) => {
                port.constraint_errors.sent += 1;
                trap::bad_partition_at_switch(lid, index as u8, packet)
            }
        };
        self.traps.raise(notice, now);
    }
}
