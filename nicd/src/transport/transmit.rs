//! Transmission: the next frame of a lane, and how it is made when it leaves.

use crate::config::{Arrivals, ClassConfig, Operation, Transport as Service};
use crate::counters::Total;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::lane::{ControlContent, ControlFrame, Lane, Offer};
use crate::transport::message::{self, Stamp};
use crate::transport::queue_pair::QueuePair;
use crate::transport::requester::Packet;
use crate::transport::responder::AckPacket;
use crate::wire::packet::OutgoingPacket;
use crate::wire::{WireFormat, test_frame};
use crate::workload::MessageStarted;
use bytes::BytesMut;
use management::records::GROUP_QUEUE_KEY;
use proto::congestion::{TransportNote, Travel};
use proto::device::Departure;
use proto::events::{Direction, EventKind, NoteKind};
use proto::frame::{Frame, FrameClass};
use proto::ids::{Psn, VirtualLane};
use proto::link::port::{Grant, Head, LaneSource};
use proto::units::{Bytes, Instant};
use proto::wire::infiniband::opcode::Position;
use proto::wire::infiniband::{Aeth, Bth, Deth, ExtendedHeaders, Grh, Opcode, Reth};

/// The Q_Key of every UD queue pair. Bit 31 is clear, so senders may choose it. Source: IBTA Vol 1, 10.2.4
/// (controlled Q_Keys).
pub(super) const QUEUE_KEY: u32 = GROUP_QUEUE_KEY;

fn opcode(class: &ClassConfig, position: Position) -> Opcode {
    let service = match class.transport {
        Service::Rc => Opcode::RC_SEND_FIRST,
        Service::Uc => Opcode::UC_SEND_FIRST,
        // The opcode of a test frame is never used.
        Service::Ud | Service::Test => return Opcode::UD_SEND_ONLY,
    };
    // RC and UC opcodes differ in the three top bits only. Source: IBTA Vol 1, 9.2.1.
    let row = match (class.operation, position) {
        (Operation::Send, Position::First) => Opcode::RC_SEND_FIRST,
        (Operation::Send, Position::Middle) => Opcode::RC_SEND_MIDDLE,
        (Operation::Send, Position::Last) => Opcode::RC_SEND_LAST,
        (Operation::Send, Position::Only) => Opcode::RC_SEND_ONLY,
        (Operation::Write, Position::First) => Opcode::RC_WRITE_FIRST,
        (Operation::Write, Position::Middle) => Opcode::RC_WRITE_MIDDLE,
        (Operation::Write, Position::Last) => Opcode::RC_WRITE_LAST,
        (Operation::Write, Position::Only) => Opcode::RC_WRITE_ONLY,
    };
    Opcode(service.0 | row.0)
}

/// A packet without extended headers from `pair` to its peer, on the lane of its data.
fn outward(pair: &QueuePair, class: FrameClass, bth: Bth) -> OutgoingPacket {
    OutgoingPacket {
        to: pair.peer,
        lane: pair.lane,
        level: pair.config.service_level,
        queue_pair: pair.number,
        class,
        bth,
        extended: ExtendedHeaders::NONE,
    }
}

impl LaneSource for ChannelAdapter {
    type Offer = Offer;

    fn lanes(&self) -> u16 {
        let may_be_ready = |(index, lane): (usize, &Lane)| {
            let number = VirtualLane::truncate(index as u8);
            !lane.control.is_empty()
                || self.scheduler.may_have_work(number)
                || self.pending.has_waiting(number)
        };
        let bits =
            self.lanes.iter().enumerate().map(|lane| u16::from(may_be_ready(lane)) << lane.0);
        bits.fold(0, |lanes, bit| lanes | bit)
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Offer>> {
        if lane == VirtualLane::MANAGEMENT {
            return None;
        }
        if let Some(control) = self.lanes[lane.index()].control.front() {
            return Some(control.head(&self.wire));
        }
        let turn = self.next_sender(lane, now)?;
        let pair = &self.queue_pairs[turn.queue_pair as usize];
        let packet =
            pair.requester.next_packet().expect("a scheduled queue pair has a packet to send");
        let since = packet.message.posted.max(pair.ready_since).max(turn.permitted_since);
        let size = if pair.config.transport == Service::Test {
            test_frame::size(packet.length)
        } else {
            let extended = opcode(&pair.config, packet.position).extended_headers().octets();
            let global = if pair.peer.is_multicast() { Grh::LEN } else { 0 };
            self.tagged_size(self.wire.size(global + extended, packet.length as usize), pair, now)
        };
        let offer = Offer::Data { queue_pair: turn.queue_pair, packet };
        Some(Head { size, ready: since.min(now), class: FrameClass::Data, offer })
    }
}

impl ChannelAdapter {
    /// Builds the granted frame.
    pub fn transmit(&mut self, grant: Grant<Offer>) -> Departure {
        self.balance.injected += 1;
        let line_free = std::mem::replace(&mut self.line_free, grant.end);
        let frame = match &grant.offer {
            Offer::Control(control) => {
                self.lanes[grant.lane.index()].control.pop_front();
                self.make_control(control, grant.start)
            }
            Offer::Data { queue_pair, packet } => {
                // Only performance management reads it.
                if self.config.management.is_some() {
                    let pair = &self.queue_pairs[*queue_pair as usize];
                    let could = line_free.max(packet.message.posted).max(pair.ready_since);
                    let held = self.scheduler.permitted_since(*queue_pair).since(could);
                    self.lanes[grant.lane.index()].congested += held;
                }
                self.make_data(*queue_pair, packet, grant.start, grant.end)
            }
        };
        grant.departure(frame)
    }

