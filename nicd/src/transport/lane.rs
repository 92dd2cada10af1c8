//! A data lane of the adapter: its control frames, and the octets that wait to be sent on it.

use crate::transport::requester::Withdrawn;
use crate::transport::responder::AckPacket;
use crate::wire::WireFormat;
use proto::counters::Gauge;
use proto::frame::FrameClass;
use proto::link::port::Head;
use proto::units::Instant;
use proto::wire::infiniband::Aeth;
use std::collections::VecDeque;

/// A data lane.
#[derive(Debug, Default)]
pub struct Lane {
    pub control: VecDeque<ControlFrame>,
    /// The queue pair whose frame `head` returned last.
    pub head_queue_pair: u32,
    pub source_queue: Gauge,
    pub notes_tx: u64,
}

impl Lane {
    /// A message of `size` octets waits from `at` on.
    pub fn on_post(&mut self, size: u32, at: Instant) {
        self.source_queue.set(self.source_queue.value + u64::from(size), at);
    }

    /// Messages were withdrawn at `now`.
    pub fn take_back(&mut self, withdrawn: Withdrawn, now: Instant) {
        self.source_queue.set(self.source_queue.value - withdrawn.octets, now);
    }
}

/// An acknowledgement or notification to send. It leaves before data and is not paced.
#[derive(Clone, Copy, Debug)]
pub struct ControlFrame {
    pub queue_pair: u32,
    /// When the frame became ready.
    pub ready: Instant,
    pub becn: bool,
    pub content: ControlContent,
}

#[derive(Clone, Copy, Debug)]
pub enum ControlContent {
    Acknowledgement(AckPacket),
    Notification([u8; 16]),
}

impl ControlFrame {
    pub fn head(&self, wire: &WireFormat) -> Head {
        let (size, class) = match &self.content {
            ControlContent::Acknowledgement(_) => (wire.size(Aeth::LEN, 0), FrameClass::Ack),
            ControlContent::Notification(body) => {
                (wire.size(0, wire.notification_body(body).len()), FrameClass::Notification)
            }
        };
        Head { size, ready: self.ready, class }
    }
}
