//! pcapng: sections of blocks. Interface blocks state link types and the units of time stamps.
//!
//! Source: draft-ietf-opsawg-pcapng.

use super::{ByteOrder, LENGTH_MAX, RawPacket, ReadError, Reason, Stamps, fill, take};
use crate::pcapng::{BYTE_ORDER_MAGIC, FABRIC_TIME, FROM_OUTSIDE, VIRTUAL_CLOCK, block, option};
use proto::events::Direction;
use std::io::Read;
use std::sync::Arc;

/// The content of an interface block.
struct Interface {
    link_type: u16,
    snaplen: u32,
    name: Option<Arc<str>>,
    resolution: u8,
    offset_seconds: i64,
    fcs_len: Option<u8>,
    speed: Option<u64>,
    is_from_outside: bool,
}

/// The state of reading a file of blocks.
#[derive(Default)]
pub(super) struct Blocks {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// The section is of this project; and of a run on the virtual clock, or as exact.
    is_fabric: bool,
    is_virtual: bool,
    /// The end of the block read last is damaged: nothing can follow it.
    ended: Option<ReadError>,
}

impl Blocks {
    /// The next packet, or why it must be skipped.
    pub(super) fn next<'a>(
        &mut self,
        input: &mut impl Read,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<Result<RawPacket<'a>, Reason>>, ReadError> {
        let kind = loop {
            if let Some(error) = self.ended.take() {
                return Err(error);
            }
            let Some(kind) = self.read_block(input, buffer)? else { return Ok(None) };
            match kind {
                block::SECTION => self.read_section(buffer),
                block::INTERFACE => self.interfaces.push(self.read_interface(buffer)),
                block::PACKET | block::OLD_PACKET | block::SIMPLE_PACKET => break kind,
                _ => {}
            }
        };
        let packet = self.read_packet(kind, buffer);
        // If too little of the packet is present, the end of the file is the error to report.
        match self.ended.take_if(|_| packet.is_err()) {
            Some(error) => Err(error),
            None => Ok(Some(packet)),
        }
    }

    /// Reads a block's body into `buffer` and returns its type; `None` at the end of the file.
    fn read_block(
        &mut self,
        input: &mut impl Read,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<u32>, ReadError> {
        let mut kind = [0; 4];
        if !fill(input, &mut kind, "block")? {
            return Ok(None);
        }
        let mut must_fill = |into: &mut [u8; 4]| match fill(input, into, "block") {
            Ok(false) => Err(ReadError::Truncated("block")),
            filled => filled,
        };
        let mut length = [0; 4];
        must_fill(&mut length)?;
        let mut done = 8;
        if u32::from_le_bytes(kind) == block::SECTION {
            let mut magic = [0; 4];
            must_fill(&mut magic)?;
            let unknown = ReadError::NotACapture(u32::from_le_bytes(magic));
            (self.order, _) = ByteOrder::of(magic, [BYTE_ORDER_MAGIC]).ok_or(unknown)?;
            self.interfaces.clear();
            done = 12;
        }
        let word = |octets: &[u8]| self.order.u32(octets, 0).unwrap_or(0);
        let length = word(&length);
        if length < done + 4 || !length.is_multiple_of(4) || length > LENGTH_MAX {
            return Err(ReadError::Length { what: "block", length });
        }
        let body = (length - done - 4) as usize;
        if !take(input, buffer, length - done)? {
            self.ended = Some(ReadError::Truncated("block"));
        } else if word(&buffer[body..]) != length {
            let length = word(&buffer[body..]);
            self.ended = Some(ReadError::Length { what: "block's trailer", length });
        }
        buffer.truncate(body);
        Ok(Some(word(&kind)))
    }

    /// The comment of a section says whether this project wrote it.
    fn read_section(&mut self, body: &[u8]) {
        const FIXED: usize = 12;
        let options = self.options(body.get(FIXED..).unwrap_or_default());
        let comments = options.filter(|(code, _)| *code == option::COMMENT);
        let comments = comments.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let comment = comments.collect::<String>();
        self.is_fabric = comment.contains(FABRIC_TIME);
        self.is_virtual = comment.contains(VIRTUAL_CLOCK);
    }

    /// An interface block too short for its fields still takes a number, and its packets are skipped.
    fn read_interface(&self, body: &[u8]) -> Interface {
        let mut interface = Interface {
            link_type: self.order.u16(body, 0).unwrap_or(u16::MAX),
            snaplen: self.order.u32(body, 4).unwrap_or(0),
            name: None,
            resolution: 6,
            offset_seconds: 0,
            fcs_len: None,
            speed: None,
            is_from_outside: false,
        };
        for (code, value) in self.options(body.get(8..).unwrap_or_default()) {
            let (octet, number) = (value.first().copied(), self.order.number::<8>(value, 0));
            match code {
                option::IF_NAME => {
                    let name = String::from_utf8_lossy(value);
                    interface.name = Some(Arc::from(name.trim_end_matches('\0')));
                }
                option::IF_DESCRIPTION => {
                    interface.is_from_outside = value.starts_with(FROM_OUTSIDE.as_bytes());
                }
                option::IF_TSRESOL => interface.resolution = octet.unwrap_or(6),
                option::IF_SPEED => interface.speed = number,
                option::IF_FCSLEN => interface.fcs_len = octet,
                option::IF_TSOFFSET => interface.offset_seconds = number.unwrap_or(0) as i64,
                _ => {}
            }
        }
        interface
    }

    /// Parses a packet block as far as it is present.
    fn read_packet<'a>(&mut self, kind: u32, body: &'a [u8]) -> Result<RawPacket<'a>, Reason> {
        const SHORT: &str = "packet block too short";
        let word = |at| self.order.u32(body, at).ok_or(SHORT);
        let (header, id, wire_size) = match kind {
            block::SIMPLE_PACKET => (4, 0, word(0)?),
            block::OLD_PACKET => (20, u32::from(self.order.u16(body, 0).ok_or(SHORT)?), word(16)?),
            _ => (20, word(0)?, word(16)?),
        };
        let interface = self
            .interfaces
            .get(id as usize)
            .ok_or("packet of an interface that was not described")?;
        let rest = body.get(header..).ok_or(SHORT)?;
        let (stamp, kept) = if kind == block::SIMPLE_PACKET {
            let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
            (None, wire_size.min(snaplen) as usize)
        } else {
            (Some(u64::from(word(4)?) << 32 | u64::from(word(8)?)), word(12)? as usize)
        };
        let mut wire_size = wire_size;
        let octets = match rest.get(..kept) {
            Some(octets) => octets,
            None if kind == block::SIMPLE_PACKET && self.ended.is_none() => rest,
            None if !rest.is_empty() && self.ended.is_some() => {
                self.ended = Some(ReadError::Torn);
                wire_size = wire_size.max(u32::try_from(kept).unwrap_or(u32::MAX));
                rest
            }
            None => return Err(SHORT.into()),
        };
        let options = self.options(rest.get(kept.next_multiple_of(4)..).unwrap_or_default());
        let flags = options.filter(|(code, _)| *code == option::EPB_FLAGS).last();
        let direction = match flags.and_then(|(_, value)| self.order.u32(value, 0)) {
            Some(flags) if flags & 3 == 1 => Some(Direction::Rx),
            Some(flags) if flags & 3 == 2 => Some(Direction::Tx),
            _ => None,
        };
        // On the wall clock a cable may have no stamps of its own: the time of a host takes their place.
        let is_stamped = self.is_virtual || direction == Some(Direction::Tx);
        let stamps = Stamps {
            tick_ns: tick_ns(interface),
            is_fabric: self.is_fabric,
            is_exact: self.is_fabric && is_stamped && !interface.is_from_outside,
        };
        Ok(RawPacket {
            number: 0,
            at_ns: stamp.map_or(0, |stamp| nanoseconds(stamp, interface)),
            stamps,
            interface: interface.name.clone(),
            link_type: interface.link_type,
            fcs_len: interface.fcs_len,
            speed: interface.speed,
            direction,
            wire_size,
            octets,
        })
    }

    /// The options at the front of `rest`, with their codes.
    fn options<'a>(&self, mut rest: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (code, length) = (order.u16(rest, 0)?, usize::from(order.u16(rest, 2)?));
            let value = rest.get(4..4 + length).filter(|_| code != option::END)?;
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }
}

/// The unit of the time stamps, in whole nanoseconds and at least one.
fn tick_ns(interface: &Interface) -> u64 {
    let exponent = u32::from(interface.resolution & 0x7f);
    let units = match interface.resolution & 0x80 {
        0 => 10u64.checked_pow(exponent),
        _ => 1u64.checked_shl(exponent),
    };
    units.map_or(1, |units| 1_000_000_000u64.div_ceil(units))
}

/// A time stamp in nanoseconds; its unit is 10^-n seconds, or 2^-n with the top bit of the resolution set.
fn nanoseconds(stamp: u64, interface: &Interface) -> u64 {
    const PER_SECOND: u128 = 1_000_000_000;
    let exponent = u32::from(interface.resolution & 0x7f);
    let scaled = u128::from(stamp) * PER_SECOND;
    let ns = if interface.resolution & 0x80 != 0 {
        scaled >> exponent
    } else {
        10u128.checked_pow(exponent).map_or(0, |units| scaled / units)
    };
    let offset = i128::from(interface.offset_seconds) * PER_SECOND as i128;
    u64::try_from((ns as i128 + offset).max(0)).unwrap_or(u64::MAX)
}
