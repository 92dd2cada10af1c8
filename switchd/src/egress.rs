//! One output port: which frame it sends next, and the congestion points that judge its queues.
//!
//! A frame in transmission keeps its input buffer until its last bit has left (store and forward). Only
//! then the switch returns its credit, and the congestion point judges the next frame of its queue.

use crate::memory::queues::{Occupancy, QueueId, Queued, Queues, Stored};
use marking::Mark;
use notification_queue::NotificationQueue;
use notification_sender::{NotificationSender, SwitchNotification};
use offers::{Offer, Offers};
use proto::Technology;
use proto::congestion::{CongestionPoint, Marking, Notification, QueueSample};
use proto::device::{Departure, Step};
use proto::events::{DeviceEvent, EventKind, EventLog};
use proto::frame::{Frame, FrameClass, FramePool};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::port::{Grant, LinkPort, Transmission};
use proto::units::{Bytes, Instant};
use service::Service;
use std::collections::VecDeque;

mod marking;
mod notification_queue;
pub mod notification_sender;
mod offers;
pub mod service;

/// Packets that the VL15 buffer of an output holds. VL15 has no credits.
const MANAGEMENT_DEPTH: usize = 16;

/// What an output works with besides its own state and the queues.
pub struct Context<'a> {
    /// The port of the output.
    pub port: &'a mut LinkPort,
    /// Buffers for new frames.
    pub pool: &'a mut FramePool,
    /// Events of the switch.
    pub log: &'a mut EventLog,
    /// The present step.
    pub step: Step,
}

/// A frame whose last bit has not left yet.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// The queue it was taken from.
    pub queue: QueueId,
    /// The lane whose input buffer it occupies.
    pub input_lane: VirtualLane,
    /// Octets from LRH to VCRC, or DA to FCS.
    pub size: Bytes,
    /// When its last bit leaves.
    pub end: Instant,
    /// The key that all copies of a multicast packet share.
    pub group: Option<u32>,
    /// The latest wait for flow control while this frame was first of its queue.
    pub waited: Option<Instant>,
}

/// The state of one data lane. Every frame reads it, so it stays within a cache line.
struct Lane {
    point: Box<dyn CongestionPoint>,
    /// The wait for flow control of the frame sent last.
    stalled_before: Option<Instant>,
    /// When the latest wait for flow control ended.
    last_stall: Option<Instant>,
    /// When the last bit of the frame sent last leaves, or left.
    last_departure: Option<Instant>,
}

/// The state of one output port.
pub struct Egress {
    technology: Technology,
    /// By data lane.
    lanes: Vec<Lane>,
    /// By input and data lane: when the last frame of that queue left.
    queue_departure: Vec<Instant>,
    management: VecDeque<Frame>,
    /// Ethernet only.
    sender: Option<Box<NotificationSender>>,
    notifications: NotificationQueue,
    under_way: Option<UnderWay>,
    /// A frame waits for the line to become free.
    awaits_line: bool,
    service: Option<Box<Service>>,
    /// Until when only the service rate holds data back.
    awaits_service: Instant,
}

impl Egress {
    /// An output with one congestion point per data lane, in a switch with `inputs` ports.
    pub fn new(
        points: Vec<Box<dyn CongestionPoint>>,
        inputs: usize,
        technology: Technology,
    ) -> Egress {
        let queue_departure = vec![Instant::ZERO; points.len() * inputs];
        let lane =
            |point| Lane { point, stalled_before: None, last_stall: None, last_departure: None };
        Egress {
            technology,
            lanes: points.into_iter().map(lane).collect(),
            queue_departure,
            management: VecDeque::new(),
            sender: None,
            notifications: NotificationQueue::default(),
            under_way: None,
            awaits_line: false,
            service: None,
            awaits_service: Instant::NEVER,
        }
    }

    /// The same output, with messages of its congestion points.
    pub fn with_sender(self, sender: Option<NotificationSender>) -> Egress {
        let lane = sender.map_or(VirtualLane::ZERO, |sender| sender.lane);
        Egress { sender: sender.map(Box::new), notifications: NotificationQueue::new(lane), ..self }
    }

    /// The same output, with a limited service rate.
    pub fn with_service(self, service: Option<Box<Service>>) -> Egress {
        Egress { service, ..self }
    }

    /// Replaces the congestion points of all lanes.
    pub fn set_points(&mut self, points: Vec<Box<dyn CongestionPoint>>) {
        self.lanes.iter_mut().zip(points).for_each(|(lane, point)| lane.point = point);
    }

    /// Whether the last bit of the frame under way has left by `now`. Called at every turn, mostly without
    /// result.
    #[inline]
    pub fn has_sent(&self, now: Instant) -> bool {
        self.under_way.as_ref().is_some_and(|frame| frame.end <= now)
    }

    /// Removes the frame that was under way.
    pub fn finish(&mut self) -> Option<UnderWay> {
        self.under_way.take()
    }

    /// Whether a frame is still under way at `now`. Its end is a wake-up of the switch.
    #[inline]
    pub fn is_sending(&self, now: Instant) -> bool {
        self.under_way.as_ref().is_some_and(|frame| frame.end > now)
    }

