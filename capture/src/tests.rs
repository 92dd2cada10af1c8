//! Captures are read back: frames, names, directions, times, and counts of what was dropped.

use super::*;
use crate::reader::CaptureReader;
use bytes::BytesMut;
use emulation::observer::Passage;
use emulation::wiring::{LinkWiring, NodeKind, NodeWiring};
use proto::events::Direction;
use proto::units::Duration;
use std::sync::atomic::Ordering;

fn end(node: usize, port: usize) -> End {
    End { node, port: PortNumber::from_index(port) }
}

fn wiring() -> Wiring {
    let node = |name: &str, ports| NodeWiring {
        name: name.to_owned(),
        kind: NodeKind::Switch,
        ports,
        level: 1,
    };
    let link = LinkWiring {
        a: end(0, 0),
        b: end(1, 1),
        delay: Duration::ZERO,
        frame_time: Duration::from_ns(2074),
    };
    Wiring { nodes: vec![node("s0", 2), node("s1", 2)], links: vec![link], ..Wiring::default() }
}

fn plan(file: PathBuf, snaplen: Option<Bytes>) -> CapturePlan {
    let port = |at, technology| CapturedPort { at, technology, rate: BitRate::gbps(8), fed: false };
    CapturePlan {
        file,
        scenario: "toy".to_owned(),
        seed: 7,
        dilation: None,
        snaplen,
        when_full: WhenFull::Wait,
        ports: vec![
            port(end(0, 0), Technology::Infiniband),
            port(end(0, 1), Technology::Ethernet),
            port(end(1, 0), Technology::Infiniband),
        ],
    }
}

fn frame(kind: FrameKind, octets: &[u8]) -> Frame {
    Frame::intact(kind, BytesMut::from(octets))
}

fn write(file: PathBuf, snaplen: Option<Bytes>) -> CaptureStatistics {
    let mut capture = Capture::create(&plan(file, snaplen), &wiring(), &[0]).expect("a file");
    let (one, two) = (PortNumber::from_index(0), PortNumber::from_index(1));
    assert!(capture.wants(0, one) && capture.wants(0, two));
    assert!(!capture.wants(1, one), "the other node is another worker's");
    let at = |ns: u64| Instant::from_ps(ns * 1_000 + 999);
    let data = frame(FrameKind::Infiniband, &[0xab; 301]);
    capture.frame(&data, &Passage::at_once(0, one, Direction::Tx, at(5)));
    let received = |port, at| Passage::at_once(0, port, Direction::Rx, at);
    capture.frame(&frame(FrameKind::InfinibandLink, &[1; 6]), &received(one, at(6)));
    capture.frame(&frame(FrameKind::Ethernet, &[2; 60]), &received(two, at(1 << 33)));
    capture.finish(at(1 << 34))
}

#[test]
fn what_goes_in_comes_out_with_its_port_direction_and_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.pcapng");
    let statistics = write(file.clone(), None);
    assert_eq!(statistics.error, None);
    assert_eq!(statistics.bytes, std::fs::metadata(&file).expect("the file").len());
    let names: Vec<_> = statistics.interfaces.iter().map(|i| (i.name.as_str(), i.seen)).collect();
    assert_eq!(names, [("s0:1", 1), ("s0:1/link", 1), ("s0:2", 1)]);
    let input = std::io::BufReader::new(std::fs::File::open(file).expect("the file"));
    let mut reader = CaptureReader::new(input).expect("a capture");
    let frames: Vec<_> = reader.by_ref().map(|frame| frame.expect("whole")).collect();
    let shown: Vec<_> = frames
        .iter()
        .map(|f| (f.interface.as_deref(), f.at_ns, f.direction, f.frame.kind, f.frame.octets.len()))
        .collect();
    use FrameKind::{Ethernet, Infiniband, InfinibandLink};
    assert_eq!(
        shown,
        [
            (Some("s0:1"), 5, Some(Direction::Tx), Infiniband, 301),
            (Some("s0:1/link"), 6, Some(Direction::Rx), InfinibandLink, 6),
            (Some("s0:2"), 1 << 33, Some(Direction::Rx), Ethernet, 60),
        ]
    );
    assert_eq!(frames[0].frame.octets, [0xab; 301].as_slice());
    assert!(reader.skipped().is_empty());
}

