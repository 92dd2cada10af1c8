//! Reads pcap and pcapng files of either byte order, from this project and other programs.
//!
//! Frames are extracted of InfiniBand with and without ERF records, of this project's link interfaces, and of
//! Ethernet. All other packets are counted by reason. No input makes it panic. A truncated file gives its whole
//! packets, the part present of the last one, and then an error. [`CaptureReader::next_raw`] gives all packets
//! undecoded. By hand, since published readers neither resume after a damaged block nor give the part of
//! a truncated last packet.

use crate::pcapng::{LinkType, block, erf};
use bytes::BytesMut;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::wire::infiniband::FlowControlPacket;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

mod blocks;
mod records;

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Time stamp in nanoseconds since the file's epoch; 0 without one.
    pub at_ns: u64,
    /// How well the stamp states when the frame passed.
    pub stamps: Stamps,
    /// The interface's name, if it has one.
    pub interface: Option<Arc<str>>,
    /// Rate of the link in bit/s, if the file states it.
    pub speed: Option<u64>,
    /// The direction, if the file states it.
    pub direction: Option<Direction>,
    /// Octets of the frame on the wire; more than in `frame` if it was cut.
    pub wire_size: u32,
    /// The octets present; their CRCs are not checked.
    pub frame: Frame,
}

impl CapturedFrame {
    /// Whether the file has fewer octets than the wire had.
    pub fn is_cut(&self) -> bool {
        self.frame.octets.len() < self.wire_size as usize
    }
}

/// What is known of the time stamps of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The stamp was rounded down to a multiple of this, nanoseconds; 1 or more.
    pub tick_ns: u64,
    /// The file is of this project.
    pub is_fabric: bool,
    /// The stamp is the instant at which the last bit passed. Otherwise it is when a host or an adapter took note of the frame.
    pub is_exact: bool,
}

/// Why reading a capture stops.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input cannot be read.
    #[error("cannot read")]
    Io(#[from] io::Error),
    /// The first octets are those of neither pcap nor pcapng.
    #[error("neither pcap nor pcapng: it begins with {0:#010x}")]
    NotACapture(u32),
    /// The input ends inside a block or record.
    #[error("ends in the middle of a {0}")]
    Truncated(&'static str),
    /// The input ends inside the last packet, whose first part has been returned.
    #[error("ends in the middle of a packet")]
    Torn,
    /// A length is impossible.
    #[error("a {what} of {length} octets")]
    Length {
        /// The block or record.
        what: &'static str,
        /// The length it states.
        length: u32,
    },
}

/// Limit of the length of blocks and packets, far above any frame of the standards.
const LENGTH_MAX: u32 = 16 << 20;

/// An undecoded packet.
#[derive(Clone, Debug)]
pub struct RawPacket<'a> {
    /// Its index in the file, from 1, including packets that could not be read.
    pub number: u64,
    /// Time stamp in nanoseconds since the file's epoch; 0 without one.
    pub at_ns: u64,
    /// How well the stamp states when the frame passed.
    pub stamps: Stamps,
    /// The interface's name, if it has one.
    pub interface: Option<Arc<str>>,
    /// The file's link type.
    pub link_type: u16,
    /// Octets of the FCS at the end of frames, if the file states it.
    pub fcs_len: Option<u8>,
    /// Rate of the link in bit/s, if the file states it.
    pub speed: Option<u64>,
    /// The direction, if the file states it.
    pub direction: Option<Direction>,
    /// Octets on the wire, including those that the link type puts before the frame. More than `octets` has if
    /// a snap length or the end of the file cut the packet.
    pub wire_size: u32,
    /// The octets present.
    pub octets: &'a [u8],
}

/// Why a packet is skipped.
pub type Reason = Cow<'static, str>;

enum Format {
    Pcap(records::Records),
    Pcapng(blocks::Blocks),
}

/// An iterator over the frames of a capture.
pub struct CaptureReader<R> {
    input: io::Chain<Cursor<[u8; 4]>, R>,
    format: Format,
    buffer: Vec<u8>,
    skipped: BTreeMap<Reason, u64>,
    packets: u64,
    ended: bool,
}

impl<R: Read> CaptureReader<R> {
    /// A reader of `input`, which it reads in small pieces, so `input` should be buffered.
    ///
    /// # Errors
    /// If the first octets are not those of a capture.
    pub fn new(mut input: R) -> Result<CaptureReader<R>, ReadError> {
        let mut magic = [0; 4];
        if !fill(&mut input, &mut magic, "file header")? {
            return Err(ReadError::Truncated("file header"));
        }
        let mut input = Cursor::new(magic).chain(input);
        // The type of a section header is the same in both byte orders.
        let format = if u32::from_le_bytes(magic) == block::SECTION {
            Format::Pcapng(blocks::Blocks::default())
        } else {
            Format::Pcap(records::Records::begin(magic, &mut input)?)
        };
        let (buffer, skipped) = (Vec::new(), BTreeMap::new());
        Ok(CaptureReader { input, format, buffer, skipped, packets: 0, ended: false })
    }

