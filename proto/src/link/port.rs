//! One port of a device: what is checked on the way in, who goes first on the way out.
//!
//! On the way in ([`inward`]) a frame is checked and buffer taken for it. On the way out flow-control packets go
//! first, then VL15, then the data lanes as the arbiter says, each only with credits for the whole
//! packet (IBTA Vol 1, 7.6.9, 7.9.4). What could leave is the owner's business ([`LaneSource`]).

use crate::counters::{
    Condition, DropReason, Drops, Gauge, LaneCounters, LaneReading, PortReading,
};
use crate::device::Departure;
use crate::events::{DeviceEvent, EventKind, EventLog, HoldCause};
use crate::frame::{Frame, FrameClass, FrameKind, FramePool};
use crate::ids::{PortNumber, VirtualLane};
use crate::link::credit::{CreditFlow, LinkState};
use crate::link::serializer::Serializer;
use crate::link::vl_arbiter::VlArbiter;
use crate::link::{LinkConfig, full_frame};
use crate::units::{BitRate, Bytes, Instant};
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;

pub use inward::Arrival;

mod inward;

/// The frame that an owner would send next on a lane.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its octets on the line.
    pub size: Bytes,
    /// Since when it could leave, the line and its credits aside; not in the future.
    pub ready: Instant,
    /// What kind of frame it is.
    pub class: FrameClass,
}

/// Whoever keeps the frames: virtual output queues in a switch, queue pairs in a NIC.
pub trait LaneSource {
    /// The frame to send next on `lane`, if one is ready at `now`. Called again until
    /// [`LaneSource::take`], it gives the same answer unless something became ready.
    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head>;

    /// Hands over the frame just announced; its first bit leaves at `start`, its last at `end`.
    fn take(&mut self, lane: VirtualLane, start: Instant, end: Instant) -> Frame;
}

/// One port.
#[derive(Debug)]
pub struct LinkPort {
    number: PortNumber,
    mtu: Bytes,
    line: Serializer,
    flow: CreditFlow,
    arbiter: VlArbiter,
    lanes: Vec<LaneState>,
    management: LaneCounters,
    drops: Drops,
    watchdogs: u64,
    link_local: u64,
}

#[derive(Clone, Debug, Default)]
struct LaneState {
    counters: LaneCounters,
    hold: Condition,
    in_queue: Gauge,
}

impl LinkPort {
    /// Port `number`, announcing its buffer from `now` on.
    pub fn new(number: PortNumber, config: &LinkConfig, now: Instant) -> LinkPort {
        let lanes = config.data_lanes.clamp(1, 15);
        let share = Bytes::new(config.buffer.get() / u64::from(lanes));
        LinkPort {
            number,
            mtu: config.mtu,
            line: Serializer::new(config.rate),
            flow: CreditFlow::new(
                lanes,
                share,
                full_frame(config.mtu),
                config.rate,
                config.lanes.max(1),
                now,
            ),
            arbiter: VlArbiter::new(&config.arbitration, lanes),
            lanes: vec![LaneState::default(); usize::from(lanes)],
            management: LaneCounters::default(),
            drops: Drops::default(),
            watchdogs: 0,
            link_local: 0,
        }
    }

    /// The port's number.
    pub fn number(&self) -> PortNumber {
        self.number
    }

    /// The line's rate.
    pub fn rate(&self) -> BitRate {
        self.line.rate()
    }

    /// When the last bit of the last frame leaves, or left.
    pub fn line_free_at(&self) -> Instant {
        self.line.free_at()
    }

    /// The link's state.
    pub fn state(&self) -> LinkState {
        self.flow.state()
    }

    /// Input buffer of one data lane.
    pub fn lane_buffer(&self) -> Bytes {
        self.flow.capacity()
    }

    /// Octets of input buffer in use on `lane`.
    pub fn in_use(&self, lane: VirtualLane) -> Bytes {
        self.flow.in_use(lane)
    }

    /// Whether a flow-control packet waits for the line at `now`.
    pub fn control_is_due(&self, now: Instant) -> bool {
        self.flow.control_due(now).is_some()
    }

    /// Whether the peer has room for a packet of `size` on `lane` now.
    pub fn has_credit(&self, lane: VirtualLane, size: Bytes) -> bool {
        self.flow.may_transmit(lane, size)
    }

