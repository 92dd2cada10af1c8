//! Inwards: what an arriving packet means to whom.

use crate::config::Transport as Service;
use crate::counters::Total;
use crate::pacer::PacerContext;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::requester::{AckOutcome, RequesterAction};
use crate::transport::resequencing::Disposition;
use crate::transport::responder::{AckAction, Request, RequestOutcome, Verb};
use crate::transport::transmit::QUEUE_KEY;
use crate::wire::packet::{FrameContent, ReceivedPacket};
use proto::congestion::{Heard, Notification, TransportNote, Travel};
use proto::counters::DropReason;
use proto::events::{Direction, EventKind, NoteKind};
use proto::frame::{Frame, FrameClass, FrameHeaders, Integrity};
use proto::ids::{Ecn, Lid};
use proto::units::Instant;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use proto::wire::infiniband::{self, Bth, NakCode, Syndrome};

/// A packet that has passed every check that does not depend on its queue pair's state.
struct AdmittedPacket<'a> {
    headers: &'a FrameHeaders,
    packet: &'a infiniband::Transport<'a>,
    bth: Bth,
    row: &'static OpcodeRow,
    class: u8,
    peer: Lid,
    arrived: Instant,
}

impl ChannelAdapter {
    /// A good packet came in by the port. It ends here, delivered or refused for the reason given, or a copy
    /// of it waits for its turn.
    ///
    /// # Errors
    /// The reason, for the port to count.
    pub fn receive(
        &mut self,
        frame: &Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) -> Result<Disposition, DropReason> {
        let fate = self.receive_one(frame, headers, arrived, now);
        self.is_released_request = false;
        self.balance.delivered += u64::from(fate == Ok(Disposition::Delivered));
        fate
    }

    fn receive_one(
        &mut self,
        frame: &Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) -> Result<Disposition, DropReason> {
        if headers.class == FrameClass::Management {
            return Err(DropReason::Management);
        }
        if !headers.multicast && headers.destination != self.wire.address() {
            return Err(DropReason::NotForUs);
        }
        if frame.integrity == Integrity::Unchecked {
            self.wire.verify(&frame.octets)?;
        }
        self.totals.count_if(headers.fecn, Total::RcvFecn);
        self.totals.count_if(headers.becn, Total::RcvBecn);
        if headers.multicast {
            // Nobody here has joined a group; the fabric's account ends with it all the same.
            self.totals.count(Total::MulticastReceived);
            return Ok(Disposition::Delivered);
        }
        match self.wire.parse_frame(&frame.octets) {
            Ok(FrameContent::Packet(packet)) => {
                return self.on_packet(&packet, frame, headers, arrived, now);
            }
            Ok(FrameContent::Test(at)) => self.on_test_frame(frame, at, now),
            Ok(FrameContent::Cnm { at, flow_id }) => self.on_cnm(&frame.octets[at..], flow_id, now),
            Ok(FrameContent::Bcn(at)) => self.on_bcn(&frame.octets[at..], now),
            Err(reason) => Err(self.refuse(headers, reason)),
        }?;
        Ok(Disposition::Delivered)
    }

    /// Counts a packet that nobody here can take, if it is a notification.
    fn refuse(&mut self, headers: &FrameHeaders, reason: DropReason) -> DropReason {
        let is_notification = headers.class == FrameClass::Notification;
        self.totals.count_if(is_notification, Total::CnpIgnored);
        reason
    }

    /// A packet of the transport.
    fn on_packet(
        &mut self,
        inward: &ReceivedPacket<'_>,
        frame: &Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) -> Result<Disposition, DropReason> {
        let packet = self.admit(inward, headers, arrived);
        let packet = packet.map_err(|reason| self.refuse(headers, reason))?;
        match packet.row.operation {
            Operation::Congestion => self.on_notification_packet(&packet, now),
            Operation::Acknowledge => self.on_acknowledgement(&packet, now),
            Operation::ReadResponse | Operation::AtomicAcknowledge => Err(DropReason::Opcode),
            _ => return self.on_request_frame(&packet, frame, now),
        }?;
        Ok(Disposition::Delivered)
    }

