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

/// The counts of one interface of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatistics {
    /// `node:port`, or `node:port/link` for link packets.
    pub name: String,
    /// Frames that passed the port.
    pub seen: u64,
    /// Frames among them that the capture dropped because its spool was full.
    pub dropped: u64,
}
