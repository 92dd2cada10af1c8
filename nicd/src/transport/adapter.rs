//! The channel adapter: its state, the messages posted to it, and its timers.

use crate::config::{Arrivals, ClassConfig, NicConfig, QueuePairOrder, Target};
use crate::counters::{Latencies, Total, Totals};
use crate::pacer::group::Outputs;
use crate::pacer::{Pacer, place};
use crate::timers::{Entry, Timer};
use crate::transport::connections::{Connection, ConnectionTable};
use crate::transport::flow_report::FlowReport;
use crate::transport::lane::Lane;
use crate::transport::message::Message;
use crate::transport::pending_connections::PendingConnections;
use crate::transport::queue_pair::{HeldRequest, QueuePair};
use crate::transport::requester::{RequesterAction, Withdrawn};
use crate::transport::scheduler::Scheduler;
use crate::wire::WireFormat;
use crate::workload::{MessageStarted, Progress, WorkRequest};
use proto::congestion::{Roles, SchemeConfig};
use proto::counters::{Balance, FlowId, ReceptionReading};
use proto::events::{DeviceEvent, EventKind};
use proto::frame::{Frame, FramePool};
use proto::ids::{Lid, ServiceLevel, VirtualLane};
use proto::link::LinkConfig;
use proto::units::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Queue pairs, their scheduling and their pacing.
pub struct ChannelAdapter {
    pub(super) config: NicConfig,
    pub(super) wire: WireFormat,
    pub(super) scheme: Arc<dyn Roles>,
    pub(super) connections: ConnectionTable,
    pub(super) pending: PendingConnections,
    pub(super) queue_pairs: Vec<QueuePair>,
    pub(super) flow_report: FlowReport,
    pub(super) scheduler: Scheduler,
    pub(super) pacer: Pacer,
    pub(super) out: Outputs,
    pub(super) lanes: Vec<Lane>,
    pub(super) pool: FramePool,
    pub(super) totals: Totals,
    pub(super) latencies: Latencies,
    /// What members of multicast groups have received.
    pub(super) multicast: BTreeMap<FlowId, ReceptionReading>,
    pub(super) balance: Balance,
    pub(super) started: VecDeque<MessageStarted>,
    /// A script of the workload waits for progress.
    pub(super) reports_progress: bool,
    /// Queue pairs with unreported progress; used only for scripts.
    pub(super) progressed: VecDeque<u32>,
    /// Requests that the reorder buffers have released.
    pub(super) released: VecDeque<HeldRequest>,
    /// The frame being received is a released request.
    pub(super) is_released_request: bool,
    /// Requests in the reorder buffers and in `released`.
    pub(super) held: u64,
    /// Messages posted so far, and round robin turns so far. Both serve as keys of the scheduler.
    pub(super) posted: u64,
    pub(super) round_robin_turns: u64,
    /// When the last bit of the latest frame leaves.
    pub(super) line_free: Instant,
    /// Queue pairs that need a connection to a foreign host.
    pub(super) to_connect: VecDeque<u32>,
}

