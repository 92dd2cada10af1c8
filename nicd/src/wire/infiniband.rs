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

/// The wire format of an InfiniBand adapter.
#[derive(Clone, Debug)]
pub struct InfinibandFormat {
    own: Lid,
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
            lanes: std::array::from_fn(|level| VirtualLane::truncate(lane(level))),
            cnp_body: config.cnp_body,
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.own.get().into()
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
        PacketBuilder {
            virtual_lane: packet.lane,
            service_level: packet.level,
            dlid: packet.to,
            slid: self.own,
            extended: packet.extended,
            ..PacketBuilder::new(packet.bth)
        }
    }

    pub(super) fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        verify_icrc(octets).map_err(|error| error.drop_reason())
    }

    pub(super) fn parse_frame<'a>(&self, octets: &'a [u8]) -> Parsed<'a> {
        let transport = Packet::transport(octets).map_err(|error| error.drop_reason())?;
        let transport = transport.ok_or(DropReason::Opcode)?;
        let lrh = LrhView::new(octets).map_err(|error| error.drop_reason())?;
        Ok(FrameContent::Packet(ReceivedPacket { from: lrh.slid(), transport }))
    }
}
