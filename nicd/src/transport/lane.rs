//! One data lane of the adapter: its control frames, and the octets that wait for it.

use crate::transport::requester::Withdrawn;
use crate::transport::responder::AckPacket;
use crate::wire::WireFormat;
use proto::counters::Gauge;
use proto::frame::FrameClass;
use proto::link::port::Head;
use proto::units::Instant;
use proto::wire::infiniband::Aeth;
use std::collections::VecDeque;

/// One data lane's control frames and account.
#[derive(Debug, Default)]
pub struct Lane {
    pub control: VecDeque<ControlFrame>,
    /// The queue pair whose frame was head_queue_pair last.
    pub head_queue_pair: u32,
    pub source_queue: Gauge,
    pub notes_tx: u64,
}

impl Lane {
    /// A message of so many octets waits from `at` on.
    pub fn on_post(&mut self, size: u32, at: Instant) {
        self.source_queue.set(self.source_queue.value + u64::from(size), at);
    }

    /// Messages wait no longer.
    pub fn take_back(&mut self, withdrawn: Withdrawn, now: Instant) {
        self.source_queue.set(self.source_queue.value - withdrawn.octets, now);
    }
}

/// A frame that answers or notifies; it leaves before data and is never paced.
#[derive(Clone, Copy, Debug)]
pub struct ControlFrame {
    pub queue_pair: u32,
    /// Since when it could leave.
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
