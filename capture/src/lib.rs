//! Captures: frames of chosen ports as a pcapng file that plain Wireshark reads, and a reader for pcapng and
//! pcap.
//!
//! One file a worker. An InfiniBand port has two interfaces: `node:port` for packets with an LRH (ERF records
//! of type 21, which Wireshark's dissector parses) and `node:port/link` for link packets (USER0, since
//! Wireshark's InfiniBand dissector reports each of them as malformed). An Ethernet port has one. Times are
//! fabric time in nanoseconds (docs/spec/seeing.md, 10).
//!
//! Encoded blocks go through a bounded spool to a thread that writes the file ([`spool`]), so that a live
//! worker never waits for a disk. The file may be a pipe that is read while the run lasts.

use crate::pcapng::{Interface, LinkType};
use crate::spool::Spool;
use bytes::BytesMut;
use emulation::frame_tap::{CaptureStatistics, FrameTap, InterfaceStatistics};
use emulation::observer::Passage;
use emulation::wiring::{End, Wiring};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Instant};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod block_writer;
pub mod part;
pub mod pcapng;
pub mod reader;
mod spool;

pub use block_writer::{BlockWriter, Ending, Sink, Tally};
pub use spool::WhenFull;

/// The ports to capture, and the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturePlan {
    /// The file; an existing one is replaced.
    pub file: PathBuf,
    /// The scenario's name, for the section's comment.
    pub scenario: String,
    /// The scenario's seed, for the same comment.
    pub seed: u64,
    /// The dilation; `None` on the virtual clock.
    pub dilation: Option<u64>,
    /// Octets kept of each frame; `None` keeps all.
    pub snaplen: Option<Bytes>,
    /// What to do with a frame when the spool is full: drop it on a wall clock, wait on the virtual one.
    pub when_full: WhenFull,
    /// The ports, in the order of their interfaces.
    pub ports: Vec<CapturedPort>,
}

/// One port to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedPort {
    /// The port.
    pub at: End,
    /// The technology of its link.
    pub technology: Technology,
    /// Its line rate.
    pub rate: BitRate,
    /// A replay feeds frames to this port that no peer sent, so credits do not match. The name of its interface
    /// for link packets states it.
    #[serde(default)]
    pub fed: bool,
}

/// The frame kinds that get an interface of their own in the capture of a port.
const fn kinds(technology: Technology) -> &'static [FrameKind] {
    match technology {
        Technology::Infiniband => &[FrameKind::Infiniband, FrameKind::InfinibandLink],
        Technology::Ethernet => &[FrameKind::Ethernet],
    }
}

