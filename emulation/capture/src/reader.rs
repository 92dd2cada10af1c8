//! Reads captures, ours and other people's: pcap and pcapng of either byte order.
//!
//! What the lab can use comes out as frames: InfiniBand with and without ERF records, our own link
//! interfaces, and Ethernet. Everything else is counted under its reason. No octets make it panic. A file that ends
//! in the middle gives its whole packets, what is there of the last one, then an error.
//! [`CaptureReader::next_raw`] gives packets as the file has them, for those who want to know of all.

use crate::pcapng::{LinkType, erf};
use bytes::BytesMut;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::wire::infiniband::FlowControlPacket;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

mod blocks;
mod records;

/// One frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When, in nanoseconds, from whatever epoch the file has; 0 where the file does not say.
    pub at_ns: u64,
    /// The interface's name, if it has one.
    pub interface: Option<Arc<str>>,
    /// The file's link type.
    pub link_type: u16,
    /// Bit/s of the link, if the file says.
    pub speed: Option<u64>,
    /// Which way it went, if the file says.
    pub direction: Option<Direction>,
    /// Octets it had on the wire; more than the frame holds if it was cut.
    pub wire_size: u32,
    /// What is there of it; its CRCs are anybody's guess.
    pub frame: Frame,
}

impl CapturedFrame {
    /// The file has less of it than was on the wire.
    pub fn is_cut(&self) -> bool {
        self.frame.octets.len() < self.wire_size as usize
    }
}

/// Why a capture cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read")]
    Io(#[from] io::Error),
    /// It begins like neither pcap nor pcapng.
    #[error("neither pcap nor pcapng: it begins with {0:#010x}")]
    NotACapture(u32),
    /// It ends in the middle of something.
    #[error("ends in the middle of a {0}")]
    Truncated(&'static str),
    /// It ends in the middle of the packet that came last, which lacks the rest.
    #[error("ends in the middle of a packet")]
    Torn,
    /// A length cannot be right.
    #[error("a {what} of {length} octets")]
    Length {
        /// What has it.
        what: &'static str,
        /// The length it claims.
        length: u32,
    },
}

/// Longer blocks or packets are refused: no frame of the standards comes near.
const LENGTH_MAX: u32 = 16 << 20;

/// A packet as the file has it, before anybody asks what it is.
#[derive(Clone, Debug)]
pub struct RawPacket<'a> {
    /// Its place in the file, from 1, packets that could not be read counted too.
    pub number: u64,
    /// When, in nanoseconds, from whatever epoch the file has; 0 where the file does not say.
    pub at_ns: u64,
    /// The interface's name, if it has one.
    pub interface: Option<Arc<str>>,
    /// The file's link type.
    pub link_type: u16,
    /// Octets of the FCS that frames of the interface end with, if the file says.
    pub fcs_len: Option<u8>,
    /// Bit/s of the link, if the file says.
    pub speed: Option<u64>,
    /// Which way it went, if the file says.
    pub direction: Option<Direction>,
    /// Octets it had on the wire, what the link type puts before the frame included; more than the
    /// file has of it if a snap length or the end of the file cut it.
    pub wire_size: u32,
    /// What the file has of it.
    pub octets: &'a [u8],
}

/// Why a packet is passed over.
pub type Reason = Cow<'static, str>;

enum Format {
    Pcap(records::Records),
    Pcapng(blocks::Blocks),
}

/// An iterator over the frames of a capture.
pub struct CaptureReader<R> {
    input: R,
    format: Format,
    buffer: Vec<u8>,
    skipped: BTreeMap<Reason, u64>,
    packets: u64,
    ended: bool,
}

impl<R: Read> CaptureReader<R> {
    /// A reader of `input`, which it reads in small pieces: give it something buffered.
    ///
    /// # Errors
    /// If the first octets are not those of a capture.
    pub fn new(mut input: R) -> Result<CaptureReader<R>, ReadError> {
        let mut magic = [0; 4];
        if !fill(&mut input, &mut magic, "file header")? {
            return Err(ReadError::Truncated("file header"));
        }
        let format = match records::Records::begin(magic, &mut input)? {
            Some(records) => Format::Pcap(records),
            None => Format::Pcapng(
                blocks::Blocks::begin(magic)
                    .ok_or(ReadError::NotACapture(u32::from_be_bytes(magic)))?,
            ),
        };
        let (buffer, skipped) = (Vec::new(), BTreeMap::new());
        Ok(CaptureReader { input, format, buffer, skipped, packets: 0, ended: false })
    }

