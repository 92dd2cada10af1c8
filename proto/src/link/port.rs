//! One port of a device, of either technology: its state, its counters, and the interface to its owner.
//!
//! [`receive`] checks arriving frames; [`transmit`] decides which frame leaves next. The owner keeps the
//! data frames and offers them through [`LaneSource`].
//!
//! With credits the port accounts for the input buffer: an arriving packet occupies it until the owner
//! calls [`LinkPort::release`]. With pause the owner accounts for the buffer: it requests pauses
//! ([`LinkPort::demand`]) and reports the occupancy ([`LinkPort::note_input`]).

use crate::counters::{DropReason, LaneCounters, LaneReading, PortReading, PortTotals};
use crate::departure::Departure;
use crate::events::{EventKind, EventLog};
use crate::frame::{Frame, FrameClass};
use crate::ids::{PortNumber, VirtualLane};
use crate::link::config::LinkConfig;
use crate::link::credit::LinkState;
use crate::link::flow_control::FlowControl;
use crate::link::serializer::Serializer;
use crate::units::{BitRate, Bytes, Duration, Instant};
use state::{LaneState, PortState};

pub use managed::{LevelTraffic, PacketCount, Traffic, TrafficDetail};
pub use receive::Arrival;

mod managed;
mod pauses;
mod receive;
mod state;
mod transmit;

/// Blocks that the peer sent and this port did not accept, by the peer's own count.
const BLOCKS_LOST: &str = "credit_blocks_lost";

/// The next frame of a lane, as its owner offers it.
#[derive(Clone, Copy, Debug)]
pub struct Head<Offer> {
    /// Octets on the line.
    pub size: Bytes,
    /// Since when the frame could leave if line and flow control permitted; not in the future.
    pub ready: Instant,
    /// The purpose of the frame.
    pub class: FrameClass,
    /// Identifies the frame to its owner; comes back in the [`Grant`].
    pub offer: Offer,
}

/// The owner of the data frames: the queues of a switch, the queue pairs of a NIC.
pub trait LaneSource {
    /// Identifies an offered frame. Only [`LaneSource::head`] makes one, and only the owner consumes
    /// it, so no frame can be taken that was not offered before.
    type Offer;

    /// The lanes that may have a frame ready, bit n for lane n, bit 15 for management. The port calls
    /// [`LaneSource::head`] for these lanes only.
    fn lanes(&self) -> u16 {
        u16::MAX
    }

    /// Offers the next frame of `lane`, if one is ready at `now`. An offer is void if the port does not
    /// grant it in the same [`LinkPort::poll_transmit`].
    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Self::Offer>>;
}

/// The line, for one offered frame. The owner must build the frame and return its
/// [`Grant::departure`]: counters, flow control and line time already include it.
#[derive(Debug)]
#[must_use = "the line is busy with the granted frame"]
pub struct Grant<Offer> {
    port: PortNumber,
    /// The frame, as [`LaneSource::head`] identified it.
    pub offer: Offer,
    /// The lane it leaves by.
    pub lane: VirtualLane,
    /// Since when flow control held the frame, if it did.
    pub held_since: Option<Instant>,
    /// When the first bit leaves.
    pub start: Instant,
    /// When the last bit leaves.
    pub end: Instant,
}

impl<Offer> Grant<Offer> {
    /// The same grant for another name of the frame, and the name that it had.
    pub fn replace<Other>(self, offer: Other) -> (Offer, Grant<Other>) {
        let Grant { port, offer: before, lane, held_since, start, end } = self;
        (before, Grant { port, offer, lane, held_since, start, end })
    }

    /// The departure of the granted frame. Its octets are final.
    pub fn departure(&self, frame: Frame) -> Departure {
        Departure { port: self.port, frame, at: self.end }
    }
}

/// The result of [`LinkPort::poll_transmit`].
#[derive(Debug)]
pub enum Transmission<Offer> {
    /// A flow-control frame of the port leaves.
    Control(Departure),
    /// An offered frame leaves.
    Granted(Grant<Offer>),
}

/// One port.
#[derive(Debug)]
pub struct LinkPort {
    flow: FlowControl,
    state: PortState,
}

impl LinkPort {
    /// Port `number`. With credits it announces its buffer from `now` on.
    pub fn new(number: PortNumber, config: &LinkConfig, now: Instant) -> LinkPort {
        let flow = FlowControl::new(config, now);
        let state = PortState {
            number,
            mtu: config.mtu,
            line: Serializer::new(config.rate, config.overhead()),
            hold_cause: flow.hold_cause(),
            lanes: vec![LaneState::default(); usize::from(flow.lanes())],
            management: None,
            drops: Default::default(),
            watchdogs: 0,
            link_local: 0,
            traffic: Traffic::default(),
            detail: None,
        };
        LinkPort { flow, state }
    }