    /// Packets skipped so far, by reason.
    pub fn skipped(&self) -> &BTreeMap<Cow<'static, str>, u64> {
        &self.skipped
    }

    /// The next packet undecoded, or why it cannot be read; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read further. Do not call again then.
    pub fn next_raw(&mut self) -> Result<Option<Result<RawPacket<'_>, Reason>>, ReadError> {
        let packet = match &mut self.format {
            Format::Pcap(records) => records.next(&mut self.input, &mut self.buffer)?.map(Ok),
            Format::Pcapng(blocks) => blocks.next(&mut self.input, &mut self.buffer)?,
        };
        let Some(packet) = packet else { return Ok(None) };
        self.packets += 1;
        Ok(Some(packet.map(|packet| RawPacket { number: self.packets, ..packet })))
    }

    fn next_frame(&mut self) -> Result<Option<CapturedFrame>, ReadError> {
        while let Some(packet) = self.next_raw()? {
            match packet.and_then(framed) {
                Ok(frame) => return Ok(Some(frame)),
                Err(reason) => *self.skipped.entry(reason).or_insert(0) += 1,
            }
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for CaptureReader<R> {
    type Item = Result<CapturedFrame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_frame().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Extracts the frame of a packet, or returns why the packet is skipped.
fn framed(packet: RawPacket<'_>) -> Result<CapturedFrame, Reason> {
    let (octets, wire_size) = (packet.octets, packet.wire_size);
    let is_link = packet.interface.as_deref().is_some_and(|name| name.ends_with("/link"));
    let (kind, octets, wire_size) = match LinkType::of_number(packet.link_type) {
        Some(LinkType::Ethernet) => (FrameKind::Ethernet, octets, wire_size),
        Some(LinkType::User0) if is_link => (FrameKind::InfinibandLink, octets, wire_size),
        Some(LinkType::Infiniband) if wire_size as usize == FlowControlPacket::LEN => {
            (FrameKind::InfinibandLink, octets, wire_size)
        }
        Some(LinkType::Infiniband) => (FrameKind::Infiniband, octets, wire_size),
        Some(LinkType::Erf) => {
            let record = ErfRecord::parse(octets)?;
            let kind = match record.kind {
                erf::INFINIBAND => FrameKind::Infiniband,
                erf::INFINIBAND_LINK => FrameKind::InfinibandLink,
                other => return Err(format!("ERF record of type {other}").into()),
            };
            (kind, record.octets, record.wire_size)
        }
        Some(LinkType::User0) | None => {
            return Err(format!("link type {}", packet.link_type).into());
        }
    };
    Ok(CapturedFrame {
        at_ns: packet.at_ns,
        stamps: packet.stamps,
        interface: packet.interface,
        speed: packet.speed,
        direction: packet.direction,
        wire_size,
        frame: Frame::unchecked(kind, BytesMut::from(octets)),
    })
}

/// A parsed ERF record: header, extension headers (the first bit of each is set if another follows), then
/// the packet without the record's padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErfRecord<'a> {
    /// The type, seven bits.
    pub kind: u8,
    /// Octets of the packet on the wire.
    pub wire_size: u32,
    /// The octets present.
    pub octets: &'a [u8],
}

impl<'a> ErfRecord<'a> {
    /// Parses `record`.
    ///
    /// # Errors
    /// If it ends within its headers.
    pub fn parse(record: &'a [u8]) -> Result<ErfRecord<'a>, Reason> {
        const SHORT: &str = "ERF record without its extension headers";
        let header = record.get(..erf::HEADER).ok_or("ERF record without its header")?;
        let kind = header[8] & 0x7f;
        let mut begin = erf::HEADER;
        let mut more = header[8] & 0x80 != 0;
        while more {
            more = record.get(begin).ok_or(SHORT)? & 0x80 != 0;
            begin += 8;
        }
        if erf::ETHERNET.contains(&kind) {
            begin += erf::ETHERNET_PAD;
        }
        let wire_size = u16::from_be_bytes([header[14], header[15]]);
        let octets = record.get(begin..).ok_or(SHORT)?;
        let octets = &octets[..octets.len().min(usize::from(wire_size))];
        Ok(ErfRecord { kind, wire_size: u32::from(wire_size), octets })
    }
}

/// Fills `into`. Returns false if the input ends before the first octet.
fn fill(input: &mut impl Read, into: &mut [u8], what: &'static str) -> Result<bool, ReadError> {
    let length = into.len();
    match io::copy(&mut input.take(length as u64), &mut &mut into[..])? as usize {
        0 => Ok(false),
        n if n < length => Err(ReadError::Truncated(what)),
        _ => Ok(true),
    }
}

/// Reads `length` octets into `buffer`, which grows only as the input delivers them. Returns false if the input
/// ends before.
fn take(input: &mut impl Read, buffer: &mut Vec<u8>, length: u32) -> Result<bool, ReadError> {
    buffer.clear();
    input.take(u64::from(length)).read_to_end(buffer)?;
    Ok(buffer.len() == length as usize)
}

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    /// The order in which the first octets of a file are one of `magics`, and its index.
    fn of<const N: usize>(first: [u8; 4], magics: [u32; N]) -> Option<(ByteOrder, usize)> {
        let [little, big] = [u32::from_le_bytes(first), u32::from_be_bytes(first)]
            .map(|first| magics.iter().position(|magic| *magic == first));
        little.map(|n| (ByteOrder::Little, n)).or(big.map(|n| (ByteOrder::Big, n)))
    }

    /// The number in the `N` octets from `at` on; `None` if they are not there.
    fn number<const N: usize>(self, octets: &[u8], at: usize) -> Option<u64> {
        let octets = octets.get(at..at + N)?.iter();
        let push = |number, octet: &u8| number << 8 | u64::from(*octet);
        Some(match self {
            ByteOrder::Little => octets.rev().fold(0, push),
            ByteOrder::Big => octets.fold(0, push),
        })
    }

    fn u16(self, octets: &[u8], at: usize) -> Option<u16> {
        self.number::<2>(octets, at).map(|number| number as u16)
    }

    fn u32(self, octets: &[u8], at: usize) -> Option<u32> {
        self.number::<4>(octets, at).map(|number| number as u32)
    }
}

#[cfg(test)]
mod tests;
