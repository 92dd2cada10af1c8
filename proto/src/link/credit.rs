//! Credit flow control of one port: absolute counters per lane, exchanged in flow-control packets.
//!
//! ```text
//!        Op 1 or 0 received on every lane    Op 0 received on every lane
//! Initialize ───────────────────────▶ Arm ───────────────────────▶ Active
//!     ▲  sends Op 1                    │ sends Op 0, admits data    │ sends data
//!     └──────── watchdog ──────────────┴──────── watchdog, or Op 1 ─┘
//! ```
//!
//! Every counter counts 64-octet blocks modulo 4096. Counters are absolute, so a lost flow-control packet
//! does no harm. The credit of a lost data packet returns with the next flow-control packet: its FCTBS
//! overwrites the receiver's count.
//!
//! Source: IBTA Vol 1, 7.9.4 (counters, FCCL, transmit test, 65 536 symbol refresh, 400 000 symbol
//! watchdog), 7.2 (link states). The refresh here is four times as frequent, so that coalescing never
//! delays credits for long. The standard leaves the time of other updates to the implementation: here
//! the port announces a limit that rose by a full frame as soon as the peer has used half of the last
//! announced credits. A receiver that keeps up then sends few flow-control packets; one that is nearly
//! full sends one for every frame that leaves its buffer. If the buffer is empty and the peer has credit
//! for less than a full frame, the port announces any rise: no frame is left whose departure could raise
//! the limit further, and the peer may wait for exactly these blocks.

mod supervision;

pub use supervision::Observation;

use crate::ids::VirtualLane;
use crate::units::{BitRate, Bytes, Duration, Instant};
use crate::wire::infiniband::flow_control_packet::{FlowControlOp, FlowControlPacket};
use supervision::Supervision;

/// Counters are twelve bits wide.
const MODULUS: u16 = 4096;
/// The largest announced credit in blocks. Beyond half the modulus a receiver cannot distinguish old limits from
/// new ones.
const OFFER_MAX: u32 = 2048;
const BLOCK: u64 = 64;

/// Credit blocks that a packet of `size` octets (LRH to VCRC) costs.
pub const fn blocks(size: Bytes) -> u32 {
    size.get().div_ceil(BLOCK) as u32
}

/// Octets of `n` blocks.
pub const fn block_octets(n: u32) -> Bytes {
    Bytes::new(n as u64 * BLOCK)
}

/// State of a link, as flow control distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkState {
    /// No frame passes. An InfiniBand link trains instead, unless a subnet manager has disabled it.
    Down,
    /// Both ends announce their buffers; no other packet passes.
    Initialize,
    /// The port admits data but sends none, because the peer may still be initializing.
    Arm,
    /// Data flows in both directions.
    Active,
}

/// The effect of a flow-control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOutcome {
    /// It updated counters.
    Applied,
    /// It updated counters and changed the state of the link.
    StateChanged,
    /// No effect: unknown operation or lane.
    Discarded,
}

#[derive(Clone, Debug)]
struct Lane {
    /// Transmit: blocks sent since initialization.
    total_blocks_sent: u16,
    /// Transmit: the receiver's latest limit (FCCL).
    credit_limit: u16,
    /// When the latest limit that opened the gate arrived.
    opened_at: Instant,
    /// Receive: blocks received since initialization (ABR).
    adjusted_blocks_received: u16,
    /// Receive: blocks of buffer not in use.
    free: u32,
    capacity: u32,
    /// The limit last announced to the peer.
    limit_announced: u16,
    /// The latest instant for the next flow-control packet.
    announce_by: Instant,
    /// Since when a flow-control packet is due because the limit has risen.
    due_since: Option<Instant>,
    received_init: bool,
    received_normal: bool,
    /// The link retrains at this instant if no flow-control packet arrives before.
    watchdog: Instant,
}

impl Lane {
    fn limit(&self) -> u16 {
        (self.adjusted_blocks_received + self.free.min(OFFER_MAX) as u16) % MODULUS
    }

