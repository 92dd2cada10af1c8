//! The InfiniBand wire format: addresses are LIDs, lanes follow the service level.

use crate::config::{CnpBody, NicConfig};
use crate::wire::packet::{FrameContent, OutgoingPacket, Parsed, ReceivedPacket};
use management::partitions::PartitionTable;
use management::resolver::PathRecord;
use proto::counters::DropReason;
use proto::ids::{Lid, ServiceLevel, VirtualLane};
use proto::units::Bytes;
use proto::wire::infiniband::crc::verify_icrc;
use proto::wire::infiniband::{Bth, LrhView, Packet, PacketBuilder};

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
}

impl ManagedAddresses {
    fn owns(&self, lid: Lid) -> bool {
        lid.get() >> self.mask_bits == self.own.get() >> self.mask_bits
    }

    fn path(&self, planned: Lid) -> Option<&PathRecord> {
        self.paths.get(usize::from(planned.get()))?.as_ref()
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

    /// Packets of a path whose P_Key the port no longer has are sent with its first one.
    pub(super) fn set_partitions(&mut self, table: PartitionTable) {
        if let Some(managed) = &mut self.managed {
            managed.partitions = table;
            for path in managed.paths.iter_mut().flatten().filter(|path| !table.has(path.key)) {
                path.key = table.first();
            }
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
        if let Some(managed) = &self.managed {
            let path = managed.path(packet.to);
            bth.partition_key = path.map_or(managed.partitions.first(), |path| path.key);
            dlid = path.map_or(dlid, |path| path.lid);
            // The path bits of a LID that the port had before do not count.
            let source = path.map(|path| path.source).filter(|source| managed.owns(*source));
            slid = source.unwrap_or(managed.own);
        }
        PacketBuilder {
            virtual_lane: packet.lane,
            service_level: packet.level,
            dlid,
            slid,
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
