//! A packet on its way through the switch, and the buffer it occupies.

use proto::frame::{Frame, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Bytes, Instant};

/// A packet between its input port and its output queue.
#[derive(Clone)]
pub(super) struct Packet {
    pub frame: Frame,
    /// The headers of the frame, with the service level that the CN domain edge gave it.
    pub headers: FrameHeaders,
    /// The port that received it.
    pub input: PortNumber,
    /// The lane on which it arrived.
    pub lane: VirtualLane,
    pub arrived: Instant,
    pub now: Instant,
}

/// Buffer that a packet occupies, or that all copies of it share.
#[derive(Clone, Copy)]
pub(super) struct Occupied {
    pub input: PortNumber,
    pub lane: VirtualLane,
    pub size: Bytes,
    /// The key that all copies of one packet share.
    pub group: Option<u32>,
}