    /// Schedules an announcement at `at` if the limit has risen far enough and the peer may need it.
    fn consider_announcing(&mut self, rule: AnnounceRule, at: Instant) {
        let risen = (self.limit() + MODULUS - self.limit_announced) % MODULUS;
        let left = (self.limit_announced + MODULUS - self.adjusted_blocks_received) % MODULUS;
        let is_last = self.free == self.capacity && left < rule.full_frame;
        let rise = if is_last { 1 } else { rule.full_frame };
        if (rise..=OFFER_MAX as u16).contains(&risen) && left <= rule.plenty {
            self.due_since.get_or_insert(at);
        }
    }

    fn remaining(&self, blocks: u32) -> u16 {
        let spent = (u32::from(self.total_blocks_sent) + blocks) % u32::from(MODULUS);
        (self.credit_limit + MODULUS - spent as u16) % MODULUS
    }
}

/// When a risen limit is announced before the refresh.
#[derive(Clone, Copy, Debug)]
struct AnnounceRule {
    /// Blocks of a full frame: the rise that is announced at once,
    full_frame: u16,
    /// unless the peer has more than this many blocks left.
    plenty: u16,
}

/// Both directions of credit flow control at one port: transmit credits and receive buffer.
#[derive(Clone, Debug)]
pub struct CreditFlow {
    state: LinkState,
    lanes: Vec<Lane>,
    announce: AnnounceRule,
    /// Blocks that FCTBS counted and no accepted packet brought.
    blocks_lost: u64,
    refresh: Duration,
    watchdog: Duration,
    next_timeout: Instant,
    /// Present if a subnet manager decides how far the link advances.
    supervision: Option<Supervision>,
}

impl CreditFlow {
    /// Longest interval between flow-control packets of a lane. Units: symbol times.
    const REFRESH_SYMBOLS: u64 = 16_384;
    /// The link retrains after so long without a flow-control packet. Units: symbol times.
    const WATCHDOG_SYMBOLS: u64 = 400_000;

    /// A port with `lanes` data lanes of `buffer` octets each, on a link of `rate` over `physical_lanes`,
    /// which announces its buffer from `now` on. `full_frame` is the size of a full data frame, the step in
    /// which the port announces freed buffer.
    pub fn new(
        lanes: u8,
        buffer: Bytes,
        full_frame: Bytes,
        rate: BitRate,
        physical_lanes: u8,
        now: Instant,
    ) -> CreditFlow {
        let symbol = Bytes::new(u64::from(physical_lanes)).time_at(rate);
        let capacity = (buffer.get() / BLOCK) as u32;
        let lane = Lane {
            total_blocks_sent: 0,
            credit_limit: 0,
            opened_at: now,
            adjusted_blocks_received: 0,
            free: capacity,
            capacity,
            limit_announced: 0,
            announce_by: now,
            due_since: Some(now),
            received_init: false,
            received_normal: false,
            watchdog: now + symbol * Self::WATCHDOG_SYMBOLS,
        };
        CreditFlow {
            state: LinkState::Initialize,
            lanes: vec![lane; usize::from(lanes)],
            announce: AnnounceRule {
                full_frame: blocks(full_frame).clamp(1, OFFER_MAX) as u16,
                plenty: (capacity / 2).max(2 * blocks(full_frame)).min(OFFER_MAX) as u16,
            },
            blocks_lost: 0,
            refresh: symbol * Self::REFRESH_SYMBOLS,
            watchdog: symbol * Self::WATCHDOG_SYMBOLS,
            next_timeout: now,
            supervision: None,
        }
    }

    /// The link's state.
    pub fn state(&self) -> LinkState {
        if self.is_disabled() { LinkState::Down } else { self.state }
    }

    /// The number of operational data lanes.
    pub fn lanes(&self) -> u8 {
        self.lanes.len() as u8
    }

    /// Transmit: whether a packet of `size` may leave on `lane` now.
    #[inline]
    pub fn may_transmit(&self, lane: VirtualLane, size: Bytes) -> bool {
        self.state == LinkState::Active
            && self.lanes[lane.index()].remaining(blocks(size)) <= OFFER_MAX as u16
    }

