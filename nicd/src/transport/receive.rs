//! Reception: which queue pair, reaction point or notification point each frame reaches.

use crate::config::Transport as Service;
use crate::counters::Total;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::message::Stamp;
use crate::transport::requester::{AckOutcome, RequesterAction};
use crate::transport::responder::{AckAction, Request, RequestOutcome, Verb};
use crate::transport::transmit::QUEUE_KEY;
use crate::wire::packet::{FrameContent, ReceivedPacket};
use management::partitions::key_of;
use proto::congestion::{Effect, Notification, TransportNote, Travel};
use proto::counters::{DropReason, LatencyReading};
use proto::events::{Direction, EventKind, NoteKind};
use proto::frame::{Frame, FrameClass, FrameHeaders};
use proto::ids::{Ecn, Lid};
use proto::units::Instant;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use proto::wire::infiniband::{self, Bth, NakCode, Syndrome};

/// A frame that the port has accepted.
pub struct ReceivedFrame<'a> {
    /// Its octets.
    pub frame: &'a Frame,
    /// Header fields, as the port classified them.
    pub headers: &'a FrameHeaders,
    /// When its last bit arrived, in fabric time; not after `now`.
    pub arrived: Instant,
}

/// What the adapter did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The frame has reached its end.
    Delivered,
    /// A copy waits in the reorder buffer.
    Held,
}

/// The disposition of a frame, or the reason why it was dropped.
pub type Outcome = Result<Disposition, DropReason>;

/// A transport packet whose opcode, P_Key and destination queue pair are valid.
/// Source: IBTA Vol 1, 9.6 (packet header validation).
pub(super) struct AdmittedPacket<'a> {
    pub(super) received: &'a ReceivedFrame<'a>,
    packet: &'a infiniband::Transport<'a>,
    pub(super) bth: Bth,
    row: &'static OpcodeRow,
    class: u8,
    peer: Lid,
}

impl ChannelAdapter {
    /// Handles a frame. `Held` means that the reorder buffer keeps a copy.
    ///
    /// # Errors
    /// The drop reason; the port counts it.
    pub fn receive(&mut self, received: &ReceivedFrame<'_>, now: Instant) -> Outcome {
        let outcome = self.dispatch(received, now);
        self.is_released_request = false;
        self.balance.delivered += u64::from(outcome == Ok(Disposition::Delivered));
        outcome
    }

    fn dispatch(&mut self, received: &ReceivedFrame<'_>, now: Instant) -> Outcome {
        let ReceivedFrame { frame, headers, .. } = *received;
        if headers.class == FrameClass::Management {
            return Err(DropReason::Management);
        }
        if !headers.multicast && !self.wire.is_own(headers.destination.number()) {
            return Err(DropReason::NotForUs);
        }
        if frame.is_unchecked() {
            self.wire.verify(&frame.octets)?;
        }
        self.totals.count_if(headers.fecn, Total::RcvFecn);
        self.totals.count_if(headers.becn, Total::RcvBecn);
        if headers.multicast {
            if key_of(&frame.octets).is_some_and(|key| self.wire.matching_key(key).is_none()) {
                return Err(DropReason::PartitionKey);
            }
            if self.config.management.is_some() {
                return self.on_multicast(received);
            }
            // Without subnet administration no port joins a group. The frame still counts as delivered, so that the
            // conservation sum closes.
            self.totals.count(Total::MulticastReceived);
            return Ok(Disposition::Delivered);
        }
        match self.wire.parse_frame(frame) {
            Ok(FrameContent::Packet(packet)) => self.on_packet(&packet, received, now),
            Ok(FrameContent::Test(at)) => self.on_test_frame(frame, at, now),
            Ok(FrameContent::Cnm { at, flow_id }) => self.on_cnm(&frame.octets[at..], flow_id, now),
            Ok(FrameContent::Bcn(at)) => self.on_bcn(&frame.octets[at..], now),
            Err(reason) => Err(self.count_refused(headers, reason)),
        }
    }

