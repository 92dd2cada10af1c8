//! The InfiniBand wire format: addresses are LIDs, lanes follow the service level.

use crate::config::{CnpBody, NicConfig};
use crate::wire::packet::{FrameContent, OutgoingPacket, Parsed, ReceivedPacket};
use management::partitions::PartitionTable;
use management::records::{Membership, PathRecord};
use proto::counters::DropReason;
use proto::ids::{Lid, ServiceLevel, VirtualLane};
use proto::units::Bytes;
use proto::wire::infiniband::crc::verify_icrc;
use proto::wire::infiniband::{Bth, GrhView, LinkNextHeader, Lrh, LrhView, Packet, PacketBuilder};

/// Octets of LRH, BTH, ICRC and VCRC, which every packet has.
const HEADERS: u64 = 8 + 12 + 4 + 2;

/// The addresses of a managed fabric. Queue pairs know each other by the LIDs of the plan.
#[derive(Clone, Debug)]
pub(super) struct ManagedAddresses {
    own: Lid,
    /// Low bits of the own LID that are not distinguished (LMC).
    mask_bits: u8,
    /// The P_Keys of the port.
    partitions: PartitionTable,
    /// By LID of the plan; `None` where no path record has come.
    paths: Vec<Option<PathRecord>>,
    /// What is known of multicast groups, by their LIDs of the plan.
    memberships: Vec<(Lid, Membership)>,
}

impl ManagedAddresses {
    fn owns(&self, lid: Lid) -> bool {
        lid.get() >> self.mask_bits == self.own.get() >> self.mask_bits
    }

    fn path(&self, planned: Lid) -> Option<&PathRecord> {
        if planned.is_multicast() {
            return self.membership(planned).map(|membership| &membership.path);
        }
        self.paths.get(usize::from(planned.get()))?.as_ref()
    }

    fn membership(&self, planned: Lid) -> Option<&Membership> {
        let known = self.memberships.iter().find(|(group, _)| *group == planned);
        known.map(|(_, membership)| membership)
    }
}

/// The wire format of an InfiniBand adapter.
#[derive(Clone, Debug)]
pub struct InfinibandFormat {
    own: Lid,
    /// On a managed fabric: the LIDs on the wire.
    managed: Option<Box<ManagedAddresses>>,
    /// The SL to VL mapping table.
    pub(super) lanes: [VirtualLane; 16],
    cnp_body: CnpBody,
}

