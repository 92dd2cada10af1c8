//! The subnet administration of the test manager: path records and multicast groups.
//!
//! Source: IBTA Vol 1, 15.2.5.16 (PathRecord), 15.2.5.17 (MCMemberRecord).

use super::Fabric;
use management::Datagram;
use management::datagram::{ADMINISTRATION, method};
use management::partitions::PartitionTable;
use management::records::{self, JOIN_STATE, MC_MEMBER_RECORD, MGID, MLID, PORT_GID};
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
/// The request is not valid.
const INVALID: u16 = 0x0200;
/// MTU of 2048 octets.
const MTU_2048: u64 = 4;

/// A multicast group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its address, in two halves.
    pub mgid: [u64; 2],
    /// Its multicast LID.
    pub mlid: Lid,
    /// Q_Key and P_Key of its packets.
    pub keys: (u32, u16),
    /// The JoinState of each port, by node GUID.
    pub members: BTreeMap<u64, u64>,
}

/// What the administration knows beside the fabric.
#[derive(Debug, Default)]
pub struct Administration {
    /// P_Keys by LID. A LID without any has the default one.
    pub keys: BTreeMap<Lid, PartitionTable>,
    /// The service level of every path.
    pub level: u8,
    /// What every path adds to the LIDs of both ends, of ports with an LMC.
    pub path_bits: u16,
    /// The multicast groups, in the order of their creation.
    pub groups: Vec<Group>,
    /// The multicast LID of the next group, from 0xC000.
    pub next_group: u16,
    /// Q_Key and P_Key of every group where they are not those of its creator.
    pub group_keys: Option<(u32, u16)>,
    /// By how many powers of two the packets of groups are smaller than 2048 octets.
    pub smaller: u64,
    /// Requests to join, in order: node GUID and JoinState.
    pub joins: Vec<(u64, u64)>,
    /// A group is another since its routes were set.
    pub has_new_members: bool,
}

impl Administration {
    /// The answer to a join, which creates the group if the port is a full member; `None` if `message` is not a join.
    pub fn join(&mut self, message: &ManagementDatagram) -> Option<ManagementDatagram> {
        let mut datagram = Datagram(*message.octets);
        let is_ours = datagram.class() == ADMINISTRATION && datagram.method() == method::SET;
        if !is_ours || datagram.attribute() != MC_MEMBER_RECORD {
            return None;
        }
        let data = datagram.data();
        let (mgid, state) = ([0, 1].map(|half| MGID.at(half, data)), JOIN_STATE.get(data));
        let guid = PORT_GID.at(1, data) - 1;
        self.joins.push((guid, state));
        if state & 1 == 1 && self.groups.iter().all(|group| group.mgid != mgid) {
            let mlid = Lid::new(0xc000 + self.next_group);
            self.next_group += 1;
            let keys = (records::QUEUE_KEY.get(data) as u32, records::P_KEY.get(data) as u16);
            let keys = self.group_keys.unwrap_or(keys);
            self.groups.push(Group { mgid, mlid, keys, members: BTreeMap::new() });
        }
        let group = self.groups.iter_mut().find(|group| group.mgid == mgid);
        datagram.answer(if group.is_some() { 0 } else { INVALID });
        if let Some(group) = group {
            self.has_new_members |= group.members.insert(guid, state) != Some(state);
            let data = datagram.data_mut();
            MLID.set(data, group.mlid.get().into());
            records::MTU.set(data, MTU_2048 - self.smaller);
            records::LEVEL.set(data, self.level.into());
            records::QUEUE_KEY.set(data, group.keys.0.into());
            records::P_KEY.set(data, group.keys.1.into());
        }
        let octets = Box::new(datagram.0);
        Some(ManagementDatagram { octets, ..message.clone() })
    }

    /// The answer to a request for a path; `None` if `message` is not such a request.
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
