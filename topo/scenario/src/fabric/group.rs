//! `[[fabric.group]]`: multicast groups that NICs of a managed fabric join through subnet administration.

use super::FabricSettings;
use crate::frames::as_buffered;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::names;
use crate::topology::Topology;
use core::net::Ipv6Addr;
use nicd::config::GroupConfig;
use proto::ids::Lid;
use proto::params::{KeyTable, Params};
use proto::units::Bytes;
use proto::wire::infiniband::{Deth, Grh};

/// The keys of `[[fabric.group]]`.
pub static GROUP: KeyTable = KeyTable::new("a multicast group that NICs join", Written::KEYS);

/// A number of the plan for each group. Source: IBTA Vol 1, 4.1.3 (multicast LIDs).
const FIRST: u16 = 0xc000;
const GROUPS_MAX: usize = 256;
/// The address of a group without one, with its place in the file: transient, of this subnet.
/// Source: IBTA Vol 1, 4.1.1.
const MGID: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0);

proto::params! {
    /// One `[[fabric.group]]` as written.
    pub struct Written {
        /// Its name, for traffic.to.
        name: String = Text, Required;
        /// NICs that take its packets; any NIC may send some.
        members: Texts = TEXTS, Required;
        /// Its address.
        mgid: Option<String> = Text, Else("ff12::1 for the first group, ff12::2 for the second, …");
    }
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its number in the plan; subnet administration gives it another LID.
    pub lid: Lid,
    /// Its address.
    pub mgid: Ipv6Addr,
    /// The NICs that take its packets.
    pub members: Vec<usize>,
}

impl Group {
    /// The group as NIC `node` joins it, which sends to it or not; `None` if it has nothing to do with it.
    pub fn at(&self, node: usize, sends: bool) -> Option<GroupConfig> {
        let is_member = self.members.contains(&node);
        let (name, lid, mgid) = (self.name.clone(), self.lid, self.mgid);
        (is_member || sends).then_some(GroupConfig { name, lid, mgid, is_member })
    }
}

/// Reads every `[[fabric.group]]`.
pub fn read(fields: &Fields<'_>, topology: &Topology) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for (index, (fields, written)) in fields.each::<Written>("group").into_iter().enumerate() {
        let Written { name, members, mgid } = written;
        if index >= GROUPS_MAX {
            fields.error("name", "more than 256 groups", "leave some out");
            return all;
        }
        if topology.find(&name).is_some() || all.iter().any(|group| group.name == name) {
            fields.error("name", format!("{name:?} is a node or a group already"), "another name");
        }
        let index = index as u16;
        let own = Ipv6Addr::from_bits(MGID.to_bits() + u128::from(index) + 1);
        let parsed = mgid.map_or(Ok(own), |text| text.parse());
        let mgid = parsed.unwrap_or(Ipv6Addr::UNSPECIFIED);
        if !mgid.is_multicast() || all.iter().any(|group| group.mgid == mgid) {
            let message = "an MGID begins with ff, and no two groups have the same";
            fields.error("mgid", message, format!("leave it out, or {:?}", own.to_string()));
        }
        let members = fields.gather("members", &members, |text| names::adapters(topology, text));
        let lid = Lid::new(FIRST + index);
        all.extend(members.map(|members| Group { name, lid, mgid, members }));
    }
    all
}

/// Refuses groups where no subnet manager has the fabric, or a buffer would wait for ever for room for their packets.
pub fn check(root: &Fields<'_>, fabric: &FabricSettings) {
    let Some(fields) = root.table("fabric").filter(|_| !fabric.groups.is_empty()) else { return };
    if !fabric.managed {
        let message = "groups are joined through a subnet manager, and this fabric has none";
        fields.error("group", message, "[lab] managed = true, or [[fabric.multicast]] for routes");
    }
    let packet = fabric.full_frame() + Bytes::new((Grh::LEN + Deth::LEN) as u64);
    let packet = as_buffered(fabric.technology, packet).get() * u64::from(fabric.link.shares());
    let buffers = [("switch", fabric.switch.buffer), ("nic", fabric.nic.params.buffer)];
    for (key, buffer) in buffers.into_iter().filter(|(_, buffer)| buffer.get() < packet) {
        let message = format!("a buffer of {buffer} cannot hold a packet with GRH of each lane");
        fields.error(key, message, "buffer = \"36 mtu\" is usual");
    }
}
