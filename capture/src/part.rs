//! A part of a capture: what one process of a run with exact pace has seen. Parts are merged into the file that the
//! virtual clock writes.
//!
//! A part is not a capture: it has the instant at which each frame was handled, by which frames of several processes are
//! put in order, and no interfaces. Records follow each other, all numbers little endian:
//!
//! ```text
//!   handled (8) | at (8) | node (4) | length (4) | port (1) | kind (1) | 0 (1) | sent (1) | octets
//! ```
//!
//! A head of ones is the last; a part without it is cut.

use crate::spool::{Spool, WhenFull};
use crate::{Capture, CaptureError, CapturePlan};
use bytes::BytesMut;
use emulation::frame_tap::{CaptureStatistics, FrameTap};
use emulation::observer::Passage;
use emulation::wiring::{End, Wiring};
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::Instant;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Octets before those of the frame.
const HEAD: usize = 28;
/// The end of a part.
const END: [u8; HEAD] = [0xff; HEAD];
/// No frame is longer, in octets.
const FRAME_MAX: u32 = 1 << 16;

/// Writes a part.
#[derive(Debug)]
pub struct Part {
    file: PathBuf,
    /// By device: its node, and by port whether it is captured.
    ports: Vec<(usize, Vec<bool>)>,
    spool: Spool,
}

impl Part {
    /// Creates the file of `plan` for the devices that are `nodes` of `wiring`.
    ///
    /// # Errors
    /// If the file or its writer cannot be created.
    pub fn create(
        plan: &CapturePlan,
        wiring: &Wiring,
        nodes: &[usize],
    ) -> Result<Part, CaptureError> {
        let file = plan.file.clone();
        let created = File::create(&file);
        let created =
            created.map_err(|source| CaptureError::Create { file: file.clone(), source })?;
        let spool = Spool::start(created, WhenFull::Wait).map_err(CaptureError::Thread)?;
        let is_captured = |node: usize, port: usize| {
            let end = End { node, port: PortNumber::from_index(port) };
            plan.ports.iter().any(|port| port.at == end)
        };
        let ports = nodes.iter().map(|node| {
            let ports = 0..usize::from(wiring.nodes[*node].ports);
            (*node, ports.map(|port| is_captured(*node, port)).collect())
        });
        Ok(Part { file, ports: ports.collect(), spool })
    }
}

impl FrameTap for Part {
    fn wants(&self, device: usize, port: PortNumber) -> bool {
        let ports = self.ports.get(device).map(|(_, ports)| ports);
        ports.and_then(|ports| ports.get(port.index())).copied().unwrap_or(false)
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        let Passage { device, port, direction, at, handled } = *passage;
        if !self.wants(device, port) || !self.spool.has_room() {
            return;
        }
        let out = self.spool.buffer();
        out.extend(handled.as_ps().to_le_bytes());
        out.extend(at.as_ps().to_le_bytes());
        out.extend((self.ports[device].0 as u32).to_le_bytes());
        out.extend((frame.octets_len() as u32).to_le_bytes());
        let is_sent = u8::from(direction == Direction::Tx);
        out.extend([port.get(), frame.kind as u8, 0, is_sent]);
        frame.append_to(out);
    }

    fn flush(&mut self) {}

    fn finish(self: Box<Self>, _now: Instant) -> CaptureStatistics {
        let ending = self.spool.finish(|_| END.to_vec());
        CaptureStatistics {
            file: self.file,
            bytes: ending.bytes,
            error: ending.error,
            interfaces: Vec::new(),
        }
    }
}

/// A frame of a part.
struct Record {
    node: usize,
    frame: Frame,
    passage: Passage,
}

fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("a part of the capture is cut"),
        _ => error,
    }
}

/// Reads the next record; `None` at the end.
fn read(from: &mut impl Read) -> io::Result<Option<Record>> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).map_err(cut)?;
    if head == END {
        return Ok(None);
    }
    let short =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let long = |at: usize| Instant::from_ps(u64::from(short(at + 4)) << 32 | u64::from(short(at)));
    let (handled, at, node) = (long(0), long(8), short(16) as usize);
    let broken = || io::Error::other("a part of the capture is broken");
    let port = PortNumber::new(head[24]).map_err(|_| broken())?;
    let kind = FrameKind::from_code(head[25]).ok_or_else(broken)?;
    let direction = if head[27] == 1 { Direction::Tx } else { Direction::Rx };
    let length = Some(short(20)).filter(|length| *length <= FRAME_MAX).ok_or_else(broken)?;
    let mut octets = BytesMut::zeroed(length as usize);
    from.read_exact(&mut octets).map_err(cut)?;
    let passage = Passage { device: node, port, direction, at, handled };
    Ok(Some(Record { node, frame: Frame::unchecked(kind, octets), passage }))
}

