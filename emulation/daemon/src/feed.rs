//! Frames from outside: the frames of a capture file arrive at this process's ports as if cables had carried
//! them.
//!
//! Each frame arrives at the port that its interface is named after, at its own time stamp in fabric time. All
//! processes read the same file, and each uses the frames for its own ports.

use crate::config::DaemonConfig;
use crate::error::{Context, DaemonError};
use capture::reader::CaptureReader;
use capture::{Capture, CaptureError, CapturePlan, CapturedPort, WhenFull};
use emulation::driver::FedFrame;
use emulation::frame_tap::FrameTap;
use emulation::observer::Passage;
use emulation::wiring::{End, Wiring};
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::technology::Technology;
use proto::units::{BitRate, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Writes the file from which daemons read `frames`.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    file: &Path,
    wiring: &Wiring,
    frames: &[(End, Instant, Frame)],
) -> Result<(), CaptureError> {
    let ends: BTreeMap<End, FrameKind> =
        frames.iter().map(|(end, _, frame)| (*end, frame.kind)).collect();
    // The rate only describes the interface.
    let port = |(at, kind)| CapturedPort {
        at,
        technology: match kind {
            FrameKind::Ethernet => Technology::Ethernet,
            FrameKind::Infiniband | FrameKind::InfinibandLink => Technology::Infiniband,
        },
        rate: BitRate::gbps(1),
        fed: false,
    };
    let plan = CapturePlan {
        file: file.to_owned(),
        scenario: "frames to be fed in".to_owned(),
        seed: 0,
        dilation: None,
        snaplen: None,
        when_full: WhenFull::Wait,
        ports: ends.into_iter().map(port).collect(),
    };
    let nodes: Vec<usize> = (0..wiring.nodes.len()).collect();
    let mut capture = Capture::create(&plan, wiring, &nodes)?;
    for (end, at, frame) in frames {
        let passage = Passage::at_once(end.node, end.port, Direction::Rx, *at);
        capture.frame(frame, &passage);
    }
    match capture.finish(Instant::ZERO).error {
        None => Ok(()),
        Some(reason) => Err(CaptureError::Create {
            file: file.to_owned(),
            source: std::io::Error::other(reason),
        }),
    }
}

impl DaemonConfig {
    /// The frames that reach this process from outside, in the order of the file.
    ///
    /// # Errors
    /// If the file cannot be read to its end.
    pub fn fed(&self) -> Result<Vec<FedFrame>, DaemonError> {
        let Some(path) = &self.feed else { return Ok(Vec::new()) };
        let name = || path.display().to_string();
        let file = File::open(path).context(name())?;
        let reader = CaptureReader::new(BufReader::new(file)).context(name())?;
        let own = self.own_ends();
        let mut fed = Vec::new();
        for captured in reader {
            let captured = captured.context(name())?;
            let at_port = captured.interface.as_deref().unwrap_or_default();
            if let Some((device, port)) = own.get(at_port).copied() {
                let at = Instant::from_ps(captured.at_ns.saturating_mul(1_000));
                fed.push(FedFrame { device, port, at, frame: captured.frame });
            }
        }
        Ok(fed)
    }

    /// Device and port by the name of every port of this process.
    pub(crate) fn own_ends(&self) -> BTreeMap<String, (usize, PortNumber)> {
        let ports = self.own_nodes().enumerate().flat_map(|(device, node)| {
            (0..usize::from(self.wiring.nodes[node].ports)).map(move |port| {
                let port = PortNumber::from_index(port);
                (self.wiring.end_name(End { node, port }), (device, port))
            })
        });
        ports.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proto::frame::Integrity;

    #[test]
    fn each_process_takes_the_frames_of_its_own_ports_unchecked_and_in_time() {
        for kind in [FrameKind::Infiniband, FrameKind::Ethernet] {
            frames_are_those_that_were_written(kind);
        }
    }

    fn frames_are_those_that_were_written(kind: FrameKind) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("feed.pcapng");
        let wiring = crate::tests::chain();
        let link = wiring.links[0].clone();
        let frame = |tag: u8| Frame::unchecked(kind, BytesMut::from(&[tag; 40][..]));
        let at = |us: u64| Instant::from_ps(us * 1_000_000);
        let frames =
            [(link.a, at(1), frame(1)), (link.b, at(2), frame(2)), (link.a, at(3), frame(3))];
        write(&file, &wiring, &frames).expect("a writable folder");
        for end in [link.a, link.b] {
            let hosts = (0..wiring.nodes.len()).map(|node| usize::from(node != end.node)).collect();
            let text = "lab = \"x\"\nseed = 1\ntechnology = \"ethernet\"\nprocess = 0\n\
                 processes = 2\nhosts = []\ndevices = []\n[plan]\ntau = \"2 us\"\nstop = \"4 us\"\nbin = \"2 us\"\nedges = []\n\
                 measured = []\nall_events = false\n[wiring]\nnodes = []\nlinks = []\n";
            let base: DaemonConfig = toml::from_str(text).expect("a minimal configuration");
            let feed = Some(file.clone());
            let config = DaemonConfig { hosts, feed, wiring: wiring.clone(), ..base };
            let fed = config.fed().expect("a whole file");
            let expected: Vec<_> = frames.iter().filter(|(to, ..)| *to == end).collect();
            assert_eq!(fed.len(), expected.len());
            for (fed, (_, at, frame)) in fed.iter().zip(expected) {
                assert_eq!((fed.device, fed.port, fed.at), (0, end.port, *at));
                assert_eq!(&fed.frame, frame);
                assert_eq!(fed.frame.integrity, Integrity::Unchecked);
            }
        }
    }
}
