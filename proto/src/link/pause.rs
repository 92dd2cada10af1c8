//! PAUSE and PFC at one port: the pauses that the peer requests, and those that this port requests.
//!
//! ```text
//!   receiver, a timer per priority                      initiator, per priority
//!
//!             XOFF: timer restarts                     requested: XOFF, repeated every refresh interval
//!           ┌───────────────┐                        ┌───────────────┐
//!   Sends ──┤               ├─▶ Paused        Idle ──┤               ├─▶ Requests the pause
//!     ▲     └───────────────┘      │            ▲    └───────────────┘      │
//!     └── XON, or timer expired ───┘            └── no longer requested: XON ┘
//! ```
//!
//! A pause never stops a frame that has started, nor a MAC control frame. A pause ends by itself after a
//! lost XON, and the initiator repeats a lost XOFF.
//!
//! Source: IEEE 802.1Q, 36.1.3.1 and 36.1.3.2 (PFC initiator and receiver: [`demand`] and [`gate`]),
//! 36.1.3.3 (response time); IEEE 802.3, 31B.3 (PAUSE) and 31D.3 (PFC). The standards leave the refresh
//! interval to the implementation; the default here is a quarter of the pause time.

pub mod counters;
mod demand;
mod gate;

use crate::ids::VirtualLane;
use crate::link::config::{PauseConfig, PauseMode};
use crate::units::{BitRate, Bytes, Duration, Instant};
use crate::wire::ethernet::{MacAddress, MacControl, Pause, Pfc};
use counters::PauseCounters;
use demand::Demand;
use gate::PauseGate;

/// Every priority.
pub(super) const ALL: u8 = 0xff;

/// The duration of `quanta` pause quanta, 512 bit times each, on a line of `rate`.
pub fn quanta(quanta: u16, rate: BitRate) -> Duration {
    Bytes::new(u64::from(quanta) * 64).time_at(rate)
}

/// What a sent MAC control frame requests, or what a received one changed.
///
/// Shape: bit n of either set is priority n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseChange {
    /// Priorities that pause.
    pub xoff: u8,
    /// The pause time; the longest if priorities differ.
    ///
    /// Units: quanta of 512 bit times.
    pub quanta: u16,
    /// Priorities that resume.
    pub xon: u8,
}

/// Pause receiver and pause initiator of one port.
#[derive(Clone, Debug)]
pub struct PauseFlow {
    /// The port's own address.
    pub(super) address: MacAddress,
    /// The kind of MAC control frames in use.
    pub(super) mode: PauseMode,
    lossless: u8,
    obeyed: u8,
    /// Priorities that ignore received pauses.
    ignoring: u8,
    pause_time: u16,
    gate: PauseGate,
    demand: Demand,
    counters: PauseCounters,
}

impl PauseFlow {
    /// A port on a line of `rate` without any pause in force.
    pub fn new(config: &PauseConfig, rate: BitRate) -> PauseFlow {
        let rate = config.quanta_rate.unwrap_or(rate);
        let pause_time = config.pause_time.get();
        let interval = quanta(pause_time, rate) * u64::from(config.refresh.get());
        PauseFlow {
            address: config.address,
            mode: config.mode,
            lossless: config.lossless,
            obeyed: config.obeyed,
            ignoring: 0,
            pause_time,
            gate: PauseGate::new(rate, config.response),
            demand: Demand::new(Duration::from_ps(interval.as_ps() / 100)),
            counters: PauseCounters::default(),
        }
    }

    /// Receiver: whether a pause of `lane` is in force. It counts from its arrival, even within the
    /// response time.
    pub fn is_paused(&self, lane: VirtualLane) -> bool {
        self.gate.is_paused(lane) && self.ignoring >> lane.get() & 1 == 0
    }

    /// Receiver: from `now` on `lane` ignores pauses, or obeys them again.
    pub fn ignore_pauses(&mut self, lane: VirtualLane, ignore: bool, now: Instant) {
        self.ignoring = self.ignoring & !(1 << lane.get()) | u8::from(ignore) << lane.get();
        if ignore && self.gate.is_paused(lane) {
            self.gate.opened(lane, now);
        }
    }

    /// Receiver: whether a frame of `lane` may start at `now`.
    pub fn may_start(&self, lane: VirtualLane, now: Instant) -> bool {
        !self.is_paused(lane) || self.paused_since(lane).is_some_and(|since| now < since)
    }

