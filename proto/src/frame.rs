//! A frame: the octets of one packet exactly as on the wire, and what was found in its headers.

use crate::ids::{Address, CongestionPointId, Ecn, ServiceLevel, VirtualLane};
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

    /// Octets of line time that a frame of `octets` octets takes.
    ///
    /// Two delimiter symbols frame a link packet: eight octets on the line for its six. An Ethernet
    /// frame has an FCS that is not among its octets; preamble and gap are not included.
    /// Source: IBTA Vol 1, 7.9.4 (8 symbols in all).
    #[inline]
    pub fn line_size(self, octets: usize) -> Bytes {
        match self {
            FrameKind::InfinibandLink => Bytes::new(8),
            FrameKind::Infiniband => Bytes::new(octets as u64),
            FrameKind::Ethernet => ethernet_size(octets),
        }
    }
}

/// Whether the receiver must verify the CRCs of a frame.
///
/// This is like a NIC's "checksum unnecessary": a cable in memory cannot corrupt octets, so the
/// receiver skips the check. Code that changes octets without updating the CRC (an impairment) must
/// set [`Integrity::Unchecked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The octets came from outside this process; verify every CRC.
    Unchecked,
    /// The sender computed every CRC, and no octet has changed since.
    Intact,
    /// The sender aborted the frame and marked its end as bad. The receiver discards it, whatever
    /// its CRCs are.
    ///
    /// Source: IBTA Vol 1, 7.3 (a packet that ends with the bad packet delimiter, EBP).
    Aborted,
}

/// One packet in transit: the octets of the standard's format, and what this process has verified of them.
///
/// A data frame that this process made keeps in memory its headers and the first octets of its payload. The rest is
/// *implied*: payload of the pattern, pad, and checks that are right for what the headers say by then. All octets are
/// made for a capture, a socket or an impairment ([`crate::wire::implied`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The octets in memory, first transmitted octet first: all of them, or those before the implied ones.
    pub octets: BytesMut,
    /// Octets of payload that are implied; 0 if all octets of the frame are in memory.
    pub implied: u16,
    /// Which format they are in.
    pub kind: FrameKind,
    /// Whether their CRCs are known to hold.
    pub integrity: Integrity,
}

impl Frame {
    /// A frame from outside this process, whose CRCs are not verified yet.
    pub fn unchecked(kind: FrameKind, octets: BytesMut) -> Frame {
        Frame { octets, implied: 0, kind, integrity: Integrity::Unchecked }
    }

    /// A frame whose CRCs the caller has just computed.
    pub fn intact(kind: FrameKind, octets: BytesMut) -> Frame {
        Frame { octets, implied: 0, kind, integrity: Integrity::Intact }
    }

    /// Whether the receiver must verify the CRCs. Implied ones are right.
    #[inline]
    pub fn is_unchecked(&self) -> bool {
        self.integrity == Integrity::Unchecked && self.implied == 0
    }

    /// The octets of the frame, with the implied ones.
    #[inline]
    pub fn octets_len(&self) -> usize {
        self.octets.len() + self.implied_len()
    }

    /// The octets that are not in memory: payload, pad to a whole word, ICRC, and on InfiniBand the VCRC.
    #[inline]
    pub fn implied_len(&self) -> usize {
        let checks = if self.kind == FrameKind::Infiniband { 6 } else { 4 };
        match self.implied {
            0 => 0,
            payload => ((usize::from(payload) + 3) & !3) + checks,
        }
    }

    /// Octets of line time that the frame takes, see [`FrameKind::line_size`].
    #[inline]
    pub fn line_size(&self) -> Bytes {
        match self.kind {
            // Nothing of a link packet is implied.
            FrameKind::InfinibandLink => self.kind.line_size(0),
            _ => self.kind.line_size(self.octets_len()),
        }
    }
}

/// Octets from DA to FCS of an Ethernet frame that has `octets` octets without its FCS. A short frame
/// is padded to 64 octets. Source: IEEE 802.3, 3.2.9 (FCS), 4A.4.2 (minFrameSize).
#[inline]
pub fn ethernet_size(octets: usize) -> Bytes {
    const FCS: u64 = 4;
    const LEAST: u64 = 64;
    Bytes::new((octets as u64 + FCS).max(LEAST))
}

/// The purpose of a frame, as congestion control and counters distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FrameClass {
    /// Carries payload: counted as throughput, eligible for marking.
    #[default]
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// A congestion notification of any scheme.
    Notification,
    /// Subnet management on VL15.
    Management,
}

/// The header fields that a device uses. `wire::classify` parses them once a hop.
///
/// The default is a data frame without marks on lane 0; numbers are 0, and both addresses LID 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHeaders {
    /// Octets from the link header to the last CRC; on Ethernet with padding and FCS.
    pub size: Bytes,
    /// SLID, or source MAC address.
    pub source: Address,
    /// DLID, or destination MAC address.
    pub destination: Address,
    /// The destination is a group.
    pub multicast: bool,
    /// Virtual lane on the link it came from; on Ethernet the priority.
    pub lane: VirtualLane,
    /// Service level; on Ethernet the priority.
    pub level: ServiceLevel,
    /// The purpose of the frame.
    pub class: FrameClass,
    /// Destination queue pair (24 bits), or the flow of a test frame (32 bits); 0 without either.
    pub queue_pair: u32,
    /// PSN (24 bits), or the sequence of a test frame (32 bits); 0 without either.
    pub psn: u32,
    /// Forward congestion notification is set.
    pub fecn: bool,
    /// Backward congestion notification is set.
    pub becn: bool,
    /// ECN field of the IP header; [`Ecn::NotCapable`] without one.
    pub ecn: Ecn,
    /// The congestion point that the rate-regulated tag names, if the frame has that tag.
    pub regulated_by: Option<CongestionPointId>,
    /// Octets of transport payload, without padding.
    pub payload: Bytes,
}

/// Buffers for reuse, so that the data path does not allocate for each frame.
///
/// Each device owns one. The buffers of consumed frames serve new frames.
#[derive(Debug, Default)]
pub struct FramePool {
    free: Vec<BytesMut>,
}

impl FramePool {
    /// The pool keeps at most so many buffers; it drops further ones.
    const KEPT_MAX: usize = 256;

    /// An empty buffer: a recycled one if the pool has any.
    pub fn take(&mut self) -> BytesMut {
        self.free.pop().unwrap_or_default()
    }

    /// Keeps the buffer of a frame that ends here.
    pub fn recycle(&mut self, frame: Frame) {
        self.keep(frame.octets);
    }

    /// Keeps a buffer.
    pub fn keep(&mut self, mut octets: BytesMut) {
        if self.free.len() < Self::KEPT_MAX {
            octets.clear();
            self.free.push(octets);
        }
    }
}
