//! Enforcement of partitions: the ports that check the P_Keys of packets, in or out, and their tables.
//!
//! Subnet management on VL15 is exempt. Source: IBTA Vol 1, 10.9.4, 18.2.5.

use crate::port_set::PortSet;
use management::partitions::{PartitionTable, key_of};
use proto::ids::PortNumber;

/// The bits of a P_Key that name its partition.
const PARTITION: u16 = 0x7fff;

/// The ports that enforce partitions.
#[derive(Clone, Debug)]
pub struct Enforcement {
    inbound: PortSet,
    outbound: PortSet,
    /// By port.
    tables: Vec<PartitionTable>,
}

impl Enforcement {
    /// No port of a switch with so many enforces partitions.
    pub fn none(ports: usize) -> Enforcement {
        let tables = vec![PartitionTable::default(); ports];
        Enforcement { inbound: PortSet::EMPTY, outbound: PortSet::EMPTY, tables }
    }

    /// Sets the table of a port, and whether it checks what comes in and what leaves.
    pub fn set(
        &mut self,
        port: PortNumber,
        table: PartitionTable,
        (inbound, outbound): (bool, bool),
    ) {
        self.tables[port.index()] = table;
        for (set, is_in) in [(&mut self.inbound, inbound), (&mut self.outbound, outbound)] {
            if is_in { set.insert(port) } else { set.remove(port) }
        }
    }

    /// Whether a packet with these octets may not come in by `port`: its sender there has no such partition. Membership does
    /// not count, because limited members send with their own key, and no key of a limited member matches itself.
    #[inline]
    pub fn refuses_in(&self, port: PortNumber, octets: &[u8]) -> bool {
        let has = |key: u16| key & PARTITION != 0 && self.tables[port.index()].has(key);
        self.inbound.contains(port) && key_of(octets).is_some_and(|key| !has(key))
    }

    /// Whether a packet with these octets may not leave by `port`: its receiver there would not take it.
    #[inline]
    pub fn refuses_out(&self, port: PortNumber, octets: &[u8]) -> bool {
        let takes = |key: u16| self.tables[port.index()].find(key).is_some();
        self.outbound.contains(port) && key_of(octets).is_some_and(|key| !takes(key))
    }
}
