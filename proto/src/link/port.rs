//! One port of a device, of either technology: its state, its counters, and what its owner may ask.
//!
//! On the way in ([`inward`]) a frame is checked; on the way out ([`outward`]) it is decided who goes
//! first. What could leave is the owner's business ([`LaneSource`]).
//!
//! With credits the port keeps the input buffer itself: a packet that arrives takes it, and the owner
//! gives it back ([`LinkPort::release`]). With pause it keeps none. Whoever has the memory decides
//! about room, asks for silence ([`LinkPort::demand`]) and tells how much stands there
//! ([`LinkPort::note_input`]).

use crate::counters::{
    Condition, DropReason, Drops, Gauge, LaneCounters, LaneReading, PortReading, PortTotals,
};
use crate::events::{DeviceEvent, EventKind, EventLog};
use crate::frame::{Frame, FrameClass};
use crate::ids::{PortNumber, VirtualLane};
use crate::link::config::{LinkConfig, LinkControl};
use crate::link::credit::LinkState;
use crate::link::flow::Flow;
use crate::link::serializer::Serializer;
use crate::units::{BitRate, Bytes, Duration, Instant};

pub use inward::Arrival;

mod inward;
mod outward;
mod pauses;

/// The frame that an owner would send next on a lane.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its octets on the line.
    pub size: Bytes,
    /// Since when it could leave, the line and flow control aside; not in the future.
    pub ready: Instant,
    /// What kind of frame it is.
    pub class: FrameClass,
}

/// Whoever keeps the frames: virtual output queues in a switch, queue pairs in a NIC.
pub trait LaneSource {
    /// The lanes on which something may be ready, bit n for lane n, bit 15 for management. Others are not
    /// asked.
    fn lanes(&self) -> u16 {
        u16::MAX
    }

    /// The frame to send next on `lane`, if one is ready at `now`. Called again until
    /// [`LaneSource::take`], it gives the same answer unless something became ready.
    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head>;

    /// Hands over the frame just announced; its first bit leaves at `start`, its last at `end`. Before
    /// that it was `held_since` then for credit, or for the end of a pause.
    fn take(
        &mut self,
        lane: VirtualLane,
        held_since: Option<Instant>,
        start: Instant,
        end: Instant,
    ) -> Frame;
}

