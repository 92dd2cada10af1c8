//! The channel adapter: its state, the messages posted to it, and its timers.

use crate::config::{NicConfig, QueuePairOrder, Target};
use crate::counters::{Latencies, Total, Totals};
use crate::pacer::{Outlet, Pacer};
use crate::timers::{Alarm, Timer, Timers};
use crate::transport::bulletin::Bulletin;
use crate::transport::lane::Lane;
use crate::transport::message::Message;
use crate::transport::peers::{Party, PeerTable};
use crate::transport::prospects::Prospects;
use crate::transport::queue_pair::{InTurn, QueuePair};
use crate::transport::requester::{Next, RetryLimits, Withdrawn};
use crate::transport::schedule::Schedule;
use crate::wire::Wire;
use crate::workload::{Posting, Progress, Started};
use proto::congestion::schemes::Scheme;
use proto::counters::{Balance, FlowId};
use proto::events::{DeviceEvent, EventKind, EventLog};
use proto::frame::{Frame, FramePool};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;
use std::collections::VecDeque;

/// Queue pairs, their order of service and their pacing.
pub struct ChannelAdapter {
    pub(super) config: NicConfig,
    pub(super) wire: Wire,
    pub(super) scheme: &'static Scheme,
    pub(super) peers: PeerTable,
    pub(super) prospects: Prospects,
    pub(super) queue_pairs: Vec<QueuePair>,
    pub(super) bulletin: Bulletin,
    pub(super) schedule: Schedule,
    pub(super) pacer: Pacer,
    pub(super) timers: Timers,
    pub(super) lanes: Vec<Lane>,
    pub(super) pool: FramePool,
    pub(super) events: EventLog,
    pub(super) totals: Totals,
    pub(super) latencies: Latencies,
    pub(super) balance: Balance,
    pub(super) started: VecDeque<Started>,
    /// Some traffic waits for the progress of conversations.
    pub(super) is_followed: bool,
    /// Queue pairs whose conversation has come further, if somebody waits for that.
    pub(super) touched: VecDeque<u32>,
    /// Requests whose turn has come.
    pub(super) in_turn: VecDeque<InTurn>,
    /// The frame being received is one of those.
    pub(super) is_in_turn: bool,
    /// Requests that wait for their turn, those whose turn has come included.
    pub(super) held: u64,
    /// Messages posted so far, and turns taken so far: the two kinds of place in the order.
    pub(super) posted: u64,
    pub(super) turns: u64,
}