    /// Counts the packet as an ignored CNP if it is one; returns `reason`.
    fn count_refused(&mut self, headers: &FrameHeaders, reason: DropReason) -> DropReason {
        let is_notification = headers.class == FrameClass::Notification;
        self.totals.count_if(is_notification, Total::CnpIgnored);
        reason
    }

    fn on_packet(
        &mut self,
        packet: &ReceivedPacket<'_>,
        received: &ReceivedFrame<'_>,
        now: Instant,
    ) -> Outcome {
        let packet = self.admit(packet, received);
        let packet = packet.map_err(|reason| self.count_refused(received.headers, reason))?;
        let sender = (packet.class, packet.peer);
        self.learn_path(sender, received.headers, packet.bth.partition_key, now);
        match packet.row.operation {
            Operation::Congestion => self.on_notification_packet(&packet, now),
            Operation::Acknowledge => self.on_acknowledgement(&packet, now),
            Operation::ReadResponse | Operation::AtomicAcknowledge => Err(DropReason::Opcode),
            _ => self.on_ordered_request(&packet, now),
        }
    }

    /// Handles a request, or holds it if it is ahead of its turn and resequencing is configured.
    fn on_ordered_request(&mut self, packet: &AdmittedPacket<'_>, now: Instant) -> Outcome {
        if self.config.wire.resequence().is_none() {
            return self.on_request(packet, now);
        }
        let index = self.queue_pair(packet.class, packet.peer, now);
        self.open_receive_queue(index);
        if self.hold_request(index, packet, now) {
            return Ok(Disposition::Held);
        }
        let before = self.queue_pairs[index as usize].receive_queue_mut().responder.expected();
        let outcome = self.on_request(packet, now);
        self.release_requests(index, before, now);
        outcome
    }

