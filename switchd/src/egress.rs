//! The way out of the switch: what an output sends next, and the congestion point that judges it.
//!
//! A frame under way keeps its place in the input buffer until its last bit has left (store and
//! forward); only then is its credit returned and the frame behind it judged as the new head.

use crate::memory::queues::Queues;
use marking::{Dialect, Mark};
use notices::Notices;
use notify::Herald;
use proto::congestion::{CongestionPoint, Marking, Notification, QueueSample};
use proto::device::Departure;
use proto::events::{DeviceEvent, EventKind, EventLog, NoteKind};
use proto::frame::{Frame, FrameClass, FrameHeaders, FramePool};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::port::{Head, LaneSource, LinkPort};
use proto::units::{Bytes, Instant};
use service::Service;
use std::collections::VecDeque;

pub mod marking;
pub mod notices;
pub mod notify;
pub mod service;

/// VL15 has a buffer of its own, of so many packets, and no credits.
const MANAGEMENT_DEPTH: usize = 16;

/// A frame whose last bit has not yet left.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// Where it came from.
    pub input: PortNumber,
    /// The lane whose buffer it still occupies there.
    pub input_lane: VirtualLane,
    /// The lane it leaves by.
    pub lane: VirtualLane,
    /// Its size, LRH to VCRC.
    pub size: Bytes,
    /// When its last bit leaves.
    pub end: Instant,
    /// Copies of one packet share this key.
    pub group: Option<u32>,
    /// The latest wait for credit while this frame was first of its queue.
    pub waited: Option<Instant>,
}

/// What an output knows of one data lane: no more than a cache line, for each frame needs it.
struct Lane {
    point: Box<dyn CongestionPoint>,
    /// The wait for credit that the frame sent last had to endure.
    stalled_before: Option<Instant>,
    /// When the latest wait for credit ended.
    last_stall: Option<Instant>,
    /// When the last bit of the frame sent last leaves, or left.
    last_departure: Option<Instant>,
}

/// One output port's own state.
pub struct Egress {
    dialect: Dialect,
    /// By data lane.
    lanes: Vec<Lane>,
    /// By input and data lane: when the last frame of that queue left.
    queue_departure: Vec<Instant>,
    management: VecDeque<Frame>,
    /// How this port speaks for its congestion points; not on InfiniBand.
    herald: Option<Box<Herald>>,
    /// What a congestion point has just said, until the switch takes it.
    said: Option<Notification>,
    notices: Notices,
    under_way: Option<UnderWay>,
    /// Something waits for the line to become free.
    awaits_line: bool,
    /// What keeps data back although the line is free.
    service: Option<Box<Service>>,
    /// Until when it does so, if any waits for nothing else.
    awaits_service: Instant,
}

/// The view a port has of what it could send.
struct Output<'a> {
    port: PortNumber,
    queues: &'a mut Queues,
    management: &'a mut VecDeque<Frame>,
    notices: &'a mut Notices,
    /// What was taken last, its octets left out: they are on the line.
    taken: Option<Taken>,
    /// Data may not start earlier.
    open_at: Instant,
    /// Some would.
    is_kept_back: bool,
}

/// A frame just put on the line, as far as the congestion point is still concerned.
struct Taken {
    headers: FrameHeaders,
    place: Placed,
    input_lane: VirtualLane,
    group: Option<u32>,
    /// The wait for credit that it had to endure.
    held_since: Option<Instant>,
    start: Instant,
    end: Instant,
}

