//! Encodes the blocks of a pcapng file: section, interface, packet, statistics.
//!
//! Source: draft-ietf-opsawg-pcapng; ERF record header: Endace ERF types reference. All numbers are
//! little-endian; each function appends one whole block. By hand, since no crate writes ERF records with these
//! options and streams into a caller's buffer.

use proto::events::Direction;
use proto::frame::FrameKind;

/// Block types.
pub mod block {
    /// Section header.
    pub const SECTION: u32 = 0x0a0d_0d0a;
    /// Interface description.
    pub const INTERFACE: u32 = 1;
    /// The obsolete packet block.
    pub(crate) const OLD_PACKET: u32 = 2;
    /// Simple packet.
    pub(crate) const SIMPLE_PACKET: u32 = 3;
    /// Interface statistics.
    pub const STATISTICS: u32 = 5;
    /// Enhanced packet.
    pub const PACKET: u32 = 6;
}

/// Option codes, named with the block they belong to.
pub mod option {
    /// End of options, any block.
    pub const END: u16 = 0;
    /// Comment, any block.
    pub(crate) const COMMENT: u16 = 1;
    /// Interface: name.
    pub(crate) const IF_NAME: u16 = 2;
    /// Interface: description.
    pub(crate) const IF_DESCRIPTION: u16 = 3;
    /// Interface: bit/s.
    pub(crate) const IF_SPEED: u16 = 8;
    /// Interface: resolution of its time stamps.
    pub(crate) const IF_TSRESOL: u16 = 9;
    /// Interface: octets of the FCS that its frames end with.
    pub(crate) const IF_FCSLEN: u16 = 13;
    /// Interface: seconds to add to its time stamps.
    pub(crate) const IF_TSOFFSET: u16 = 14;
    /// Section: the writing program.
    pub(crate) const SHB_USERAPPL: u16 = 4;
    /// Packet: direction and more.
    pub const EPB_FLAGS: u16 = 2;
    /// Packet: how many were dropped on the interface since the one before.
    pub(crate) const EPB_DROPCOUNT: u16 = 4;
    /// Statistics: when the capture ended.
    pub(crate) const ISB_ENDTIME: u16 = 3;
    /// Statistics: packets received.
    pub(crate) const ISB_IFRECV: u16 = 4;
    /// Statistics: packets dropped.
    pub(crate) const ISB_IFDROP: u16 = 5;
}

/// The words of a section's comment by which readers know this project, and what its time stamps are worth.
pub(crate) const FABRIC_TIME: &str = "times are fabric time";
pub(crate) const VIRTUAL_CLOCK: &str = "virtual clock";
/// The first words of an interface's description if frames come to it from outside, with stamps of this host's clock.
pub(crate) const FROM_OUTSIDE: &str = "to interface ";

/// The byte-order magic of a section header.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// ERF record types of InfiniBand.
pub mod erf {
    /// Octets of the record header.
    pub const HEADER: usize = 16;
    /// A packet that begins with an LRH.
    pub const INFINIBAND: u8 = 21;
    /// A link packet.
    pub const INFINIBAND_LINK: u8 = 25;
    /// Types whose packets begin with a destination MAC address.
    pub const ETHERNET: [u8; 4] = [2, 11, 16, 20];
    /// Octets between the headers of an Ethernet record and its frame.
    pub(crate) const ETHERNET_PAD: usize = 2;
    /// Flag: records vary in length.
    pub(crate) const VARYING: u8 = 0x04;
}

/// The link type of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum LinkType {
    /// Ethernet, from the destination address on.
    Ethernet = 1,
    /// USER0; used for link packets of six octets.
    User0 = 147,
    /// Endace records.
    Erf = 197,
    /// InfiniBand packets from the LRH on, as other programs write them.
    Infiniband = 247,
}

impl LinkType {
    /// The link type of this number, if frames can be read from it.
    pub fn of_number(number: u16) -> Option<LinkType> {
        use LinkType::{Erf, Ethernet, Infiniband, User0};
        [Ethernet, User0, Erf, Infiniband].into_iter().find(|known| *known as u16 == number)
    }

    /// The link type for frames of `kind`.
    pub const fn of(kind: FrameKind) -> LinkType {
        match kind {
            FrameKind::Infiniband => LinkType::Erf,
            FrameKind::InfinibandLink => LinkType::User0,
            FrameKind::Ethernet => LinkType::Ethernet,
        }
    }

    /// Octets in the file before each frame's own.
    pub const fn overhead(self) -> u32 {
        match self {
            LinkType::Erf => erf::HEADER as u32,
            LinkType::Ethernet | LinkType::User0 | LinkType::Infiniband => 0,
        }
    }
}

/// The content of an interface block.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// The link type of its packets.
    pub link_type: LinkType,
    /// Octets kept of a packet, including those before the frame; 0 keeps all.
    pub snaplen: u32,
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// Line rate in bit/s.
    pub speed: u64,
}