/// Why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be created.
    #[error("cannot write the capture {file}")]
    Create {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The writing thread cannot be started.
    #[error("cannot start the writer of a capture")]
    Thread(#[source] std::io::Error),
}

#[derive(Debug)]
struct Tap {
    link_type: LinkType,
    statistics: InterfaceStatistics,
    unreported_drops: u64,
}

/// A running capture.
#[derive(Debug)]
pub struct Capture {
    file: PathBuf,
    snaplen: usize,
    /// By device, then by port, then by frame kind: index into `taps`.
    ports: Vec<Vec<Option<[Option<u32>; 3]>>>,
    taps: Vec<Tap>,
    spool: Spool,
    /// Room for the octets of a frame.
    room: BytesMut,
}

impl Capture {
    /// Creates the file of `plan` for the devices that are `nodes` of `wiring`. Ports of other nodes are
    /// ignored: another worker captures them.
    ///
    /// # Errors
    /// If the file or its writer cannot be created.
    pub fn create(
        plan: &CapturePlan,
        wiring: &Wiring,
        nodes: &[usize],
    ) -> Result<Capture, CaptureError> {
        let file = create(&plan.file)
            .map_err(|source| CaptureError::Create { file: plan.file.clone(), source })?;
        Capture::into(file, plan, wiring, nodes)
    }

    /// The same into an open `file`, which is empty.
    ///
    /// # Errors
    /// If its writer cannot be created.
    pub fn into(
        file: File,
        plan: &CapturePlan,
        wiring: &Wiring,
        nodes: &[usize],
    ) -> Result<Capture, CaptureError> {
        let spool = Spool::start(file, plan.when_full).map_err(CaptureError::Thread)?;
        Ok(Capture::begin(spool, plan, wiring, nodes))
    }

    fn begin(spool: Spool, plan: &CapturePlan, wiring: &Wiring, nodes: &[usize]) -> Capture {
        let sizes = nodes.iter().map(|node| usize::from(wiring.nodes[*node].ports));
        let mut capture = Capture {
            file: plan.file.clone(),
            snaplen: plan.snaplen.map_or(usize::MAX, |size| size.get() as usize),
            ports: sizes.map(|ports| vec![None; ports]).collect(),
            taps: Vec::new(),
            spool,
            room: BytesMut::new(),
        };
        pcapng::section(capture.spool.buffer(), &comment(plan));
        for port in &plan.ports {
            if let Some(device) = nodes.iter().position(|node| *node == port.at.node) {
                capture.open(device, port, wiring, plan.snaplen);
            }
        }
        capture
    }

    fn open(
        &mut self,
        device: usize,
        port: &CapturedPort,
        wiring: &Wiring,
        snaplen: Option<Bytes>,
    ) {
        let Some(place) = self.ports[device].get_mut(port.at.port.index()) else { return };
        let mut ids = [None; 3];
        let name = wiring.end_name(port.at);
        let peer = wiring.peer(port.at).map(|(_, end)| wiring.end_name(end));
        let peer =
            peer.or_else(|| Some(format!("interface {}", wiring.attached_at(port.at)?.interface)));
        let peer = peer.unwrap_or_else(|| "nothing".to_owned());
        for kind in kinds(port.technology) {
            let link_type = LinkType::of(*kind);
            let name = match kind {
                FrameKind::InfinibandLink if port.fed => format!("{name}/fed/link"),
                FrameKind::InfinibandLink => format!("{name}/link"),
                _ => name.clone(),
            };
            let description = format!("to {peer} at {}", port.rate);
            let snaplen = snaplen.map_or(0, |size| size.get() as u32 + link_type.overhead());
            let interface = Interface {
                link_type,
                snaplen,
                name: &name,
                description: &description,
                speed: port.rate.get(),
            };
            pcapng::interface(self.spool.buffer(), &interface);
            ids[kind_index(*kind)] = Some(self.taps.len() as u32);
            let statistics = InterfaceStatistics { name, seen: 0, dropped: 0 };
            self.taps.push(Tap { link_type, statistics, unreported_drops: 0 });
        }
        *place = Some(ids);
    }

    /// The totals of the capture, for another thread that watches it.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(self.spool.tally())
    }

    /// Ends the file at `now` with the counts of each interface.
    pub fn finish(self, now: Instant) -> CaptureStatistics {
        let Capture { file, taps, spool, .. } = self;
        let mut interfaces: Vec<_> = taps.into_iter().map(|tap| tap.statistics).collect();
        let ending = spool.finish(|lost| {
            let mut blocks = Vec::new();
            for (id, interface) in interfaces.iter_mut().enumerate() {
                interface.dropped += lost.get(id).copied().unwrap_or(0);
                let counts = (interface.seen, interface.dropped);
                pcapng::statistics(&mut blocks, id as u32, now.as_ps() / 1_000, counts);
            }
            blocks
        });
        CaptureStatistics { file, bytes: ending.bytes, error: ending.error, interfaces }
    }
}

impl FrameTap for Capture {
    fn wants(&self, device: usize, port: PortNumber) -> bool {
        matches!(self.ports.get(device).and_then(|ports| ports.get(port.index())), Some(Some(_)))
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        let Passage { device, port, direction, at, .. } = *passage;
        let place = self.ports.get(device).and_then(|ports| ports.get(port.index()));
        let id = place.copied().flatten().and_then(|ids| ids[kind_index(frame.kind)]);
        let Some(interface) = id else { return };
        let tap = &mut self.taps[interface as usize];
        tap.statistics.seen += 1;
        self.spool.tally().seen.fetch_add(1, Ordering::Relaxed);
        if !self.spool.has_room() {
            tap.statistics.dropped += 1;
            tap.unreported_drops += 1;
            self.spool.tally().dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let octets = frame.whole(&mut self.room);
        let kept = &octets[..octets.len().min(self.snaplen)];
        let packet = pcapng::Packet {
            interface,
            link_type: tap.link_type,
            at_ns: at.as_ps() / 1_000,
            octets: kept,
            wire_size: octets.len(),
            direction: Some(direction),
            dropped_before: std::mem::take(&mut tap.unreported_drops),
        };
        pcapng::packet(self.spool.buffer(), &packet);
    }

    fn flush(&mut self) {
        self.spool.flush();
    }

    fn finish(self: Box<Self>, now: Instant) -> CaptureStatistics {
        (*self).finish(now)
    }
}

/// Creates the file. A pipe must have a reader; the call does not wait for one.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    // The writer thread may block.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}

const fn kind_index(kind: FrameKind) -> usize {
    kind as usize - 1
}

fn comment(plan: &CapturePlan) -> String {
    let clock = match plan.dilation {
        Some(dilation) => format!("dilation {dilation}"),
        None => pcapng::VIRTUAL_CLOCK.to_owned(),
    };
    format!(
        "scenario {}, seed {}, {clock}; {}, the fabric epoch (start of the run) is 1970-01-01 00:00:00 UTC",
        plan.scenario,
        plan.seed,
        pcapng::FABRIC_TIME
    )
}

#[cfg(test)]
mod tests;