    /// Queues an acknowledgement. It carries BECN if a BECN is pending.
    pub(super) fn send_acknowledgement(&mut self, index: u32, ack: AckPacket, ready: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        let becn = std::mem::take(&mut pair.receive_queue_mut().becn_pending);
        let content = ControlContent::Acknowledgement(ack);
        let control = ControlFrame { queue_pair: index, ready, becn, content };
        self.lanes[pair.lane.index()].control.push_back(control);
    }

    /// Sends `notification` to the peer of a queue pair: as BECN on the next acknowledgement if the scheme
    /// permits that and one is due, else as a CNP.
    pub(super) fn send_notification(
        &mut self,
        index: u32,
        notification: &TransportNote,
        ack_due: bool,
        ready: Instant,
    ) {
        let pair = &mut self.queue_pairs[index as usize];
        if notification.travel == Travel::AckOrCnp && notification.becn && ack_due {
            pair.receive_queue_mut().becn_pending = true;
            return;
        }
        let content = ControlContent::Notification(notification.body);
        let control = ControlFrame { queue_pair: index, ready, becn: notification.becn, content };
        self.lanes[pair.notification_lane.index()].control.push_back(control);
    }

    /// The delay of a coalesced acknowledgement has expired.
    pub(super) fn on_ack_delay_timeout(&mut self, index: u32, now: Instant) {
        let responder = &mut self.queue_pairs[index as usize].receive_queue_mut().responder;
        if responder.owes_ack() {
            let ack_packet = responder.acknowledge();
            self.send_acknowledgement(index, ack_packet, now);
        }
    }

    /// The timer of a notification point has expired.
    pub(super) fn on_notification_timeout(&mut self, index: u32, now: Instant) {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let notification = queue.notification_point.handle_timeout(now);
        let due = queue.notification_point.poll_timeout().unwrap_or(Instant::NEVER);
        self.out.timers.set(&mut queue.notification_timer, Timer::NotificationPoint(index), due);
        let ack_due = queue.responder.owes_ack();
        if let Some(notification) = notification {
            self.send_notification(index, &notification, ack_due, now);
        }
    }

    fn make_control(&mut self, control: &ControlFrame, start: Instant) -> Frame {
        let pair = &self.queue_pairs[control.queue_pair as usize];
        let (class, lane, bth, aeth, body) = match &control.content {
            ControlContent::Acknowledgement(AckPacket { psn, syndrome, msn }) => {
                let bth = Bth::new(Opcode::RC_ACKNOWLEDGE, pair.remote, *psn);
                let aeth = Aeth { syndrome: *syndrome, message_sequence_number: *msn };
                (FrameClass::Ack, pair.lane, bth, Some(aeth), &[][..])
            }
            ControlContent::Notification(body) => {
                let bth = Bth::new(self.wire.notification(), pair.remote, Psn::default());
                let body = self.wire.notification_body(body);
                (FrameClass::Notification, pair.notification_lane, bth, None, body)
            }
        };
        let bth = Bth { becn: control.becn, ..bth };
        let extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
        let packet = OutgoingPacket { lane, extended, ..outward(pair, class, bth) };
        let append = |octets: &mut BytesMut| octets.extend_from_slice(body);
        let frame = self.wire.emit(&packet, &mut self.pool, body.len(), append);
        let is_cnp = class == FrameClass::Notification;
        if control.becn || is_cnp {
            let flow = pair.tx_flow.reversed();
            let (total, note) = match is_cnp {
                true => (Total::CnpSent, NoteKind::Cnp),
                false => (Total::BecnSent, NoteKind::Becn),
            };
            self.totals.count(total);
            self.lanes[lane.index()].notes_tx += 1;
            self.out.log(lane, start, EventKind::Note { flow, note, dir: Direction::Tx });
        }
        frame
    }

