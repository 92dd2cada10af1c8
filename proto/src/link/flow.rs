//! What keeps a port's link lossless and who goes first on it: one of two rows.
//!
//! | | transmit gate and receive half | who goes first |
//! |---|---|---|
//! | InfiniBand | credits, [`CreditFlow`] | [`VlArbiter`] |
//! | Ethernet | pauses, [`PauseFlow`] | [`EtsArbiter`] |
//!
//! An enum and not a trait: a port asks for every frame, and both answers are a few instructions.

use crate::events::HoldCause;
use crate::ids::VirtualLane;
use crate::link::config::{LinkConfig, LinkControl, PauseMode};
use crate::link::credit::{CreditFlow, LinkState};
use crate::link::ets::EtsArbiter;
use crate::link::outage::Outages;
use crate::link::pause::PauseFlow;
use crate::link::vl_arbiter::VlArbiter;
use crate::units::{Bytes, Instant};
use crate::wire::classify::PriorityMap;
use crate::wire::ethernet::Pfc;
use crate::wire::project::ProjectTypes;

/// Both halves of flow control, and the arbiter that goes with them.
#[derive(Clone, Debug)]
pub enum Flow {
    /// InfiniBand.
    Credits(Credits),
    /// Ethernet. In a box, for a port of InfiniBand shall not be larger for it.
    Pause(Box<Pauses>),
}

/// The row of InfiniBand.
#[derive(Clone, Debug)]
pub struct Credits {
    /// What may be sent, and what the peer may send.
    pub flow: CreditFlow,
    arbiter: VlArbiter,
}

/// The row of Ethernet.
#[derive(Clone, Debug)]
pub struct Pauses {
    /// What may be sent, and what the peer may send.
    pub flow: PauseFlow,
    /// Which priority a frame has.
    pub priorities: PriorityMap,
    /// Under which EtherTypes frames of this project go.
    pub project: ProjectTypes,
    /// When the link is down.
    pub outages: Outages,
    arbiter: EtsArbiter,
    buffer: Bytes,
}

impl Flow {
    /// The flow control that `config` asks for, announcing itself from `now` on.
    pub fn new(config: &LinkConfig, now: Instant) -> Flow {
        match &config.control {
            LinkControl::Credits(control) => {
                let lanes = control.data_lanes.clamp(1, 15);
                let share = Bytes::new(config.buffer.get() / u64::from(lanes));
                let (full, symbols) = (config.full_frame(), control.lanes.max(1));
                Flow::Credits(Credits {
                    flow: CreditFlow::new(lanes, share, full, config.rate, symbols, now),
                    arbiter: VlArbiter::new(&control.arbitration, lanes),
                })
            }
            LinkControl::Pause(control) => Flow::Pause(Box::new(Pauses {
                flow: PauseFlow::new(control, config.rate),
                priorities: control.priorities,
                project: control.project,
                outages: Outages::new(&control.outages),
                arbiter: EtsArbiter::new(&control.scheduling),
                buffer: config.buffer,
            })),
        }
    }

    /// The link's state. Ethernet has no training: a link that is not down is up.
    pub fn state(&self) -> LinkState {
        match self {
            Flow::Credits(credits) => credits.flow.state(),
            Flow::Pause(pauses) if pauses.outages.is_down() => LinkState::Down,
            Flow::Pause(_) => LinkState::Active,
        }
    }

    /// How many data lanes are operational.
    pub fn lanes(&self) -> u8 {
        match self {
            Flow::Credits(credits) => credits.flow.lanes(),
            Flow::Pause(_) => Pfc::PRIORITIES as u8,
        }
    }

    /// Whether there is a lane for subnet management besides.
    pub fn has_management(&self) -> bool {
        matches!(self, Flow::Credits(_))
    }

    /// Input buffer that a data lane may fill: its own, or the port's whole, which priorities share.
    pub fn lane_buffer(&self) -> Bytes {
        match self {
            Flow::Credits(credits) => credits.flow.capacity(),
            Flow::Pause(pauses) => pauses.buffer,
        }
    }

    /// Gate: whether a frame of `size` may start on `lane` at `now`.
    #[inline]
    pub fn may_transmit(&self, lane: VirtualLane, size: Bytes, now: Instant) -> bool {
        match self {
            Flow::Credits(credits) => credits.flow.may_transmit(lane, size),
            Flow::Pause(pauses) => !pauses.outages.is_down() && pauses.flow.may_transmit(lane, now),
        }
    }

    /// Gate: whether a frame of `size` may start on `lane` as far as is known; a pause counts from its
    /// arrival, obeyed already or not.
    pub fn has_credit(&self, lane: VirtualLane, size: Bytes) -> bool {
        match self {
            Flow::Credits(credits) => credits.flow.may_transmit(lane, size),
            Flow::Pause(pauses) => !pauses.flow.is_paused(lane),
        }
    }

    /// Gate: since when what forbids `lane` its next frame does so, where that is known.
    pub fn shut_since(&self, lane: VirtualLane) -> Option<Instant> {
        match self {
            Flow::Credits(_) => None,
            Flow::Pause(pauses) => pauses.flow.silent_since(lane),
        }
    }

    /// Gate: before when the next frame of `lane` could not start; `waited` says whether it was seen
    /// to wait.
    pub fn opened_at(&self, lane: VirtualLane, waited: bool) -> Instant {
        match self {
            // What never waited had its credit before: the latest limit only added to it.
            Flow::Credits(_) if !waited => Instant::ZERO,
            Flow::Credits(credits) => credits.flow.opened_at(lane),
            Flow::Pause(pauses) => pauses.flow.opened_at(lane),
        }
    }

    /// What it is that keeps frames from leaving.
    pub fn hold_cause(&self) -> HoldCause {
        match self {
            Flow::Credits(_) => HoldCause::Credit,
            Flow::Pause(pauses) if pauses.flow.mode() == PauseMode::Pfc => HoldCause::Pfc,
            Flow::Pause(_) => HoldCause::Pause,
        }
    }

    /// The lane among `eligible` (bit n is lane n) whose head goes next. `size` tells what heads take;
    /// gate and arbiter have charged the lane for it.
    pub fn serve(
        &mut self,
        eligible: u16,
        size: impl Fn(VirtualLane) -> Bytes,
    ) -> Option<VirtualLane> {
        match self {
            Flow::Credits(Credits { flow, arbiter }) => {
                let choice = arbiter.choose(eligible)?;
                let size = size(choice.lane);
                arbiter.charge(choice, size);
                flow.on_transmit(choice.lane, size);
                Some(choice.lane)
            }
            Flow::Pause(pauses) => pauses.arbiter.serve(eligible as u8, size),
        }
    }

    /// Since when a frame of flow control waits to be sent, if one is due at `now`.
    pub fn control_due(&self, now: Instant) -> Option<Instant> {
        match self {
            Flow::Credits(credits) => credits.flow.control_due(now),
            Flow::Pause(pauses) if pauses.outages.is_down() => None,
            Flow::Pause(pauses) => pauses.flow.control_due(now),
        }
    }

    /// When time alone changes something.
    pub fn poll_timeout(&self) -> Instant {
        match self {
            Flow::Credits(credits) => credits.flow.poll_timeout(),
            Flow::Pause(pauses) => pauses.flow.poll_timeout().min(pauses.outages.poll_timeout()),
        }
    }
}
