//! Setting up queue pairs, their pacing groups and their receive queues.
//!
//! A queue pair is made when its first frame leaves or arrives, its pacing group with its first message, and
//! its receive queue with the first request received. If queue pairs share a pacing group, a queue pair joins
//! its group as soon as it is made, because the group's permission depends on all its members.

use crate::config::{ClassConfig, NicConfig, QueuePairOrder, Transport as Service};
use crate::counters::SentFlow;
use crate::pacer::place;
use crate::timers::Deadline;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::connections::Connection;
use crate::transport::memory_region::MemoryRegion;
use crate::transport::message::Message;
use crate::transport::pending_connections::PendingConnection;
use crate::transport::queue_pair::{QueuePair, ReceiveQueue};
use crate::transport::reorder_buffer::ReorderBuffer;
use crate::transport::requester::{Requester, RetryLimits};
use crate::transport::responder::{Responder, ResponderConfig};
use crate::transport::rnr_timer;
use crate::transport::scheduler::NextSender;
use proto::counters::{FlowId, ReceptionReading};
use proto::ids::{Lid, QueuePairNumber, VirtualLane};
use proto::units::Instant;

impl ChannelAdapter {
    /// The queue pair for `class` and `peer`; makes it if needed.
    pub(super) fn queue_pair(&mut self, class: u8, peer: Lid, now: Instant) -> u32 {
        match self.connections.find(class, peer) {
            Some(Connection::QueuePair(index)) => index,
            Some(Connection::Pending(index)) => self.establish(index),
            None => self.create_queue_pair(class, peer, now),
        }
    }

    /// Stores the first message for a peer as a pending connection.
    pub(super) fn add_pending(&mut self, class: u8, peer: Lid, message: Message) {
        let lane = self.wire.lane(self.level(class, peer));
        let key = self.next_key(&message);
        let pending = PendingConnection::new(class, peer, lane, key, message);
        self.connections.set(class, peer, Connection::Pending(self.pending.add(pending)));
        self.flow_report.on_pending_connection(class);
        self.lanes[lane.index()].on_post(message.size, message.posted);
    }

    /// The queue pair that sends next on `lane`. Pending connections that come first get their queue pair.
    pub(super) fn next_sender(&mut self, lane: VirtualLane, now: Instant) -> Option<NextSender> {
        loop {
            let turn = self.scheduler.next_sender(lane, now);
            match self.pending.first(lane) {
                Some((key, index)) if turn.is_none_or(|turn| key < turn.key) => {
                    self.establish(index)
                }
                _ => return turn,
            };
        }
    }

    /// Turns the pending connection at index `pending` into a queue pair, as if it had been one since its
    /// first message. Returns the index of the queue pair.
    pub(super) fn establish(&mut self, pending: u32) -> u32 {
        let PendingConnection { class, peer, key, since, offered, messages, .. } =
            self.pending.take(pending);
        let index = self.create_queue_pair(class, peer, since);
        self.assign_pacing_group(index, since);
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.offered = offered;
        if !messages.is_empty() {
            pair.requester.adopt_messages(messages);
            if pair.requester.next_packet().is_some() {
                self.scheduler.set_key(index, Some(key), since);
            }
        }
        index
    }

    /// The flow from this adapter to `peer` in `class`.
    pub(super) fn tx_flow(&self, class: u8, peer: Lid) -> FlowId {
        let own = u64::from(self.config.lid.get());
        FlowId { source: own, destination: u64::from(peer.get()), class }
    }

    /// The scheduler key of a queue pair whose next packet belongs to `message` and which is queued now.
    pub(super) fn next_key(&mut self, message: &Message) -> u64 {
        match self.config.qp_order {
            QueuePairOrder::Posting => message.sequence,
            QueuePairOrder::RoundRobin => {
                self.round_robin_turns += 1;
                self.round_robin_turns
            }
        }
    }

