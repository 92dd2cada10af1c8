//! Enforcement of partitions: the ports that check the P_Keys of packets, in or out, and their tables.
//!
//! Subnet management on VL15 is exempt. Source: IBTA Vol 1, 10.9.4, 18.2.5.

use crate::port_set::PortSet;
use management::partitions::{PartitionTable, key_of};
use proto::ids::PortNumber;

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
    pub fn set(&mut self, port: PortNumber, table: PartitionTable, (inbound, outbound): (bool, bool)) {
        self.tables[port.index()] = table;
        for (set, is_in) in [(&mut self.inbound, inbound), (&mut self.outbound, outbound)] {
            if is_in { set.insert(port) } else { set.remove(port) }
        }
    }

    /// Whether a packet with these octets may not come in by `port`.
    #[inline]
    pub fn refuses_in(&self, port: PortNumber, octets: &[u8]) -> bool {
        self.inbound.contains(port) && self.is_bad(port, octets)
    }

    /// Whether a packet with these octets may not leave by `port`.
    #[inline]
    pub fn refuses_out(&self, port: PortNumber, octets: &[u8]) -> bool {
        self.outbound.contains(port) && self.is_bad(port, octets)
    }

    fn is_bad(&self, port: PortNumber, octets: &[u8]) -> bool {
        key_of(octets).is_some_and(|key| self.tables[port.index()].find(key).is_none())
    }
}