impl ChannelAdapter {
    /// An adapter without conversations; `config` has been checked.
    pub fn new(config: NicConfig, scheme: &'static Scheme) -> ChannelAdapter {
        let lanes = usize::from(config.link.data_lanes());
        let wire = Wire::new(&config);
        let full_frame = wire.full_frame(&config.link);
        ChannelAdapter {
            peers: PeerTable::new(config.lid, &config.adapters, config.classes.len()),
            prospects: Prospects::new(lanes),
            queue_pairs: Vec::new(),
            bulletin: Bulletin::new(config.classes.len()),
            schedule: Schedule::new(lanes),
            pacer: Pacer::new(scheme, &config, full_frame),
            timers: Timers::default(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            pool: FramePool::default(),
            events: EventLog::default(),
            totals: Totals::default(),
            latencies: Latencies::default(),
            balance: Balance::default(),
            started: VecDeque::new(),
            is_followed: config.traffic.iter().any(|item| matches!(item.to, Target::Script(_))),
            touched: VecDeque::new(),
            in_turn: VecDeque::new(),
            is_in_turn: false,
            held: 0,
            posted: 0,
            turns: 0,
            scheme,
            wire,
            config,
        }
    }

    /// Takes a message over.
    pub fn post(&mut self, posting: &Posting) {
        let message = Message {
            posted: posting.at,
            sequence: self.posted,
            number: posting.number,
            size: posting.size,
            item: posting.item,
        };
        self.posted += 1;
        let (class, peer) = (posting.class, posting.to);
        let index = match self.peers.find(class, peer) {
            Some(Party::QueuePair(index)) => index,
            Some(Party::Prospect(index)) => match self.prospects.waiting(index) {
                Some(prospect) => {
                    prospect.post(message);
                    return self.lanes[prospect.lane.index()].on_post(message.size, message.posted);
                }
                None => self.begin(index),
            },
            None if self.pacer.is_one_each() => return self.wait(class, peer, message),
            None => self.connect(class, peer, posting.at),
        };
        self.post_to_queue_pair(index, message);
    }

    fn post_to_queue_pair(&mut self, index: u32, message: Message) {
        let Message { posted, size, item, .. } = message;
        let group = self.pace(index, posted);
        let pair = &mut self.queue_pairs[index as usize];
        if pair.sent.offer.messages == 0 {
            self.bulletin.on_first_post(index, pair, self.pacer.has_moved(group));
        }
        pair.sent.offer.on_post(item, size);
        if !pair.requester.post(message) {
            pair.sent.offer.withdrawn += 1;
            self.balance.withdrawn += 1;
            return;
        }
        self.lanes[pair.lane.index()].on_post(size, posted);
        self.refresh(index, posted, posted);
    }

    /// Takes back every message of `item` of which no frame has left.
    pub fn withdraw(&mut self, item: u16, now: Instant) {
        for prospect in self.prospects.shared_by(item) {
            self.begin(prospect);
        }
        for index in 0..self.queue_pairs.len() as u32 {
            let withdrawn = self.queue_pairs[index as usize].requester.withdraw(item);
            if withdrawn.messages > 0 {
                self.account_withdrawn(index, withdrawn, now);
                self.refresh(index, now, now);
            }
        }
        for (lane, withdrawn) in self.lanes.iter_mut().zip(self.prospects.withdraw(item)) {
            lane.take_back(withdrawn, now);
            self.balance.withdrawn += withdrawn.messages;
        }
    }

    /// The next message whose first frame has left and whose item wants to know.
    pub fn poll_started(&mut self) -> Option<Started> {
        self.started.pop_front()
    }

    /// Whether [`ChannelAdapter::poll_started`] has something to say.
    pub fn has_started(&self) -> bool {
        !self.started.is_empty()
    }

    /// The next conversation that has come further, if anybody waits for that.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        let pair = &self.queue_pairs[self.touched.pop_front()? as usize];
        let (sent, received) = (pair.sent.completed, pair.messages_received());
        Some(Progress { class: pair.class, peer: pair.peer, sent, received })
    }

    /// Whether [`ChannelAdapter::poll_progress`] has something to say.
    pub fn has_progress(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The conversation of a queue pair may have come further.
    pub(super) fn touch(&mut self, index: u32) {
        if self.is_followed && !self.touched.contains(&index) {
            self.touched.push_back(index);
        }
    }

    /// Whether a frame for `lane` waits for nothing but the line and credit.
    pub fn is_ready(&self, lane: VirtualLane) -> bool {
        !self.lanes[lane.index()].control.is_empty()
            || self.schedule.is_ready(lane)
            || self.prospects.is_occupied(lane)
    }

    /// When a flow of `lane` may send next.
    pub fn next_permission(&self, lane: VirtualLane) -> Instant {
        self.schedule.next_permission(lane)
    }

    /// When [`ChannelAdapter::handle_timeout`] is needed.
    pub fn poll_timeout(&self) -> Instant {
        self.timers.poll_timeout()
    }

    /// The next event not yet taken.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop()
    }

    /// Takes back the buffer of a packet that has reached its end.
    pub fn recycle(&mut self, frame: Frame) {
        self.pool.recycle(frame);
    }