impl LaneSource for Output<'_> {
    fn lanes(&self) -> u16 {
        let management = u16::from(!self.management.is_empty()) << VirtualLane::MANAGEMENT.index();
        management | self.notices.lanes() | self.queues.waiting(self.port)
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head> {
        if lane == VirtualLane::MANAGEMENT {
            let size = self.management.front()?.line_size();
            return Some(Head { size, ready: now, class: FrameClass::Management });
        }
        if let Some(notice) = self.notices.head(lane) {
            return Some(notice);
        }
        let next = self.queues.next_out(self.port, lane, now)?;
        let mut ready = next.ready;
        if self.open_at > Instant::ZERO && next.class == FrameClass::Data {
            if self.open_at > now {
                self.is_kept_back = true;
                return None;
            }
            ready = ready.max(self.open_at);
        }
        Some(Head { size: next.size, ready, class: next.class })
    }

    fn take(
        &mut self,
        lane: VirtualLane,
        held_since: Option<Instant>,
        start: Instant,
        end: Instant,
    ) -> Frame {
        if lane == VirtualLane::MANAGEMENT {
            return self.management.pop_front().expect("a management packet was announced");
        }
        if let Some(notice) = self.notices.take(lane) {
            return notice;
        }
        let stored = self.queues.take(self.port, lane, end);
        self.taken = Some(Taken {
            headers: stored.headers,
            place: Placed { input: stored.input, output: self.port, lane },
            input_lane: stored.input_lane,
            group: stored.group,
            held_since,
            start,
            end,
        });
        stored.frame
    }
}

impl Egress {
    /// An output with one congestion point a data lane.
    pub fn new(points: Vec<Box<dyn CongestionPoint>>, inputs: usize, dialect: Dialect) -> Egress {
        let queue_departure = vec![Instant::ZERO; points.len() * inputs];
        let lane =
            |point| Lane { point, stalled_before: None, last_stall: None, last_departure: None };
        Egress {
            dialect,
            lanes: points.into_iter().map(lane).collect(),
            queue_departure,
            management: VecDeque::new(),
            herald: None,
            said: None,
            notices: Notices::default(),
            under_way: None,
            awaits_line: false,
            service: None,
            awaits_service: Instant::NEVER,
        }
    }

    /// The same, whose congestion points `herald` speaks for.
    pub fn with_herald(self, herald: Option<Herald>) -> Egress {
        let lane = herald.map_or(VirtualLane::ZERO, |herald| herald.lane);
        Egress { herald: herald.map(Box::new), notices: Notices::new(lane), ..self }
    }

    /// The same, which serves its data only as `service` permits.
    pub fn with_service(self, service: Option<Box<Service>>) -> Egress {
        Egress { service, ..self }
    }

    /// Whether the last bit of the frame under way has left by `now`. Asked at every turn, and mostly
    /// for nothing.
    #[inline]
    pub fn has_sent(&self, now: Instant) -> bool {
        self.under_way.as_ref().is_some_and(|frame| frame.end <= now)
    }

    /// The frame that was under way.
    pub fn finish(&mut self) -> Option<UnderWay> {
        self.under_way.take()
    }

    /// Whether a frame is still under way at `now`; its end will bring the device back.
    #[inline]
    pub fn is_sending(&self, now: Instant) -> bool {
        self.under_way.as_ref().is_some_and(|frame| frame.end > now)
    }

    /// Keeps a management packet; gives it back if there is no room.
    pub fn store_management(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.management.len() >= MANAGEMENT_DEPTH {
            return Err(frame);
        }
        self.management.push_back(frame);
        Ok(())
    }

    /// Management packets waiting.
    pub fn management_waiting(&self) -> u64 {
        self.management.len() as u64
    }

