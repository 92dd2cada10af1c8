//! Merges the captures of several daemons: one section, the interfaces of all, packets in order of arrival.
//!
//! Interfaces are renumbered. A daemon of this build writes each capture, so blocks are little-endian, and an
//! invalid block ends the capture. A packet that cannot be written to the output is counted.
//!
//! Source: draft-ietf-opsawg-pcapng.

use super::filter::Filter;
use capture::pcapng::{LinkType, block, erf, option};
use capture::{BlockWriter, Ending, Sink};
use proto::events::Direction;
use proto::frame::FrameKind;
use std::io::{self, Read};

/// Octets of type and length before the body of a block, and of the repeated length after it.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// The longest block that daemons write, in octets.
const BLOCK_MAX: usize = 1 << 20;
/// Octets of a packet block before its data: head, interface, time, captured length, original length.
const PACKET: usize = HEAD + 20;

/// The merged capture.
pub(crate) struct CaptureMerger {
    out: BlockWriter,
    is_begun: bool,
    interfaces: u32,
    filter: Filter,
}

/// One input: its interfaces by their own numbers, with the number in the merged capture and the link type.
#[derive(Default)]
pub(crate) struct MergeInput {
    interfaces: Vec<(u32, u16)>,
}

impl MergeInput {
    /// The packets of each interface of this input that are `lost`, by interface of the merged capture.
    pub fn lost(&self, lost: &[u64]) -> Vec<u64> {
        let of = |(whole, _): &(u32, u16)| lost.get(*whole as usize).copied().unwrap_or(0);
        self.interfaces.iter().map(of).collect()
    }
}

impl CaptureMerger {
    /// A merged capture that is written to `out`, with the packets that match `filter`.
    pub fn new(out: impl Sink, filter: Filter) -> CaptureMerger {
        let out = BlockWriter::new(out);
        CaptureMerger { out, is_begun: false, interfaces: 0, filter }
    }

    /// What became of the output.
    pub fn finish(self) -> Ending {
        self.out.finish(|_| Vec::new())
    }

    /// Adds a block of `source`.
    ///
    /// # Errors
    /// If the block is invalid.
    pub fn add(&mut self, source: &mut MergeInput, block: &mut [u8]) -> io::Result<()> {
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
        self.out.take(block);
        Ok(())
    }

    fn wants(&self, link_type: u16, block: &[u8]) -> io::Result<bool> {
        let kept = number(block, HEAD + 12)? as usize;
        let octets = block.get(PACKET..PACKET + kept).ok_or_else(invalid)?;
        let kinds = [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet];
        let kind = kinds.into_iter().find(|kind| LinkType::of(*kind) as u16 == link_type);
        let Some(kind) = kind else { return Ok(true) };
        let header = if kind == FrameKind::Infiniband { erf::HEADER } else { 0 };
        let frame = octets.get(header..).ok_or_else(invalid)?;
        let options = &block[(PACKET + kept.next_multiple_of(4)).min(block.len() - TAIL)..];
        Ok(self.filter.wants(kind, frame, direction(options)))
    }
}

/// Replaces the number of the interface, and returns its link type.
fn renumber(source: &MergeInput, block: &mut [u8]) -> io::Result<u16> {
    let own = number(block, HEAD)? as usize;
    let (whole, link_type) = source.interfaces.get(own).ok_or_else(invalid)?;
    block[HEAD..HEAD + 4].copy_from_slice(&whole.to_le_bytes());
    Ok(*link_type)
}

/// The direction in the flags of a packet, which are its first option.
fn direction(options: &[u8]) -> Option<Direction> {
    let code = u16::from_le_bytes(options.get(..2)?.try_into().ok()?);
    let flags = number(options, 4).ok().filter(|_| code == option::EPB_FLAGS)?;
    match flags & 3 {
        1 => Some(Direction::Rx),
        2 => Some(Direction::Tx),
        _ => None,
    }
}