    /// The port's number.
    pub fn number(&self) -> PortNumber {
        self.state.number
    }

    /// The data rate of the line.
    pub fn rate(&self) -> BitRate {
        self.state.line.rate()
    }

    /// When the last bit of the latest frame leaves, or left.
    pub fn line_free_at(&self) -> Instant {
        self.state.line.free_at()
    }

    /// The state of the link.
    pub fn state(&self) -> LinkState {
        self.flow.state()
    }

    /// Octets of input buffer that one data lane may fill: its own part with credits, the buffer of the
    /// whole port with pause.
    pub fn lane_buffer(&self) -> Bytes {
        self.flow.lane_buffer()
    }

    /// Octets of input buffer in use on `lane`, as buffered.
    pub fn in_use(&self, lane: VirtualLane) -> Bytes {
        Bytes::new(self.state.lanes[lane.index()].in_queue.value)
    }

    /// Whether a flow-control frame waits for the line at `now`.
    pub fn control_is_due(&self, now: Instant) -> bool {
        self.flow.control_due(now).is_some()
    }

    /// Whether flow control permits a frame of `size` octets on `lane`: there are credits for all of it,
    /// or no pause is in force. A received pause counts from its arrival, even within the response time.
    pub fn may_transmit(&self, lane: VirtualLane, size: Bytes) -> bool {
        self.flow.may_transmit(lane, size)
    }

    /// Requests the peer to pause `priorities` (bit n is priority n) and no others, from `now` on.
    ///
    /// XOFF is sent for each priority that joins the set and repeated while it stays; XON for each that
    /// leaves it. The owner must then call [`LinkPort::poll_transmit`]. Only lossless priorities are
    /// paused; with PAUSE any bit pauses the whole link. With credits this has no effect.
    pub fn demand(&mut self, priorities: u8, now: Instant) {
        if let FlowControl::Pause(pause) = &mut self.flow {
            pause.flow.demand(priorities, now);
        }
    }

    /// The time for which the peer has paused `lane` up to `now`; with credits the time for which frames
    /// waited for them.
    pub fn paused_for(&self, lane: VirtualLane, now: Instant) -> Duration {
        match &self.flow {
            FlowControl::Credit(_) => self.state.lanes[lane.index()].hold.total(now),
            FlowControl::Pause(pause) => pause.flow.paused_for(lane, now),
        }
    }

    /// From `now` on `lane` ignores received pauses, or obeys them again. It counts them in either case.
    pub fn ignore_pauses(&mut self, lane: VirtualLane, ignore: bool, now: Instant) {
        if let FlowControl::Pause(pause) = &mut self.flow {
            pause.flow.ignore_pauses(lane, ignore, now);
        }
    }

    /// Reports that frames of `lane` occupy `octets` of the input buffer that the owner accounts for.
    pub fn note_input(&mut self, lane: VirtualLane, octets: Bytes, now: Instant) {
        if let Some(state) = self.state.lanes.get_mut(lane.index()) {
            state.in_queue.set(octets.get(), now);
        }
    }

    /// Frees the input buffer of a packet that left it at `at`. No effect with pause, where the owner
    /// accounts for the buffer.
    pub fn release(&mut self, lane: VirtualLane, size: Bytes, at: Instant) {
        let FlowControl::Credit(credit) = &mut self.flow else { return };
        if lane == VirtualLane::MANAGEMENT {
            return;
        }
        credit.flow.release(lane, size, at);
        self.state.lanes[lane.index()].in_queue.set(credit.flow.in_use(lane).get(), at);
    }

