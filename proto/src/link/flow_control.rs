//! Flow control and arbitration of one port: one of two variants.
//!
//! | | flow control | arbiter |
//! |---|---|---|
//! | InfiniBand | credits, [`CreditFlow`] | [`VlArbiter`] |
//! | Ethernet | pauses, [`PauseFlow`] | [`EtsArbiter`] |
//!
//! An enum instead of a trait: a port calls it for every frame, and each call is a few instructions.

use crate::events::HoldCause;
use crate::ids::VirtualLane;
use crate::link::config::{ArbitrationConfig, FlowControlConfig, LinkConfig, PauseMode, Selection};
use crate::link::credit::{CreditFlow, LinkState};
use crate::link::ets::EtsArbiter;
use crate::link::outage::Outages;
use crate::link::pause::PauseFlow;
use crate::link::vl_arbiter::VlArbiter;
use crate::units::{Bytes, Instant};
use crate::wire::classify::PriorityMap;
use crate::wire::ethernet::Pfc;
use crate::wire::project::ProjectTypes;

/// Flow control of both directions, with the arbiter.
#[derive(Clone, Debug)]
pub(super) enum FlowControl {
    /// InfiniBand.
    Credit(CreditControl),
    /// Ethernet. Boxed, so that InfiniBand ports stay small.
    Pause(Box<PauseControl>),
}

/// Credits and the VL arbiter.
#[derive(Clone, Debug)]
pub(super) struct CreditControl {
    pub(super) flow: CreditFlow,
    arbiter: VlArbiter,
}

impl CreditControl {
    /// Arbitrates by other tables from the next packet on.
    pub(super) fn arbitrate(&mut self, tables: &ArbitrationConfig) {
        self.arbiter = VlArbiter::new(tables, self.flow.lanes());
    }
}

impl PauseControl {
    /// Selects traffic classes otherwise from the next frame on.
    pub(super) fn select(&mut self, selection: &[Selection; Pfc::PRIORITIES]) {
        self.arbiter.select(selection);
    }
}

/// Pauses, outages and the ETS arbiter.
#[derive(Clone, Debug)]
pub(super) struct PauseControl {
    pub(super) flow: PauseFlow,
    pub(super) priorities: PriorityMap,
    pub(super) project: ProjectTypes,
    pub(super) outages: Outages,
    arbiter: EtsArbiter,
    buffer: Bytes,
}

impl FlowControl {
    /// The flow control of `config`. With credits it announces the buffer from `now` on.
    pub(super) fn new(config: &LinkConfig, now: Instant) -> FlowControl {
        match &config.control {
            FlowControlConfig::Credit(credit) => {
                let lanes = credit.data_lanes.clamp(1, 15);
                let share = Bytes::new(config.buffer.get() / u64::from(lanes));
                let (full, symbols) = (config.full_frame(), credit.lanes.max(1));
                FlowControl::Credit(CreditControl {
                    flow: CreditFlow::new(lanes, share, full, config.rate, symbols, now),
                    arbiter: VlArbiter::new(&credit.arbitration, lanes),
                })
            }
            FlowControlConfig::Pause(pause) => FlowControl::Pause(Box::new(PauseControl {
                flow: PauseFlow::new(pause, config.rate),
                priorities: pause.priorities,
                project: pause.project,
                outages: Outages::new(&pause.outages),
                arbiter: EtsArbiter::new(&pause.scheduling),
                buffer: config.buffer,
            })),
        }
    }

    /// The state of the link. Ethernet has no training: the link is down or active.
    pub(super) fn state(&self) -> LinkState {
        match self {
            FlowControl::Credit(credit) => credit.flow.state(),
            FlowControl::Pause(pause) if pause.outages.is_down() => LinkState::Down,
            FlowControl::Pause(_) => LinkState::Active,
        }
    }

    /// The number of operational data lanes.
    pub(super) fn lanes(&self) -> u8 {
        match self {
            FlowControl::Credit(credit) => credit.flow.lanes(),
            FlowControl::Pause(_) => Pfc::PRIORITIES as u8,
        }
    }

