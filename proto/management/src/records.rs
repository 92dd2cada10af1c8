//! Records of subnet administration: paths, and membership in multicast groups with the request to join one.
//!
//! A full member asks for the group with what its creation needs, so the first one creates it. After a refusal it asks
//! for the group as it is, since another may have created it with other parameters; then again as before. A port that
//! only sends joins as SendOnlyNonMember, which creates nothing.
//! Source: IBTA Vol 1, 15.2.5.17 (MCMemberRecord), 10.5.2 (unreliable multicast), 4.1.1 (multicast GIDs).

use crate::attribute::Field;
use crate::attribute::administration::{COMPONENT_MASK, field};
use crate::datagram::{ADMINISTRATION, Datagram, method};
use core::net::Ipv6Addr;
use proto::ids::{Lid, ServiceLevel};
use proto::wire::infiniband::Grh;
use serde::{Deserialize, Serialize};

/// MCMemberRecord, and its fields.
pub const MC_MEMBER_RECORD: u16 = 0x0038;
/// The address of the group, in two halves.
pub const MGID: Field = Field { count: 2, stride: 64, ..field("mgid", 0, 0, 64) };
/// The address of the port, in two halves.
pub const PORT_GID: Field = Field { count: 2, stride: 64, ..field("port_gid", 16, 0, 64) };
/// Q_Key of the group's packets.
pub const QUEUE_KEY: Field = field("q_key", 32, 0, 32);
/// Multicast LID.
pub const MLID: Field = field("mlid", 36, 0, 16);
/// Largest payload, as a code: 128 octets times two to its power.
pub const MTU: Field = field("mtu", 38, 2, 6);
/// Traffic class of the GRH.
pub const TRAFFIC_CLASS: Field = field("tclass", 39, 0, 8);
/// P_Key of the group's packets.
pub const P_KEY: Field = field("p_key", 40, 0, 16);
/// Service level of the group's packets.
pub const LEVEL: Field = field("sl", 44, 0, 4);
/// Flow label of the GRH.
pub const FLOW_LABEL: Field = field("flow_label", 44, 4, 20);
/// Hop limit of the GRH.
pub const HOP_LIMIT: Field = field("hop_limit", 47, 0, 8);
/// Bit 0 full member, bit 2 SendOnlyNonMember.
pub const JOIN_STATE: Field = field("join_state", 48, 4, 4);

/// MGID, PortGID and JoinState: the components of each join.
const JOINS: u64 = 1 | 1 << 1 | 1 << 16;
/// Q_Key, TClass, P_Key, SL and FlowLabel: those that a creation needs beside them.
const CREATES: u64 = 1 << 2 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
const FULL_MEMBER: u64 = 1;
const SEND_ONLY: u64 = 4;
/// The bit of full members of a partition. A group belongs to the partition, whatever the membership of its creator.
const FULL_KEY: u16 = 1 << 15;

/// The Q_Key that a creator gives to a group. Bit 31 is clear, so senders may choose it. Source: IBTA Vol 1, 10.2.4
/// (controlled Q_Keys).
pub const GROUP_QUEUE_KEY: u32 = 0x0070_6264;

/// What a path record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// LID of the peer: with an LMC one of several, by which the packets take one of several ways.
    pub lid: Lid,
    /// LID of the sender, the same.
    pub source: Lid,
    /// Service level of packets to the peer.
    pub level: ServiceLevel,
    /// Their P_Key.
    pub key: u16,
}

/// A multicast group that a port joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Its name in the scenario.
    pub name: String,
    /// Its number in the plan: a multicast LID, other than the one that subnet administration gives it.
    pub lid: Lid,
    /// Its address.
    pub mgid: Ipv6Addr,
    /// The port takes the packets of the group; otherwise it only sends some.
    pub is_member: bool,
}

/// What a port that belongs to a group knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The path of packets to the group, from any LID of the port; its LID is the multicast LID.
    pub path: PathRecord,
    /// Their GRH, from the GID of the port to that of the group.
    pub grh: Grh,
    /// Their Q_Key.
    pub queue_key: u32,
    /// Their largest payload, in octets.
    pub mtu: u64,
    /// The port takes packets of the group.
    pub is_member: bool,
    /// The port belongs to the group, if only to send: its latest request was not refused.
    pub is_joined: bool,
}

impl GroupConfig {
    /// The request of a port with this GID and P_Key after so many refusals.
    pub(crate) fn join(
        &self,
        transaction: u64,
        port: [u64; 2],
        key: u16,
        refusals: u32,
    ) -> Datagram {
        let (class, method) = (ADMINISTRATION, method::SET);
        let mut datagram = Datagram::request(class, method, MC_MEMBER_RECORD, 0, transaction);
        let creates = self.is_member && refusals.is_multiple_of(2);
        datagram.set(&COMPONENT_MASK, if creates { JOINS | CREATES } else { JOINS });
        let data = datagram.data_mut();
        for (index, half) in self.halves().into_iter().enumerate() {
            MGID.set_at(index, data, half);
            PORT_GID.set_at(index, data, port[index]);
        }
        JOIN_STATE.set(data, if self.is_member { FULL_MEMBER } else { SEND_ONLY });
        if creates {
            QUEUE_KEY.set(data, GROUP_QUEUE_KEY.into());
            P_KEY.set(data, (key | FULL_KEY).into());
        }
        datagram
    }

    /// What a good answer says; `None` if it is about another group or has no multicast LID.
    pub(crate) fn joined(&self, datagram: &Datagram) -> Option<Membership> {
        let data = datagram.data();
        let lid = Lid::new(MLID.get(data) as u16);
        let is_its = [0, 1].map(|half| MGID.at(half, data)) == self.halves() && lid.is_multicast();
        let [high, low] = [0, 1].map(|half| u128::from(PORT_GID.at(half, data)));
        is_its.then(|| Membership {
            path: PathRecord {
                lid,
                source: Lid::default(),
                level: ServiceLevel::truncate(LEVEL.get(data) as u8),
                key: P_KEY.get(data) as u16,
            },
            grh: Grh {
                traffic_class: TRAFFIC_CLASS.get(data) as u8,
                flow_label: FLOW_LABEL.get(data) as u32,
                hop_limit: HOP_LIMIT.get(data) as u8,
                sgid: Ipv6Addr::from_bits(high << 64 | low),
                dgid: self.mgid,
                ..Grh::default()
            },
            queue_key: QUEUE_KEY.get(data) as u32,
            mtu: 128 << MTU.get(data).min(5),
            is_member: self.is_member,
            is_joined: true,
        })
    }

    fn halves(&self) -> [u64; 2] {
        let bits = self.mgid.to_bits();
        [(bits >> 64) as u64, bits as u64]
    }
}
