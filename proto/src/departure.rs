//! What a device puts on a line, and the step in which it does.

use crate::frame::Frame;
use crate::ids::PortNumber;
use crate::units::Instant;

/// A frame that a device has put on a line.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The port it leaves by.
    pub port: PortNumber,
    /// The frame.
    pub frame: Frame,
    /// When its last bit leaves: its time on the line after [`Step::since`], or later.
    pub at: Instant,
}

/// The step of a device: the present time, and the input that it handles.
///
/// Everything that a device sends follows from its inputs in their order, so no frame starts before the latest one. A
/// permission that a device gets now begins now; a line cannot have carried a frame in the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The present time.
    pub now: Instant,
    /// The instant of the input: `now`, or the earlier stamp of a frame that the driver handles late.
    pub since: Instant,
}

impl Step {
    /// A step at `now`: a timer, a change, or a frame that is handled in time.
    #[inline]
    pub fn at(now: Instant) -> Step {
        Step { now, since: now }
    }

    /// A step at `now` that handles a frame which arrived at `arrived`.
    #[inline]
    pub fn late(arrived: Instant, now: Instant) -> Step {
        Step { now, since: arrived.min(now) }
    }

    /// The step that a call at `now` belongs to: this one, or a new one.
    #[inline]
    pub fn resume(self, now: Instant) -> Step {
        if self.now == now { self } else { Step::at(now) }
    }
}