    /// Lets time pass: every timer that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.timers.poll_entry(now) {
            match entry.1 {
                Timer::ReactionPoint(group) => {
                    let mut outlet = Outlet { timers: &mut self.timers, events: &mut self.events };
                    if let Some(permission) =
                        self.pacer.handle_entry(group, entry, now, &mut outlet)
                    {
                        self.schedule.permit(group, permission, now);
                        self.settle(group, now);
                    }
                }
                Timer::Retransmit(index) => {
                    if self.rings(index, |pair| &mut pair.retransmit, entry, now) {
                        self.on_acknowledgement_overdue(index, now);
                    }
                }
                Timer::ReceiverReady(index) => {
                    if self.rings(index, |pair| &mut pair.receiver_ready, entry, now) {
                        self.queue_pairs[index as usize].requester.on_receiver_ready();
                        self.refresh(index, now, now);
                    }
                }
                Timer::Acknowledge(index) => {
                    if self.rings(index, |pair| &mut pair.receiving().acknowledge, entry, now) {
                        self.on_answer_overdue(index, now);
                    }
                }
                Timer::Missing(index) => {
                    if self.rings(index, |pair| &mut pair.receiving().missing, entry, now) {
                        self.on_missing_overdue(index, now);
                    }
                }
                Timer::NotificationPoint(index) => {
                    if self.rings(index, |pair| &mut pair.receiving().notify, entry, now) {
                        self.on_notification_point_timer(index, now);
                    }
                }
            }
        }
    }

    fn rings(
        &mut self,
        index: u32,
        alarm: fn(&mut QueuePair) -> &mut Alarm,
        entry: (Instant, Timer),
        now: Instant,
    ) -> bool {
        self.timers.rings(alarm(&mut self.queue_pairs[index as usize]), entry, now)
    }

    fn on_acknowledgement_overdue(&mut self, index: u32, now: Instant) {
        self.totals.count(Total::AckTimeout);
        let limits = self.limits();
        let next = self.queue_pairs[index as usize].requester.on_timeout(limits);
        self.proceed(index, next, now);
    }

    /// Does what a requester has decided.
    pub(super) fn proceed(&mut self, index: u32, next: Next, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        match next {
            Next::Continue => {}
            Next::WentBack => pair.retransmit.clear(),
            Next::Wait(wait) => {
                pair.retransmit.clear();
                let timer = Timer::ReceiverReady(index);
                self.timers.set(&mut pair.receiver_ready, timer, now + wait);
            }
            Next::GiveUp => self.give_up(index, now),
        }
        self.refresh(index, now, now);
    }

    pub(super) fn give_up(&mut self, index: u32, now: Instant) {
        // A queue pair in error does nothing any more, in either direction.
        // Source: IBTA Vol 1, 10.3.1 (error state).
        self.open(index).responder.give_up();
        let pair = &mut self.queue_pairs[index as usize];
        pair.retransmit.clear();
        pair.receiver_ready.clear();
        let withdrawn = pair.requester.give_up();
        let (flow, lane) = (pair.sending, pair.lane);
        self.account_withdrawn(index, withdrawn, now);
        self.totals.count(Total::QueuePairErrors);
        self.log(lane, now, EventKind::QueuePairError { flow });
    }

    pub(super) fn account_withdrawn(&mut self, index: u32, withdrawn: Withdrawn, now: Instant) {
        let pair = &mut self.queue_pairs[index as usize];
        pair.sent.offer.withdrawn += withdrawn.messages;
        self.balance.withdrawn += withdrawn.messages;
        self.lanes[pair.lane.index()].take_back(withdrawn, now);
    }

    /// The requester may have something else to send, or nothing: its place in the order follows.
    pub(super) fn refresh(&mut self, index: u32, since: Instant, now: Instant) {
        let offered = self.schedule.is_offered(index);
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
        self.schedule.offer(index, key, now);
    }

    pub(super) fn limits(&self) -> RetryLimits {
        RetryLimits { retry_count: self.config.retry_count, rnr_retry: self.config.rnr_retry }
    }

    pub(super) fn log(&mut self, lane: VirtualLane, at: Instant, kind: EventKind) {
        let port = PortNumber::from_index(0);
        self.events.push(DeviceEvent { at, port, tc: lane.get(), kind });
    }

    /// The flow that `pair` receives.
    pub(super) fn receiving(&self, pair: &QueuePair) -> FlowId {
        FlowId {
            source: pair.sending.destination,
            destination: pair.sending.source,
            ..pair.sending
        }
    }
}
