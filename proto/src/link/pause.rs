//! PAUSE and PFC at one port: what the peer asks of us, and what we ask of the peer.
//!
//! ```text
//!   the gate, a timer a priority                        the demand, a priority
//!
//!            time > 0: starts anew                   wanted: XOFF     every quarter of it: XOFF again
//!           ┌───────────────┐                        ┌───────────────┐
//!   Sends ──┤               ├─▶ Silent       Quiet ──┤               ├─▶ Asks for silence
//!     ▲     └───────────────┘      │            ▲    └───────────────┘      │
//!     └── time 0, or it ran out ───┘            └── wanted no more: XON ────┘
//! ```
//!
//! A frame under way always finishes; what governs the link is itself never paused. A lost XON does
//! no lasting harm, for each pause ends by itself, and a lost XOFF is repeated.
//!
//! Source: IEEE 802.1Q, 36.1.3.1 and 36.1.3.2 (PFC initiator and receiver, which are the demand and
//! the gate here), 36.1.3.3 (response time); IEEE 802.3, 31B.3 (PAUSE) and 31D.3 (PFC). When XOFF is
//! repeated is left to the implementation: here after a quarter of the pause time.

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

/// How long `quanta` of 512 bit times last on a line of `rate`.
pub fn quanta(quanta: u16, rate: BitRate) -> Duration {
    Bytes::new(u64::from(quanta) * 64).time_at(rate)
}

/// What a MAC control frame of ours says, or what one of the peer's has changed.
///
/// Shape: bit n of either set is priority n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Shall be silent.
    pub xoff: u8,
    /// For how long; the longest if they differ.
    ///
    /// Units: quanta of 512 bit times.
    pub quanta: u16,
    /// May speak again.
    pub xon: u8,
}

/// Both halves of pause at one port.
#[derive(Clone, Debug)]
pub struct PauseFlow {
    address: MacAddress,
    mode: PauseMode,
    lossless: u8,
    obeyed: u8,
    /// Priorities that go on sending whatever they are asked.
    deaf: u8,
    pause_time: u16,
    gate: PauseGate,
    demand: Demand,
    counters: PauseCounters,
}

impl PauseFlow {
    /// A port on a line of `rate`, where nothing is paused.
    pub fn new(config: &PauseConfig, rate: BitRate) -> PauseFlow {
        let pause_time = config.pause_time.get();
        let interval = quanta(pause_time, rate) * u64::from(config.refresh.get());
        PauseFlow {
            address: config.address,
            mode: config.mode,
            lossless: config.lossless,
            obeyed: config.obeyed,
            deaf: 0,
            pause_time,
            gate: PauseGate::new(rate, config.response),
            demand: Demand::new(Duration::from_ps(interval.as_ps() / 100)),
            counters: PauseCounters::default(),
        }
    }

    /// The port's own address.
    pub fn address(&self) -> MacAddress {
        self.address
    }

    /// In what words the ends pause each other.
    pub fn mode(&self) -> PauseMode {
        self.mode
    }

    /// Gate: whether a pause of `lane` has been heard of and not ended, obeyed already or not.
    pub fn is_paused(&self, lane: VirtualLane) -> bool {
        self.gate.is_paused(lane) && self.deaf >> lane.get() & 1 == 0
    }

    /// Gate: from `now` on `lane` obeys no pause, or obeys them again.
    pub fn set_deaf(&mut self, lane: VirtualLane, deaf: bool, now: Instant) {
        self.deaf = self.deaf & !(1 << lane.get()) | u8::from(deaf) << lane.get();
        if deaf && self.gate.is_paused(lane) {
            self.gate.opened(lane, now);
        }
    }

    /// Gate: whether a frame of `lane` may start at `now`.
    pub fn may_transmit(&self, lane: VirtualLane, now: Instant) -> bool {
        !self.is_paused(lane) || self.silent_since(lane).is_some_and(|since| now < since)
    }

    /// Gate: when the latest pause of `lane` ended.
    pub fn opened_at(&self, lane: VirtualLane) -> Instant {
        self.gate.opened_at(lane)
    }

