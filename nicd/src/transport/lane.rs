//! A data lane of the adapter: its control frames, and the octets that wait to be sent on it.

use crate::transport::requester::{Packet, Withdrawn};
use crate::transport::responder::AckPacket;
use crate::wire::WireFormat;
use proto::counters::Gauge;
use proto::frame::FrameClass;
use proto::link::port::Head;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::Aeth;
use std::collections::VecDeque;

/// A data lane.
#[derive(Debug, Default)]
pub struct Lane {
    /// Acknowledgements and notifications to send, in order.
    pub control: VecDeque<ControlFrame>,
    /// Octets of posted messages that have not been sent.
    pub source_queue: Gauge,
    /// Notifications sent: CNPs, and acknowledgements with BECN.
    pub notes_tx: u64,
    /// Time in which the line was free and the next packet waited for nothing but its reaction point.
    pub congested: Duration,
}

impl Lane {
    /// A message of `size` octets waits from `at` on.
    pub fn on_post(&mut self, size: u32, at: Instant) {
        self.source_queue.set(self.source_queue.value + u64::from(size), at);
    }

    /// Messages were withdrawn at `now`.
    pub fn withdraw(&mut self, withdrawn: Withdrawn, now: Instant) {
        self.source_queue.set(self.source_queue.value - withdrawn.octets, now);
    }
}

/// An acknowledgement or notification to send. It leaves before data and is not paced.
#[derive(Clone, Copy, Debug)]
pub struct ControlFrame {
    /// Index of the queue pair.
    pub queue_pair: u32,
    /// When the frame became ready.
    pub ready: Instant,
    /// The BECN bit in its BTH.
    pub becn: bool,
    /// What it carries.
    pub content: ControlContent,
}

/// The content of a control frame.
#[derive(Clone, Copy, Debug)]
pub enum ControlContent {
    /// An acknowledgement.
    Acknowledgement(AckPacket),
    /// A CNP with the payload that its scheme wrote.
    Notification([u8; 16]),
}

/// The next frame of a lane, as the adapter offers it to its port.
#[derive(Debug)]
pub enum Offer {
    /// The first control frame of the lane.
    Control(ControlFrame),
    /// The next packet of a queue pair.
    Data { queue_pair: u32, packet: Packet },
}

impl ControlFrame {
    /// Size and class, for the port to arbitrate.
    pub fn head(&self, wire: &WireFormat) -> Head<Offer> {
        let (size, class) = match &self.content {
            ControlContent::Acknowledgement(_) => (wire.size(Aeth::LEN, 0), FrameClass::Ack),
            ControlContent::Notification(body) => {
                (wire.size(0, wire.notification_body(body).len()), FrameClass::Notification)
            }
        };
        Head { size, ready: self.ready, class, offer: Offer::Control(*self) }
    }
}
