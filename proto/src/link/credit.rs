//! Credit flow control of one port: absolute counters a lane, carried by flow-control packets.
//!
//! ```text
//!            every lane heard (Op 1 or 0)      every lane heard (Op 0)
//! Initialize ───────────────────────▶ Arm ───────────────────────▶ Active
//!     ▲  sends Op 1                    │ sends Op 0, takes data     │ sends data
//!     └──────── watchdog ──────────────┴──────── watchdog, or Op 1 ─┘
//! ```
//!
//! Every counter counts 64-octet blocks modulo 4096 and is absolute, so a lost flow-control packet
//! does no harm, and a lost data packet returns its credit with the next one: its FCTBS overwrites
//! what the receiver believed to have received.
//!
//! Source: IBTA Vol 1, 7.9.4 (counters, FCCL, transmit test, 65 536 symbol refresh, 400 000 symbol
//! watchdog), 7.2 (link states). The refresh here is four times as frequent, so that credit held
//! back by coalescing is never old. When in between a risen limit is told is left to the
//! implementation: here as soon as it has risen by a full frame and the peer has used up half of
//! what it was told. A line whose receiver keeps up then carries a fraction of the flow-control
//! packets; one whose receiver is nearly full carries one for every frame that leaves.

use crate::ids::VirtualLane;
use crate::units::{BitRate, Bytes, Duration, Instant};
use crate::wire::infiniband::flow_control_packet::{FlowControlOp, FlowControlPacket};

/// Counters are twelve bits wide.
const MODULUS: u16 = 4096;
/// At most this many blocks are ever on offer; beyond half the modulus old and new cannot be told
/// apart.
const OFFER_MAX: u32 = 2048;
const BLOCK: u64 = 64;

/// Blocks a packet of `size` octets (LRH to VCRC) costs.
pub const fn blocks(size: Bytes) -> u32 {
    size.get().div_ceil(BLOCK) as u32
}

/// Octets of `n` blocks.
pub const fn block_octets(n: u32) -> Bytes {
    Bytes::new(n as u64 * BLOCK)
}

/// States of the link as far as flow control sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Nothing passes. Links of InfiniBand train instead of being down.
    Down,
    /// Both ends announce their buffers; nothing else passes.
    Initialize,
    /// Data is taken but not yet sent, for the peer may still be initializing.
    Arm,
    /// Data flows both ways.
    Active,
}

/// What a flow-control packet led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOutcome {
    /// Counters were taken over.
    Applied,
    /// Counters were taken over and the link changed its state.
    StateChanged,
    /// Unknown operation or lane: nothing changed.
    Discarded,
}

#[derive(Clone, Debug)]
struct Lane {
    /// Transmit gate: blocks sent since initialization.
    total_blocks_sent: u16,
    /// Transmit gate: the receiver's latest limit (FCCL).
    credit_limit: u16,
    /// When the latest limit that opened the gate arrived.
    opened_at: Instant,
    /// Receive meter: blocks received since initialization (ABR).
    adjusted_blocks_received: u16,
    /// Receive meter: blocks of buffer not in use.
    free: u32,
    capacity: u32,
    /// The limit last told to the peer.
    limit_told: u16,
    /// When the next flow-control packet must go out at the latest.
    tell_by: Instant,
    /// Since when one should go out, because the limit has risen enough.
    tell_since: Option<Instant>,
    heard_initialize: bool,
    heard_normal: bool,
    /// Without a flow-control packet until then, the link trains anew.
    watchdog: Instant,
}

impl Lane {
    fn limit(&self) -> u16 {
        (self.adjusted_blocks_received + self.free.min(OFFER_MAX) as u16) % MODULUS
    }

    /// Notes that the limit should be told, if it has risen by `rise` blocks and the peer may be
    /// running short: no more than `plenty` of what it was told is left.
    fn consider_telling(&mut self, rise: u16, plenty: u16, at: Instant) {
        let risen = (self.limit() + MODULUS - self.limit_told) % MODULUS;
        let left = (self.limit_told + MODULUS - self.adjusted_blocks_received) % MODULUS;
        if risen >= rise && risen <= OFFER_MAX as u16 && left <= plenty {
            self.tell_since.get_or_insert(at);
        }
    }

