//! The input of `decode`: pcap and pcapng captures, or text with hexadecimal digits.
//!
//! The first four octets identify the format. Input is read as a stream; memory does not grow with its length.

use super::{Fcs, Meta};
use capture::pcapng::{LinkType, erf};
use capture::reader::{CaptureReader, ErfRecord, RawPacket, ReadError, Reason};
use proto::technology::Technology;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};

mod text;

pub use text::guess;

/// Longest line and longest frame, octets: no length field of the standards reaches this value.
const LINE_MAX: usize = 1 << 20;

/// Octets read at once.
const READ_SIZE: usize = 1 << 20;

/// Some editors write it at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A frame of the input.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// What is known of the frame.
    pub meta: Meta<'a>,
    /// Its octets.
    pub octets: &'a [u8],
    /// Whether it has an FCS, as far as the input states it.
    pub fcs: Fcs,
}

/// Receives the frames of an input and reports of unreadable parts.
pub trait Visitor {
    /// A frame.
    ///
    /// # Errors
    /// If no more frames are wanted; reading ends.
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()>;

    /// A part that could not be read, in a sentence without a full stop.
    fn unreadable(&mut self, what: &str);
}

/// Reads `input` to its end. `unsaid` is the technology of hexadecimal text and of captures with an unknown link type;
/// if it is `None`, the octets of text decide.
///
/// # Errors
/// Those of the visitor.
pub fn visit(
    mut input: impl Read,
    unsaid: Option<Technology>,
    visitor: &mut impl Visitor,
) -> io::Result<()> {
    let mut first = Vec::new();
    if let Err(error) = input.by_ref().take(4).read_to_end(&mut first) {
        visitor.unreadable(&format!("cannot read: {error}"));
        return Ok(());
    }
    let is_capture = first.first_chunk().is_some_and(is_magic);
    if first.starts_with(BYTE_ORDER_MARK) {
        first.drain(..BYTE_ORDER_MARK.len());
    }
    if !is_capture && let Some(what) = binary(&first) {
        visitor.unreadable(&what);
        return Ok(());
    }
    let whole = BufReader::with_capacity(READ_SIZE, Cursor::new(first).chain(input));
    let visit = if is_capture { visit_capture } else { text::visit };
    visit(whole, unsaid, visitor)
}

/// Why an input that begins neither like a capture nor like text cannot be read.
fn binary(first: &[u8]) -> Option<String> {
    const GZIP: &[u8] = b"\x1f\x8b";
    if first.starts_with(GZIP) {
        return Some("compressed by gzip: gunzip it first".to_owned());
    }
    let is_text = |octet: &u8| octet.is_ascii_graphic() || octet.is_ascii_whitespace();
    let shown = || first.iter().map(|octet| format!(" {octet:02x}")).collect::<String>();
    (!first.iter().all(is_text))
        .then(|| format!("no pcap, no pcapng and no text: it begins with{}", shown()))
}

/// True for pcap in both resolutions and byte orders, and for pcapng.
fn is_magic(first: &[u8; 4]) -> bool {
    const PCAPNG: u32 = 0x0a0d_0d0a;
    let (big, little) = (u32::from_be_bytes(*first), u32::from_le_bytes(*first));
    [big, little].iter().any(|magic| matches!(*magic, 0xa1b2_c3d4 | 0xa1b2_3c4d | PCAPNG))
}

fn visit_capture(
    input: impl Read,
    unsaid: Option<Technology>,
    visitor: &mut impl Visitor,
) -> io::Result<()> {
    let mut passed_over = BTreeMap::<String, u64>::new();
    let mut last = 0;
    let ended = match CaptureReader::new(input) {
        Err(error) => Err(error),
        Ok(mut reader) => loop {
            let packet = match reader.next_raw() {
                Ok(Some(packet)) => packet,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            last += 1;
            let framed = packet.and_then(|raw| Ok((framed(&raw, unsaid)?, raw)));
            match framed {
                Ok((framed, raw)) => visitor.frame(packet_of(&raw, framed))?,
                Err(reason) => *passed_over.entry(reason.into_owned()).or_default() += 1,
            }
        },
    };
    match ended {
        Ok(()) => {}
        Err(ReadError::Torn) => {
            visitor.unreadable(&format!("packet {last} is torn: the file ends within it"));
        }
        Err(error) if last == 0 => visitor.unreadable(&error.to_string()),
        Err(error) => visitor.unreadable(&format!("after packet {last}: {error}")),
    }
    for (reason, count) in passed_over {
        let packets = if count == 1 { "packet" } else { "packets" };
        visitor.unreadable(&format!("{count} {packets} passed over: {reason}"));
    }
    Ok(())
}

fn packet_of<'a>(
    raw: &'a RawPacket<'_>,
    (technology, octets, wire_length): (Technology, &'a [u8], usize),
) -> Packet<'a> {
    Packet {
        meta: Meta {
            at_ns: Some(raw.at_ns),
            interface: raw.interface.as_deref(),
            direction: raw.direction,
            wire_length: wire_length.max(octets.len()),
            ..Meta::new(raw.number, technology, octets.len())
        },
        octets,
        fcs: match raw.fcs_len {
            Some(0) => Fcs::No,
            Some(4) => Fcs::Yes,
            _ => Fcs::Auto,
        },
    }
}

/// The technology of a packet, its frame, and the length of the frame on the wire.
fn framed<'a>(
    raw: &RawPacket<'a>,
    unsaid: Option<Technology>,
) -> Result<(Technology, &'a [u8], usize), Reason> {
    let wire_size = raw.wire_size as usize;
    let technology = match LinkType::of_number(raw.link_type) {
        Some(LinkType::Ethernet) => Technology::Ethernet,
        Some(LinkType::Infiniband) => Technology::Infiniband,
        // Captures of this project hold link packets there; others hold packets, by a setting of Wireshark.
        Some(LinkType::User0) => unsaid.unwrap_or(Technology::Infiniband),
        Some(LinkType::Erf) => {
            let record = ErfRecord::parse(raw.octets)?;
            let technology = match record.kind {
                erf::INFINIBAND | erf::INFINIBAND_LINK => Technology::Infiniband,
                kind if erf::ETHERNET.contains(&kind) => Technology::Ethernet,
                other => return Err(format!("ERF record of type {other}").into()),
            };
            return Ok((technology, record.octets, record.wire_size as usize));
        }
        None => unsaid
            .ok_or_else(|| format!("link type {} (--link says what it holds)", raw.link_type))?,
    };
    Ok((technology, raw.octets, wire_size))
}

/// Appends a line with its end; false at the end of the input. Of a line longer than `max` octets, `max + 1` or a few more
/// are kept.
///
/// # Errors
/// Those of the input.
pub fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, max: usize) -> io::Result<bool> {
    if input.by_ref().take(max as u64 + 1).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() > max {
        while !line.ends_with(b"\n") {
            line.truncate(max + 1);
            if input.by_ref().take(max as u64).read_until(b'\n', line)? == 0 {
                break;
            }
        }
        line.resize(line.len().max(max + 1), b'\n');
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
