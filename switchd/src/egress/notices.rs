//! Messages of the switch itself that wait for an output: few, ahead of what passes through on their
//! lane, and paused with it.

use proto::frame::{Frame, FrameClass};
use proto::ids::VirtualLane;
use proto::link::port::Head;
use proto::units::Instant;
use std::collections::VecDeque;

/// So many wait at most: a congestion point tells once in tens of frames, so more wait only where the
/// output is paused, and then they are stale.
const DEPTH: usize = 64;

/// The messages of one output.
#[derive(Debug, Default)]
pub struct Notices {
    lane: VirtualLane,
    waiting: VecDeque<(Instant, Frame)>,
}

impl Notices {
    /// None, for messages that go on `lane`.
    pub fn new(lane: VirtualLane) -> Notices {
        Notices { lane, waiting: VecDeque::new() }
    }

    /// Keeps a message made at `now`; gives it back if there is no room.
    pub fn store(&mut self, frame: Frame, now: Instant) -> Result<(), Frame> {
        if self.waiting.len() >= DEPTH {
            return Err(frame);
        }
        self.waiting.push_back((now, frame));
        Ok(())
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The lane on which messages wait, as a bit.
    #[inline]
    pub fn lanes(&self) -> u16 {
        u16::from(!self.waiting.is_empty()) << self.lane.index()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The first message, if it goes on `lane`.
    #[inline]
    pub fn head(&self, lane: VirtualLane) -> Option<Head> {
        let (ready, frame) = self.waiting.front().filter(|_| lane == self.lane)?;
        let class = FrameClass::Notification;
        Some(Head { size: frame.line_size(), ready: *ready, class })
    }

    /// Hands the first message over, if it goes on `lane`.
    pub fn take(&mut self, lane: VirtualLane) -> Option<Frame> {
        self.head(lane)?;
        self.waiting.pop_front().map(|(_, frame)| frame)
    }
}