    /// Since when a ready frame has waited for credit on `lane`.
    pub fn blocked_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.lanes.get(lane.index()).and_then(|lane| lane.hold.since())
    }

    /// How many data lanes are operational.
    pub fn data_lanes(&self) -> u8 {
        self.flow.lanes()
    }

    /// Whether `lane` may carry anything here.
    pub fn is_operational(&self, lane: VirtualLane) -> bool {
        lane == VirtualLane::MANAGEMENT || lane.index() < self.lanes.len()
    }

    /// Frames of this link alone that were sent.
    pub fn link_local_sent(&self) -> u64 {
        self.link_local
    }

    /// The owner ended a frame that came in by this port.
    pub fn count_drop(
        &mut self,
        reason: DropReason,
        size: Bytes,
        tc: u8,
        now: Instant,
        log: &mut EventLog,
    ) {
        self.drops.count(reason);
        self.log(log, now, tc, EventKind::Drop { reason, bytes: size });
    }

    /// The owner's counters of a lane, for what only it sees (marks, notifications, queues).
    pub fn counters_mut(&mut self, lane: VirtualLane) -> &mut LaneCounters {
        match self.lanes.get_mut(lane.index()) {
            Some(lane) => &mut lane.counters,
            None => &mut self.management,
        }
    }

    fn log(&self, log: &mut EventLog, at: Instant, tc: u8, kind: EventKind) {
        log.push(DeviceEvent { at, port: self.number, tc, kind });
    }

    /// The next frame to leave, if the line is free at `now` and something may go.
    pub fn poll_transmit(
        &mut self,
        source: &mut impl LaneSource,
        pool: &mut FramePool,
        now: Instant,
        log: &mut EventLog,
    ) -> Option<Departure> {
        if self.line.free_at() > now {
            return None;
        }
        if let Some(due) = self.flow.control_due(now) {
            return self.send_control(due, pool, now);
        }
        if let Some(head) = source.head(VirtualLane::MANAGEMENT, now) {
            self.management.ctl_tx += 1;
            return Some(self.send(source, VirtualLane::MANAGEMENT, head.size, head.ready));
        }
        let mut heads = [None; 15];
        let mut eligible = 0u16;
        for (index, slot) in heads.iter_mut().enumerate().take(self.lanes.len()) {
            let lane = VirtualLane::truncate(index as u8);
            let Some(head) = source.head(lane, now) else { continue };
            *slot = Some(head);
            if self.flow.may_transmit(lane, head.size) {
                eligible |= 1 << index;
            } else {
                self.hold(lane, head.ready.max(self.line.free_at()), log);
            }
        }
        let choice = if eligible == 0 { return None } else { self.arbiter.choose(eligible)? };
        let lane = choice.lane;
        let head = heads[lane.index()].expect("an eligible lane has a head");
        self.arbiter.charge(choice, head.size);
        Some(self.send_data(source, lane, head, log))
    }

    fn hold(&mut self, lane: VirtualLane, since: Instant, log: &mut EventLog) {
        // Before the link is up there is nobody to wait for.
        if self.flow.state() == LinkState::Active && self.lanes[lane.index()].hold.begin(since) {
            self.log(log, since, lane.get(), EventKind::Hold { cause: HoldCause::Credit });
        }
    }

    fn send_data(
        &mut self,
        source: &mut impl LaneSource,
        lane: VirtualLane,
        head: Head,
        log: &mut EventLog,
    ) -> Departure {
        let state = &mut self.lanes[lane.index()];
        let mut ready = head.ready;
        if state.hold.since().is_some() {
            ready = ready.max(self.flow.opened_at(lane));
            if let Some(waited) = state.hold.end(ready.max(self.line.free_at())) {
                let at = ready.max(self.line.free_at());
                let kind = EventKind::Free { cause: HoldCause::Credit, waited };
                self.log(log, at, lane.get(), kind);
            }
        }
        let counters = &mut self.lanes[lane.index()].counters;
        match head.class {
            FrameClass::Data => {
                counters.tx_frames += 1;
                counters.tx_bytes += head.size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_tx += 1
            }
        }
        self.flow.on_transmit(lane, head.size);
        self.send(source, lane, head.size, ready)
    }

    fn send(
        &mut self,
        source: &mut impl LaneSource,
        lane: VirtualLane,
        size: Bytes,
        ready: Instant,
    ) -> Departure {
        let (start, end) = self.line.transmit(size, ready);
        let frame = source.take(lane, start, end);
        Departure { port: self.number, frame, at: end }
    }

    fn send_control(
        &mut self,
        due: Instant,
        pool: &mut FramePool,
        now: Instant,
    ) -> Option<Departure> {
        let packet = self.flow.poll_control(now)?;
        self.lanes[packet.virtual_lane.index()].counters.ctl_tx += 1;
        self.link_local += 1;
        let mut octets = pool.take();
        octets.resize(FlowControlPacket::LEN, 0);
        packet.emit(&mut octets);
        let frame = Frame::intact(FrameKind::InfinibandLink, octets);
        let (_, at) = self.line.transmit(frame.line_size(), due);
        Some(Departure { port: self.number, frame, at })
    }

    /// When the port needs [`LinkPort::handle_timeout`]. That the line becomes free is the owner's
    /// to watch ([`LinkPort::line_free_at`]): it alone knows whether anything waits for it.
    pub fn poll_timeout(&self) -> Instant {
        self.flow.poll_timeout()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant, log: &mut EventLog) {
        if self.flow.handle_timeout(now) {
            self.watchdogs += 1;
            self.log(log, now, 0, EventKind::Watchdog);
        }
    }

    /// Fills `reading`, integrals closed at `now`.
    pub fn read(&mut self, now: Instant, reading: &mut PortReading) {
        reading.lanes.clear();
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            lane.in_queue.close(now);
            let hold_ps = lane.hold.total(now).as_ps();
            let mut counters = lane.counters;
            counters.out_queue.close(now);
            counters.source_queue.close(now);
            counters.in_queue = lane.in_queue;
            counters.hold_ps = hold_ps;
            counters.pause_ps = hold_ps;
            reading.lanes.push(LaneReading { tc: index as u8, counters });
        }
        if self.management != LaneCounters::default() {
            let tc = VirtualLane::MANAGEMENT.get();
            reading.lanes.push(LaneReading { tc, counters: self.management });
        }
        reading.drops.clone_from(&self.drops);
        reading.watchdogs = self.watchdogs;
        reading.named.clear();
    }

    /// Starts the extremes of every gauge anew.
    pub fn restart_watermarks(&mut self) {
        for lane in &mut self.lanes {
            lane.in_queue.restart_watermarks();
            lane.counters.out_queue.restart_watermarks();
            lane.counters.source_queue.restart_watermarks();
        }
    }
}

#[cfg(test)]
mod tests;