    /// Makes the queue pair for `class` and `peer`. There must be no connection yet.
    pub(super) fn create_queue_pair(&mut self, class: u8, peer: Lid, now: Instant) -> u32 {
        let index = self.queue_pairs.len() as u32;
        let level = self.level(class, peer);
        let config =
            ClassConfig { service_level: level, ..self.config.classes[usize::from(class)] };
        // Test frames are never segmented.
        let is_test = config.transport == Service::Test;
        let packet_max = if is_test { u32::MAX } else { self.config.link.mtu.get() as u32 };
        let NicConfig { retry_count, rnr_retry, .. } = self.config;
        let limits = RetryLimits { retry_count, rnr_retry };
        self.scheduler.add_queue_pair();
        let numbers = [peer, self.config.lid].map(|lid| QueuePairNumber::planned(class, lid));
        let [number, remote] = match peer.is_multicast() {
            true => [numbers[1], QueuePairNumber::truncate(QueuePairNumber::MAX)],
            false => numbers,
        };
        self.queue_pairs.push(QueuePair {
            class,
            config,
            peer,
            number,
            remote,
            memory: (MemoryRegion::START, MemoryRegion::KEY),
            path_mtu: self.config.link.mtu.get() as u32,
            lane: self.wire.lane(level),
            notification_lane: self.wire.notification_lane(level),
            group: None,
            requester: Requester::new(config.transport, packet_max, limits),
            ready_since: now,
            retransmit: Deadline::default(),
            receiver_ready: Deadline::default(),
            is_reported_alone: false,
            tx_flow: self.tx_flow(class, peer),
            sent: SentFlow::default(),
            receive_queue: None,
        });
        if self.awaits_path(peer) {
            self.queue_pairs[index as usize].requester.hold();
        }
        self.connections.set(class, peer, Connection::QueuePair(index));
        self.ask_for_connection(index);
        if !self.pacer.is_per_queue_pair() {
            self.assign_pacing_group(index, now);
        }
        index
    }

    /// The pacing group of a queue pair; makes it if needed.
    pub(super) fn assign_pacing_group(&mut self, index: u32, now: Instant) -> u32 {
        let pair = &mut self.queue_pairs[index as usize];
        if let Some(group) = pair.group {
            return group;
        }
        let (lane, level) = (pair.lane, pair.config.service_level.get());
        let (group, is_new) = self.pacer.group_for(&self.config, pair.tx_flow, lane, level, now);
        pair.group = Some(group);
        if is_new {
            self.scheduler.add_group(lane);
        }
        self.scheduler.assign_group(index, group);
        group
    }

    /// Makes the receive queue of a queue pair if it does not exist yet.
    pub(super) fn open_receive_queue(&mut self, index: u32) {
        if self.queue_pairs[index as usize].receive_queue.is_none() {
            let queue = self.new_receive_queue(&self.queue_pairs[index as usize]);
            self.queue_pairs[index as usize].receive_queue = Some(Box::new(queue));
        }
    }

    /// The peer has started again, and its queue pairs know nothing: those to it begin anew, too.
    pub fn reset_peer(&mut self, peer: Lid, now: Instant) {
        let indexes: Vec<u32> = self.connections.with(peer).collect();
        for index in indexes {
            for lane in &mut self.lanes {
                lane.control.retain(|frame| frame.queue_pair != index);
            }
            let pair = &self.queue_pairs[index as usize];
            let queue = pair.receive_queue.as_ref().map(|queue| {
                let received = queue.received.clone();
                Box::new(ReceiveQueue { received, ..self.new_receive_queue(pair) })
            });
            let pair = &mut self.queue_pairs[index as usize];
            pair.receive_queue = queue;
            pair.requester.restart();
            pair.retransmit.clear();
            pair.receiver_ready.clear();
            self.reschedule(index, now, now);
        }
    }

    fn new_receive_queue(&self, pair: &QueuePair) -> ReceiveQueue {
        let ChannelAdapter { config, wire, .. } = self;
        let QueuePair { class, peer, tx_flow, .. } = *pair;
        let service = pair.config.transport;
        let purpose = format_args!("notification/{class}/{peer}");
        let place = place(config, wire.full_frame(&config.link), purpose);
        let window = config.wire.resequence().map(|config| config.window as usize);
        ReceiveQueue {
            responder: Responder::new(ResponderConfig {
                service,
                mtu: pair.path_mtu,
                ack_every: config.ack_every.max(1),
                receive_depth: config.receive_depth,
                receive_refill: config.receive_refill,
                rnr_code: rnr_timer::code(config.rnr_timer),
            }),
            notification_point: self.scheme.notification_point(place),
            becn_pending: false,
            ack_delay: Deadline::default(),
            notification_timer: Deadline::default(),
            received: ReceptionReading { flow: tx_flow.reversed(), ..ReceptionReading::default() },
            has_received: false,
            test_sequence: 0,
            test_frames_held: window
                .filter(|_| service == Service::Test)
                .map(ReorderBuffer::new)
                .map(Box::new),
            requests_held: window
                .filter(|_| matches!(service, Service::Rc | Service::Uc))
                .map(ReorderBuffer::new)
                .map(Box::new),
            gap_timer: Deadline::default(),
        }
    }
}