    /// Queues a management packet.
    ///
    /// # Errors
    /// The frame, if the queue is full.
    pub fn store_management(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.management.len() >= MANAGEMENT_DEPTH {
            return Err(frame);
        }
        self.management.push_back(frame);
        Ok(())
    }

    /// Queues a message of a congestion point of this switch.
    ///
    /// # Errors
    /// The frame, if the queue is full.
    pub fn store_notification(&mut self, frame: Frame, now: Instant) -> Result<(), Frame> {
        self.notifications.store(frame, now)
    }

    /// Queued management packets and messages of this switch.
    pub fn own_frames(&self) -> u64 {
        (self.management.len() + self.notifications.len()) as u64
    }

    /// Adds the counters of the congestion points, under operators' names.
    pub fn read(&self, named: &mut Vec<(String, u64)>) {
        for (number, lane) in self.lanes.iter().enumerate() {
            lane.point.read(&format!("queue{number}"), named);
        }
    }

    /// Whether the switch must wake up when the line is free.
    pub fn needs_line(&self) -> bool {
        self.awaits_line || self.under_way.is_some()
    }

    /// Until when only the service rate holds data back; [`Instant::NEVER`] if it holds none.
    pub fn awaits_service(&self) -> Instant {
        self.awaits_service
    }

    /// When the last bit of the latest frame sent on `lane` leaves.
    pub fn last_departure(&self, lane: VirtualLane) -> Option<Instant> {
        self.lanes[lane.index()].last_departure
    }

    /// Judges a frame that has just joined queue `id`: as an arrival, and as head if it is the first. A frame
    /// behind one that is still under way is not head yet; [`Egress::on_head`] judges it later. Returns the
    /// message of the congestion point, if there is one.
    pub fn on_stored(
        &mut self,
        id: QueueId,
        queued: Queued<'_>,
        context: &mut Context<'_>,
    ) -> Option<SwitchNotification> {
        let Queued { packet, is_first, occupancy } = queued;
        let blocked = self.blocked_since(id.lane, context.port);
        let sample = self.sample(id, occupancy, context.port, blocked);
        let point = &mut self.lanes[id.lane.index()].point;
        let marking = point.on_enqueue(&packet.headers, &sample, context.step.now);
        let mut notification = self.apply(marking, &sample, id.lane, packet, context);
        let follows =
            |ahead: UnderWay| (ahead.queue.input, ahead.queue.lane) == (id.input, id.lane);
        if is_first && !self.under_way.is_some_and(follows) {
            notification = self.judge_head(id.lane, packet, sample, context).or(notification);
        }
        self.message(&notification?, packet, id.lane, context.pool)
    }

