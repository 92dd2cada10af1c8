//! Captures of several daemons as one: a section, the interfaces of all, packets as they come.
//!
//! Numbers of interfaces are those of the whole. Each capture is one that a daemon of this build writes,
//! so octets are little-endian and a block that makes no sense ends it.
//!
//! Source: draft-ietf-opsawg-pcapng.

use super::filter::Filter;
use capture::pcapng::{LinkType, block, erf, option};
use proto::events::Direction;
use proto::frame::FrameKind;
use std::io::{self, Read, Write};

/// Type and length stand before a block's body, the length again behind it.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// Longer blocks are none of ours.
const BLOCK_MAX: usize = 1 << 20;
/// Of a packet block, behind the head: interface, time, octets that follow, octets on the wire.
const PACKET: usize = HEAD + 20;

/// One capture into which others go.
pub struct Stitch<W> {
    out: W,
    is_begun: bool,
    interfaces: u32,
    filter: Filter,
}

/// One of the captures that go into it: its interfaces by their numbers there, with what they carry.
#[derive(Default)]
pub struct Source {
    interfaces: Vec<(u32, u16)>,
}

impl<W: Write> Stitch<W> {
    /// One that is written to `out` and has what `filter` lets through.
    pub const fn new(out: W, filter: Filter) -> Stitch<W> {
        Stitch { out, is_begun: false, interfaces: 0, filter }
    }

    /// Takes in a block of `source`.
    ///
    /// # Errors
    /// If nobody takes what is written, or the block makes no sense.
    pub fn take(&mut self, source: &mut Source, block: &mut [u8]) -> io::Result<()> {
        match number(block, 0)? {
            block::SECTION if std::mem::replace(&mut self.is_begun, true) => return Ok(()),
            block::INTERFACE => {
                let link_type = number(block, HEAD)? as u16;
                source.interfaces.push((self.interfaces, link_type));
                self.interfaces += 1;
            }
            block::PACKET => {
                let link_type = renumber(source, block)?;
                if !self.wants(link_type, block)? {
                    return Ok(());
                }
            }
            block::STATISTICS => {
                renumber(source, block)?;
            }
            _ => {}
        }
        self.out.write_all(block)
    }

    fn wants(&self, link_type: u16, block: &[u8]) -> io::Result<bool> {
        let kept = number(block, HEAD + 12)? as usize;
        let octets = block.get(PACKET..PACKET + kept).ok_or_else(senseless)?;
        let kinds = [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet];
        let kind = kinds.into_iter().find(|kind| LinkType::of(*kind) as u16 == link_type);
        let Some(kind) = kind else { return Ok(true) };
        let header = if kind == FrameKind::Infiniband { erf::HEADER } else { 0 };
        let frame = octets.get(header..).ok_or_else(senseless)?;
        let options = &block[(PACKET + kept.next_multiple_of(4)).min(block.len() - TAIL)..];
        Ok(self.filter.wants(kind, frame, direction(options)))
    }
}

/// Writes the number of the whole over the interface's own; what the interface carries.
fn renumber(source: &Source, block: &mut [u8]) -> io::Result<u16> {
    let own = number(block, HEAD)? as usize;
    let (whole, link_type) = source.interfaces.get(own).ok_or_else(senseless)?;
    block[HEAD..HEAD + 4].copy_from_slice(&whole.to_le_bytes());
    Ok(*link_type)
}

/// What a packet's flags say; ours stand first among the options.
fn direction(options: &[u8]) -> Option<Direction> {
    let code = u16::from_le_bytes(options.get(..2)?.try_into().ok()?);
    let flags = number(options, 4).ok().filter(|_| code == option::EPB_FLAGS)?;
    match flags & 3 {
        1 => Some(Direction::Rx),
        2 => Some(Direction::Tx),
        _ => None,
    }
}

/// Reads a block; false at the end.
///
/// # Errors
/// If it cannot be read or makes no sense.
pub fn read_block(input: &mut impl Read, block: &mut Vec<u8>) -> io::Result<bool> {
    block.resize(HEAD, 0);
    let mut there = 0;
    while there < HEAD {
        match input.read(&mut block[there..])? {
            0 if there == 0 => return Ok(false),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => there += n,
        }
    }
    let length = number(block, 4)? as usize;
    if !(HEAD + TAIL..=BLOCK_MAX).contains(&length) || !length.is_multiple_of(4) {
        return Err(senseless());
    }
    block.resize(length, 0);
    input.read_exact(&mut block[HEAD..])?;
    Ok(true)
}

