//! What packets look like on this NIC's link: a dialect is a file, chosen once by configuration.
//!
//! Transport says what a packet means ([`Outward`]) and is told what one meant ([`Inward`]); how it is
//! put together and taken apart, how long it is and to which lane it belongs is the dialect's. BTH to
//! pad is the same in all.
//!
//! ```text
//! infiniband   | LRH                 | BTH … pad | ICRC | VCRC |
//! roce         | Ethernet | IP | UDP | BTH … pad | ICRC | (FCS) |
//! ```

mod infiniband;
pub mod packet;
mod roce;
pub mod test_frame;

use crate::config::{Encapsulation, NicConfig};
use bytes::BytesMut;
use infiniband::Infiniband;
use packet::{Content, Outward};
use proto::counters::DropReason;
use proto::frame::{Frame, FramePool};
use proto::ids::{Priority, ServiceLevel, VirtualLane};
use proto::link::LinkConfig;
use proto::units::Bytes;
use proto::wire::infiniband::Opcode;
use proto::wire::project::ProjectTypes;
use roce::Roce;

/// The dialect of one NIC.
#[derive(Clone, Debug)]
pub enum Wire {
    /// InfiniBand.
    Infiniband(Infiniband),
    /// RoCEv2.
    Roce(Box<Roce>),
}

/// Hands on to whichever dialect it is.
macro_rules! in_dialect {
    ($wire:expr, $dialect:ident => $call:expr) => {
        match $wire {
            Wire::Infiniband($dialect) => $call,
            Wire::Roce($dialect) => $call,
        }
    };
}

impl Wire {
    /// The dialect that `config`, which has been checked, asks for.
    pub fn new(config: &NicConfig) -> Wire {
        match &config.wire {
            Encapsulation::Infiniband => Wire::Infiniband(Infiniband::new(config)),
            Encapsulation::Roce(roce) => Wire::Roce(Box::new(Roce::new(roce, config))),
        }
    }

    /// True for RoCE.
    pub fn is_roce(&self) -> bool {
        matches!(self, Wire::Roce(_))
    }

    /// Our own address, as [`proto::frame::FrameHeaders`] has addresses.
    pub fn address(&self) -> u64 {
        in_dialect!(self, dialect => dialect.address())
    }

    /// The lane of data and acknowledgements with this service level.
    pub fn lane(&self, level: ServiceLevel) -> VirtualLane {
        in_dialect!(self, dialect => dialect.lane(level))
    }

    /// The lane of notifications about flows with this service level.
    pub fn notification_lane(&self, level: ServiceLevel) -> VirtualLane {
        in_dialect!(self, dialect => dialect.notification_lane(level))
    }

    /// The opcode of a notification.
    pub fn notification(&self) -> Opcode {
        match self {
            Wire::Infiniband(_) => Opcode::CNP,
            Wire::Roce(_) => Opcode::ROCEV2_CNP,
        }
    }

    /// What a notification carries for the scheme's sixteen octets.
    pub fn notification_body<'a>(&self, body: &'a [u8; 16]) -> &'a [u8] {
        match self {
            Wire::Infiniband(dialect) => dialect.notification_body(body),
            Wire::Roce(_) => body,
        }
    }

    /// A packet's size, as links count it, with so many octets of extended headers and payload.
    pub fn size(&self, extended: usize, payload: usize) -> Bytes {
        in_dialect!(self, dialect => dialect.size(extended + payload.next_multiple_of(4)))
    }

    /// Octets on the line of a full data frame: as configured, else a packet with one MTU of payload.
    pub fn full_frame(&self, link: &LinkConfig) -> Bytes {
        link.told_frame().unwrap_or_else(|| self.size(0, link.mtu.get() as usize))
    }

    /// Makes a packet in a buffer of `pool`, all checks included; `append` puts its payload behind
    /// what the buffer holds by then.
    ///
    /// # Panics
    /// If it is longer than a checked MTU allows, has not the headers of its opcode, or its payload is not
    /// as long as was said.
    pub fn emit(
        &self,
        packet: &Outward,
        pool: &mut FramePool,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Frame {
        in_dialect!(self, dialect => dialect.emit(packet, pool, payload_length, append))
    }

    /// Under which EtherTypes frames of this project go.
    pub fn project_types(&self) -> &ProjectTypes {
        match self {
            Wire::Infiniband(_) => &ProjectTypes::DEFAULT,
            Wire::Roce(dialect) => dialect.types(),
        }
    }

    /// Whether the frames of a limiter have CN-TAGs.
    pub fn has_cn_tags(&self) -> bool {
        match self {
            Wire::Infiniband(_) => false,
            Wire::Roce(dialect) => dialect.has_cn_tags(),
        }
    }

    /// Whether frames of this priority are those of `lane`.
    pub fn is_on(&self, lane: VirtualLane, priority: Priority) -> bool {
        match self {
            Wire::Infiniband(_) => false,
            Wire::Roce(dialect) => dialect.is_on(lane, priority),
        }
    }

    /// Makes a test frame in a buffer of `pool`.
    ///
    /// # Panics
    /// On InfiniBand, where a checked configuration has none.
    pub fn emit_test(&self, frame: &test_frame::Outgoing, pool: &mut FramePool) -> Frame {
        match self {
            Wire::Infiniband(_) => unreachable!("InfiniBand has no test frames"),
            Wire::Roce(dialect) => dialect.emit_test(frame, pool),
        }
    }

    /// Checks what protects a packet end to end.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        in_dialect!(self, dialect => dialect.verify(octets))
    }

    /// What a frame carries that came in by our port; a packet is taken apart.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn open<'a>(&self, octets: &'a [u8]) -> Result<Content<'a>, DropReason> {
        match self {
            Wire::Infiniband(dialect) => dialect.parse(octets).map(Content::Packet),
            Wire::Roce(dialect) => dialect.open(octets),
        }
    }
}
