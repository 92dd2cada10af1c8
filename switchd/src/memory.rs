//! The switch's memory: where frames wait, and which input an output serves next.
//!
//! A memory model decides how frames are kept and in what order outputs find them. Whether a frame
//! may come in at all is settled before: credits do it for InfiniBand. A further model is one file
//! in `memory/` and one row in [`models`].

use proto::frame::{Frame, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Bytes, Instant};

pub mod models;
pub mod per_input;

/// A frame that waits in the switch.
#[derive(Debug)]
pub struct Stored {
    /// The frame.
    pub frame: Frame,
    /// What its headers say; a mark decided while it waits is here before it is in the octets.
    pub headers: FrameHeaders,
    /// The port it came in by.
    pub input: PortNumber,
    /// The lane whose buffer it occupies there.
    pub input_lane: VirtualLane,
    /// When its last bit came in.
    pub arrived: Instant,
    /// Copies of one multicast packet share one place in the input buffer under this key.
    pub group: Option<u32>,
}

/// What an output may know about the frame it would send next.
#[derive(Clone, Copy, Debug)]
pub struct NextOut {
    /// Octets on the line.
    pub size: Bytes,
    /// When it could leave at the earliest.
    pub ready: Instant,
    /// What its headers say.
    pub headers: FrameHeaders,
}

/// How much a memory holds, where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Octets waiting for or leaving by an output and lane, as buffered.
    pub output: Bytes,
    /// Octets in one input's buffer, as buffered.
    pub input: Bytes,
}

/// A memory model.
pub trait Memory: Send {
    /// Keeps a frame for `output` and `lane`; true if it is the first of its queue.
    fn store(&mut self, packet: Stored, output: PortNumber, lane: VirtualLane) -> bool;

    /// What `output` would send next on `lane` at `now`.
    fn next_out(&self, output: PortNumber, lane: VirtualLane, now: Instant) -> Option<NextOut>;

    /// Hands over that frame; its last bit leaves at `end`. Its room stays taken until
    /// [`Memory::finished`].
    fn take(&mut self, output: PortNumber, lane: VirtualLane, now: Instant, end: Instant)
    -> Stored;

    /// The last bit of a frame of `size` taken from `input` has left; the frame that is now first
    /// of its queue, if any.
    fn finished(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
        size: Bytes,
    ) -> Option<&mut Stored>;

    /// The first frame of one input's queue for `output` and `lane`.
    fn head(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored>;

    /// The frame last stored by `input` for `output` and `lane`.
    fn tail(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored>;

    /// Octets standing at `output` and `lane`, and those of `input` among all outputs.
    fn occupancy(&self, input: PortNumber, output: PortNumber, lane: VirtualLane) -> Occupancy;

    /// Whether anything waits for `output`.
    fn is_waiting(&self, output: PortNumber) -> bool;

    /// Frames kept, those already handed over not counted.
    fn frames(&self) -> u64;

    /// An output that starts or ends a frame may free others to start theirs.
    fn couples_outputs(&self) -> bool;
}