    fn remaining(&self, blocks: u32) -> u16 {
        let spent = (u32::from(self.total_blocks_sent) + blocks) % u32::from(MODULUS);
        (self.credit_limit + MODULUS - spent as u16) % MODULUS
    }
}

/// Both halves of credit flow control at one port: transmit gate and receive meter.
#[derive(Clone, Debug)]
pub struct CreditFlow {
    state: LinkState,
    lanes: Vec<Lane>,
    /// A rise of the limit by this many blocks is told at once,
    tell_rise: u16,
    /// unless the peer has more than this many blocks left.
    plenty: u16,
    refresh: Duration,
    watchdog: Duration,
    next_timeout: Instant,
}

impl CreditFlow {
    /// Flow-control packets go out at least this often. Units: symbol times.
    const REFRESH_SYMBOLS: u64 = 16_384;
    /// Without one for this long the link is dead. Units: symbol times.
    const WATCHDOG_SYMBOLS: u64 = 400_000;

    /// A port with `lanes` data lanes of `buffer` octets each, on a link of `rate` over
    /// `physical_lanes`, announcing itself from `now`. `full_frame` is what one whole data frame
    /// occupies, the step in which freed buffer is announced.
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
            limit_told: 0,
            tell_by: now,
            tell_since: Some(now),
            heard_initialize: false,
            heard_normal: false,
            watchdog: now + symbol * Self::WATCHDOG_SYMBOLS,
        };
        CreditFlow {
            state: LinkState::Initialize,
            lanes: vec![lane; usize::from(lanes)],
            tell_rise: (blocks(full_frame).min(capacity).max(1)) as u16,
            plenty: (capacity / 2).max(2 * blocks(full_frame)).min(OFFER_MAX) as u16,
            refresh: symbol * Self::REFRESH_SYMBOLS,
            watchdog: symbol * Self::WATCHDOG_SYMBOLS,
            next_timeout: now,
        }
    }

    /// The link's state.
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// How many data lanes are operational.
    pub fn lanes(&self) -> u8 {
        self.lanes.len() as u8
    }

    /// Transmit gate: whether a packet of `size` may leave on `lane` now.
    #[inline]
    pub fn may_transmit(&self, lane: VirtualLane, size: Bytes) -> bool {
        self.state == LinkState::Active
            && self.lanes[lane.index()].remaining(blocks(size)) <= OFFER_MAX as u16
    }

    /// Transmit gate: since when the latest limit of `lane` is known.
    pub fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.lanes[lane.index()].opened_at
    }

    /// Transmit gate: credits for a whole packet are taken before its first octet.
    pub fn on_transmit(&mut self, lane: VirtualLane, size: Bytes) {
        let lane = &mut self.lanes[lane.index()];
        lane.total_blocks_sent =
            ((u32::from(lane.total_blocks_sent) + blocks(size)) % u32::from(MODULUS)) as u16;
    }

    /// Transmit gate: blocks that may still be sent on `lane`, or zero.
    pub fn credits(&self, lane: VirtualLane) -> u16 {
        let left = self.lanes[lane.index()].remaining(0);
        if left <= OFFER_MAX as u16 { left } else { 0 }
    }

    /// Receive meter: takes buffer for a packet that arrived at `at`; false, and nothing changed,
    /// if there is none.
    pub fn admit(&mut self, lane: VirtualLane, size: Bytes, at: Instant) -> bool {
        let (tell_rise, plenty) = (self.tell_rise, self.plenty);
        let lane = &mut self.lanes[lane.index()];
        let n = blocks(size);
        if n > lane.free {
            return false;
        }
        lane.free -= n;
        lane.adjusted_blocks_received =
            ((u32::from(lane.adjusted_blocks_received) + n) % u32::from(MODULUS)) as u16;
        lane.consider_telling(tell_rise, plenty, at);
        true
    }

    /// Receive meter: a packet of `size` left the buffer of `lane` at `at`.
    pub fn release(&mut self, lane: VirtualLane, size: Bytes, at: Instant) {
        let (tell_rise, plenty) = (self.tell_rise, self.plenty);
        let lane = &mut self.lanes[lane.index()];
        lane.free += blocks(size);
        assert!(lane.free <= lane.capacity, "a buffer cannot hold less than nothing");
        lane.consider_telling(tell_rise, plenty, at);
    }

    /// Receive meter: octets of buffer in use on `lane`.
    pub fn in_use(&self, lane: VirtualLane) -> Bytes {
        let lane = &self.lanes[lane.index()];
        block_octets(lane.capacity - lane.free)
    }

    /// Receive meter: octets of buffer `lane` has in all.
    pub fn capacity(&self) -> Bytes {
        block_octets(self.lanes.first().map_or(0, |lane| lane.capacity))
    }

    /// A good flow-control packet arrived at `arrived`.
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
        if initializing && self.state == LinkState::Active {
            // The peer trains anew: so do we, from zero, and hear its packet as the first.
            self.retrain(arrived);
        }
        let watchdog = arrived + self.watchdog;
        let lane = &mut self.lanes[index];
        lane.watchdog = watchdog;
        lane.heard_initialize = true;
        lane.heard_normal |= !initializing;
        lane.adjusted_blocks_received = packet.fctbs % MODULUS;
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
            LinkState::Initialize if self.lanes.iter().all(|lane| lane.heard_initialize) => {
                LinkState::Arm
            }
            LinkState::Arm if self.lanes.iter().all(|lane| lane.heard_normal) => LinkState::Active,
            _ => return ControlOutcome::Applied,
        };
        self.state = next;
        for lane in &mut self.lanes {
            // The peer waits for what only the new state sends.
            lane.tell_since.get_or_insert(now);
            if next == LinkState::Active {
                lane.opened_at = lane.opened_at.max(now);
            }
        }
        // Both were already heard: an armed peer needs no second packet to become active.
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
            lane.heard_initialize = false;
            lane.heard_normal = false;
            lane.tell_since = Some(now);
            lane.watchdog = watchdog;
        }
        self.next_timeout = now;
    }

    /// Since when a flow-control packet waits to be sent, if one is due at `now`.
    pub fn control_due(&self, now: Instant) -> Option<Instant> {
        self.lanes
            .iter()
            .filter_map(|lane| lane.tell_since.or((lane.tell_by <= now).then_some(lane.tell_by)))
            .min()
    }

    /// The next flow-control packet that is due at `now`, lowest lane first.
    pub fn poll_control(&mut self, now: Instant) -> Option<FlowControlPacket> {
        let (state, refresh) = (self.state, self.refresh);
        let due = |lane: &Lane| lane.tell_since.is_some() || lane.tell_by <= now;
        let index = self.lanes.iter().position(due)?;
        let lane = &mut self.lanes[index];
        lane.tell_since = None;
        lane.tell_by = now + refresh;
        lane.limit_told = lane.limit();
        let packet = FlowControlPacket {
            op: if state == LinkState::Initialize {
                FlowControlOp::Init
            } else {
                FlowControlOp::Normal
            },
            fctbs: lane.total_blocks_sent,
            virtual_lane: VirtualLane::truncate(index as u8),
            fccl: lane.limit_told,
        };
        self.schedule();
        Some(packet)
    }

    /// When [`CreditFlow::handle_timeout`] is needed: a refresh, or the watchdog.
    pub fn poll_timeout(&self) -> Instant {
        self.next_timeout
    }

    /// Lets time pass; true if a watchdog ran out and the link trains anew.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if now < self.next_timeout {
            return false;
        }
        // A port that never heard anybody keeps announcing itself: there is nothing to retrain.
        let dead = self.state != LinkState::Initialize
            && self.lanes.iter().any(|lane| lane.watchdog <= now);
        if dead {
            self.retrain(now);
        }
        for lane in &mut self.lanes {
            if lane.tell_by <= now {
                let due = lane.tell_by;
                lane.tell_since.get_or_insert(due);
            }
        }
        self.schedule();
        dead
    }

    fn schedule(&mut self) {
        let active = self.state != LinkState::Initialize;
        self.next_timeout = self
            .lanes
            .iter()
            .flat_map(|lane| {
                // A packet that already waits for the line needs no timer.
                let tell = if lane.tell_since.is_some() { Instant::NEVER } else { lane.tell_by };
                [tell, if active { lane.watchdog } else { Instant::NEVER }]
            })
            .min()
            .unwrap_or(Instant::NEVER);
    }
}

#[cfg(test)]
mod tests;
