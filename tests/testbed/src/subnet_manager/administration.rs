//! The subnet administration of the test manager: path records.
//!
//! Source: IBTA Vol 1, 15.2.5.16 (PathRecord).

use super::Fabric;
use management::Datagram;
use management::datagram::{ADMINISTRATION, method};
use management::partitions::PartitionTable;
use proto::device::ManagementDatagram;
use proto::ids::Lid;
use std::collections::BTreeMap;

/// PathRecord, and where its fields are in the record.
const PATH_RECORD: u16 = 0x0035;
const DGID: usize = 8;
const SGID: usize = 24;
const LIDS: usize = 40;
const P_KEY: usize = 50;
const LEVEL: usize = 53;
/// No records.
const NO_RECORDS: u16 = 0x0300;

/// What the administration knows beside the fabric.
#[derive(Debug, Default)]
pub struct Administration {
    /// P_Keys by LID. A LID without any has the default one.
    pub keys: BTreeMap<Lid, PartitionTable>,
    /// The service level of every path.
    pub level: u8,
    /// What every path adds to the LIDs of both ends, of ports with an LMC.
    pub path_bits: u16,
}

impl Administration {
    /// The answer to a request for a path; `None` if `message` is no such request.
    pub fn answer(
        &self,
        message: &ManagementDatagram,
        fabric: &Fabric,
    ) -> Option<ManagementDatagram> {
        let mut datagram = Datagram(*message.octets);
        let is_ours = datagram.class() == ADMINISTRATION && datagram.method() == method::GET;
        if !is_ours || datagram.attribute() != PATH_RECORD {
            return None;
        }
        let lid = |at: usize| {
            let octets = datagram.data()[at + 8..at + 16].try_into().expect("eight octets");
            // The port GUID of an adapter is that of its node plus 1.
            fabric.node(u64::from_be_bytes(octets) - 1).map(|node| node.lid)
        };
        let ends = [lid(DGID), lid(SGID)];
        let key = match ends {
            [Some(to), Some(from)] => self.common(from, to),
            _ => None,
        };
        datagram.answer(if key.is_some() { 0 } else { NO_RECORDS });
        if let (Some(key), [Some(to), Some(from)]) = (key, ends) {
            let data = datagram.data_mut();
            for (at, value) in [
                (LIDS, to.get() + self.path_bits),
                (LIDS + 2, from.get() + self.path_bits),
                (P_KEY, key),
            ] {
                data[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
            data[LEVEL] = self.level;
        }
        let octets = Box::new(datagram.0);
        Some(ManagementDatagram { octets, ..message.clone() })
    }

    /// The key of `from` by which it reaches `to`.
    fn common(&self, from: Lid, to: Lid) -> Option<u16> {
        let table = |lid: Lid| self.keys.get(&lid).copied().unwrap_or_default();
        table(from).keys().find(|key| table(to).find(*key).is_some())
    }
}