    /// Validates the headers that do not depend on queue pair state, and finds class and peer.
    fn admit<'a>(
        &self,
        packet: &'a ReceivedPacket<'a>,
        received: &'a ReceivedFrame<'a>,
    ) -> Result<AdmittedPacket<'a>, DropReason> {
        let (peer, packet) = (packet.from, &packet.transport);
        let bth = packet.bth;
        let row = bth.opcode.row().ok_or(DropReason::Opcode)?;
        if self.wire.matching_key(bth.partition_key).is_none() {
            return Err(DropReason::PartitionKey);
        }
        let (class, planned) = bth.destination.plan().ok_or(DropReason::QueuePair)?;
        if planned != peer || !self.connections.admits(class, peer) {
            return Err(DropReason::QueuePair);
        }
        let fits = match self.config.classes[usize::from(class)].transport {
            // InfiniBand and RoCEv2 use different CNP opcodes.
            _ if row.transport == Transport::Cnp => bth.opcode == self.wire.notification(),
            Service::Rc => row.transport == Transport::Rc,
            Service::Uc => row.transport == Transport::Uc,
            Service::Ud => row.transport == Transport::Ud,
            Service::Test => false,
        };
        if !fits {
            return Err(DropReason::Opcode);
        }
        Ok(AdmittedPacket { received, packet, bth, row, class, peer })
    }

    fn on_request(&mut self, packet: &AdmittedPacket<'_>, now: Instant) -> Outcome {
        let index = self.queue_pair(packet.class, packet.peer, now);
        let pair = &mut self.queue_pairs[index as usize];
        if let Some(deth) = &packet.packet.extended.deth {
            if deth.queue_key != QUEUE_KEY {
                return Err(DropReason::Key);
            }
            if deth.source != pair.remote {
                return Err(DropReason::QueuePair);
            }
        }
        let request = Request {
            psn: packet.bth.psn,
            verb: match packet.row.operation {
                _ if packet.packet.extended.ieth.is_some() => Verb::Unsupported,
                Operation::Send => Verb::Send,
                Operation::Write => Verb::Write,
                _ => Verb::Unsupported,
            },
            position: packet.row.position,
            reth: packet.packet.extended.reth,
            length: packet.received.headers.payload.get(),
            payload: packet.packet.payload,
        };
        self.open_receive_queue(index);
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        queue.has_received = true;
        let ReceivedFrame { headers, arrived, .. } = *packet.received;
        let congested = headers.ecn == Ecn::CongestionExperienced;
        queue.received.marked += u64::from(headers.fecn || congested);
        self.totals.count_if(headers.fecn, Total::EcnMarked);
        self.totals.count_if(congested, Total::EcnMarkedRoce);
        let notification = queue.notification_point.on_receive(headers, headers.size, now);
        let due = queue.notification_point.poll_timeout().unwrap_or(Instant::NEVER);
        self.out.timers.set(&mut queue.notification_timer, Timer::NotificationPoint(index), due);
        let was_open = !queue.responder.has_failed();
        let outcome = queue.responder.on_request(&request, now);
        let fails = was_open && queue.responder.has_failed();
        if let Some(notification) = notification {
            let ack_due = outcome.ack != AckAction::None;
            self.send_notification(index, &notification, ack_due, arrived);
        }
        self.ack(index, outcome.ack, arrived, now);
        if fails {
            self.give_up(index, now);
            self.reschedule(index, now, now);
        }
        let result = self.account_reception(index, &outcome, request.length, arrived);
        self.note_progress(index);
        result
    }

    fn ack(&mut self, index: u32, ack: AckAction, arrived: Instant, now: Instant) {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        match ack {
            AckAction::None => {}
            AckAction::Coalesce if queue.ack_delay.is_set() => {}
            AckAction::Coalesce => {
                let due = now + self.config.ack_delay;
                self.out.timers.set(&mut queue.ack_delay, Timer::Acknowledge(index), due);
            }
            AckAction::Send(ack_packet) => {
                queue.ack_delay.clear();
                self.send_acknowledgement(index, ack_packet, arrived);
            }
        }
    }

    fn account_reception(
        &mut self,
        index: u32,
        outcome: &RequestOutcome,
        payload: u64,
        arrived: Instant,
    ) -> Outcome {
        let received = &mut self.queue_pairs[index as usize].receive_queue_mut().received;
        received.reordered += u64::from(outcome.out_of_order);
        let delivery = outcome.result.inspect_err(|reason| match reason {
            DropReason::OutOfSequence => self.totals.count(Total::OutOfSequence),
            DropReason::Duplicate => self.totals.count(Total::DuplicateRequest),
            DropReason::ReceiverNotReady => self.totals.count(Total::OutOfBuffer),
            _ => {}
        })?;
        received.delivered_bytes += payload;
        if let Some(delivery) = delivery {
            received.messages += 1;
            received.last = Some(arrived);
            self.count_latency(delivery.stamp, arrived);
        }
        Ok(Disposition::Delivered)
    }

    /// Counts the latency of a message that arrived as a whole and begins with this stamp.
    pub(super) fn count_latency(&mut self, stamp: Option<Stamp>, arrived: Instant) {
        let Some(Stamp { item, posted, .. }) = stamp else { return };
        let new = || LatencyReading { item, ..LatencyReading::default() };
        self.latencies.entry(item).or_insert_with(new).count(arrived.since(posted));
    }

    fn on_acknowledgement(&mut self, packet: &AdmittedPacket<'_>, now: Instant) -> Outcome {
        let index =
            self.connections.queue_pair(packet.class, packet.peer).ok_or(DropReason::QueuePair)?;
        let aeth = packet.packet.extended.aeth.ok_or(DropReason::Opcode)?;
        if packet.bth.becn {
            self.totals.count(Total::BecnHandled);
            let notification = Notification::becn(Travel::AckOrCnp);
            let outcome = self.notify_reaction_point(index, &notification, NoteKind::Becn, now);
            self.totals.count_if(outcome == Effect::Refused, Total::CnpIgnored);
        }
        match aeth.syndrome {
            Syndrome::Rnr { .. } => self.totals.count(Total::RnrNak),
            Syndrome::Nak(NakCode::PsnSequence) => self.totals.count(Total::PacketSequenceError),
            _ => {}
        }
        let pair = &mut self.queue_pairs[index as usize];
        let outcome = pair.requester.on_acknowledge(packet.bth.psn, aeth.syndrome);
        self.on_outcome(index, &outcome, now);
        Ok(Disposition::Delivered)
    }

    fn on_outcome(&mut self, index: u32, outcome: &AckOutcome, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.completed += outcome.completed;
        self.note_progress(index);
        let pair = &mut self.queue_pairs[index as usize];
        if !pair.requester.awaits_acknowledgement() {
            pair.retransmit.clear();
        } else if outcome.progress {
            let due = now + self.config.ack_timeout;
            self.out.timers.set(&mut pair.retransmit, Timer::Retransmit(index), due);
        }
        if outcome.progress || outcome.action != RequesterAction::Continue {
            self.apply_action(index, outcome.action, now);
        }
    }

    fn on_notification_packet(&mut self, packet: &AdmittedPacket<'_>, now: Instant) -> Outcome {
        let mut body = [0; 16];
        let payload = packet.packet.payload;
        match payload.len() {
            0 => {}
            16 => body.copy_from_slice(payload),
            _ => {
                self.totals.count(Total::CnpIgnored);
                return Err(DropReason::PacketLength);
            }
        }
        let Some(index) = self.connections.queue_pair(packet.class, packet.peer) else {
            self.totals.count(Total::CnpIgnored);
            return Err(DropReason::QueuePair);
        };
        if !packet.bth.becn && body == [0; 16] {
            self.totals.count(Total::CnpIgnored);
            return Ok(Disposition::Delivered);
        }
        self.totals.count(Total::CnpHandled);
        let note = TransportNote { travel: Travel::Cnp, becn: packet.bth.becn, body };
        let outcome = self.notify_reaction_point(index, &note.into(), NoteKind::Cnp, now);
        self.totals.count_if(outcome == Effect::Refused, Total::CnpIgnored);
        Ok(Disposition::Delivered)
    }

    /// Notifies the reaction point of the flow that this queue pair sends. Returns how it took the
    /// notification.
    pub(super) fn notify_reaction_point(
        &mut self,
        index: u32,
        notification: &Notification,
        note: NoteKind,
        now: Instant,
    ) -> Effect {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.notifications += 1;
        let (flow, lane) = (pair.tx_flow, pair.lane);
        let (qp, sl) = (pair.number, pair.config.service_level);
        let Some(group) = pair.group else { return Effect::Refused };
        self.out.log(lane, now, EventKind::Note { flow, note, dir: Direction::Rx });
        let reaction = self.pacer.on_notification(group, flow, notification, now, &mut self.out);
        if let Some(ccti) = reaction.triggered {
            self.totals.count(Total::Trigger);
            self.out.log(lane, now, EventKind::Trigger { flow, qp, sl, ccti });
        }
        self.scheduler.set_permission(group, reaction.permission, now);
        self.report_empty_queue(group, now);
        reaction.outcome
    }

    /// Notifies the reaction point of `group` when none of its queue pairs has a frame to send: an idle limiter
    /// can then be released. Groups that were never limited need no call.
    pub(super) fn report_empty_queue(&mut self, group: u32, now: Instant) {
        if self.pacer.group(group).ever_reacted && self.scheduler.is_idle(group) {
            let permission = self.pacer.on_queue_empty(group, now, &mut self.out);
            self.scheduler.set_permission(group, permission, now);
        }
    }
}