/// Reads a block. Returns false at the end of the input.
///
/// # Errors
/// If the input fails or the block is invalid.
pub fn read_block(input: &mut impl Read, block: &mut Vec<u8>) -> io::Result<bool> {
    block.clear();
    match input.by_ref().take(HEAD as u64).read_to_end(block)? {
        0 => return Ok(false),
        HEAD => {}
        _ => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    let length = number(block, 4)? as usize;
    if !(HEAD + TAIL..=BLOCK_MAX).contains(&length) || !length.is_multiple_of(4) {
        return Err(invalid());
    }
    block.resize(length, 0);
    input.read_exact(&mut block[HEAD..])?;
    Ok(true)
}

fn number(octets: &[u8], at: usize) -> io::Result<u32> {
    let four = octets.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_le_bytes).ok_or_else(invalid)
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an invalid block in the capture of a daemon")
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::pcapng;
    use capture::reader::CaptureReader;
    use std::fs::File;
    use std::io::Seek;

    /// A capture of two ports, each with a frame that contains the name.
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

    fn nowhere() -> File {
        File::options().write(true).open("/dev/null").expect("every system has it")
    }

    #[test]
    fn a_packet_that_the_disk_has_no_room_for_is_counted() {
        let full = File::options().write(true).open("/dev/full").expect("every system has it");
        let mut merger = CaptureMerger::new(full, Filter::default());
        let (capture, mut source, mut block) = (capture("a"), MergeInput::default(), Vec::new());
        let mut input = capture.as_slice();
        while read_block(&mut input, &mut block).expect("whole blocks") {
            merger.add(&mut source, &mut block).expect("valid blocks");
        }
        let ending = merger.finish();
        assert!(ending.error.is_some());
        assert_eq!((ending.bytes, source.lost(&ending.lost)), (0, vec![1, 1]));
    }

    fn merged(captures: &[Vec<u8>], filter: Filter) -> Vec<(String, u8)> {
        let mut out = tempfile::tempfile().expect("a file");
        let mut merger = CaptureMerger::new(out.try_clone().expect("a descriptor"), filter);
        let mut inputs: Vec<&[u8]> = captures.iter().map(Vec::as_slice).collect();
        let mut sources: Vec<MergeInput> = inputs.iter().map(|_| MergeInput::default()).collect();
        let mut block = Vec::new();
        // Alternately, as the blocks of daemons arrive.
        while inputs.iter().any(|input| !input.is_empty()) {
            for (input, source) in inputs.iter_mut().zip(&mut sources) {
                if read_block(input, &mut block).expect("whole blocks") {
                    merger.add(source, &mut block).expect("valid blocks");
                }
            }
        }
        assert_eq!(merger.finish().error, None);
        out.rewind().expect("the beginning");
        let mut reader = CaptureReader::new(out).expect("a capture");
        let mut found = Vec::new();
        while let Some(packet) = reader.next_raw().expect("whole") {
            let packet = packet.expect("a packet");
            found.push((packet.interface.expect("a name").to_string(), packet.octets[0]));
        }
        found.sort();
        found
    }

    #[test]
    fn frames_keep_their_interfaces_in_the_merged_capture() {
        let both = [capture("a"), capture("b")];
        let expected = [("a:0", b'a'), ("a:1", b'a'), ("b:0", b'b'), ("b:1", b'b')];
        let found = merged(&both, Filter::default());
        assert_eq!(found, expected.map(|(name, octet)| (name.to_owned(), octet)));
        let sent = Filter { direction: Some(Direction::Tx), ..Filter::default() };
        let expected = [("a:0", b'a'), ("b:0", b'b')];
        assert_eq!(merged(&both, sent), expected.map(|(n, o)| (n.to_owned(), o)));
    }

    #[test]
    fn an_invalid_capture_ends_without_a_panic() {
        let whole = capture("a");
        for cut in 1..whole.len() {
            let mut input = &whole[..cut];
            let mut source = MergeInput::default();
            let mut merger = CaptureMerger::new(nowhere(), Filter::default());
            let mut block = Vec::new();
            while let Ok(true) = read_block(&mut input, &mut block) {
                merger.add(&mut source, &mut block).expect("complete blocks are valid");
            }
        }
        let mut merger = CaptureMerger::new(nowhere(), Filter::default());
        for kind in [block::INTERFACE, block::PACKET, block::STATISTICS] {
            let mut block = [kind.to_le_bytes(), 12u32.to_le_bytes(), 12u32.to_le_bytes()].concat();
            let taken = merger.add(&mut MergeInput::default(), &mut block);
            assert!(taken.is_err() || kind == block::INTERFACE);
        }
        assert!(read_block(&mut &[0xff; 64][..], &mut Vec::new()).is_err());
    }
}