    /// A request: held where it comes ahead of its turn and order is kept here.
    fn on_request_frame(
        &mut self,
        packet: &AdmittedPacket<'_>,
        frame: &Frame,
        now: Instant,
    ) -> Result<Disposition, DropReason> {
        if self.config.wire.resequence().is_none() {
            return self.on_request(packet, now).map(|()| Disposition::Delivered);
        }
        let index = self.queue_pair(packet.class, packet.peer, now);
        self.open_receive_queue(index);
        if self.hold_request(index, packet.bth.psn, (frame, packet.headers), now) {
            return Ok(Disposition::Held);
        }
        let before = self.queue_pairs[index as usize].receive_queue_mut().responder.expected();
        let outcome = self.on_request(packet, now);
        self.release_requests(index, before, now);
        outcome.map(|()| Disposition::Delivered)
    }

    /// Finds whom a packet is for.
    fn admit<'a>(
        &self,
        inward: &'a ReceivedPacket<'a>,
        headers: &'a FrameHeaders,
        arrived: Instant,
    ) -> Result<AdmittedPacket<'a>, DropReason> {
        let (peer, packet) = (inward.from, &inward.transport);
        let bth = packet.bth;
        let row = bth.opcode.row().ok_or(DropReason::Opcode)?;
        if bth.partition_key != Bth::DEFAULT_PARTITION {
            return Err(DropReason::Key);
        }
        let (class, planned) = bth.destination.plan().ok_or(DropReason::QueuePair)?;
        if planned != peer || !self.connections.admits(class, peer) {
            return Err(DropReason::QueuePair);
        }
        let fits = match self.config.classes[usize::from(class)].transport {
            // The notification of the other technology means nothing here.
            _ if row.transport == Transport::Cnp => bth.opcode == self.wire.notification(),
            Service::Rc => row.transport == Transport::Rc,
            Service::Uc => row.transport == Transport::Uc,
            Service::Ud => row.transport == Transport::Ud,
            Service::Test => false,
        };
        if !fits {
            return Err(DropReason::Opcode);
        }
        Ok(AdmittedPacket { headers, packet, bth, row, class, peer, arrived })
    }

    fn on_request(&mut self, packet: &AdmittedPacket<'_>, now: Instant) -> Result<(), DropReason> {
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
            payload: packet.packet.payload,
        };
        self.open_receive_queue(index);
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        queue.has_received = true;
        let congested = packet.headers.ecn == Ecn::CongestionExperienced;
        queue.received.marked += u64::from(packet.headers.fecn || congested);
        self.totals.count_if(packet.headers.fecn, Total::EcnMarked);
        self.totals.count_if(congested, Total::EcnMarkedRoce);
        let size = packet.headers.size;
        let notification = queue.notification_point.on_receive(packet.headers, size, now);
        let due = queue.notification_point.poll_timeout().unwrap_or(Instant::NEVER);
        self.timers.set(&mut queue.notify, Timer::NotificationPoint(index), due);
        let was_open = !queue.responder.has_failed();
        let reception = queue.responder.on_request(&request, now);
        let fails = was_open && queue.responder.has_failed();
        if let Some(notification) = notification {
            let ack_due = reception.ack != AckAction::None;
            self.send_notification(index, &notification, ack_due, packet.arrived);
        }
        self.ack(index, reception.ack, packet.arrived, now);
        if fails {
            self.give_up(index, now);
            self.reschedule(index, now, now);
        }
        let outcome =
            self.account_reception(index, &reception, request.payload.len(), packet.arrived);
        self.note_progress(index);
        outcome
    }

    fn ack(&mut self, index: u32, ack: AckAction, arrived: Instant, now: Instant) {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        match ack {
            AckAction::None => {}
            AckAction::Coalesce if queue.acknowledge.is_set() => {}
            AckAction::Coalesce => {
                let due = now + self.config.ack_delay;
                self.timers.set(&mut queue.acknowledge, Timer::Acknowledge(index), due);
            }
            AckAction::Send(ack_packet) => {
                queue.acknowledge.clear();
                self.send_acknowledgement(index, ack_packet, arrived);
            }
        }
    }

    fn account_reception(
        &mut self,
        index: u32,
        reception: &RequestOutcome,
        payload: usize,
        arrived: Instant,
    ) -> Result<(), DropReason> {
        let received = &mut self.queue_pairs[index as usize].receive_queue_mut().received;
        received.reordered += u64::from(reception.out_of_order);
        if let Some(reason) = reception.refused {
            match reason {
                DropReason::OutOfSequence => self.totals.count(Total::OutOfSequence),
                DropReason::Duplicate => self.totals.count(Total::DuplicateRequest),
                DropReason::ReceiverNotReady => self.totals.count(Total::OutOfBuffer),
                _ => {}
            }
            return Err(reason);
        }
        received.delivered_bytes += payload as u64;
        if let Some(delivery) = reception.delivery {
            received.messages += 1;
            received.last = Some(arrived);
            if let Some(stamp) = delivery.stamp {
                self.latencies.count(stamp.item, arrived.since(stamp.posted));
            }
        }
        Ok(())
    }

    fn on_acknowledgement(
        &mut self,
        packet: &AdmittedPacket<'_>,
        now: Instant,
    ) -> Result<(), DropReason> {
        let index =
            self.connections.queue_pair(packet.class, packet.peer).ok_or(DropReason::QueuePair)?;
        let aeth = packet.packet.extended.aeth.ok_or(DropReason::Opcode)?;
        if packet.bth.becn {
            self.totals.count(Total::BecnHandled);
            let notification = Notification::becn(Travel::AckOrCnp);
            let outcome = self.notify_reaction_point(index, &notification, NoteKind::Becn, now);
            self.totals.count_if(outcome == Heard::Refused, Total::CnpIgnored);
        }
        match aeth.syndrome {
            Syndrome::Rnr { .. } => self.totals.count(Total::RnrNak),
            Syndrome::Nak(NakCode::PsnSequence) => self.totals.count(Total::PacketSequenceError),
            _ => {}
        }
        let limits = self.limits();
        let pair = &mut self.queue_pairs[index as usize];
        let outcome = pair.requester.on_acknowledge(packet.bth.psn, aeth.syndrome, limits);
        self.on_outcome(index, &outcome, now);
        Ok(())
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
            self.timers.set(&mut pair.retransmit, Timer::Retransmit(index), due);
        }
        if outcome.progress || outcome.action != RequesterAction::Continue {
            self.apply_action(index, outcome.action, now);
        }
    }

    fn on_notification_packet(
        &mut self,
        packet: &AdmittedPacket<'_>,
        now: Instant,
    ) -> Result<(), DropReason> {
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
            return Ok(());
        }
        self.totals.count(Total::CnpHandled);
        let note = TransportNote { travel: Travel::Cnp, becn: packet.bth.becn, body };
        let outcome = self.notify_reaction_point(index, &note.into(), NoteKind::Cnp, now);
        self.totals.count_if(outcome == Heard::Refused, Total::CnpIgnored);
        Ok(())
    }

    /// Tells the reaction point of the flow we send on this queue pair; what it made of it.
    pub(super) fn notify_reaction_point(
        &mut self,
        index: u32,
        notification: &Notification,
        note: NoteKind,
        now: Instant,
    ) -> Heard {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.notifications += 1;
        let (flow, lane) = (pair.tx_flow, pair.lane);
        let (qp, sl) = (pair.number, pair.config.service_level);
        let Some(group) = pair.group else { return Heard::Refused };
        self.log(lane, now, EventKind::Note { flow, note, dir: Direction::Rx });
        let mut context = PacerContext { timers: &mut self.timers, events: &mut self.events };
        let reaction = self.pacer.on_notification(group, flow, notification, now, &mut context);
        if let Some(ccti) = reaction.triggered {
            self.totals.count(Total::Trigger);
            self.log(lane, now, EventKind::Trigger { flow, qp, sl, ccti });
        }
        self.scheduler.set_permission(group, reaction.permission, now);
        self.report_empty_queue(group, now);
        reaction.outcome
    }

    /// Tells the reaction point of `group` if nothing that it governs waits. Only a limiter that has held
    /// something back can dissolve.
    pub(super) fn report_empty_queue(&mut self, group: u32, now: Instant) {
        if self.pacer.has_reacted(group) && self.scheduler.is_idle(group) {
            let mut context = PacerContext { timers: &mut self.timers, events: &mut self.events };
            let permission = self.pacer.on_queue_empty(group, now, &mut context);
            self.scheduler.set_permission(group, permission, now);
        }
    }
}