    /// What a congestion point has said of the frame just judged.
    #[inline]
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.said.take()
    }

    /// The message that tells the source of a sampled frame what was said of it.
    pub fn message(
        &mut self,
        notification: &Notification,
        sampled: &[u8],
        headers: &FrameHeaders,
        lane: VirtualLane,
        pool: &mut FramePool,
    ) -> Option<(Frame, NoteKind)> {
        let herald = self.herald.as_ref()?;
        let message = herald.message(notification, sampled, headers, lane, pool)?;
        self.lanes[lane.index()].point.on_message();
        Some(message)
    }

    /// Keeps a message of the switch itself; gives it back if there is no room.
    pub fn store_notice(&mut self, frame: Frame, now: Instant) -> Result<(), Frame> {
        self.notices.store(frame, now)
    }

    /// Messages of the switch itself that wait.
    pub fn notices_waiting(&self) -> u64 {
        self.notices.len() as u64
    }

    /// Adds what the congestion points count, under operators' names.
    pub fn read(&self, named: &mut Vec<(String, u64)>) {
        for (number, lane) in self.lanes.iter().enumerate() {
            lane.point.read(&format!("queue{number}"), named);
        }
    }

    /// Whether the device must come back when the line is free.
    pub fn needs_line(&self) -> bool {
        self.awaits_line || self.under_way.is_some()
    }

    /// Until when only the service keeps data back that waits; [`Instant::NEVER`] if it keeps none.
    pub fn awaits_service(&self) -> Instant {
        self.awaits_service
    }

    /// A frame was stored for this output: judges it on arrival, and as head if it became one. One
    /// whose predecessor is still under way is not head yet: it is judged when that has left.
    pub fn on_stored(
        &mut self,
        stored: Placed,
        is_head: bool,
        queues: &mut Queues,
        port: &mut LinkPort,
        now: Instant,
        log: &mut EventLog,
    ) {
        let blocked =
            port.blocked_since(stored.lane).or(self.stall_of_frame_under_way(stored.lane));
        let sample = self.sample(stored, queues, port, blocked);
        let point = &mut self.lanes[stored.lane.index()].point;
        if let Some(packet) = queues.tail(stored.input, stored.output, stored.lane) {
            let marking = point.on_enqueue(&packet.headers, &sample, now);
            keep(&marking, &mut self.said);
            let mark = marking::decide(marking, self.dialect, &mut packet.headers);
            note(mark, &sample, stored.lane, port, now, log);
        }
        let follows = |ahead: UnderWay| (ahead.input, ahead.lane) == (stored.input, stored.lane);
        if is_head && !self.under_way.is_some_and(follows) {
            self.on_head(stored, blocked, queues, port, now, log);
        }
    }

    /// A frame on its way to `place` was refused for want of room.
    pub fn on_refused(
        &mut self,
        place: Placed,
        size: Bytes,
        queues: &Queues,
        port: &LinkPort,
        now: Instant,
    ) {
        if place.lane.index() >= self.lanes.len() {
            return;
        }
        let blocked = port.blocked_since(place.lane).or(self.stall_of_frame_under_way(place.lane));
        let sample = self.sample(place, queues, port, blocked);
        self.lanes[place.lane.index()].point.on_drop(size, &sample, now);
    }

    /// A frame became first of its queue.
    pub fn on_head(
        &mut self,
        place: Placed,
        blocked: Option<Instant>,
        queues: &mut Queues,
        port: &mut LinkPort,
        now: Instant,
        log: &mut EventLog,
    ) {
        let mut sample = self.sample(place, queues, port, blocked);
        let point = &mut self.lanes[place.lane.index()].point;
        if let Some(packet) = queues.head(place.input, place.output, place.lane) {
            if !port.has_credit(place.lane, packet.headers.size) {
                sample.blocked_since = sample.blocked_since.or(Some(now));
            }
            let marking = point.on_head(&packet.headers, &sample, now);
            keep(&marking, &mut self.said);
            let mark = marking::decide(marking, self.dialect, &mut packet.headers);
            note(mark, &sample, place.lane, port, now, log);
        }
    }

    /// When the last bit of the latest frame sent on `lane` leaves.
    pub fn last_departure(&self, lane: VirtualLane) -> Option<Instant> {
        self.lanes[lane.index()].last_departure
    }

    fn stall_of_frame_under_way(&self, lane: VirtualLane) -> Option<Instant> {
        self.under_way
            .filter(|frame| frame.lane == lane)
            .and_then(|_| self.lanes[lane.index()].stalled_before)
    }

    fn sample(
        &self,
        place: Placed,
        queues: &Queues,
        port: &LinkPort,
        blocked_since: Option<Instant>,
    ) -> QueueSample {
        let occupancy = queues.occupancy(place.input, place.output, place.lane);
        QueueSample {
            ingress: place.input,
            queue: occupancy.output,
            ingress_buffer: occupancy.input,
            line_rate: port.rate(),
            blocked_since,
            last_departure: self.lanes[place.lane.index()].last_departure,
        }
    }

    /// The next frame that starts to leave, if any may at `now`.
    pub fn poll_transmit(
        &mut self,
        port: &mut LinkPort,
        queues: &mut Queues,
        pool: &mut FramePool,
        now: Instant,
        log: &mut EventLog,
    ) -> Option<Departure> {
        let number = port.number();
        self.awaits_service = Instant::NEVER;
        if port.line_free_at() > now {
            // The end of a frame under way brings the device back in any case.
            self.awaits_line = self.under_way.is_none()
                && (!self.management.is_empty()
                    || !self.notices.is_empty()
                    || queues.is_waiting(number)
                    || port.control_is_due(now));
            return None;
        }
        self.awaits_line = false;
        let (management, notices) = (&mut self.management, &mut self.notices);
        let is_kept_back = false;
        let open_at = self.service.as_ref().map_or(Instant::ZERO, |service| service.open_at());
        let mut output = Output {
            port: number,
            queues,
            management,
            notices,
            taken: None,
            open_at,
            is_kept_back,
        };
        let departure = port.poll_transmit(&mut output, pool, now, log);
        let Some(mut departure) = departure else {
            if output.is_kept_back {
                self.awaits_service = open_at;
            }
            return None;
        };
        if let Some(taken) = output.taken {
            self.put_on_line(taken, &mut departure.frame, queues, port, now, log);
        }
        Some(departure)
    }

    /// The last changes to a frame that leaves: marking, lane, link CRC.
    fn put_on_line(
        &mut self,
        taken: Taken,
        frame: &mut Frame,
        queues: &Queues,
        port: &mut LinkPort,
        now: Instant,
        log: &mut EventLog,
    ) {
        let Taken { mut headers, place, input_lane, group, held_since, start, end } = taken;
        if let Some(service) = self.service.as_mut().filter(|_| headers.class == FrameClass::Data) {
            service.on_start(frame.line_size(), start);
        }
        let sample = self.sample(place, queues, port, held_since);
        let queue = place.input.index() * self.lanes.len() + place.lane.index();
        let lane = &mut self.lanes[place.lane.index()];
        let marking = lane.point.on_dequeue(&headers, &sample, now);
        let mark = marking::decide(marking, self.dialect, &mut headers);
        note(mark, &sample, place.lane, port, now, log);
        marking::write(&headers, place.lane, frame);
        lane.last_departure = Some(end);
        lane.stalled_before = held_since;
        if held_since.is_some() {
            lane.last_stall = Some(now);
        }
        let waited = lane.last_stall.filter(|stall| *stall >= self.queue_departure[queue]);
        self.queue_departure[queue] = end;
        let (input, lane, size) = (place.input, place.lane, headers.size);
        self.under_way = Some(UnderWay { input, input_lane, lane, size, end, group, waited });
    }
}

/// Keeps a notification for the switch, which makes a message of it.
#[inline]
fn keep(marking: &Marking, said: &mut Option<Notification>) {
    if let Marking::Notify(notification) = marking {
        *said = Some(*notification);
    }
}

/// Counts a mark and tells of it.
fn note(
    mark: Option<Mark>,
    sample: &QueueSample,
    lane: VirtualLane,
    port: &mut LinkPort,
    now: Instant,
    log: &mut EventLog,
) {
    let Some(Mark { flow, kind: mark, limit }) = mark else { return };
    port.counters_mut(lane).marks += 1;
    let kind = EventKind::Mark { flow, mark, queue: sample.queue, limit };
    log.push(DeviceEvent { at: now, port: port.number(), tc: lane.get(), kind });
}

/// Where a frame waits.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The port it came in by.
    pub input: PortNumber,
    /// The port it leaves by.
    pub output: PortNumber,
    /// The lane it leaves by.
    pub lane: VirtualLane,
}