/// Writes the capture of `plan` from the parts of all processes, in the order in which one process would have seen the
/// frames, and ends it at `end`.
///
/// # Errors
/// If a part cannot be read, or the file cannot be created.
pub fn merge(
    parts: &[PathBuf],
    plan: &CapturePlan,
    wiring: &Wiring,
    end: Instant,
) -> Result<CaptureStatistics, CaptureError> {
    let unread = |file: &Path| {
        let file = file.to_owned();
        move |source| CaptureError::Create { file, source }
    };
    let mut sources = Vec::new();
    for part in parts {
        let mut source = BufReader::new(File::open(part).map_err(unread(part))?);
        let first = read(&mut source).map_err(unread(part))?;
        sources.push((part, source, first));
    }
    let nodes: Vec<usize> = (0..wiring.nodes.len()).collect();
    let mut capture = Capture::create(plan, wiring, &nodes)?;
    loop {
        let due = sources.iter_mut().filter(|(_, _, next)| next.is_some());
        let key =
            |next: &Option<Record>| next.as_ref().map(|next| (next.passage.handled, next.node));
        let Some((part, source, next)) = due.min_by_key(|(_, _, next)| key(next)) else { break };
        let after = read(source).map_err(unread(part))?;
        if let Some(record) = std::mem::replace(next, after) {
            capture.frame(&record.frame, &record.passage);
        }
    }
    Ok(capture.finish(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CapturedPort;
    use emulation::wiring::{NodeKind, NodeWiring};
    use proto::technology::Technology;
    use proto::units::BitRate;

    /// Frames of two nodes, captured by one process and by two, whose parts are merged.
    #[test]
    fn merged_parts_are_the_capture_that_one_process_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let node = |name: &str| NodeWiring {
            name: name.to_owned(),
            kind: NodeKind::Switch,
            ports: 1,
            level: 0,
        };
        let wiring = Wiring { nodes: vec![node("a"), node("b")], ..Wiring::default() };
        let port = PortNumber::from_index(0);
        let captured = |node| CapturedPort {
            at: End { node, port },
            technology: Technology::Infiniband,
            rate: BitRate::gbps(8),
            fed: false,
        };
        let plan = |name: &str| CapturePlan {
            file: folder.path().join(name),
            scenario: "two nodes".to_owned(),
            seed: 1,
            dilation: None,
            snaplen: None,
            when_full: WhenFull::Wait,
            ports: vec![captured(1), captured(0)],
        };
        let mut one = Capture::create(&plan("one"), &wiring, &[0, 1]).expect("a file");
        let mut parts = [0, 1].map(|node| {
            Part::create(&plan(&format!("part-{node}")), &wiring, &[node]).expect("a file")
        });
        for step in 0..40u64 {
            for node in [0, 1] {
                // What leaves is handed over before its last bit has left.
                let direction = if step % 3 == 0 { Direction::Tx } else { Direction::Rx };
                let handled = Instant::from_ps(step / 4 * 1_000);
                let at = Instant::from_ps(handled.as_ps() + (step % 3) * 700);
                let kind = [FrameKind::Infiniband, FrameKind::InfinibandLink][node];
                let octets = BytesMut::from(&[step as u8; 30][..(8 + step as usize / 2)]);
                let frame = Frame::unchecked(kind, octets);
                parts[node].frame(&frame, &Passage { device: 0, port, direction, at, handled });
            }
        }
        // One process sees all frames of one instant of a before those of b.
        for (node, step) in (0..40u64).step_by(4).flat_map(|first| {
            [0, 1]
                .into_iter()
                .flat_map(move |node| (first..first + 4).map(move |step| (node, step)))
        }) {
            let direction = if step % 3 == 0 { Direction::Tx } else { Direction::Rx };
            let handled = Instant::from_ps(step / 4 * 1_000);
            let at = Instant::from_ps(handled.as_ps() + (step % 3) * 700);
            let kind = [FrameKind::Infiniband, FrameKind::InfinibandLink][node];
            let octets = BytesMut::from(&[step as u8; 30][..(8 + step as usize / 2)]);
            let frame = Frame::unchecked(kind, octets);
            one.frame(&frame, &Passage { device: node, port, direction, at, handled });
        }
        let end = Instant::from_ps(1_000_000);
        let one = one.finish(end);
        let files = parts.map(|part| Box::new(part).finish(end).file);
        let merged = merge(&files, &plan("merged"), &wiring, end).expect("parts");
        assert_eq!((merged.bytes, &merged.interfaces), (one.bytes, &one.interfaces));
        let read = |file: &Path| std::fs::read(file).expect("a file");
        assert_eq!(read(&merged.file), read(&one.file));
        // A part that ends too early, at a record or in one, is not a capture.
        let whole = read(&files[0]);
        for length in 0..whole.len() {
            std::fs::write(&files[0], &whole[..length]).expect("a file");
            let merged = merge(&files, &plan("merged"), &wiring, end);
            assert!(matches!(merged, Err(CaptureError::Create { .. })), "{length} octets");
        }
        let long = [&whole[..20], &u32::MAX.to_le_bytes(), &whole[24..]].concat();
        std::fs::write(&files[0], long).expect("a file");
        assert!(merge(&files, &plan("merged"), &wiring, end).is_err(), "a length without bound");
    }
}