    /// Judges `packet`, which became the first of queue `id`. `blocked` is the latest wait for flow control
    /// of its lane, or of the frame ahead of it.
    pub fn on_head(
        &mut self,
        id: QueueId,
        (packet, occupancy): (&mut Stored, Occupancy),
        blocked: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Option<SwitchNotification> {
        let sample = self.sample(id, occupancy, context.port, blocked);
        let notification = self.judge_head(id.lane, packet, sample, context)?;
        self.message(&notification, packet, id.lane, context.pool)
    }

    /// Reports a frame of `size` octets on its way to queue `id` that was dropped for want of room.
    pub fn on_refused(
        &mut self,
        id: QueueId,
        size: Bytes,
        occupancy: Occupancy,
        port: &LinkPort,
        now: Instant,
    ) {
        let sample = self.sample(id, occupancy, port, self.blocked_since(id.lane, port));
        self.lanes[id.lane.index()].point.on_drop(size, &sample, now);
    }

    /// Since when flow control has blocked `lane`; while a frame of the lane is under way, the wait of that
    /// frame.
    fn blocked_since(&self, lane: VirtualLane, port: &LinkPort) -> Option<Instant> {
        let is_sending = || self.under_way.is_some_and(|frame| frame.queue.lane == lane);
        let stalled = || self.lanes[lane.index()].stalled_before.filter(|_| is_sending());
        port.blocked_since(lane).or_else(stalled)
    }

    fn sample(
        &self,
        id: QueueId,
        occupancy: Occupancy,
        port: &LinkPort,
        blocked_since: Option<Instant>,
    ) -> QueueSample {
        QueueSample {
            ingress: id.input,
            queue: occupancy.output,
            ingress_buffer: occupancy.input,
            line_rate: port.rate(),
            blocked_since,
            last_departure: self.lanes[id.lane.index()].last_departure,
        }
    }

    fn judge_head(
        &mut self,
        lane: VirtualLane,
        packet: &mut Stored,
        mut sample: QueueSample,
        context: &mut Context<'_>,
    ) -> Option<Notification> {
        if !context.port.may_transmit(lane, packet.headers.size) {
            sample.blocked_since = sample.blocked_since.or(Some(context.step.now));
        }
        let point = &mut self.lanes[lane.index()].point;
        let marking = point.on_head(&packet.headers, &sample, context.step.now);
        self.apply(marking, &sample, lane, packet, context)
    }

    /// Records a mark in the headers beside the frame, or returns the notification.
    #[inline]
    fn apply(
        &self,
        marking: Marking,
        sample: &QueueSample,
        lane: VirtualLane,
        packet: &mut Stored,
        context: &mut Context<'_>,
    ) -> Option<Notification> {
        match marking {
            Marking::Pass => None,
            Marking::Notify(notification) => Some(notification),
            Marking::Fecn { .. } | Marking::Ce { .. } => {
                let mark = marking::decide(marking, self.technology, &mut packet.headers);
                context.count(mark, sample, lane);
                None
            }
        }
    }

    /// The message for the source of `sampled`, a frame of `lane`.
    fn message(
        &mut self,
        notification: &Notification,
        sampled: &Stored,
        lane: VirtualLane,
        pool: &mut FramePool,
    ) -> Option<SwitchNotification> {
        let sender = self.sender.as_ref()?;
        let mut room = pool.take();
        let octets = sampled.frame.whole(&mut room);
        let message = sender.message(notification, octets, &sampled.headers, lane, pool);
        pool.keep(room);
        let message = message?;
        self.lanes[lane.index()].point.on_message();
        Some(message)
    }

    /// The next frame that starts to leave, if one may at `now`. Its octets are final.
    pub fn poll_transmit(
        &mut self,
        queues: &mut Queues,
        context: &mut Context<'_>,
    ) -> Option<Departure> {
        let number = context.port.number();
        self.awaits_service = Instant::NEVER;
        if context.port.line_free_at() > context.step.now {
            // The end of a frame under way is a wake-up anyway.
            self.awaits_line = self.under_way.is_none()
                && (!self.management.is_empty()
                    || !self.notifications.is_empty()
                    || queues.is_waiting(number)
                    || context.port.control_is_due(context.step.now));
            return None;
        }
        self.awaits_line = false;
        let open_at = self.service.as_ref().map_or(Instant::ZERO, |service| service.open_at());
        let mut offers = Offers {
            port: number,
            queues,
            management: &self.management,
            notifications: &self.notifications,
            open_at,
            is_deferred: false,
        };
        let Context { port, pool, log, step } = context;
        match port.poll_transmit(&mut offers, pool, *step, log) {
            Some(Transmission::Control(departure)) => Some(departure),
            Some(Transmission::Granted(grant)) => self.transmit(grant, queues, context),
            None => {
                if offers.is_deferred {
                    self.awaits_service = open_at;
                }
                None
            }
        }
    }

    /// Takes the granted frame out of its queue. No queue changes between offer and grant, so it is there.
    fn transmit(
        &mut self,
        grant: Grant<Offer>,
        queues: &mut Queues,
        context: &mut Context<'_>,
    ) -> Option<Departure> {
        let frame = match grant.offer {
            Offer::Management => self.management.pop_front()?,
            Offer::Notification => self.notifications.pop()?,
            Offer::Queued(id) => {
                let stored = queues.take(id, grant.end)?;
                self.put_on_line(stored, id, &grant, queues.occupancy(id), context)
            }
        };
        Some(grant.departure(frame))
    }

    /// Makes the last changes to a frame that leaves: marking, lane and link CRC.
    fn put_on_line(
        &mut self,
        mut stored: Stored,
        queue: QueueId,
        grant: &Grant<Offer>,
        occupancy: Occupancy,
        context: &mut Context<'_>,
    ) -> Frame {
        let headers = &mut stored.headers;
        if let Some(service) = self.service.as_mut().filter(|_| headers.class == FrameClass::Data) {
            service.on_start(stored.frame.line_size(), grant.start);
        }
        let sample = self.sample(queue, occupancy, context.port, grant.held_since);
        let last = queue.input.index() * self.lanes.len() + queue.lane.index();
        let lane = &mut self.lanes[queue.lane.index()];
        let marking = lane.point.on_dequeue(headers, &sample, context.step.now);
        let mark = marking::decide(marking, self.technology, headers);
        context.count(mark, &sample, queue.lane);
        marking::write(headers, queue.lane, &mut stored.frame);
        lane.last_departure = Some(grant.end);
        lane.stalled_before = grant.held_since;
        if grant.held_since.is_some() {
            lane.last_stall = Some(context.step.now);
        }
        let waited = lane.last_stall.filter(|stall| *stall >= self.queue_departure[last]);
        self.queue_departure[last] = grant.end;
        let Stored { frame, headers, input_lane, group, .. } = stored;
        let (size, end) = (headers.size, grant.end);
        self.under_way = Some(UnderWay { queue, input_lane, size, end, group, waited });
        frame
    }
}

impl Context<'_> {
    /// Counts and logs a mark.
    fn count(&mut self, mark: Option<Mark>, sample: &QueueSample, lane: VirtualLane) {
        let Some(Mark { flow, kind: mark, limit }) = mark else { return };
        self.port.counters_mut(lane).marks += 1;
        let kind = EventKind::Mark { flow, mark, queue: sample.queue, limit };
        let port: PortNumber = self.port.number();
        self.log.push(DeviceEvent { at: self.step.now, port, tc: lane.get(), kind });
    }
}