/// The content of a packet block.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Number of the interface in its section.
    pub interface: u32,
    /// The link type of the interface.
    pub link_type: LinkType,
    /// Time stamp in nanoseconds of fabric time.
    pub at_ns: u64,
    /// The octets kept of the frame.
    pub octets: &'a [u8],
    /// Octets of the whole frame.
    pub wire_size: usize,
    /// The direction, if known.
    pub direction: Option<Direction>,
    /// Packets of the interface dropped since the packet before.
    pub dropped_before: u64,
}

/// A block among others that this file has encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    octets: &'a [u8],
    /// Offset of the octet after it.
    pub(crate) end: usize,
}

impl Block<'_> {
    /// The interface of a packet block.
    pub(crate) fn packet_of(self) -> Option<u32> {
        (number_at(self.octets, 0)? == block::PACKET).then(|| number_at(self.octets, 8))?
    }
}

/// The blocks in `encoded`, which begins with one; a block that is cut off is left out.
pub(crate) fn blocks(encoded: &[u8]) -> impl Iterator<Item = Block<'_>> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let length = number_at(&encoded[begin..], 4)? as usize;
        let octets = encoded[begin..].get(..length).filter(|octets| octets.len() >= 12)?;
        begin += length;
        Some(Block { octets, end: begin })
    })
}

fn number_at(octets: &[u8], offset: usize) -> Option<u32> {
    octets.get(offset..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

/// Appends a section header with a comment.
pub fn section(out: &mut Vec<u8>, comment: &str) {
    framed(out, block::SECTION, |out| {
        out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend(1u16.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(u64::MAX.to_le_bytes()); // length of the section: not stated
        put_option(out, option::COMMENT, comment.as_bytes());
        put_option(out, option::SHB_USERAPPL, b"pausebed");
        put_option(out, option::END, &[]);
    });
}

/// Appends an interface description; its time stamps are in nanoseconds.
pub fn interface(out: &mut Vec<u8>, interface: &Interface<'_>) {
    framed(out, block::INTERFACE, |out| {
        out.extend((interface.link_type as u16).to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(interface.snaplen.to_le_bytes());
        put_option(out, option::IF_NAME, interface.name.as_bytes());
        put_option(out, option::IF_DESCRIPTION, interface.description.as_bytes());
        put_option(out, option::IF_SPEED, &interface.speed.to_le_bytes());
        put_option(out, option::IF_TSRESOL, &[9]);
        put_option(out, option::END, &[]);
    });
}

/// Appends a packet.
pub fn packet(out: &mut Vec<u8>, packet: &Packet<'_>) {
    let overhead = packet.link_type.overhead();
    framed(out, block::PACKET, |out| {
        out.extend(packet.interface.to_le_bytes());
        put_time(out, packet.at_ns);
        out.extend((packet.octets.len() as u32 + overhead).to_le_bytes());
        out.extend((packet.wire_size as u32 + overhead).to_le_bytes());
        if packet.link_type == LinkType::Erf {
            put_erf_header(out, packet);
        }
        out.extend_from_slice(packet.octets);
        pad(out, packet.octets.len() + overhead as usize);
        let direction: u32 = match packet.direction {
            None => 0,
            Some(Direction::Rx) => 1,
            Some(Direction::Tx) => 2,
        };
        put_option(out, option::EPB_FLAGS, &direction.to_le_bytes());
        if packet.dropped_before > 0 {
            put_option(out, option::EPB_DROPCOUNT, &packet.dropped_before.to_le_bytes());
        }
        put_option(out, option::END, &[]);
    });
}

/// Appends an interface's statistics: packets (received, dropped) up to `at_ns` nanoseconds of fabric time.
pub fn statistics(out: &mut Vec<u8>, interface: u32, at_ns: u64, counts: (u64, u64)) {
    framed(out, block::STATISTICS, |out| {
        out.extend(interface.to_le_bytes());
        put_time(out, at_ns);
        let mut end = Vec::with_capacity(8);
        put_time(&mut end, at_ns);
        put_option(out, option::ISB_ENDTIME, &end);
        put_option(out, option::ISB_IFRECV, &counts.0.to_le_bytes());
        put_option(out, option::ISB_IFDROP, &counts.1.to_le_bytes());
        put_option(out, option::END, &[]);
    });
}

/// The record's own time stamp is zero, since the packet block has it.
fn put_erf_header(out: &mut Vec<u8>, packet: &Packet<'_>) {
    let length = |octets: usize| u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes();
    out.extend(0u64.to_le_bytes());
    out.extend([erf::INFINIBAND, erf::VARYING]);
    out.extend(length(packet.octets.len() + erf::HEADER));
    out.extend(0u16.to_be_bytes()); // loss counter
    out.extend(length(packet.wire_size));
}

fn put_time(out: &mut Vec<u8>, units: u64) {
    out.extend(((units >> 32) as u32).to_le_bytes());
    out.extend((units as u32).to_le_bytes());
}

fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, written: usize) {
    out.extend_from_slice(&[0; 3][..written.wrapping_neg() % 4]);
}

fn framed(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = (out.len() - begin + 4) as u32;
    out[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}