#[test]
fn a_cut_frame_keeps_its_size_on_the_wire() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.pcapng");
    write(file.clone(), Some(Bytes::new(50)));
    let octets = std::fs::read(file).expect("the file");
    let frames: Vec<_> = CaptureReader::new(octets.as_slice())
        .expect("a capture")
        .map(|f| f.expect("whole"))
        .collect();
    assert_eq!((frames[0].frame.octets.len(), frames[0].wire_size), (50, 301));
    assert_eq!((frames[1].frame.octets.len(), frames[1].wire_size), (6, 6));
}

#[test]
fn the_same_frames_make_the_same_octets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    write(a.clone(), None);
    write(b.clone(), None);
    assert_eq!(std::fs::read(a).expect("a"), std::fs::read(b).expect("b"));
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_that_names_it() {
    let file = PathBuf::from("/nowhere/at/all.pcapng");
    let error = Capture::create(&plan(file, None), &wiring(), &[0]).expect_err("no such folder");
    assert!(error.to_string().contains("/nowhere/at/all.pcapng"), "{error}");
}

/// A file that blocks writing until the test goes on.
struct Stalled(std::sync::mpsc::Receiver<()>, std::fs::File);

impl std::io::Write for Stalled {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        // An error means that the sender is dropped: from then on everything is written.
        let _ = self.0.recv();
        self.1.write(octets)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.1.flush()
    }
}

impl Sink for Stalled {
    fn cut(&mut self, octets: u64) -> std::io::Result<()> {
        self.1.cut(octets)
    }
}

/// A file on a disk with room for so many octets.
struct FullDisk(std::fs::File, usize);

impl std::io::Write for FullDisk {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        if self.1 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let written = self.0.write(&octets[..octets.len().min(self.1)])?;
        self.1 -= written;
        Ok(written)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Sink for FullDisk {
    fn cut(&mut self, octets: u64) -> std::io::Result<()> {
        let before = self.0.metadata()?.len();
        self.1 += (before - octets) as usize;
        self.0.cut(octets)
    }
}

#[test]
fn a_full_disk_leaves_a_readable_file_and_every_frame_in_it_or_counted() {
    let passage = |n| Passage {
        device: 0,
        port: PortNumber::from_index(0),
        direction: Direction::Tx,
        at: Instant::from_ps(n),
        handled: Instant::from_ps(n),
    };
    for when_full in [WhenFull::Drop, WhenFull::Wait] {
        for room in [0, 100, 1_000, 70_000, 1_000_000, 1_000_001, 3_000_000] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let file = folder.path().join("a.pcapng");
            let disk = FullDisk(std::fs::File::create(&file).expect("a file"), room);
            let spool = Spool::start(disk, when_full).expect("a thread");
            let mut capture = Capture::begin(spool, &plan(file.clone(), None), &wiring(), &[0]);
            let data = frame(FrameKind::Infiniband, &[0xab; 60_000]);
            for n in 0..100 {
                capture.frame(&data, &passage(n));
                capture.frame(&frame(FrameKind::InfinibandLink, &[1; 6]), &passage(n));
            }
            let tally = capture.tally();
            let statistics = capture.finish(Instant::from_ps(2_000));
            assert!(statistics.error.is_some(), "{statistics:?}");
            assert_eq!((statistics.seen(), statistics.is_whole()), (200, false));
            let shown = [&tally.seen, &tally.dropped].map(|count| count.load(Ordering::Relaxed));
            assert_eq!(shown, [200, statistics.dropped()], "what another thread sees");
            let octets = std::fs::read(file).expect("the file");
            assert_eq!(statistics.bytes, octets.len() as u64);
            let ends = pcapng::blocks(&octets).last().map_or(0, |block| block.end);
            assert_eq!(ends, octets.len(), "the file ends with a whole block");
            if room < 1_000 {
                continue; // Not even the head fits.
            }
            let frames: Vec<_> = CaptureReader::new(octets.as_slice()).expect("a head").collect();
            let whole = frames.iter().filter(|frame| frame.is_ok()).count() as u64;
            assert_eq!(whole as usize, frames.len(), "nothing is torn");
            assert_eq!(whole, statistics.seen() - statistics.dropped(), "room {room}");
        }
    }
}