fn number(octets: &[u8], at: usize) -> io::Result<u32> {
    let four = octets.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_le_bytes).ok_or_else(senseless)
}

fn senseless() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no capture of ours")
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::pcapng;
    use capture::reader::CaptureReader;

    /// A capture of two ports, each with a frame that says whose it is.
    fn capture(name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        pcapng::section(&mut out, name);
        for port in 0..2 {
            let name = format!("{name}:{port}");
            let link_type = LinkType::Ethernet;
            let interface =
                pcapng::Interface { link_type, snaplen: 0, name: &name, description: "", speed: 1 };
            pcapng::interface(&mut out, &interface);
        }
        for interface in 0..2u32 {
            let octets = [name.as_bytes()[0]; 61];
            let direction = [Direction::Tx, Direction::Rx][interface as usize];
            let packet = pcapng::Packet {
                interface,
                link_type: LinkType::Ethernet,
                at_ns: 1,
                octets: &octets,
                wire_size: 64,
                direction: Some(direction),
                dropped_before: 0,
            };
            pcapng::packet(&mut out, &packet);
            pcapng::statistics(&mut out, interface, 2, (1, 0));
        }
        out
    }

    fn stitched(captures: &[Vec<u8>], filter: Filter) -> Vec<(String, u8)> {
        let mut out = Vec::new();
        let mut stitch = Stitch::new(&mut out, filter);
        let mut inputs: Vec<&[u8]> = captures.iter().map(Vec::as_slice).collect();
        let mut sources: Vec<Source> = inputs.iter().map(|_| Source::default()).collect();
        let mut block = Vec::new();
        // In turns, as blocks of daemons come.
        while inputs.iter().any(|input| !input.is_empty()) {
            for (input, source) in inputs.iter_mut().zip(&mut sources) {
                if read_block(input, &mut block).expect("whole blocks") {
                    stitch.take(source, &mut block).expect("blocks of ours");
                }
            }
        }
        let mut reader = CaptureReader::new(out.as_slice()).expect("a capture");
        let mut found = Vec::new();
        while let Some(packet) = reader.next_raw().expect("whole") {
            let packet = packet.expect("a packet");
            found.push((packet.interface.expect("a name").to_string(), packet.octets[0]));
        }
        found.sort();
        found
    }

    #[test]
    fn frames_keep_their_interfaces_when_captures_become_one() {
        let both = [capture("a"), capture("b")];
        let expected = [("a:0", b'a'), ("a:1", b'a'), ("b:0", b'b'), ("b:1", b'b')];
        let found = stitched(&both, Filter::default());
        assert_eq!(found, expected.map(|(name, octet)| (name.to_owned(), octet)));
        let sent = Filter { direction: Some(Direction::Tx), ..Filter::default() };
        let expected = [("a:0", b'a'), ("b:0", b'b')];
        assert_eq!(stitched(&both, sent), expected.map(|(n, o)| (n.to_owned(), o)));
    }

    #[test]
    fn what_is_no_capture_ends_it_without_a_panic() {
        let whole = capture("a");
        for cut in 1..whole.len() {
            let mut input = &whole[..cut];
            let mut source = Source::default();
            let mut stitch = Stitch::new(Vec::new(), Filter::default());
            let mut block = Vec::new();
            while let Ok(true) = read_block(&mut input, &mut block) {
                stitch.take(&mut source, &mut block).expect("what is whole is ours");
            }
        }
        let mut stitch = Stitch::new(Vec::new(), Filter::default());
        for kind in [block::INTERFACE, block::PACKET, block::STATISTICS] {
            let mut block = [kind.to_le_bytes(), 12u32.to_le_bytes(), 12u32.to_le_bytes()].concat();
            let taken = stitch.take(&mut Source::default(), &mut block);
            assert!(taken.is_err() || kind == block::INTERFACE);
        }
        assert!(read_block(&mut &[0xff; 64][..], &mut Vec::new()).is_err());
    }
}
