//! What follows a congestion point's word: a message goes back to the source of what it has sampled.

use super::Switch;
use crate::egress::Placed;
use crate::routing::Passing;
use crate::routing::router::Decision;
use proto::congestion::Notification;
use proto::counters::DropReason;
use proto::events::{DeviceEvent, Direction, EventKind};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;
use proto::wire::classify::classify;

/// Which frame of a queue has been judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The one stored last.
    Tail,
    /// The first.
    Head,
}

impl Switch {
    /// Sends what the congestion point of a queue has to say about a frame in it.
    #[inline]
    pub(super) fn answer(&mut self, place: Placed, judged: Judged, now: Instant) {
        if let Some(notification) = self.egress[place.output.index()].take_notification() {
            self.answer_queued(place, judged, &notification, now);
        }
    }

    fn answer_queued(
        &mut self,
        place: Placed,
        judged: Judged,
        notification: &Notification,
        now: Instant,
    ) {
        let Placed { input, output, lane } = place;
        let stored = match judged {
            Judged::Tail => self.queues.tail(input, output, lane),
            Judged::Head => self.queues.head(input, output, lane),
        };
        let Some(stored) = stored else { return };
        let (octets, headers) = (&stored.frame.octets, stored.headers);
        let egress = &mut self.egress[output.index()];
        let message = egress.message(notification, octets, &headers, lane, &mut self.pool);
        if let Some((message, note)) = message {
            let flow = crate::egress::marking::flow_of(&headers);
            let kind = EventKind::Note { flow, note, dir: Direction::Tx };
            self.log.push(DeviceEvent { at: now, port: output, tc: lane.get(), kind });
            self.ports[output.index()].counters_mut(lane).notes_tx += 1;
            let (to, ways) = (headers.destination, (input, output));
            match self.routing.on_own(notification, to, ways, now) {
                Some(back) => self.send_own_by(back, message, now),
                None => self.send_own(output, message, now),
            }
        }
    }

    /// Sends a frame of this switch's own by `output`.
    fn send_own_by(&mut self, output: PortNumber, frame: Frame, now: Instant) {
        self.balance.injected += 1;
        self.store_own(output, frame, now);
    }

    fn store_own(&mut self, output: PortNumber, frame: Frame, now: Instant) {
        self.stirred.insert(output);
        if let Err(frame) = self.egress[output.index()].store_notice(frame, now) {
            let headers = classify(frame.kind, &frame.octets).ok();
            let reason = DropReason::NotificationOverflow;
            self.lose_own(output, frame, headers.as_ref(), reason, now);
        }
    }

    /// Sends a frame that `from`, a port of this switch, has made.
    fn send_own(&mut self, from: PortNumber, frame: Frame, now: Instant) {
        self.balance.injected += 1;
        let Ok(headers) = classify(frame.kind, &frame.octets) else {
            return self.lose_own(from, frame, None, DropReason::Malformed, now);
        };
        let passing = Passing { input: from, headers: &headers, octets: &frame.octets, now };
        let reason = match self.routing.route(passing) {
            Decision::Unicast(output) => return self.store_own(output, frame, now),
            // To flood a message would tell everybody what concerns one.
            Decision::Multicast(_) => DropReason::NoRoute,
            Decision::Drop(reason) => reason,
        };
        self.lose_own(from, frame, Some(&headers), reason, now);
    }

    fn lose_own(
        &mut self,
        at: PortNumber,
        frame: Frame,
        headers: Option<&FrameHeaders>,
        reason: DropReason,
        now: Instant,
    ) {
        let tc = headers.map_or(VirtualLane::ZERO.get(), |headers| headers.lane);
        let size = frame.line_size();
        self.ports[at.index()].count_drop(reason, size, tc, now, &mut self.log);
        self.pool.recycle(frame);
    }
}
