//! Frame taps: what a run shows frames to while it lasts, for example a capture file.

use crate::observer::Passage;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::path::PathBuf;

/// A consumer of the frames that pass some ports. `device` is an index into the devices of one worker.
pub trait FrameTap: Debug + Send {
    /// Whether this port is tapped.
    fn wants(&self, device: usize, port: PortNumber) -> bool;

    /// A frame passed a port. Frames of ports that are not tapped are ignored.
    fn frame(&mut self, frame: &Frame, passage: &Passage);

    /// Hands everything seen so far to the writer, so that a reader of the file finds it there.
    fn flush(&mut self);

    /// Ends the tap at `now` and gives its account.
    fn finish(self: Box<Self>, now: Instant) -> CaptureStatistics;
}

/// The account of a finished capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatistics {
    /// The file.
    pub file: PathBuf,
    /// Octets written to it.
    pub bytes: u64,
    /// The error that kept the file from being written to its end, if there was one.
    pub error: Option<String>,
    /// By interface, in the order of the file.
    pub interfaces: Vec<InterfaceStatistics>,
}

impl CaptureStatistics {
    /// Frames that passed the captured ports.
    pub fn seen(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.seen).sum()
    }

    /// Frames among them that are not in the file.
    pub fn dropped(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.dropped).sum()
    }

    /// Whether the file holds every frame that passed the captured ports.
    pub fn is_whole(&self) -> bool {
        self.error.is_none() && self.dropped() == 0
    }
}

/// The counts of one interface of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatistics {
    /// `node:port`, or `node:port/link` for link packets.
    pub name: String,
    /// Frames that passed the port.
    pub seen: u64,
    /// Frames among them that are not in the file: the spool was full, or the file could not be written.
    pub dropped: u64,
}