    /// Packets passed over so far, by reason.
    pub fn skipped(&self) -> &BTreeMap<Cow<'static, str>, u64> {
        &self.skipped
    }

    /// The next packet as the file has it, or why it cannot be read; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read on; do not ask again.
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
        loop {
            let Some(packet) = self.next_raw()? else { return Ok(None) };
            match packet.and_then(framed) {
                Ok(frame) => return Ok(Some(frame)),
                Err(reason) => *self.skipped.entry(reason).or_insert(0) += 1,
            }
        }
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

/// Finds out what a packet is, or why it is passed over.
fn framed(packet: RawPacket<'_>) -> Result<CapturedFrame, Reason> {
    const ETHERNET: u16 = LinkType::Ethernet as u16;
    const USER0: u16 = LinkType::User0 as u16;
    const ERF: u16 = LinkType::Erf as u16;
    const INFINIBAND: u16 = LinkType::Infiniband as u16;
    let (kind, octets, wire_size) = match packet.link_type {
        ETHERNET => (FrameKind::Ethernet, packet.octets, packet.wire_size),
        USER0 if packet.interface.as_deref().is_some_and(|name| name.ends_with("/link")) => {
            (FrameKind::InfinibandLink, packet.octets, packet.wire_size)
        }
        INFINIBAND => {
            let is_link_packet = packet.wire_size as usize == FlowControlPacket::LEN;
            let kind =
                if is_link_packet { FrameKind::InfinibandLink } else { FrameKind::Infiniband };
            (kind, packet.octets, packet.wire_size)
        }
        ERF => {
            let record = ErfRecord::parse(packet.octets)?;
            let kind = match record.kind {
                erf::INFINIBAND => FrameKind::Infiniband,
                erf::INFINIBAND_LINK => FrameKind::InfinibandLink,
                other => return Err(format!("ERF record of type {other}").into()),
            };
            (kind, record.octets, record.wire_size)
        }
        other => return Err(format!("link type {other}").into()),
    };
    Ok(CapturedFrame {
        at_ns: packet.at_ns,
        interface: packet.interface,
        link_type: packet.link_type,
        speed: packet.speed,
        direction: packet.direction,
        wire_size,
        frame: Frame::unchecked(kind, BytesMut::from(octets)),
    })
}

/// An ERF record taken apart: header, extension headers (each says in its first bit whether another
/// follows), then the packet without the record's padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErfRecord<'a> {
    /// The type, seven bits.
    pub kind: u8,
    /// Octets the packet had on the wire.
    pub wire_size: u32,
    /// What is there of the packet.
    pub octets: &'a [u8],
}

impl<'a> ErfRecord<'a> {
    /// Takes `record` apart.
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

/// Fills `into`; false if the input ends before its first octet.
fn fill(input: &mut impl Read, into: &mut [u8], what: &'static str) -> Result<bool, ReadError> {
    let mut have = 0;
    while have < into.len() {
        match input.read(&mut into[have..]) {
            Ok(0) if have == 0 => return Ok(false),
            Ok(0) => return Err(ReadError::Truncated(what)),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Reads `length` octets into `buffer`, which grows no faster than the input gives them; false if it
/// ends before.
fn take(input: &mut impl Read, buffer: &mut Vec<u8>, length: u32) -> Result<bool, ReadError> {
    buffer.clear();
    input.take(u64::from(length)).read_to_end(buffer)?;
    Ok(buffer.len() == length as usize)
}

/// In which order a file has the octets of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u16(self, octets: &[u8], at: usize) -> Option<u16> {
        let octets = octets.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u16::from_le_bytes(octets),
            ByteOrder::Big => u16::from_be_bytes(octets),
        })
    }

    fn u32(self, octets: &[u8], at: usize) -> Option<u32> {
        let octets = octets.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u32::from_le_bytes(octets),
            ByteOrder::Big => u32::from_be_bytes(octets),
        })
    }

    fn u64(self, octets: &[u8], at: usize) -> Option<u64> {
        let octets = octets.get(at..at + 8)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u64::from_le_bytes(octets),
            ByteOrder::Big => u64::from_be_bytes(octets),
        })
    }
}

#[cfg(test)]
mod tests;
