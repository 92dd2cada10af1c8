//! The InfiniBand wire format: addresses are LIDs, lanes follow the service level.

use crate::config::{CnpBody, NicConfig};
use crate::wire::packet::{FrameContent, OutgoingPacket, Parsed, ReceivedPacket};
use proto::counters::DropReason;
use proto::ids::{Lid, ServiceLevel, VirtualLane};
use proto::units::Bytes;
use proto::wire::infiniband::crc::verify_icrc;
use proto::wire::infiniband::{LrhView, Packet, PacketBuilder};

/// Octets of LRH, BTH, ICRC and VCRC, which every packet has.
const HEADERS: u64 = 8 + 12 + 4 + 2;

/// The LIDs of a managed fabric. Queue pairs know each other by the LIDs of the plan.
#[derive(Clone, Debug)]
pub(super) struct ManagedAddresses {
    own: Lid,
    /// Low bits of the own LID that are not distinguished (LMC).
    mask_bits: u8,
    /// By LID of the plan; those of the plan where there is no other.
    peers: Vec<Lid>,
}

impl ManagedAddresses {
    fn of(&self, planned: Lid) -> Lid {
        self.peers.get(usize::from(planned.get())).copied().unwrap_or(planned)
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
                Box::new(ManagedAddresses { own: config.lid, mask_bits: 0, peers: Vec::new() })
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

    pub(super) fn set_peer(&mut self, planned: Lid, lid: Lid) {
        if let Some(ManagedAddresses { peers, .. }) = self.managed.as_deref_mut() {
            while peers.len() <= usize::from(planned.get()) {
                peers.push(Lid::new(peers.len() as u16));
            }
            peers[usize::from(planned.get())] = lid;
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
        let (dlid, slid) = match &self.managed {
            None => (packet.to, self.own),
            Some(managed) => (managed.of(packet.to), managed.own),
        };
        PacketBuilder {
            virtual_lane: packet.lane,
            service_level: packet.level,
            dlid,
            slid,
            extended: packet.extended,
            ..PacketBuilder::new(packet.bth)
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