impl InfinibandFormat {
    /// The format that `config` describes. Missing entries of `sl2vl` map to lane 0.
    pub fn new(config: &NicConfig) -> InfinibandFormat {
        let lane = |level: usize| config.sl2vl.get(level).copied().unwrap_or(0);
        InfinibandFormat {
            own: config.lid,
            managed: config.management.map(|_| {
                Box::new(ManagedAddresses {
                    own: config.lid,
                    mask_bits: 0,
                    partitions: PartitionTable::default(),
                    paths: Vec::new(),
                    memberships: Vec::new(),
                })
            }),
            lanes: std::array::from_fn(|level| VirtualLane::truncate(lane(level))),
            cnp_body: config.cnp_body,
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.managed.as_ref().map_or(self.own, |managed| managed.own).get().into()
    }

    pub(super) fn is_own(&self, address: u64) -> bool {
        let bits = self.managed.as_ref().map_or(0, |managed| managed.mask_bits);
        address >> bits == self.address() >> bits
    }

    pub(super) fn set_own(&mut self, lid: Lid, bits: u8) {
        if let Some(managed) = &mut self.managed {
            (managed.own, managed.mask_bits) = (lid, bits);
        }
    }

    pub(super) fn set_path(&mut self, planned: Lid, path: PathRecord) {
        if let Some(ManagedAddresses { paths, .. }) = self.managed.as_deref_mut() {
            let index = usize::from(planned.get());
            if paths.len() <= index {
                paths.resize(index + 1, None);
            }
            paths[index] = Some(path);
        }
    }

    pub(super) fn path(&self, planned: Lid) -> Option<&PathRecord> {
        self.managed.as_ref()?.path(planned)
    }

    pub(super) fn set_membership(&mut self, planned: Lid, mut membership: Membership) {
        let Some(managed) = &mut self.managed else { return };
        let key = &mut membership.path.key;
        *key = managed.partitions.find(*key).unwrap_or(managed.partitions.first());
        managed.memberships.retain(|(group, _)| *group != planned);
        managed.memberships.push((planned, membership));
    }

    pub(super) fn lose_membership(&mut self, planned: Lid) {
        let known = self.managed.iter_mut().flat_map(|managed| &mut managed.memberships);
        for (_, membership) in known.filter(|(group, _)| *group == planned) {
            (membership.is_member, membership.is_joined) = (false, false);
        }
    }

    pub(super) fn membership(&self, planned: Lid) -> Option<&Membership> {
        self.managed.as_ref()?.membership(planned)
    }

    /// The group that a packet with these octets is for, by its LID of the plan: the port is a member, and both MGID and
    /// multicast LID are those of the group.
    pub(super) fn joined(&self, octets: &[u8]) -> Option<(Lid, &Membership)> {
        let managed = self.managed.as_ref()?;
        let lrh = LrhView::new(octets).ok()?;
        if lrh.next_header() != LinkNextHeader::Global {
            return None;
        }
        let dgid = GrhView::new(&octets[Lrh::LEN..]).ok()?.dgid();
        let is_its = |membership: &Membership| {
            membership.is_member && membership.grh.dgid == dgid && membership.path.lid == lrh.dlid()
        };
        let found = managed.memberships.iter().find(|(_, membership)| is_its(membership))?;
        Some((found.0, &found.1))
    }

    /// Packets of a path whose P_Key the port no longer has are sent with its first one.
    pub(super) fn set_partitions(&mut self, table: PartitionTable) {
        if let Some(managed) = &mut self.managed {
            managed.partitions = table;
            let groups = managed.memberships.iter_mut().map(|(_, membership)| &mut membership.path);
            let paths = managed.paths.iter_mut().flatten().chain(groups);
            paths.filter(|path| !table.has(path.key)).for_each(|path| path.key = table.first());
        }
    }

    #[inline]
    pub(super) fn matching_key(&self, key: u16) -> Option<u16> {
        match &self.managed {
            None => (key == Bth::DEFAULT_PARTITION).then_some(key),
            Some(managed) => managed.partitions.find(key),
        }
    }

    pub(super) fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lanes[level.index()]
    }

    pub(super) fn notification_lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lane(level)
    }

    /// A CNP may omit an all-zero payload, but never one that a scheme wrote.
    pub(super) fn notification_body<'a>(&self, body: &'a [u8; 16]) -> &'a [u8] {
        match self.cnp_body {
            CnpBody::None if *body == [0; 16] => &[],
            _ => body,
        }
    }

    pub(super) fn size(&self, behind_bth: usize) -> Bytes {
        Bytes::new(HEADERS + behind_bth as u64)
    }

    #[inline]
    pub(super) fn builder(&self, packet: &OutgoingPacket) -> PacketBuilder {
        let (mut bth, mut dlid, mut slid) = (packet.bth, packet.to, self.own);
        let mut grh = None;
        if let Some(managed) = &self.managed {
            let path = managed.path(packet.to);
            bth.partition_key = path.map_or(managed.partitions.first(), |path| path.key);
            dlid = path.map_or(dlid, |path| path.lid);
            // The path bits of a LID that the port had before do not count.
            let source = path.map(|path| path.source).filter(|source| managed.owns(*source));
            slid = source.unwrap_or(managed.own);
            if packet.to.is_multicast() {
                grh = managed.membership(packet.to).map(|membership| membership.grh);
            }
        }
        PacketBuilder {
            virtual_lane: packet.lane,
            service_level: packet.level,
            dlid,
            slid,
            grh,
            extended: packet.extended,
            ..PacketBuilder::new(bth)
        }
    }

    pub(super) fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        verify_icrc(octets).map_err(|error| error.drop_reason())
    }

    pub(super) fn parse_frame<'a>(&self, octets: &'a [u8], length: usize) -> Parsed<'a> {
        let transport = Packet::transport_part(octets, length);
        let transport = transport.map_err(|error| error.drop_reason())?;
        let transport = transport.ok_or(DropReason::Opcode)?;
        let lrh = LrhView::new(octets).map_err(|error| error.drop_reason())?;
        // The sender's LID may have moved, or be one of several. The number of the queue pair tells the sender.
        let planned = self.managed.as_ref().and(transport.bth.destination.plan());
        let from = planned.map_or(lrh.slid(), |(_, peer)| peer);
        Ok(FrameContent::Packet(ReceivedPacket { from, transport }))
    }
}
