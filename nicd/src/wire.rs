//! The wire formats of a NIC: InfiniBand or RoCEv2, chosen once by configuration.
//!
//! The transport describes a packet to send as [`OutgoingPacket`] and gets a received one as
//! [`packet::ReceivedPacket`]. The wire format knows how a packet is built and parsed, its size and its lane.
//! BTH to pad is the same in both formats.
//!
//! ```text
//! infiniband   | LRH                 | BTH … pad | ICRC | VCRC |
//! roce         | Ethernet | IP | UDP | BTH … pad | ICRC | (FCS) |
//! ```

mod infiniband;
pub mod packet;
pub mod roce;
pub mod test_frame;

use crate::config::{Encapsulation, NicConfig};
use bytes::BytesMut;
use infiniband::InfinibandFormat;
use management::partitions::PartitionTable;
use management::records::{Membership, PathRecord};
use packet::{OutgoingPacket, Parsed};
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind, FramePool};
use proto::ids::{Lid, MacAddress, ServiceLevel, VirtualLane};
use proto::link::LinkConfig;
use proto::units::Bytes;
use proto::wire::ethernet::CongestionTag;
use proto::wire::implied::PAYLOAD_KEPT;
use proto::wire::infiniband::{Bth, Opcode};
use roce::RoceFormat;

const FITS: &str = "the packet fits the validated MTU and has the headers of its opcode";

/// The wire format of one NIC.
#[derive(Clone, Debug)]
pub enum WireFormat {
    /// InfiniBand.
    Infiniband(InfinibandFormat),
    /// RoCEv2.
    Roce(Box<RoceFormat>),
}

/// Calls the same method of either format.
macro_rules! dispatch {
    ($wire:expr, $format:ident => $call:expr) => {
        match $wire {
            WireFormat::Infiniband($format) => $call,
            WireFormat::Roce($format) => $call,
        }
    };
}

impl WireFormat {
    /// The wire format that the validated `config` selects.
    pub fn new(config: &NicConfig) -> WireFormat {
        match &config.wire {
            Encapsulation::Infiniband => WireFormat::Infiniband(InfinibandFormat::new(config)),
            Encapsulation::Roce(roce) => WireFormat::Roce(Box::new(RoceFormat::new(roce, config))),
        }
    }

    /// The RoCEv2 format, if this is one.
    pub fn roce(&self) -> Option<&RoceFormat> {
        match self {
            WireFormat::Infiniband(_) => None,
            WireFormat::Roce(format) => Some(format),
        }
    }

    /// Frames to the foreign host `peer` go to `mac`.
    pub fn learn(&mut self, peer: Lid, mac: MacAddress) {
        if let WireFormat::Roce(format) = self {
            format.foreign.retain(|(known, _)| *known != peer);
            format.foreign.push((peer, mac));
        }
    }

    /// Whether `address`, in the form of [`proto::frame::FrameHeaders`], is the port's own: a LID, or a MAC address as a
    /// number.
    #[inline]
    pub fn is_own(&self, address: u64) -> bool {
        match self {
            WireFormat::Infiniband(format) => format.is_own(address),
            WireFormat::Roce(format) => format.address() == address,
        }
    }

    /// A subnet manager has given this port `lid`, of which the low `bits` are not distinguished.
    pub fn set_own(&mut self, lid: Lid, bits: u8) {
        if let WireFormat::Infiniband(format) = self {
            format.set_own(lid, bits);
        }
    }

    /// On a managed fabric packets to the peer with LID `planned` in the plan go along `path`.
    pub fn set_path(&mut self, planned: Lid, path: PathRecord) {
        if let WireFormat::Infiniband(format) = self {
            format.set_path(planned, path);
        }
    }

    /// On a managed fabric the path to a peer, by its LID in the plan, once it is known.
    pub fn path(&self, planned: Lid) -> Option<&PathRecord> {
        match self {
            WireFormat::Infiniband(format) => format.path(planned),
            WireFormat::Roce(_) => None,
        }
    }

    /// On a managed fabric packets to the group with LID `planned` in the plan are as `membership` says.
    pub fn set_membership(&mut self, planned: Lid, membership: Membership) {
        if let WireFormat::Infiniband(format) = self {
            format.set_membership(planned, membership);
        }
    }

    /// The port does not belong to this group.
    pub fn lose_membership(&mut self, planned: Lid) {
        if let WireFormat::Infiniband(format) = self {
            format.lose_membership(planned);
        }
    }

    /// What is known of the group with LID `planned` in the plan.
    pub fn membership(&self, planned: Lid) -> Option<&Membership> {
        match self {
            WireFormat::Infiniband(format) => format.membership(planned),
            WireFormat::Roce(_) => None,
        }
    }

    /// The group, by its LID of the plan, that takes a multicast packet with these octets.
    pub fn joined(&self, octets: &[u8]) -> Option<(Lid, &Membership)> {
        match self {
            WireFormat::Infiniband(format) => format.joined(octets),
            WireFormat::Roce(_) => None,
        }
    }

    /// A subnet manager has given this port these P_Keys.
    pub fn set_partitions(&mut self, table: PartitionTable) {
        if let WireFormat::Infiniband(format) = self {
            format.set_partitions(table);
        }
    }