#[test]
fn a_live_worker_drops_and_counts_instead_of_waiting() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.pcapng");
    let (go_on, told) = std::sync::mpsc::channel();
    let disk = Stalled(told, std::fs::File::create(&file).expect("a file"));
    let spool = Spool::start(disk, WhenFull::Drop).expect("a thread");
    let mut capture = Capture::begin(spool, &plan(file.clone(), None), &wiring(), &[0]);
    let data = frame(FrameKind::Infiniband, &[0; 60_000]);
    let put = |capture: &mut Capture, n: u64| {
        let (port, at) = (PortNumber::from_index(0), Instant::from_ps(n));
        capture.frame(&data, &Passage::at_once(0, port, Direction::Tx, at));
        capture.spool.tally().dropped.load(Ordering::Relaxed)
    };
    let mut dropped = (0..600).map(|n| put(&mut capture, n)).last().expect("a count");
    assert!(dropped > 250, "16 MiB wait, 36 MB came: {dropped}");
    drop(go_on);
    // The writer makes room by and by, and the next frame that is kept says how many were not.
    let is_kept = |n: &u64| {
        std::thread::yield_now();
        let before = std::mem::replace(&mut dropped, put(&mut capture, *n));
        dropped == before
    };
    let last = (600..1_000_000_000).find(is_kept).expect("room");
    let statistics = capture.finish(Instant::from_ps(last + 1));
    let data = &statistics.interfaces[0];
    assert_eq!((data.seen, data.dropped), (last + 1, dropped));
    let octets = std::fs::read(file).expect("the file");
    let read = CaptureReader::new(octets.as_slice()).expect("a capture").filter(|f| f.is_ok());
    assert_eq!(read.count() as u64, data.seen - data.dropped);
    // `epb_dropcount`, of eight octets, behind `epb_flags`, of four. The octets of frames are zeros.
    let is_count =
        |window: &&[u8]| window.starts_with(&[2, 0, 4, 0]) && window[8..12] == [4, 0, 8, 0];
    let named = octets.windows(20).filter(is_count);
    let named = named.map(|window| u64::from_le_bytes(*window.last_chunk().expect("eight")));
    assert_eq!(named.sum::<u64>(), data.dropped);
}

/// The reader of a pipe gets frames before the capture ends; without a reader there is no capture.
#[test]
fn a_pipe_is_read_while_frames_come() {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pipe");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let alone = Capture::create(&plan(file.clone(), None), &wiring(), &[0]);
    assert!(matches!(alone, Err(CaptureError::Create { .. })), "nobody reads it");
    let mut reader = File::options();
    let reader = reader.read(true).custom_flags(libc::O_NONBLOCK).open(&file).expect("a pipe");
    let mut capture = Capture::create(&plan(file, None), &wiring(), &[0]).expect("it has a reader");
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty())).expect("it may wait");
    let data = frame(FrameKind::Infiniband, &[0xab; 301]);
    capture.frame(
        &data,
        &Passage::at_once(0, PortNumber::from_index(0), Direction::Tx, Instant::from_ps(5_000)),
    );
    capture.flush();
    let mut frames = CaptureReader::new(reader.try_clone().expect("a descriptor")).expect("a head");
    // The writer waits only for this reader, so this returns soon.
    let first = frames.next().expect("a frame").expect("whole");
    assert_eq!(first.frame.octets.as_ref(), &data.octets[..]);
    capture.finish(Instant::from_ps(6_000));
    let mut rest = Vec::new();
    let mut reader = reader;
    reader.read_to_end(&mut rest).expect("the end");
    assert!(!rest.is_empty(), "what an end says");
}