    /// Receiver: when the latest pause of `lane` ended.
    pub fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.gate.opened_at(lane)
    }

    /// Receiver: from when on the port obeys the present pause of `lane`.
    pub fn paused_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.gate.paused_since(lane)
    }

    /// Receiver: the total time for which `lane` has been paused up to `now`.
    pub fn paused_for(&self, lane: VirtualLane, now: Instant) -> Duration {
        self.gate.history(lane.index(), now).0
    }

    /// Receiver: applies a PAUSE frame that arrived at `arrived`. A link with PFC ignores it.
    pub fn on_pause(&mut self, pause: Pause, arrived: Instant) -> PauseChange {
        self.counters.rx_pause += 1;
        if self.mode != PauseMode::Global {
            return PauseChange::default();
        }
        self.apply(ALL, |_| pause.time, arrived)
    }

    /// Receiver: applies a PFC frame that arrived at `arrived` to those of its priorities that obey PFC.
    pub fn on_pfc(&mut self, pfc: &Pfc, arrived: Instant) -> PauseChange {
        self.counters.count_received(pfc.enabled);
        if self.mode != PauseMode::Pfc {
            return PauseChange::default();
        }
        self.apply(pfc.enabled & self.obeyed, |priority| pfc.times[priority], arrived)
    }

    fn apply(&mut self, enabled: u8, time: impl Fn(usize) -> u16, arrived: Instant) -> PauseChange {
        let mut changed = PauseChange::default();
        for priority in each(enabled) {
            match time(priority) {
                0 if self.gate.release(priority, arrived) => changed.xon |= 1 << priority,
                0 => {}
                time if self.gate.pause(priority, time, arrived) => {
                    changed.xoff |= 1 << priority;
                    changed.quanta = changed.quanta.max(time);
                }
                _ => {}
            }
        }
        changed
    }

    /// Receiver: the earliest instant by `now` at which pauses expired, and their priorities. Call it until
    /// it returns `None`.
    pub fn poll_expired(&mut self, now: Instant) -> Option<(Instant, u8)> {
        self.gate.poll_expired(now)
    }

    /// Initiator: requests a pause of `priorities` and no others from `now` on. Priorities that are not
    /// lossless are left out; PAUSE stops the whole link or nothing.
    pub fn demand(&mut self, priorities: u8, now: Instant) {
        let wanted = match self.mode {
            PauseMode::None => 0,
            PauseMode::Global => ALL * u8::from(priorities != 0),
            PauseMode::Pfc => priorities & self.lossless,
        };
        self.demand.set(wanted, now);
    }

    /// Initiator: since when a frame waits to be sent, if one is due at `now`.
    pub fn control_due(&self, now: Instant) -> Option<Instant> {
        self.demand.due(now)
    }

    /// Initiator: the frame that is due, whose first bit leaves at `at`, and what it requests.
    pub fn poll_control(&mut self, at: Instant) -> (MacControl, PauseChange) {
        let (xoff, xon) = self.demand.announce(at);
        let change = PauseChange { xoff, quanta: self.pause_time, xon };
        let time = |priority| if xoff >> priority & 1 == 1 { self.pause_time } else { 0 };
        if self.mode == PauseMode::Global {
            self.counters.tx_pause += 1;
            return (MacControl::Pause(Pause { time: time(0) }), change);
        }
        let enabled = xoff | xon;
        self.counters.count_sent(enabled);
        (MacControl::Pfc(Pfc { reserved: 0, enabled, times: std::array::from_fn(time) }), change)
    }

    /// Clears both halves when the link goes down or comes up at `at`. No frame starts before `at`.
    pub fn forget(&mut self, at: Instant) {
        self.gate.forget(at);
        self.demand.forget(at);
    }

    /// When the next timer expires: the end of a pause, or a refresh of XOFF.
    pub fn poll_timeout(&self) -> Instant {
        self.gate.next_expiry().min(self.demand.next_refresh())
    }

    /// Initiator: every refresh due by `now` waits for the line from here on.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.demand.handle_timeout(now);
    }

    /// Adds the totals under operators' names, durations closed at `now`.
    pub fn read(&self, now: Instant, named: &mut Vec<(String, u64)>) {
        self.counters.read(self.mode, &self.gate, &self.demand, now, named);
    }
}

/// The priorities of a set, by number.
pub(super) fn each(priorities: u8) -> impl Iterator<Item = usize> {
    (0..Pfc::PRIORITIES).filter(move |priority| priorities >> priority & 1 == 1)
}

#[cfg(test)]
mod tests;
