//! A frame: the octets of one packet exactly as on the wire, and what was found in its headers.

use crate::ids::{CongestionPointId, Ecn};
use crate::units::Bytes;
use bytes::BytesMut;
use serde::{Deserialize, Serialize};

/// Which of the standards' formats the octets are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum FrameKind {
    /// An InfiniBand data packet, LRH to VCRC.
    Infiniband = 1,
    /// An InfiniBand link packet: six octets of flow control, no LRH.
    InfinibandLink = 2,
    /// An Ethernet frame, destination address to the last octet before the FCS.
    Ethernet = 3,
}

impl FrameKind {
    /// The kind with this number in the cable shim.
    pub const fn from_code(code: u8) -> Option<FrameKind> {
        match code {
            1 => Some(FrameKind::Infiniband),
            2 => Some(FrameKind::InfinibandLink),
            3 => Some(FrameKind::Ethernet),
            _ => None,
        }
    }

    /// What a frame of so many octets takes of the line.
    ///
    /// A link packet is framed by two delimiter symbols: eight octets for its six. A frame of
    /// Ethernet has an FCS that is not among its octets; preamble and gap do not count.
    /// Source: IBTA Vol 1, 7.9.4 (8 symbols in all).
    pub fn line_size(self, octets: usize) -> Bytes {
        match self {
            FrameKind::InfinibandLink => Bytes::new(8),
            FrameKind::Infiniband => Bytes::new(octets as u64),
            FrameKind::Ethernet => ethernet_size(octets),
        }
    }
}

/// Whether the checks that protect a frame on a link still have to be made, or are settled.
///
/// Like a NIC's "checksum unnecessary": a cable that hands octets over in memory cannot corrupt
/// them, so what its sender computed need not be computed again. Whoever changes octets without
/// mending the CRC (an impairment, say) must set [`Integrity::Unchecked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The octets came from outside; every CRC must be verified.
    Unchecked,
    /// The sender computed every CRC and nothing can have changed since.
    Intact,
    /// Its sender gave it up half-way and said so at its end. Whatever its CRCs say, it is discarded.
    ///
    /// Source: IBTA Vol 1, 7.3 (a packet that ends with the bad packet delimiter, EBP).
    Aborted,
}

/// One packet on its way: standard octets and nothing else that a peer could see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The octets, first transmitted octet first.
    pub octets: BytesMut,
    /// Which format they are in.
    pub kind: FrameKind,
    /// Whether their CRCs are known to hold.
    pub integrity: Integrity,
}

impl Frame {
    /// A frame from outside, whose CRCs nobody has verified.
    pub fn unchecked(kind: FrameKind, octets: BytesMut) -> Frame {
        Frame { octets, kind, integrity: Integrity::Unchecked }
    }

    /// A frame whose CRCs the caller has just computed.
    pub fn intact(kind: FrameKind, octets: BytesMut) -> Frame {
        Frame { octets, kind, integrity: Integrity::Intact }
    }

    /// The octets that take line time.
    pub fn line_size(&self) -> Bytes {
        self.kind.line_size(self.octets.len())
    }
}

/// What an Ethernet frame of so many octets without FCS takes of the line, DA to FCS: a short one is
/// padded. Source: IEEE 802.3, 3.2.9 (FCS), 4A.4.2 (minFrameSize).
pub fn ethernet_size(octets: usize) -> Bytes {
    const FCS: u64 = 4;
    const LEAST: u64 = 64;
    Bytes::new((octets as u64 + FCS).max(LEAST))
}

/// What kind of work a frame does, as far as congestion control and counters care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameClass {
    /// Carries somebody's payload; counted as throughput, eligible for marking.
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// A congestion notification of any scheme.
    Notification,
    /// Subnet management on VL15.
    Management,
}

/// What one look at the headers found; made once a hop by `wire::classify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeaders {
    /// First octet of the link header to the last octet of the last CRC, an Ethernet frame's padding
    /// and FCS included.
    pub size: Bytes,
    /// Who sent it: a LID, or a MAC address as a number.
    pub source: u64,
    /// To whom: a LID, or a MAC address as a number.
    pub destination: u64,
    /// The destination is a group.
    pub multicast: bool,
    /// Virtual lane or priority on the link it came from.
    pub lane: u8,
    /// Service level, or the priority again.
    pub level: u8,
    /// What kind of work it does.
    pub class: FrameClass,
    /// Destination queue pair, zero where there is none.
    pub queue_pair: u32,
    /// Packet sequence number, zero where there is none.
    pub psn: u32,
    /// Forward congestion notification is set.
    pub fecn: bool,
    /// Backward congestion notification is set.
    pub becn: bool,
    /// What an IP header says of congestion; [`Ecn::NotCapable`] where there is none.
    pub ecn: Ecn,
    /// The congestion point named by the rate-regulated tag, if there is one.
    pub regulated_by: Option<CongestionPointId>,
    /// Octets of payload the transport carries, without padding.
    pub payload: Bytes,
}

/// Buffers for reuse, so that the data path does not ask the allocator for every frame.
///
/// A device owns one: buffers of consumed frames go in, buffers for new frames come out.
#[derive(Debug, Default)]
pub struct FramePool {
    free: Vec<BytesMut>,
}

impl FramePool {
    /// More buffers than this are given back to the allocator.
    const KEPT_MAX: usize = 256;

    /// An empty buffer, used before if there is one.
    pub fn take(&mut self) -> BytesMut {
        self.free.pop().unwrap_or_default()
    }

    /// Takes back the buffer of a frame that has reached its end.
    pub fn recycle(&mut self, frame: Frame) {
        if self.free.len() < Self::KEPT_MAX {
            let mut octets = frame.octets;
            octets.clear();
            self.free.push(octets);
        }
    }
}
