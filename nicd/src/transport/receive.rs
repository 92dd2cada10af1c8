//! Inwards: what an arriving packet means to whom.

use crate::config::Transport as Service;
use crate::counters::Total;
use crate::pacer::Outlet;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::in_order::Fate;
use crate::transport::requester::{Next, Outcome};
use crate::transport::responder::{Reception, Reply, Request, Verb};
use crate::transport::transmit::QUEUE_KEY;
use crate::wire::packet::{Content, Inward};
use proto::congestion::{Heard, Notification, TransportNote, Travel};
use proto::counters::DropReason;
use proto::events::{Direction, EventKind, NoteKind};
use proto::frame::{Frame, FrameClass, FrameHeaders, Integrity};
use proto::ids::{Ecn, Lid};
use proto::units::Instant;
use proto::wire::infiniband::opcode::{OpcodeRow, Operation, Transport};
use proto::wire::infiniband::{self, Bth, NakCode, Syndrome};

/// A packet that has passed every check that does not depend on its queue pair's state.
struct Arrived<'a> {
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
    ) -> Result<Fate, DropReason> {
        let fate = self.receive_one(frame, headers, arrived, now);
        self.is_in_turn = false;
        self.balance.delivered += u64::from(fate == Ok(Fate::Delivered));
        fate
    }

    fn receive_one(
        &mut self,
        frame: &Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) -> Result<Fate, DropReason> {
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
            return Ok(Fate::Delivered);
        }
        match self.wire.open(&frame.octets) {
            Ok(Content::Packet(packet)) => {
                return self.on_packet(&packet, frame, headers, arrived, now);
            }
            Ok(Content::Test(at)) => self.on_test_frame(frame, at, now),
            Ok(Content::Cnm { at, flow_id }) => self.on_cnm(&frame.octets[at..], flow_id, now),
            Ok(Content::Bcn(at)) => self.on_bcn(&frame.octets[at..], now),
            Err(reason) => Err(self.refuse(headers, reason)),
        }?;
        Ok(Fate::Delivered)
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
        inward: &Inward<'_>,
        frame: &Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) -> Result<Fate, DropReason> {
        let packet = self.admit(inward, headers, arrived);
        let packet = packet.map_err(|reason| self.refuse(headers, reason))?;
        match packet.row.operation {
            Operation::Congestion => self.on_notification_packet(&packet, now),
            Operation::Acknowledge => self.on_acknowledgement(&packet, now),
            Operation::ReadResponse | Operation::AtomicAcknowledge => Err(DropReason::Opcode),
            _ => return self.on_request_frame(&packet, frame, now),
        }?;
        Ok(Fate::Delivered)
    }

    /// A request: held where it comes ahead of its turn and order is kept here.
    fn on_request_frame(
        &mut self,
        packet: &Arrived<'_>,
        frame: &Frame,
        now: Instant,
    ) -> Result<Fate, DropReason> {
        if self.config.wire.resequence().is_none() {
            return self.on_request(packet, now).map(|()| Fate::Delivered);
        }
        let index = self.queue_pair(packet.class, packet.peer, now);
        self.open(index);
        if self.hold(index, packet.bth.psn, (frame, packet.headers), now) {
            return Ok(Fate::Held);
        }
        let before = self.queue_pairs[index as usize].receiving().responder.expected();
        let outcome = self.on_request(packet, now);
        self.after_request(index, before, now);
        outcome.map(|()| Fate::Delivered)
    }

    /// Finds whom a packet is for.
    fn admit<'a>(
        &self,
        inward: &'a Inward<'a>,
        headers: &'a FrameHeaders,
        arrived: Instant,
    ) -> Result<Arrived<'a>, DropReason> {
        let (peer, packet) = (inward.from, &inward.transport);
        let bth = packet.bth;
        let row = bth.opcode.row().ok_or(DropReason::Opcode)?;
        if bth.partition_key != Bth::DEFAULT_PARTITION {
            return Err(DropReason::Key);
        }
        let (class, planned) = bth.destination.plan().ok_or(DropReason::QueuePair)?;
        if planned != peer || !self.peers.admits(class, peer) {
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
        Ok(Arrived { headers, packet, bth, row, class, peer, arrived })
    }

    fn on_request(&mut self, packet: &Arrived<'_>, now: Instant) -> Result<(), DropReason> {
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
        self.open(index);
        let queue = self.queue_pairs[index as usize].receiving();
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
            let answer_due = reception.reply != Reply::Nothing;
            self.send_notification(index, &notification, answer_due, packet.arrived);
        }
        self.reply(index, reception.reply, packet.arrived, now);
        if fails {
            self.give_up(index, now);
            self.refresh(index, now, now);
        }
        let outcome =
            self.account_reception(index, &reception, request.payload.len(), packet.arrived);
        self.touch(index);
        outcome
    }

    fn reply(&mut self, index: u32, reply: Reply, arrived: Instant, now: Instant) {
        let queue = self.queue_pairs[index as usize].receiving();
        match reply {
            Reply::Nothing => {}
            Reply::Owed if queue.acknowledge.is_set() => {}
            Reply::Owed => {
                let due = now + self.config.ack_delay;
                self.timers.set(&mut queue.acknowledge, Timer::Acknowledge(index), due);
            }
            Reply::Now(answer) => {
                queue.acknowledge.clear();
                self.send_acknowledgement(index, answer, arrived);
            }
        }
    }

    fn account_reception(
        &mut self,
        index: u32,
        reception: &Reception,
        payload: usize,
        arrived: Instant,
    ) -> Result<(), DropReason> {
        let received = &mut self.queue_pairs[index as usize].receiving().received;
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

    fn on_acknowledgement(&mut self, packet: &Arrived<'_>, now: Instant) -> Result<(), DropReason> {
        let index =
            self.peers.queue_pair(packet.class, packet.peer).ok_or(DropReason::QueuePair)?;
        let aeth = packet.packet.extended.aeth.ok_or(DropReason::Opcode)?;
        if packet.bth.becn {
            self.totals.count(Total::BecnHandled);
            let notification = Notification::becn(Travel::AckOrCnp);
            let heard = self.notify(index, &notification, NoteKind::Becn, now);
            self.totals.count_if(heard == Heard::Refused, Total::CnpIgnored);
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

    fn on_outcome(&mut self, index: u32, outcome: &Outcome, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.completed += outcome.completed;
        self.touch(index);
        let pair = &mut self.queue_pairs[index as usize];
        if !pair.requester.awaits_acknowledgement() {
            pair.retransmit.clear();
        } else if outcome.progress {
            let due = now + self.config.ack_timeout;
            self.timers.set(&mut pair.retransmit, Timer::Retransmit(index), due);
        }
        if outcome.progress || outcome.then != Next::Continue {
            self.proceed(index, outcome.then, now);
        }
    }

    fn on_notification_packet(
        &mut self,
        packet: &Arrived<'_>,
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
        let Some(index) = self.peers.queue_pair(packet.class, packet.peer) else {
            self.totals.count(Total::CnpIgnored);
            return Err(DropReason::QueuePair);
        };
        if !packet.bth.becn && body == [0; 16] {
            self.totals.count(Total::CnpIgnored);
            return Ok(());
        }
        self.totals.count(Total::CnpHandled);
        let note = TransportNote { travel: Travel::Cnp, becn: packet.bth.becn, body };
        let heard = self.notify(index, &note.into(), NoteKind::Cnp, now);
        self.totals.count_if(heard == Heard::Refused, Total::CnpIgnored);
        Ok(())
    }

    /// Tells the reaction point of the flow we send on this queue pair; what it made of it.
    pub(super) fn notify(
        &mut self,
        index: u32,
        notification: &Notification,
        note: NoteKind,
        now: Instant,
    ) -> Heard {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.notes += 1;
        let (flow, lane) = (pair.sending, pair.lane);
        let (qp, sl) = (pair.number, pair.config.service_level);
        let Some(group) = pair.group else { return Heard::Refused };
        self.log(lane, now, EventKind::Note { flow, note, dir: Direction::Rx });
        let mut outlet = Outlet { timers: &mut self.timers, events: &mut self.events };
        let reaction = self.pacer.on_notification(group, flow, notification, now, &mut outlet);
        if let Some(ccti) = reaction.triggered {
            self.totals.count(Total::Trigger);
            self.log(lane, now, EventKind::Trigger { flow, qp, sl, ccti });
        }
        self.schedule.permit(group, reaction.permission, now);
        self.settle(group, now);
        reaction.heard
    }

    /// Tells the reaction point of `group` if nothing that it governs waits. Only a limiter that has held
    /// something back can dissolve.
    pub(super) fn settle(&mut self, group: u32, now: Instant) {
        if self.pacer.has_reacted(group) && self.schedule.is_idle(group) {
            let mut outlet = Outlet { timers: &mut self.timers, events: &mut self.events };
            let permission = self.pacer.on_queue_empty(group, now, &mut outlet);
            self.schedule.permit(group, permission, now);
        }
    }
}