impl ChannelAdapter {
    /// An adapter without queue pairs; `config` is validated.
    pub fn new(config: NicConfig, scheme: Arc<dyn Roles>) -> ChannelAdapter {
        let lanes = usize::from(config.link.data_lanes());
        let wire = WireFormat::new(&config);
        let pacer = Pacer::new(Arc::clone(&scheme), &config, wire.full_frame(&config.link));
        ChannelAdapter {
            connections: ConnectionTable::new(
                config.lid,
                &config.adapters.iter().copied().chain(config.remotes()).collect::<Vec<_>>(),
                &config.groups.iter().map(|group| group.lid).collect::<Vec<_>>(),
                config.classes.len(),
            ),
            pending: PendingConnections::new(lanes),
            queue_pairs: Vec::new(),
            flow_report: FlowReport::new(config.classes.len(), pacer.initial()),
            scheduler: Scheduler::new(lanes),
            pacer,
            out: Outputs::default(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            pool: FramePool::default(),
            totals: Totals::default(),
            latencies: Latencies::default(),
            multicast: BTreeMap::new(),
            balance: Balance::default(),
            started: VecDeque::new(),
            reports_progress: config
                .traffic
                .iter()
                .any(|item| matches!(item.to, Target::Script(_))),
            progressed: VecDeque::new(),
            released: VecDeque::new(),
            is_released_request: false,
            held: 0,
            posted: 0,
            round_robin_turns: 0,
            line_free: Instant::ZERO,
            to_connect: VecDeque::new(),
            scheme,
            wire,
            config,
        }
    }

    /// Posts a message, unless the send queue of its connection is full.
    pub fn post(&mut self, request: &WorkRequest) {
        if self.is_send_queue_full(request) {
            return self.totals.count(Total::SendQueueFull);
        }
        let message = Message {
            posted: request.at,
            sequence: self.posted,
            number: request.number,
            size: request.size,
            item: request.item,
        };
        self.posted += 1;
        let (class, peer) = (request.class, request.to);
        let index = match self.connections.find(class, peer) {
            Some(Connection::QueuePair(index)) => index,
            Some(Connection::Pending(index)) => match self.pending.waiting(index) {
                Some(pending) => {
                    pending.post(message);
                    return self.lanes[pending.lane.index()].on_post(message.size, message.posted);
                }
                None => self.establish(index),
            },
            None if self.pacer.is_per_queue_pair() => {
                return self.add_pending(class, peer, message);
            }
            None => self.create_queue_pair(class, peer, request.at),
        };
        self.post_to_queue_pair(index, message);
    }

    /// Whether a message must not be posted. Backlogs and scripts are never refused: they post what earlier messages
    /// allow, so their queues are bounded, and they would wait for ever.
    fn is_send_queue_full(&self, request: &WorkRequest) -> bool {
        let Some(max) = self.config.send_queue_max else { return false };
        let item = &self.config.traffic[usize::from(request.item)];
        let is_open_loop =
            item.arrivals != Arrivals::Backlog && !matches!(item.to, Target::Script(_));
        let open = match self.connections.find(request.class, request.to) {
            Some(Connection::QueuePair(index)) => {
                self.queue_pairs[index as usize].requester.open_messages()
            }
            Some(Connection::Pending(index)) => self.pending.get(index).messages.len(),
            None => 0,
        };
        is_open_loop && open >= max as usize
    }

    fn post_to_queue_pair(&mut self, index: u32, message: Message) {
        let Message { posted, size, item, .. } = message;
        let group = self.assign_pacing_group(index, posted);
        let pair = &mut self.queue_pairs[index as usize];
        if pair.sent.offered.messages == 0 {
            self.flow_report.on_first_post(index, pair, self.pacer.group(group).has_moved);
        }
        pair.sent.offered.on_post(item, size);
        if !pair.requester.post(message) {
            pair.sent.offered.withdrawn += 1;
            self.balance.withdrawn += 1;
            return;
        }
        self.lanes[pair.lane.index()].on_post(size, posted);
        self.reschedule(index, posted, posted);
    }

    /// Withdraws every message of traffic item `item` of which no frame has left.
    pub fn withdraw(&mut self, item: u16, now: Instant) {
        for pending in self.pending.shared_by(item) {
            self.establish(pending);
        }
        for index in 0..self.queue_pairs.len() as u32 {
            let withdrawn = self.queue_pairs[index as usize].requester.withdraw(item);
            if withdrawn.messages > 0 {
                self.account_withdrawn(index, withdrawn, now);
                self.reschedule(index, now, now);
            }
        }
        for (lane, withdrawn) in self.lanes.iter_mut().zip(self.pending.withdraw(item)) {
            lane.withdraw(withdrawn, now);
            self.balance.withdrawn += withdrawn.messages;
        }
    }

    /// The next started message of a backlog.
    pub fn poll_started(&mut self) -> Option<MessageStarted> {
        self.started.pop_front()
    }

    /// Whether [`Self::poll_started`] or [`Self::poll_progress`] has something.
    pub fn has_news(&self) -> bool {
        !self.started.is_empty() || !self.progressed.is_empty()
    }

    /// The next progress that a script may wait for.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        let pair = &self.queue_pairs[self.progressed.pop_front()? as usize];
        let (sent, received) = (pair.sent.completed, pair.messages_received());
        Some(Progress { class: pair.class, peer: pair.peer, sent, received })
    }