/// One port.
#[derive(Debug)]
pub struct LinkPort {
    number: PortNumber,
    mtu: Bytes,
    line: Serializer,
    flow: Flow,
    lanes: Vec<LaneState>,
    /// VL15, once anything has been counted there.
    management: Option<Box<LaneCounters>>,
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
    /// Port `number`; with credits it announces its buffer from `now` on.
    pub fn new(number: PortNumber, config: &LinkConfig, now: Instant) -> LinkPort {
        let flow = Flow::new(config, now);
        let overhead = match &config.control {
            LinkControl::Credits(_) => Bytes::ZERO,
            LinkControl::Pause(control) => control.overhead,
        };
        LinkPort {
            number,
            mtu: config.mtu,
            line: Serializer::new(config.rate, overhead),
            lanes: vec![LaneState::default(); usize::from(flow.lanes())],
            flow,
            management: None,
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

    /// Input buffer that one data lane may fill: its own with credits, with pause the port's whole.
    pub fn lane_buffer(&self) -> Bytes {
        self.flow.lane_buffer()
    }

    /// Octets of input buffer in use on `lane`, as buffered.
    pub fn in_use(&self, lane: VirtualLane) -> Bytes {
        Bytes::new(self.lanes[lane.index()].in_queue.value)
    }

    /// Whether a frame of flow control waits for the line at `now`.
    pub fn control_is_due(&self, now: Instant) -> bool {
        self.flow.control_due(now).is_some()
    }

    /// Whether the peer has room for a packet of `size` on `lane`, as far as is known: credits for all
    /// of it, or no pause.
    pub fn has_credit(&self, lane: VirtualLane, size: Bytes) -> bool {
        self.flow.has_credit(lane, size)
    }

    /// The peer shall be silent on `priorities` (bit n is priority n) and on no other, from `now` on.
    ///
    /// XOFF goes out as soon as the line is free to those that joined, again and again while they
    /// stay, and XON to those that left; the owner asks [`LinkPort::poll_transmit`] for them. Only what
    /// is lossless is ever asked for; without PFC any bit means the whole link. With credits the
    /// port asks for itself, and nothing happens here.
    pub fn demand(&mut self, priorities: u8, now: Instant) {
        if let Flow::Pause(pauses) = &mut self.flow {
            pauses.flow.demand(priorities, now);
        }
    }

    /// How long `lane` has been silent by order of the peer, up to `now`; with credits how long it has
    /// waited for them.
    pub fn silent_for(&self, lane: VirtualLane, now: Instant) -> Duration {
        match &self.flow {
            Flow::Credits(_) => self.lanes[lane.index()].hold.total(now),
            Flow::Pause(pauses) => pauses.flow.silent_for(lane, now),
        }
    }

    /// From `now` on `lane` obeys no pause, or obeys them again. They are counted as ever.
    pub fn set_deaf(&mut self, lane: VirtualLane, deaf: bool, now: Instant) {
        if let Flow::Pause(pauses) = &mut self.flow {
            pauses.flow.set_deaf(lane, deaf, now);
        }
    }

    /// Where the owner keeps the input buffer: so much of it is in use by frames of `lane`.
    pub fn note_input(&mut self, lane: VirtualLane, octets: Bytes, now: Instant) {
        if let Some(state) = self.lanes.get_mut(lane.index()) {
            state.in_queue.set(octets.get(), now);
        }
    }

    /// Since when a ready frame has waited on `lane` for credit, or for the end of a pause.
    pub fn blocked_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.lanes.get(lane.index()).and_then(|lane| lane.hold.since())
    }

    /// How many data lanes are operational.
    pub fn data_lanes(&self) -> u8 {
        self.flow.lanes()
    }

    /// Whether `lane` may carry anything here.
    pub fn is_operational(&self, lane: VirtualLane) -> bool {
        lane.index() < self.lanes.len()
            || lane == VirtualLane::MANAGEMENT && self.flow.has_management()
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
        if reason.is_want_of_room()
            && let Some(lane) = self.lanes.get_mut(usize::from(tc))
        {
            lane.counters.no_room += 1;
        }
        self.log(log, now, tc, EventKind::Drop { reason, bytes: size });
    }

    /// The owner's counters of a lane, for what only it sees (marks, notifications, queues).
    pub fn counters_mut(&mut self, lane: VirtualLane) -> &mut LaneCounters {
        match self.lanes.get_mut(lane.index()) {
            Some(lane) => &mut lane.counters,
            None => self.management.get_or_insert_default(),
        }
    }

    fn log(&self, log: &mut EventLog, at: Instant, tc: u8, kind: EventKind) {
        log.push(DeviceEvent { at, port: self.number, tc, kind });
    }

    /// From the next frame on the line gives no more than `rate`. Nobody is told: what was planned for
    /// the line's own rate stays. False if that is above the line's own.
    pub fn slow_down(&mut self, rate: BitRate) -> bool {
        self.line.slow_down(rate)
    }

    /// When the port needs [`LinkPort::handle_timeout`]. That the line becomes free is the owner's
    /// to watch ([`LinkPort::line_free_at`]): it alone knows whether anything waits for it.
    pub fn poll_timeout(&self) -> Instant {
        self.flow.poll_timeout()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant, log: &mut EventLog) {
        match &mut self.flow {
            Flow::Credits(credits) => {
                if credits.flow.handle_timeout(now) {
                    self.watchdogs += 1;
                    self.log(log, now, 0, EventKind::Watchdog);
                }
            }
            Flow::Pause(pauses) => {
                pauses.flow.handle_timeout(now);
                self.end_pauses(now, log);
                self.meet_outages(now, log);
            }
        }
    }

    /// Fills `reading` but for what has a name, integrals closed at `now`.
    pub fn read(&mut self, now: Instant, reading: &mut PortReading) {
        self.read_lanes(now, &mut reading.lanes);
        reading.drops.clone_from(&self.drops);
        reading.watchdogs = self.watchdogs;
    }

    /// Fills what is kept of a bin that ends at `now`.
    pub fn read_bin(&mut self, now: Instant, totals: &mut PortTotals) {
        self.read_lanes(now, &mut totals.lanes);
        totals.drops = self.drops.total();
    }

    fn read_lanes(&mut self, now: Instant, shown: &mut Vec<LaneReading>) {
        shown.clear();
        for (index, state) in self.lanes.iter_mut().enumerate() {
            let lane = VirtualLane::truncate(index as u8);
            state.in_queue.close(now);
            let hold_ps = state.hold.total(now).as_ps();
            let mut counters = state.counters;
            counters.out_queue.close(now);
            counters.source_queue.close(now);
            counters.in_queue = state.in_queue;
            counters.hold_ps = hold_ps;
            counters.pause_ps = match &self.flow {
                Flow::Credits(_) => hold_ps,
                Flow::Pause(pauses) => pauses.flow.silent_for(lane, now).as_ps(),
            };
            shown.push(LaneReading { tc: lane.get(), counters });
        }
        if let Some(counters) = self.management.as_deref()
            && *counters != LaneCounters::default()
        {
            shown.push(LaneReading { tc: VirtualLane::MANAGEMENT.get(), counters: *counters });
        }
    }

    /// Fills what [`LinkPort::read`] leaves out: `named`, with what only operators ask for.
    pub fn read_named(&self, now: Instant, named: &mut Vec<(String, u64)>) {
        named.clear();
        if let Flow::Pause(pauses) = &self.flow {
            pauses.flow.read(now, named);
        }
    }

    /// Starts the extremes of every gauge anew.
    pub fn restart_watermarks(&mut self) {
        for lane in &mut self.lanes {
            lane.in_queue.restart_watermarks();
            lane.counters.out_queue.restart_watermarks();
            lane.counters.source_queue.restart_watermarks();
        }
    }

    /// Takes the peaks of what waits for the port anew from the present levels.
    pub fn forget_peaks(&mut self) {
        for lane in &mut self.lanes {
            lane.counters.out_queue.forget_peak();
        }
    }
}

#[cfg(test)]
mod tests;
