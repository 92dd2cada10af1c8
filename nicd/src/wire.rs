//! What packets look like on this NIC's link: a format is a file, chosen once by configuration.
//!
//! Transport says what a packet means ([`OutgoingPacket`]) and is told what one meant ([`ReceivedPacket`]); how it is
//! put together and taken apart, how long it is and to which lane it belongs is the format's. BTH to
//! pad is the same in all.
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
use packet::{FrameContent, OutgoingPacket};
use proto::counters::DropReason;
use proto::frame::{Frame, FramePool};
use proto::ids::{ServiceLevel, VirtualLane};
use proto::link::LinkConfig;
use proto::units::Bytes;
use proto::wire::infiniband::Opcode;
use roce::RoceFormat;

/// The format of one NIC.
#[derive(Clone, Debug)]
pub enum WireFormat {
    /// InfiniBand.
    Infiniband(InfinibandFormat),
    /// RoCEv2.
    Roce(Box<RoceFormat>),
}

/// Hands on to whichever format it is.
macro_rules! dispatch {
    ($wire:expr, $format:ident => $call:expr) => {
        match $wire {
            WireFormat::Infiniband($format) => $call,
            WireFormat::Roce($format) => $call,
        }
    };
}

impl WireFormat {
    /// The format that `config`, which has been checked, asks for.
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

    /// Our own address, as [`proto::frame::FrameHeaders`] has addresses.
    pub fn address(&self) -> u64 {
        dispatch!(self, format => format.address())
    }

    /// The lane of data and acknowledgements with this service level.
    pub fn lane(&self, level: ServiceLevel) -> VirtualLane {
        dispatch!(self, format => format.lane(level))
    }

    /// The lane of notifications about flows with this service level.
    pub fn notification_lane(&self, level: ServiceLevel) -> VirtualLane {
        dispatch!(self, format => format.notification_lane(level))
    }

    /// The opcode of a notification.
    pub fn notification(&self) -> Opcode {
        match self {
            WireFormat::Infiniband(_) => Opcode::CNP,
            WireFormat::Roce(_) => Opcode::ROCEV2_CNP,
        }
    }

    /// What a notification carries for the scheme's sixteen octets.
    pub fn notification_body<'a>(&self, body: &'a [u8; 16]) -> &'a [u8] {
        match self {
            WireFormat::Infiniband(format) => format.notification_body(body),
            WireFormat::Roce(_) => body,
        }
    }

    /// A packet's size, as links count it, with so many octets of extended headers and payload.
    pub fn size(&self, extended: usize, payload: usize) -> Bytes {
        dispatch!(self, format => format.size(extended + payload.next_multiple_of(4)))
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
        packet: &OutgoingPacket,
        pool: &mut FramePool,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Frame {
        dispatch!(self, format => format.emit(packet, pool, payload_length, append))
    }

    /// Checks what protects a packet end to end.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        dispatch!(self, format => format.verify(octets))
    }

    /// What a frame carries that came in by our port; a packet is taken apart.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn parse_frame<'a>(&self, octets: &'a [u8]) -> Result<FrameContent<'a>, DropReason> {
        match self {
            WireFormat::Infiniband(format) => format.parse(octets).map(FrameContent::Packet),
            WireFormat::Roce(format) => format.parse_frame(octets),
        }
    }
}