    /// Queues the progress of a queue pair for the scripts.
    pub(super) fn note_progress(&mut self, index: u32) {
        if self.reports_progress && !self.progressed.contains(&index) {
            self.progressed.push_back(index);
        }
    }

    /// Whether a frame of `lane` waits for nothing but the line and credit.
    pub fn is_ready(&self, lane: VirtualLane) -> bool {
        !self.lanes[lane.index()].control.is_empty()
            || self.scheduler.is_ready(lane)
            || self.pending.has_waiting(lane)
    }

    /// The earliest instant at which a paced flow of `lane` may send; [`Instant::NEVER`] if none waits.
    pub fn next_permission(&self, lane: VirtualLane) -> Instant {
        self.scheduler.next_permission(lane)
    }

    /// When [`ChannelAdapter::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Instant {
        self.out.timers.poll_timeout()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.out.events.pop()
    }

    /// Returns the buffer of a frame that has reached its end to the pool.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// A subnet manager has given the port `lid`, of which the low `bits` are not distinguished.
    pub fn set_address(&mut self, lid: Lid, bits: u8) {
        self.wire.set_own(lid, bits);
    }

    /// The peers of all queue pairs but the `first` ones, by their LIDs of the plan, in the order of creation.
    pub fn peers_from(&self, first: usize) -> impl ExactSizeIterator<Item = Lid> + '_ {
        self.queue_pairs[first..].iter().map(|pair| pair.peer)
    }

    /// Picoseconds, by lane, in which the line was free and the next packet waited only for its reaction point.
    pub fn congested(&self) -> impl Iterator<Item = u64> + '_ {
        self.lanes.iter().map(|lane| lane.congested.as_ps())
    }

    /// The link of the adapter's port.
    pub fn link(&self) -> &LinkConfig {
        &self.config.link
    }

    /// The scheme that the configuration names.
    pub fn scheme_config(&self) -> &SchemeConfig {
        &self.config.scheme
    }

    /// Replaces the roles of this adapter where `roles` has some for the service level. Reaction points begin in their
    /// initial state.
    pub fn set_schemes(
        &mut self,
        roles: impl Fn(ServiceLevel) -> Option<Arc<dyn Roles>>,
        now: Instant,
    ) {
        let of_class = |class: &ClassConfig| roles(class.service_level);
        let schemes: Vec<_> = self.config.classes.iter().map(of_class).collect();
        let kept = |scheme: &Option<Arc<dyn Roles>>| {
            scheme.clone().unwrap_or_else(|| Arc::clone(&self.scheme))
        };
        let all = schemes.iter().map(kept).collect();
        let (scheduler, out) = (&mut self.scheduler, &mut self.out);
        self.pacer.set_schemes(all, &self.config, now, out, |group, permission| {
            scheduler.set_permission(group, permission, now);
        });
        for pair in &mut self.queue_pairs {
            let scheme = &schemes[usize::from(pair.class)];
            if let (Some(scheme), Some(queue)) = (scheme, &mut pair.receive_queue) {
                let purpose = format_args!("notification/managed/{}/{}", pair.class, pair.peer);
                let full_frame = self.wire.full_frame(&self.config.link);
                let place = place(&self.config, full_frame, purpose);
                queue.notification_point = scheme.notification_point(place);
            }
        }
        if let Some(scheme) = schemes.into_iter().flatten().next() {
            self.scheme = scheme;
        }
    }

    /// Handles every timer that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.out.timers.poll_entry(now) {
            let pairs = &mut self.queue_pairs;
            let deadline = match entry.1 {
                Timer::ReactionPoint(group) => {
                    self.on_reaction_point_timeout(group, entry, now);
                    continue;
                }
                Timer::Retransmit(n) => &mut pairs[n as usize].retransmit,
                Timer::ReceiverReady(n) => &mut pairs[n as usize].receiver_ready,
                Timer::Acknowledge(n) => &mut pairs[n as usize].receive_queue_mut().ack_delay,
                Timer::SequenceGap(n) => &mut pairs[n as usize].receive_queue_mut().gap_timer,
                Timer::NotificationPoint(n) => {
                    &mut pairs[n as usize].receive_queue_mut().notification_timer
                }
            };
            if !self.out.timers.expires(deadline, entry, now) {
                continue;
            }
            match entry.1 {
                Timer::ReactionPoint(_) => {}
                Timer::Retransmit(n) => self.on_ack_timeout(n, now),
                Timer::ReceiverReady(n) => {
                    self.queue_pairs[n as usize].requester.on_receiver_ready();
                    self.reschedule(n, now, now);
                }
                Timer::Acknowledge(n) => self.on_ack_delay_timeout(n, now),
                Timer::SequenceGap(n) => self.on_gap_timeout(n, now),
                Timer::NotificationPoint(n) => self.on_notification_timeout(n, now),
            }
        }
    }

    fn on_reaction_point_timeout(&mut self, group: u32, entry: Entry, now: Instant) {
        if let Some(permission) = self.pacer.handle_entry(group, entry, now, &mut self.out) {
            self.scheduler.set_permission(group, permission, now);
            self.report_empty_queue(group, now);
        }
    }

    fn on_ack_timeout(&mut self, index: u32, now: Instant) {
        self.totals.count(Total::AckTimeout);
        let next = self.queue_pairs[index as usize].requester.on_timeout();
        self.apply_action(index, next, now);
    }

    /// Applies the requester's decision.
    pub(super) fn apply_action(&mut self, index: u32, next: RequesterAction, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        match next {
            RequesterAction::Continue => {}
            RequesterAction::GoBack => pair.retransmit.clear(),
            RequesterAction::Wait(wait) => {
                pair.retransmit.clear();
                let timer = Timer::ReceiverReady(index);
                self.out.timers.set(&mut pair.receiver_ready, timer, now + wait);
            }
            RequesterAction::GiveUp => self.give_up(index, now),
        }
        self.reschedule(index, now, now);
    }

    pub(super) fn give_up(&mut self, index: u32, now: Instant) {
        // A queue pair in the error state sends and accepts nothing. Source: IBTA Vol 1, 10.3.1.
        self.open_receive_queue(index);
        let pair = &mut self.queue_pairs[index as usize];
        pair.receive_queue_mut().responder.fail();
        pair.retransmit.clear();
        pair.receiver_ready.clear();
        let withdrawn = pair.requester.give_up();
        let (flow, lane) = (pair.tx_flow, pair.lane);
        self.account_withdrawn(index, withdrawn, now);
        self.totals.count(Total::QueuePairErrors);
        self.out.log(lane, now, EventKind::QueuePairError { flow });
    }

    pub(super) fn account_withdrawn(&mut self, index: u32, withdrawn: Withdrawn, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.offered.withdrawn += withdrawn.messages;
        self.balance.withdrawn += withdrawn.messages;
        self.lanes[pair.lane.index()].withdraw(withdrawn, now);
    }

    /// Updates the scheduler after a change of what the requester can send. `since` is when a frame became
    /// ready.
    pub(super) fn reschedule(&mut self, index: u32, since: Instant, now: Instant) {
        let offered = self.scheduler.has_work(index);
        let pair = &mut self.queue_pairs[index as usize];
        if pair.group.is_none() {
            return;
        }
        if !offered {
            pair.ready_since = since;
        }
        let key = match pair.requester.next_packet() {
            None => None,
            Some(_) if offered && self.config.qp_order == QueuePairOrder::RoundRobin => return,
            Some(packet) => Some(self.next_key(&packet.message)),
        };
        self.scheduler.set_key(index, key, now);
    }
}