    /// The P_Key of the port that matches this one of a packet; `None` if the port does not take the packet.
    #[inline]
    pub fn matching_key(&self, key: u16) -> Option<u16> {
        match self {
            WireFormat::Infiniband(format) => format.matching_key(key),
            WireFormat::Roce(_) => (key == Bth::DEFAULT_PARTITION).then_some(key),
        }
    }

    /// The lane of data and acknowledgements with this service level. On Ethernet a lane is a priority.
    pub fn lane(&self, level: ServiceLevel) -> VirtualLane {
        dispatch!(self, format => format.lane(level))
    }

    /// New queue pairs use these lanes, by service level. No effect on Ethernet.
    pub fn set_lanes(&mut self, lanes: [VirtualLane; 16]) {
        if let WireFormat::Infiniband(format) = self {
            format.lanes = lanes;
        }
    }

    /// The lane of notifications for flows with this service level.
    pub fn notification_lane(&self, level: ServiceLevel) -> VirtualLane {
        dispatch!(self, format => format.notification_lane(level))
    }

    /// The opcode of a CNP: 0x80 on InfiniBand, 0x81 for RoCEv2. Source: IBTA Vol 1, annexes A10 and A17.9.3.
    pub fn notification(&self) -> Opcode {
        match self {
            WireFormat::Infiniband(_) => Opcode::CNP,
            WireFormat::Roce(_) => Opcode::ROCEV2_CNP,
        }
    }

    /// The payload of a CNP whose scheme wrote `body`.
    pub fn notification_body<'a>(&self, body: &'a [u8; 16]) -> &'a [u8] {
        match self {
            WireFormat::Infiniband(format) => format.notification_body(body),
            WireFormat::Roce(_) => body,
        }
    }

    /// The size of a packet with these octets of extended headers and payload, as the link counts it: LRH to
    /// VCRC, or DA to FCS.
    pub fn size(&self, extended: usize, payload: usize) -> Bytes {
        dispatch!(self, format => format.size(extended + payload.next_multiple_of(4)))
    }

    /// Octets on the line of a full data frame: as configured, else a packet with one MTU of payload.
    pub fn full_frame(&self, link: &LinkConfig) -> Bytes {
        link.configured_frame().unwrap_or_else(|| self.size(0, link.mtu.get() as usize))
    }

    /// Makes a packet with all its checks in a buffer of `pool`. `append` appends exactly `payload_length`
    /// octets.
    ///
    /// # Panics
    /// If the packet is longer than a validated MTU permits, if it lacks a header of its opcode, or if
    /// `append` does not append exactly `payload_length` octets.
    pub fn emit(
        &self,
        packet: &OutgoingPacket,
        pool: &mut FramePool,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Frame {
        let mut octets = pool.take();
        let kind = match self {
            WireFormat::Infiniband(format) => {
                let packet = format.builder(packet);
                packet.emit_around(&mut octets, payload_length, append).expect(FITS);
                FrameKind::Infiniband
            }
            WireFormat::Roce(format) => {
                let packet = format.builder(packet);
                packet.emit_around(&mut octets, payload_length, append).expect(FITS);
                FrameKind::Ethernet
            }
        };
        Frame::intact(kind, octets)
    }

    /// Makes a packet with `length` octets of a message. `append` appends so many of the first of them; where there are
    /// more, they and the checks are implied ([`proto::wire::implied`]).
    ///
    /// # Panics
    /// As [`WireFormat::emit`].
    pub fn emit_message(
        &self,
        packet: &OutgoingPacket,
        pool: &mut FramePool,
        length: usize,
        append: impl FnOnce(&mut BytesMut, usize),
    ) -> Frame {
        let implied = length.saturating_sub(PAYLOAD_KEPT);
        if implied == 0 {
            return self.emit(packet, pool, length, |octets| append(octets, length));
        }
        let mut octets = pool.take();
        let kind = match self {
            WireFormat::Infiniband(format) => {
                let packet = format.builder(packet);
                packet.emit_headers(&mut octets, length, PAYLOAD_KEPT).expect(FITS);
                FrameKind::Infiniband
            }
            WireFormat::Roce(format) => {
                let packet = format.builder(packet);
                let more = PAYLOAD_KEPT + CongestionTag::LEN_MAX;
                packet.emit_headers(&mut octets, length, more).expect(FITS);
                FrameKind::Ethernet
            }
        };
        append(&mut octets, PAYLOAD_KEPT);
        Frame::with_implied(kind, octets, implied as u16)
    }

    /// Verifies the checks that protect a packet end to end: ICRC, and on Ethernet the IP and UDP checksums.
    ///
    /// # Errors
    /// The drop reason.
    pub fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        dispatch!(self, format => format.verify(octets))
    }

    /// Parses a frame that the port has accepted. Its payload is given as far as it is in memory.
    ///
    /// # Errors
    /// The drop reason.
    pub fn parse_frame<'a>(&self, frame: &'a Frame) -> Parsed<'a> {
        dispatch!(self, format => format.parse_frame(&frame.octets, frame.octets_len()))
    }
}