    /// Since when flow control has held a ready frame of `lane`.
    pub fn blocked_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.state.blocked_since(lane)
    }

    /// The number of operational data lanes.
    pub fn data_lanes(&self) -> u8 {
        self.flow.lanes()
    }

    /// Whether frames may use `lane` on this port.
    pub fn is_operational(&self, lane: VirtualLane) -> bool {
        lane.index() < self.state.lanes.len()
            || lane == VirtualLane::MANAGEMENT && self.flow.has_management()
    }

    /// The number of flow-control frames sent.
    pub fn link_local_sent(&self) -> u64 {
        self.state.link_local
    }

    /// Counts a frame that the owner dropped at this port.
    pub fn count_drop(
        &mut self,
        reason: DropReason,
        size: Bytes,
        lane: VirtualLane,
        now: Instant,
        log: &mut EventLog,
    ) {
        self.state.count_drop(reason, size, lane, now, log);
    }

    /// The counters of a lane, for the totals that only the owner counts (marks, notifications, queues).
    pub fn counters_mut(&mut self, lane: VirtualLane) -> &mut LaneCounters {
        self.state.counters_mut(lane)
    }

    /// The other end of the link is gone, or back. Until it is back, data wait and what arrives is dropped; flow control
    /// then begins anew. An InfiniBand link comes back by its own training.
    pub fn set_link(&mut self, is_up: bool, now: Instant, log: &mut EventLog) {
        match &mut self.flow {
            FlowControl::Credit(credit) if !is_up => credit.flow.break_off(now),
            FlowControl::Credit(_) => {}
            FlowControl::Pause(pause) => pause.sever(!is_up, &mut self.state, now, log),
        }
    }

    /// Sends no faster than `rate`, from the next frame on. All that was planned for the line's own rate
    /// stays. Returns false if `rate` is above that rate.
    pub fn slow_down(&mut self, rate: BitRate) -> bool {
        self.state.line.slow_down(rate)
    }

    /// When the port needs [`LinkPort::handle_timeout`]. The owner watches the end of a transmission
    /// itself ([`LinkPort::line_free_at`]).
    pub fn poll_timeout(&self) -> Instant {
        self.flow.poll_timeout()
    }

    /// Applies every timer that expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant, log: &mut EventLog) {
        match &mut self.flow {
            FlowControl::Credit(credit) => {
                if credit.flow.handle_timeout(now) {
                    self.state.watchdogs += 1;
                    self.state.log(log, now, VirtualLane::ZERO, EventKind::Watchdog);
                }
            }
            FlowControl::Pause(pause) => {
                pause.flow.handle_timeout(now);
                pause.end_expired(&mut self.state, now, log);
                pause.apply_outages(&mut self.state, now, log);
            }
        }
    }

    /// Fills `reading` except for `named`, integrals closed at `now`.
    pub fn read(&mut self, now: Instant, reading: &mut PortReading) {
        self.read_lanes(now, &mut reading.lanes);
        reading.drops.clone_from(&self.state.drops);
        reading.watchdogs = self.state.watchdogs;
    }

    /// Fills the totals of a bin that ends at `now`.
    pub fn read_bin(&mut self, now: Instant, totals: &mut PortTotals) {
        self.read_lanes(now, &mut totals.lanes);
        totals.drops = self.state.drops.total();
    }

    fn read_lanes(&mut self, now: Instant, readings: &mut Vec<LaneReading>) {
        readings.clear();
        readings.reserve_exact(self.state.lanes.len());
        for (index, state) in self.state.lanes.iter_mut().enumerate() {
            let lane = VirtualLane::truncate(index as u8);
            state.in_queue.close(now);
            let hold_ps = state.hold.total(now).as_ps();
            let mut counters = state.counters;
            counters.out_queue.close(now);
            counters.source_queue.close(now);
            counters.in_queue = state.in_queue;
            counters.hold_ps = hold_ps;
            counters.pause_ps = match &self.flow {
                FlowControl::Credit(_) => hold_ps,
                FlowControl::Pause(pause) => pause.flow.paused_for(lane, now).as_ps(),
            };
            readings.push(LaneReading { tc: lane.get(), counters });
        }
        if let Some(counters) = self.state.management.as_deref()
            && *counters != LaneCounters::default()
        {
            readings.push(LaneReading { tc: VirtualLane::MANAGEMENT.get(), counters: *counters });
        }
    }

    /// Replaces `named` by the totals that have only an operators' name.
    pub fn read_named(&self, now: Instant, named: &mut Vec<(String, u64)>) {
        named.clear();
        match &self.flow {
            FlowControl::Credit(credit) => {
                named.push((BLOCKS_LOST.to_owned(), credit.flow.blocks_lost()));
            }
            FlowControl::Pause(pause) => pause.flow.read(now, named),
        }
    }

    /// Restarts minimum and maximum of every gauge at the present level.
    pub fn restart_watermarks(&mut self) {
        for lane in &mut self.state.lanes {
            lane.in_queue.restart_watermarks();
            lane.counters.out_queue.restart_watermarks();
            lane.counters.source_queue.restart_watermarks();
        }
    }

    /// Restarts the peaks of the output queues at the present level.
    pub fn forget_peaks(&mut self) {
        for lane in &mut self.state.lanes {
            lane.counters.out_queue.forget_peak();
        }
    }
}

#[cfg(test)]
mod tests;
