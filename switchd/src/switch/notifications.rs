//! The switch's own messages: from a congestion point back to the source of the frame it sampled.

use super::Switch;
use crate::egress::notification_sender::SwitchNotification;
use crate::memory::queues::QueueId;
use crate::routing::RoutedPacket;
use crate::routing::router::Decision;
use proto::counters::DropReason;
use proto::events::{DeviceEvent, Direction, EventKind};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;
use proto::wire::classify::classify;

impl Switch {
    /// Sends the message about a frame of queue `id`.
    pub(super) fn send_notification(
        &mut self,
        id: QueueId,
        message: SwitchNotification,
        now: Instant,
    ) {
        let QueueId { input, output, lane } = id;
        let SwitchNotification { notification, frame, kind: note, flow, destination } = message;
        let kind = EventKind::Note { flow, note, dir: Direction::Tx };
        self.log.push(DeviceEvent { at: now, port: output, tc: lane.get(), kind });
        self.ports[output.index()].counters_mut(lane).notes_tx += 1;
        self.balance.injected += 1;
        match self.routing.on_local_notification(&notification, destination, (input, output), now) {
            Some(back) => self.store_notification(back, frame, now),
            None => self.route_notification(output, frame, now),
        }
    }

    /// Queues a message at `output`.
    fn store_notification(&mut self, output: PortNumber, frame: Frame, now: Instant) {
        self.dirty.insert(output);
        if let Err(frame) = self.egress[output.index()].store_notification(frame, now) {
            let headers = classify(frame.kind, &frame.octets).ok();
            let reason = DropReason::NotificationOverflow;
            self.drop_notification(output, frame, headers.as_ref(), reason, now);
        }
    }

    /// Routes a message that `from`, a port of this switch, has made.
    fn route_notification(&mut self, from: PortNumber, frame: Frame, now: Instant) {
        let Ok(headers) = classify(frame.kind, &frame.octets) else {
            return self.drop_notification(from, frame, None, DropReason::Malformed, now);
        };
        let passing = RoutedPacket { input: from, headers: &headers, octets: &frame.octets, now };
        let reason = match self.routing.route(passing) {
            Decision::Unicast(output) => return self.store_notification(output, frame, now),
            // A message concerns one station; flooding would deliver it to all.
            Decision::Multicast(_) => DropReason::NoRoute,
            Decision::Drop(reason) => reason,
        };
        self.drop_notification(from, frame, Some(&headers), reason, now);
    }

    fn drop_notification(
        &mut self,
        at: PortNumber,
        frame: Frame,
        headers: Option<&FrameHeaders>,
        reason: DropReason,
        now: Instant,
    ) {
        let lane = headers.map_or(VirtualLane::ZERO, |headers| headers.lane);
        let size = frame.line_size();
        self.ports[at.index()].count_drop(reason, size, lane, now, &mut self.log);
        self.pool.recycle(frame);
    }
}