    /// Whether the port also has a lane for subnet management.
    pub(super) fn has_management(&self) -> bool {
        matches!(self, FlowControl::Credit(_))
    }

    /// Octets of input buffer that one data lane may fill.
    pub(super) fn lane_buffer(&self) -> Bytes {
        match self {
            FlowControl::Credit(credit) => credit.flow.capacity(),
            FlowControl::Pause(pause) => pause.buffer,
        }
    }

    /// Whether a frame of `size` octets may start on `lane` at `now`.
    #[inline]
    pub(super) fn may_start(&self, lane: VirtualLane, size: Bytes, now: Instant) -> bool {
        match self {
            FlowControl::Credit(credit) => credit.flow.may_transmit(lane, size),
            FlowControl::Pause(pause) => {
                !pause.outages.is_down() && pause.flow.may_start(lane, now)
            }
        }
    }

    /// Whether credits for `size` octets are left on `lane`, or no pause of it is in force. A pause counts
    /// from its arrival, even within the response time.
    pub(super) fn may_transmit(&self, lane: VirtualLane, size: Bytes) -> bool {
        match self {
            FlowControl::Credit(credit) => credit.flow.may_transmit(lane, size),
            FlowControl::Pause(pause) => !pause.flow.is_paused(lane),
        }
    }

    /// Since when the present pause of `lane` is in force. Unknown for credits.
    pub(super) fn closed_since(&self, lane: VirtualLane) -> Option<Instant> {
        match self {
            FlowControl::Credit(_) => None,
            FlowControl::Pause(pause) => pause.flow.paused_since(lane),
        }
    }

    /// The earliest start of the next frame of `lane`: when the latest credit limit arrived, or the latest
    /// pause ended. `waited` is true if the frame was held.
    pub(super) fn opened_at(&self, lane: VirtualLane, waited: bool) -> Instant {
        match self {
            // A frame that was not held had its credits before the latest limit arrived.
            FlowControl::Credit(_) if !waited => Instant::ZERO,
            FlowControl::Credit(credit) => credit.flow.opened_at(lane),
            FlowControl::Pause(pause) => pause.flow.opened_at(lane),
        }
    }

    /// The cause of every hold on this port.
    pub(super) fn hold_cause(&self) -> HoldCause {
        match self {
            FlowControl::Credit(_) => HoldCause::Credit,
            FlowControl::Pause(pause) if pause.flow.mode == PauseMode::Pfc => HoldCause::Pfc,
            FlowControl::Pause(_) => HoldCause::Pause,
        }
    }

    /// The lane among `eligible` (bit n is lane n) that sends next. `size` returns the octets of its next
    /// frame; the arbiter and the credits are charged for them.
    pub(super) fn serve(
        &mut self,
        eligible: u16,
        size: impl Fn(VirtualLane) -> Bytes,
    ) -> Option<VirtualLane> {
        match self {
            FlowControl::Credit(CreditControl { flow, arbiter }) => {
                let choice = arbiter.choose(eligible)?;
                let size = size(choice.lane);
                arbiter.charge(choice, size);
                flow.on_transmit(choice.lane, size);
                Some(choice.lane)
            }
            FlowControl::Pause(pause) => pause.arbiter.serve(eligible as u8, size),
        }
    }

    /// Since when a flow-control frame waits for the line, if one is due at `now`.
    pub(super) fn control_due(&self, now: Instant) -> Option<Instant> {
        match self {
            FlowControl::Credit(credit) => credit.flow.control_due(now),
            FlowControl::Pause(pause) if pause.outages.is_down() => None,
            FlowControl::Pause(pause) => pause.flow.control_due(now),
        }
    }

    /// When the next timer expires.
    pub(super) fn poll_timeout(&self) -> Instant {
        match self {
            FlowControl::Credit(credit) => credit.flow.poll_timeout(),
            FlowControl::Pause(pause) => {
                pause.flow.poll_timeout().min(pause.outages.poll_timeout())
            }
        }
    }
}
