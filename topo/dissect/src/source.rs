//! Where frames to be taken apart come from: captures of either kind, or hex in a text.
//!
//! Which of the two an input is, its first four octets tell. Input is read as a stream; nothing grows
//! with its length.

use super::{Fcs, Link, Meta};
use capture::pcapng::{LinkType, erf};
use capture::reader::{CaptureReader, ErfRecord, RawPacket, ReadError};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};

mod text;

/// A line or a frame longer than this is none: no length field of the standards reaches it.
const LINE_MAX: usize = 1 << 20;

/// Octets asked of the input at once.
const READ_SIZE: usize = 1 << 20;

/// Some editors begin a text with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A frame of the input.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// What is known of it.
    pub meta: Meta<'a>,
    /// Its octets.
    pub octets: &'a [u8],
    /// What the input says of its FCS.
    pub fcs: Fcs,
}

/// What becomes of the frames of an input, and of the parts that are none.
pub trait Visitor {
    /// A frame.
    ///
    /// # Errors
    /// If the visitor has had enough; nothing more is read then.
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()>;

    /// Something that could not be read, in a sentence without a full stop.
    fn unreadable(&mut self, what: &str);
}

/// Reads `input` to its end. `link` is what captures hold that do not say, and hex: if it is left out,
/// the octets tell.
///
/// # Errors
/// Those of the visitor.
pub fn visit(
    mut input: impl Read,
    link: Option<Link>,
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
    if is_capture { visit_capture(whole, link, visitor) } else { text::visit(whole, link, visitor) }
}

/// What an input is that begins neither like a capture nor like a text.
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

/// pcap in both resolutions and orders, and the one that a pcapng file begins with.
fn is_magic(first: &[u8; 4]) -> bool {
    const PCAPNG: u32 = 0x0a0d_0d0a;
    let (big, little) = (u32::from_be_bytes(*first), u32::from_le_bytes(*first));
    [big, little].iter().any(|magic| matches!(*magic, 0xa1b2_c3d4 | 0xa1b2_3c4d | PCAPNG))
}

fn visit_capture(
    input: impl Read,
    link: Option<Link>,
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
            let reason = match packet {
                Ok(raw) => match framed(&raw, link) {
                    Ok((link, octets, wire_length)) => {
                        visitor.frame(packet_of(&raw, link, octets, wire_length))?;
                        continue;
                    }
                    Err(reason) => reason,
                },
                Err(reason) => reason.into_owned(),
            };
            *passed_over.entry(reason).or_default() += 1;
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
    link: Link,
    octets: &'a [u8],
    wire_length: usize,
) -> Packet<'a> {
    Packet {
        meta: Meta {
            number: raw.number,
            at_ns: Some(raw.at_ns),
            interface: raw.interface.as_deref(),
            direction: raw.direction,
            link,
            length: octets.len(),
            wire_length: wire_length.max(octets.len()),
        },
        octets,
        fcs: match raw.fcs_len {
            Some(0) => Fcs::No,
            Some(4) => Fcs::Yes,
            _ => Fcs::Auto,
        },
    }
}

/// What a packet holds: the link, the frame and its length on the wire.
fn framed<'a>(
    raw: &RawPacket<'a>,
    unsaid: Option<Link>,
) -> Result<(Link, &'a [u8], usize), String> {
    const ETHERNET: u16 = LinkType::Ethernet as u16;
    const USER0: u16 = LinkType::User0 as u16;
    const ERF: u16 = LinkType::Erf as u16;
    const INFINIBAND: u16 = LinkType::Infiniband as u16;
    let wire_size = raw.wire_size as usize;
    match raw.link_type {
        ETHERNET => Ok((Link::Ethernet, raw.octets, wire_size)),
        INFINIBAND => Ok((Link::Infiniband, raw.octets, wire_size)),
        // Ours hold link packets, and those of people who taught Wireshark so hold packets.
        USER0 => Ok((unsaid.unwrap_or(Link::Infiniband), raw.octets, wire_size)),
        ERF => {
            let record = ErfRecord::parse(raw.octets).map_err(|reason| reason.into_owned())?;
            let link = match record.kind {
                erf::INFINIBAND | erf::INFINIBAND_LINK => Link::Infiniband,
                kind if erf::ETHERNET.contains(&kind) => Link::Ethernet,
                other => return Err(format!("ERF record of type {other}")),
            };
            Ok((link, record.octets, record.wire_size as usize))
        }
        other => match unsaid {
            Some(link) => Ok((link, raw.octets, wire_size)),
            None => Err(format!("link type {other} (--link says what it holds)")),
        },
    }
}

/// Reads a line, its end included; false at the end of the input. Of a longer line than `max` little
/// more than that is kept.
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