    /// Transmit: when the latest limit of `lane` arrived.
    pub fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.lanes[lane.index()].opened_at
    }

    /// Transmit: charges `lane` for a whole packet, before its first octet leaves.
    pub fn on_transmit(&mut self, lane: VirtualLane, size: Bytes) {
        let lane = &mut self.lanes[lane.index()];
        lane.total_blocks_sent =
            ((u32::from(lane.total_blocks_sent) + blocks(size)) % u32::from(MODULUS)) as u16;
    }

    /// Transmit: blocks that may still be sent on `lane`, or zero.
    pub fn credits(&self, lane: VirtualLane) -> u16 {
        let left = self.lanes[lane.index()].remaining(0);
        if left <= OFFER_MAX as u16 { left } else { 0 }
    }

    /// Receive: reserves buffer for a packet that arrived at `at`; false, and no effect, if the buffer is
    /// full.
    pub fn admit(&mut self, lane: VirtualLane, size: Bytes, at: Instant) -> bool {
        let lane = &mut self.lanes[lane.index()];
        let n = blocks(size);
        if n > lane.free {
            return false;
        }
        lane.free -= n;
        lane.adjusted_blocks_received =
            ((u32::from(lane.adjusted_blocks_received) + n) % u32::from(MODULUS)) as u16;
        lane.consider_announcing(self.announce, at);
        true
    }

    /// Receive: a packet of `size` left the buffer of `lane` at `at`.
    pub fn release(&mut self, lane: VirtualLane, size: Bytes, at: Instant) {
        let lane = &mut self.lanes[lane.index()];
        lane.free += blocks(size);
        assert!(lane.free <= lane.capacity, "a packet releases buffer that it occupies");
        lane.consider_announcing(self.announce, at);
    }

    /// Receive: octets of buffer in use on `lane`.
    pub fn in_use(&self, lane: VirtualLane) -> Bytes {
        let lane = &self.lanes[lane.index()];
        block_octets(lane.capacity - lane.free)
    }

    /// Receive: blocks that the peer sent and this port did not accept, by the peer's own count (FCTBS): lost on
    /// the line, or discarded here.
    pub fn blocks_lost(&self) -> u64 {
        self.blocks_lost
    }

    /// Receive: octets of buffer of each lane.
    pub fn capacity(&self) -> Bytes {
        block_octets(self.lanes.first().map_or(0, |lane| lane.capacity))
    }

    /// Applies a good flow-control packet that arrived at `arrived`.
    pub fn on_control(&mut self, packet: &FlowControlPacket, arrived: Instant) -> ControlOutcome {
        let index = packet.virtual_lane.index();
        if index >= self.lanes.len() {
            return ControlOutcome::Discarded;
        }
        let initializing = match packet.op {
            FlowControlOp::Init => true,
            FlowControlOp::Normal => false,
            FlowControlOp::Unknown(_) => return ControlOutcome::Discarded,
        };
        if self.is_disabled() {
            return ControlOutcome::Discarded;
        }
        if initializing && self.peer_retrains(index) {
            // Restart from zero; the packet of the peer counts as the first one.
            self.restart(arrived);
        }
        self.hear(index);
        let watchdog = arrived + self.watchdog;
        let lane = &mut self.lanes[index];
        lane.watchdog = watchdog;
        lane.received_init = true;
        lane.received_normal |= !initializing;
        let fctbs = packet.fctbs % MODULUS;
        let missing = (fctbs + MODULUS - lane.adjusted_blocks_received) % MODULUS;
        lane.adjusted_blocks_received = fctbs;
        if missing != 0 && self.state != LinkState::Initialize {
            // The limit rises by the lost blocks; the peer waits for them.
            self.blocks_lost += if missing <= OFFER_MAX as u16 { u64::from(missing) } else { 0 };
            lane.consider_announcing(self.announce, arrived);
        }
        let was_shut = lane.remaining(1) > OFFER_MAX as u16;
        if packet.fccl != lane.credit_limit {
            lane.credit_limit = packet.fccl % MODULUS;
            lane.opened_at = arrived;
        }
        if was_shut {
            lane.opened_at = arrived;
        }
        self.advance(arrived)
    }

    fn advance(&mut self, now: Instant) -> ControlOutcome {
        let next = match self.state {
            LinkState::Initialize if self.lanes.iter().all(|lane| lane.received_init) => {
                LinkState::Arm
            }
            LinkState::Arm if self.lanes.iter().all(|lane| lane.received_normal) => {
                LinkState::Active
            }
            _ => return ControlOutcome::Applied,
        };
        if next > self.ceiling() {
            return ControlOutcome::Applied;
        }
        self.state = next;
        for lane in &mut self.lanes {
            // The peer waits for a packet of the new state.
            lane.due_since.get_or_insert(now);
            if next == LinkState::Active {
                lane.opened_at = lane.opened_at.max(now);
            }
        }
        // A normal packet may have arrived on every lane already: then Arm ends at once.
        self.advance(now);
        ControlOutcome::StateChanged
    }

    fn retrain(&mut self, now: Instant) {
        self.state = LinkState::Initialize;
        let watchdog = now + self.watchdog;
        for lane in &mut self.lanes {
            lane.total_blocks_sent = 0;
            lane.adjusted_blocks_received = 0;
            lane.credit_limit = 0;
            lane.received_init = false;
            lane.received_normal = false;
            lane.due_since = Some(now);
            lane.watchdog = watchdog;
        }
        self.next_timeout = now;
    }

    /// Since when a flow-control packet waits to be sent, if one is due at `now`.
    pub fn control_due(&self, now: Instant) -> Option<Instant> {
        self.lanes
            .iter()
            .filter_map(|lane| {
                lane.due_since.or((lane.announce_by <= now).then_some(lane.announce_by))
            })
            .min()
    }

    /// The next flow-control packet that is due at `now`, lowest lane first.
    pub fn poll_control(&mut self, now: Instant) -> Option<FlowControlPacket> {
        let (state, refresh) = (self.state, self.refresh);
        let due = |lane: &Lane| lane.due_since.is_some() || lane.announce_by <= now;
        let index = self.lanes.iter().position(due)?;
        let lane = &mut self.lanes[index];
        lane.due_since = None;
        lane.announce_by = now + refresh;
        lane.limit_announced = lane.limit();
        let packet = FlowControlPacket {
            op: if state == LinkState::Initialize {
                FlowControlOp::Init
            } else {
                FlowControlOp::Normal
            },
            fctbs: lane.total_blocks_sent,
            virtual_lane: VirtualLane::truncate(index as u8),
            fccl: lane.limit_announced,
        };
        self.schedule();
        Some(packet)
    }

    /// When [`CreditFlow::handle_timeout`] is needed: for a refresh, or for the watchdog.
    pub fn poll_timeout(&self) -> Instant {
        self.next_timeout
    }

    /// Applies expired timers; true if a watchdog expired and the link retrains.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if now < self.next_timeout {
            return false;
        }
        let dead = self.is_watched() && self.lanes.iter().any(|lane| lane.watchdog <= now);
        if dead {
            self.break_off(now);
        }
        for lane in &mut self.lanes {
            if lane.announce_by <= now {
                let due = lane.announce_by;
                lane.due_since.get_or_insert(due);
            }
        }
        self.schedule();
        dead
    }

    /// The peer is gone: the link trains until it is back.
    pub fn break_off(&mut self, now: Instant) {
        self.lose_peer();
        self.restart(now);
    }

    fn schedule(&mut self) {
        let active = self.is_watched();
        self.next_timeout = self
            .lanes
            .iter()
            .flat_map(|lane| {
                // A packet that already waits for the line needs no timer.
                let refresh =
                    if lane.due_since.is_some() { Instant::NEVER } else { lane.announce_by };
                [refresh, if active { lane.watchdog } else { Instant::NEVER }]
            })
            .min()
            .unwrap_or(Instant::NEVER);
    }
}

#[cfg(test)]
mod tests;