    /// Gate: from when on the present pause of `lane` is obeyed.
    pub fn silent_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.gate.silent_since(lane)
    }

    /// Gate: time in which `lane` was silent up to `now`.
    pub fn silent_for(&self, lane: VirtualLane, now: Instant) -> Duration {
        self.gate.history(lane.index(), now).0
    }

    /// Gate: a PAUSE arrived at `arrived`; what it changed. With PFC on the link that is nothing.
    pub fn on_pause(&mut self, pause: Pause, arrived: Instant) -> Said {
        self.counters.rx_pause += 1;
        if self.mode != PauseMode::Global {
            return Said::default();
        }
        self.obey(ALL, |_| pause.time, arrived)
    }

    /// Gate: a PFC arrived at `arrived`; what it changed. It speaks to those of its priorities whose
    /// PFC is obeyed.
    pub fn on_pfc(&mut self, pfc: &Pfc, arrived: Instant) -> Said {
        self.counters.count_received(pfc.enabled);
        if self.mode != PauseMode::Pfc {
            return Said::default();
        }
        self.obey(pfc.enabled & self.obeyed, |priority| pfc.times[priority], arrived)
    }

    fn obey(&mut self, spoken_of: u8, time: impl Fn(usize) -> u16, arrived: Instant) -> Said {
        let mut changed = Said::default();
        for priority in each(spoken_of) {
            match time(priority) {
                0 if self.gate.release(priority, arrived) => changed.xon |= 1 << priority,
                0 => {}
                time if self.gate.silence(priority, time, arrived) => {
                    changed.xoff |= 1 << priority;
                    changed.quanta = changed.quanta.max(time);
                }
                _ => {}
            }
        }
        changed
    }

    /// Gate: the next pauses that have run out by `now`, and when they did: those of one instant at
    /// a time.
    pub fn poll_expired(&mut self, now: Instant) -> Option<(Instant, u8)> {
        self.gate.poll_expired(now)
    }

    /// Demand: from `now` on the peer shall be silent on `priorities` and on no other. On priorities
    /// that are not lossless it never is asked to; with PAUSE it is the whole link, or nothing.
    pub fn demand(&mut self, priorities: u8, now: Instant) {
        let wanted = match self.mode {
            PauseMode::None => 0,
            PauseMode::Global => ALL * u8::from(priorities != 0),
            PauseMode::Pfc => priorities & self.lossless,
        };
        self.demand.set(wanted, now);
    }

    /// Demand: since when a frame waits to be sent, if one is due at `now`.
    pub fn control_due(&self, now: Instant) -> Option<Instant> {
        self.demand.due(now)
    }

    /// Demand: the frame that is due at `at`, when its first bit leaves, and what it says.
    pub fn poll_control(&mut self, at: Instant) -> (MacControl, Said) {
        let (xoff, xon) = self.demand.tell(at);
        let said = Said { xoff, quanta: self.pause_time, xon };
        let time = |priority| if xoff >> priority & 1 == 1 { self.pause_time } else { 0 };
        if self.mode == PauseMode::Global {
            self.counters.tx_pause += 1;
            return (MacControl::Pause(Pause { time: time(0) }), said);
        }
        let enabled = xoff | xon;
        self.counters.count_sent(enabled);
        (MacControl::Pfc(Pfc { reserved: 0, enabled, times: std::array::from_fn(time) }), said)
    }

    /// Both halves: the link goes down or comes up at `at`. Nobody is paused, nobody was asked to be, and
    /// no frame of any priority starts before that.
    pub fn forget(&mut self, at: Instant) {
        self.gate.forget(at);
        self.demand.forget(at);
    }

    /// When time changes something: a pause runs out, or is to be sent again.
    pub fn poll_timeout(&self) -> Instant {
        self.gate.next_expiry().min(self.demand.next_refresh())
    }

    /// Demand: what is to be sent again by `now` waits for the line from here on.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.demand.handle_timeout(now);
    }

    /// Adds what operators ask for to `named`, durations closed at `now`.
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