    fn make_data(&mut self, index: u32, packet: &Packet, start: Instant, end: Instant) -> Frame {
        let pair = &self.queue_pairs[index as usize];
        let frame = match &self.wire {
            WireFormat::Roce(format) if pair.config.transport == Service::Test => {
                let frame = self.test_frame(pair, packet, start, end);
                format.emit_test_frame(&frame, &mut self.pool)
            }
            _ => {
                let mut frame = self.emit_data(index, packet);
                self.insert_tag(index, &mut frame, start);
                frame
            }
        };
        self.account(index, packet, frame.line_size(), start, end);
        frame
    }

    fn emit_data(&mut self, index: u32, packet: &Packet) -> Frame {
        let pair = &self.queue_pairs[index as usize];
        let (class, message) = (&pair.config, &packet.message);
        let begins = matches!(packet.position, Position::First | Position::Only);
        let ends = matches!(packet.position, Position::Last | Position::Only);
        let ack_every = self.config.ack_every.max(1);
        let ack_request = class.transport == Service::Rc
            && (ends
                || !packet.is_first_transmission
                || packet.psn.get() % ack_every == ack_every - 1);
        let bth = Bth::new(opcode(class, packet.position), pair.remote, packet.psn);
        let datagram = class.transport == Service::Ud;
        let writes = class.operation == Operation::Write && begins;
        let group = || self.wire.membership(pair.peer).filter(|_| pair.peer.is_multicast());
        let extended = ExtendedHeaders {
            deth: datagram.then_some(Deth {
                queue_key: group().map_or(QUEUE_KEY, |group| group.queue_key),
                reserved8: 0,
                source: pair.number,
            }),
            reth: writes.then_some(Reth {
                virtual_address: pair.memory.0,
                remote_key: pair.memory.1,
                dma_length: message.size,
            }),
            ..ExtendedHeaders::NONE
        };
        let stamp = begins.then(|| Stamp {
            item: self.config.traffic[usize::from(message.item)].item,
            number: message.number,
            posted: message.posted,
        });
        let stamp = stamp.filter(|_| message.size as usize >= Stamp::LEN);
        let bth = Bth { ack_request, ..bth };
        let outgoing = OutgoingPacket { extended, ..outward(pair, FrameClass::Data, bth) };
        let append = |octets: &mut BytesMut, length| message::append(octets, length, stamp);
        self.wire.emit_message(&outgoing, &mut self.pool, packet.length as usize, append)
    }

    /// Accounts for a data frame that leaves, and schedules the next one.
    fn account(&mut self, index: u32, packet: &Packet, size: Bytes, start: Instant, end: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        let completed = pair.requester.on_transmit();
        pair.sent.completed += completed;
        self.flow_report.on_transmit(pair, size.get(), end);
        if packet.is_first_transmission {
            let gauge = &mut self.lanes[pair.lane.index()].source_queue;
            gauge.set(gauge.value - u64::from(packet.length), start);
        } else {
            self.totals.count(Total::Retransmitted);
        }
        let begins = matches!(packet.position, Position::First | Position::Only);
        let item = &self.config.traffic[usize::from(packet.message.item)];
        if begins && packet.is_first_transmission && item.arrivals == Arrivals::Backlog {
            let started = MessageStarted { item: packet.message.item, to: pair.peer, at: start };
            self.started.push_back(started);
        }
        if pair.requester.awaits_acknowledgement() && !pair.retransmit.is_set() {
            let due = end + self.config.ack_timeout;
            self.out.timers.set(&mut pair.retransmit, Timer::Retransmit(index), due);
        }
        let (group, next) = (pair.pacing_group(), pair.requester.next_packet());
        let key = next.map(|next| self.next_key(&next.message));
        self.note_progress(index);
        let permission = self.pacer.on_transmit(group, size, (start, end), &mut self.out);
        self.scheduler.on_frame_sent(index, key, permission, start);
        if key.is_none() {
            self.report_empty_queue(group, end);
        }
    }
}
