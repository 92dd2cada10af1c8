//! A pacing group: flows that share one reaction point, and the state that the reaction point reports.

use crate::pacer::history::PacingHistory;
use crate::timers::{Deadline, Timer, Timers};
use proto::congestion::{Permission, ReactionPoint, ReactionState};
use proto::counters::FlowId;
use proto::events::{DeviceEvent, EventKind, EventLog};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;

/// A reaction point with its timer and the record of its state.
pub struct Group {
    pub reaction: Box<dyn ReactionPoint>,
    pub deadline: Deadline,
    pub lane: VirtualLane,
    /// The flow of the latest notification, or the group's first flow. Events need one flow.
    pub flow: FlowId,
    /// When the last bit of the latest data frame leaves.
    pub last_departure: Option<Instant>,
    /// When the next data frame may start, as the reaction point said last.
    pub permission: Permission,
    pub state: ReactionState,
    /// When the group was made.
    pub since: Instant,
    /// Rate and gap over time; recorded since the state first changed.
    pub history: Option<Box<PacingHistory>>,
    pub neutral_since: Option<Instant>,
    pub ever_reacted: bool,
    /// The state has ever differed from the initial state.
    pub has_moved: bool,
}

/// The timers and events of an adapter.
#[derive(Default)]
pub struct Outputs {
    /// The running timers.
    pub timers: Timers,
    /// The events that the device has not returned yet.
    pub events: EventLog,
}

impl Outputs {
    /// Logs an event of the adapter's port.
    pub fn log(&mut self, lane: VirtualLane, at: Instant, kind: EventKind) {
        let port = PortNumber::from_index(0);
        self.events.push(DeviceEvent { at, port, tc: lane.get(), kind });
    }
}

impl Group {
    pub fn new(
        reaction: Box<dyn ReactionPoint>,
        flow: FlowId,
        lane: VirtualLane,
        now: Instant,
    ) -> Group {
        let state = reaction.state();
        Group {
            since: now,
            history: None,
            neutral_since: reaction.is_released().then_some(now),
            ever_reacted: false,
            has_moved: !reaction.is_released(),
            deadline: Deadline::default(),
            lane,
            flow,
            last_departure: None,
            permission: reaction.may_send_at(None),
            state,
            reaction,
        }
    }

    /// Rate and gap over time; starts the record if needed.
    pub fn history(&mut self) -> &mut PacingHistory {
        let begin = || Box::new(PacingHistory::new(&self.state, self.since));
        self.history.get_or_insert_with(begin)
    }

    /// Records the reaction point's state after a call that may have changed it. Returns when the group may
    /// send.
    pub fn update(&mut self, index: u32, now: Instant, out: &mut Outputs) -> Permission {
        let due = self.reaction.poll_timeout().unwrap_or(Instant::NEVER);
        out.timers.set(&mut self.deadline, Timer::ReactionPoint(index), due);
        let state = self.reaction.state();
        if state != self.state {
            self.history().set(&state, now);
            self.state = state;
            self.has_moved = true;
            let kind = EventKind::React { flow: self.flow, gap: state.gap, scalar: state.scalar };
            out.log(self.lane, now, kind);
        }
        if self.reaction.is_released() {
            self.neutral_since.get_or_insert(now);
        } else {
            self.neutral_since = None;
            self.ever_reacted = true;
            self.has_moved = true;
        }
        self.permission = self.reaction.may_send_at(self.last_departure);
        self.permission
    }
}
