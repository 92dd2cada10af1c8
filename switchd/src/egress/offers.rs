//! The frames that an output offers to its port: management, own messages, and the queues of all inputs.

use super::notification_queue::NotificationQueue;
use crate::memory::queues::{QueueId, Queues};
use proto::frame::{Frame, FrameClass};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::port::{Head, LaneSource};
use proto::units::Instant;
use std::collections::VecDeque;

/// Where an offered frame waits.
#[derive(Debug)]
pub(super) enum Offer {
    /// First of the management queue.
    Management,
    /// First of the switch's own messages.
    Notification,
    /// First of an input's queue.
    Queued(QueueId),
}

/// All that one output could send.
pub(super) struct Offers<'a> {
    pub port: PortNumber,
    pub queues: &'a Queues,
    pub management: &'a VecDeque<Frame>,
    pub notifications: &'a NotificationQueue,
    /// The service rate permits data from this instant on.
    pub open_at: Instant,
    /// The service rate held a data frame back.
    pub is_deferred: bool,
}

impl LaneSource for Offers<'_> {
    type Offer = Offer;

    fn lanes(&self) -> u16 {
        let management = u16::from(!self.management.is_empty()) << VirtualLane::MANAGEMENT.index();
        management | self.notifications.lanes() | self.queues.waiting(self.port)
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Offer>> {
        if lane == VirtualLane::MANAGEMENT {
            let size = self.management.front()?.line_size();
            let class = FrameClass::Management;
            return Some(Head { size, ready: now, class, offer: Offer::Management });
        }
        if let Some((ready, frame)) = self.notifications.first(lane) {
            let (size, class) = (frame.line_size(), FrameClass::Notification);
            return Some(Head { size, ready, class, offer: Offer::Notification });
        }
        let next = self.queues.next_out(self.port, lane, now)?;
        let mut ready = next.ready;
        if self.open_at > Instant::ZERO && next.class == FrameClass::Data {
            if self.open_at > now {
                self.is_deferred = true;
                return None;
            }
            ready = ready.max(self.open_at);
        }
        let queue = QueueId { input: next.input, output: self.port, lane };
        Some(Head { size: next.size, ready, class: next.class, offer: Offer::Queued(queue) })
    }
}
