//! The switch's own messages at one output. They leave ahead of forwarded frames of their lane, and pause
//! with it.

use proto::frame::Frame;
use proto::ids::VirtualLane;
use proto::units::Instant;
use std::collections::VecDeque;

/// The longest queue. A congestion point notifies once in tens of frames, so a longer queue forms only at
/// a paused output, and its messages would be stale.
const DEPTH: usize = 64;

/// The messages that wait at one output.
#[derive(Debug, Default)]
pub struct NotificationQueue {
    lane: VirtualLane,
    waiting: VecDeque<(Instant, Frame)>,
}

impl NotificationQueue {
    /// An empty queue of messages on `lane`.
    pub fn new(lane: VirtualLane) -> NotificationQueue {
        NotificationQueue { lane, waiting: VecDeque::new() }
    }

    /// Queues a message made at `now`.
    ///
    /// # Errors
    /// The frame, if the queue is full.
    pub fn store(&mut self, frame: Frame, now: Instant) -> Result<(), Frame> {
        if self.waiting.len() >= DEPTH {
            return Err(frame);
        }
        self.waiting.push_back((now, frame));
        Ok(())
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The lane of the messages as a bit set; empty if no message waits.
    #[inline]
    pub fn lanes(&self) -> u16 {
        u16::from(!self.waiting.is_empty()) << self.lane.index()
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The first message and when it was made, if its lane is `lane`.
    #[inline]
    pub fn first(&self, lane: VirtualLane) -> Option<(Instant, &Frame)> {
        let (made, frame) = self.waiting.front().filter(|_| lane == self.lane)?;
        Some((*made, frame))
    }

    /// Removes the first message.
    pub fn pop(&mut self) -> Option<Frame> {
        self.waiting.pop_front().map(|(_, frame)| frame)
    }
}
