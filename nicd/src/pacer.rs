//! The pacer: all reaction points of a NIC, and when each may send its next frame.
//!
//! A reaction point governs a pacing group: one queue pair, all queue pairs of a service level, or all of one
//! destination, as the scheme's scope requires. A group never spans two lanes, because lanes send independently.
//! The pacer reads the reaction point's state after every frame, notification and timeout, and records it.

pub mod group;
mod history;

use crate::config::NicConfig;
use crate::pacer::group::{Group, Outputs};
use crate::pacer::history::PacingHistory;
use crate::timers::Entry;
use proto::congestion::{Effect, Notification, Permission, Place, ReactionState, Roles, Scope};
use proto::counters::{FlowId, FlowReading, MovedFlow};
use proto::events::{EventKind, Law};
use proto::ids::{Lid, PortNumber, VirtualLane};
use proto::random::Random;
use proto::units::{Bytes, Instant};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;

/// The environment of a congestion control role in this NIC. `purpose` names its random stream.
pub fn place(config: &NicConfig, full_frame: Bytes, purpose: impl Display) -> Place {
    let lanes = u64::from(config.link.data_lanes().max(1));
    Place {
        line_rate: config.link.rate,
        full_frame,
        buffer: Bytes::new(config.link.buffer.get() / lanes),
        port: PortNumber::from_index(0),
        faces_adapter: false,
        congestion_point: None,
        random: Random::stream(config.seed, &config.name, purpose),
    }
}

/// The flows that a group governs. Its text names the random stream of the reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    QueuePair { class: u8, peer: Lid },
    Level { level: u8 },
    Destination { peer: Lid, lane: VirtualLane },
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupKey::QueuePair { class, peer } => write!(f, "reaction/qp/{class}/{peer}"),
            GroupKey::Level { level } => write!(f, "reaction/sl/{level}"),
            GroupKey::Destination { peer, lane } => write!(f, "reaction/dlid/{peer}/{lane}"),
        }
    }
}

/// The result of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// When the group may send its next frame.
    pub permission: Permission,
    /// The reaction point's scalar, if it has just crossed its logging threshold.
    pub triggered: Option<u64>,
    /// How the reaction point took the notification.
    pub outcome: Effect,
}

/// The pacing groups of one NIC.
pub struct Pacer {
    /// By connection class; classes beyond the last share the first. Never empty.
    schemes: Vec<Arc<dyn Roles>>,
    scope: Scope,
    /// The most groups of one lane with scope `destination`. Source: IEEE 802.1Q, 32.9.3 (cnRpPortPriMaxRps).
    max_groups_per_lane: usize,
    full_frame: Bytes,
    groups: Vec<Group>,
    /// The state of a new reaction point, and whether it is released (does not limit).
    initial: ReactionState,
    initially_released: bool,
    /// Groups whose state has ever differed from the initial one, and how many of them [`Pacer::poll_moved`]
    /// has returned.
    moved: Vec<u32>,
    polled: usize,
    /// When the current bin began.
    bin_begin: Instant,
    /// Groups that several queue pairs share.
    by_key: BTreeMap<GroupKey, u32>,
    /// Per lane: the number of groups, and the latest group.
    by_lane: [(usize, u32); VirtualLane::MAX as usize + 1],
}

impl Pacer {
    /// A pacer without groups. `full_frame` is the size of a full data frame on the line.
    pub fn new(scheme: Arc<dyn Roles>, config: &NicConfig, full_frame: Bytes) -> Pacer {
        let (scope, max_groups_per_lane) = (scheme.scope(), scheme.reaction_points().max(1));
        let any = scheme.reaction_point(place(config, full_frame, "reaction/any"));
        Pacer {
            schemes: vec![scheme],
            scope,
            max_groups_per_lane,
            full_frame,
            groups: Vec::new(),
            initial: any.state(),
            initially_released: any.is_released(),
            moved: Vec::new(),
            polled: 0,
            bin_begin: Instant::ZERO,
            by_key: BTreeMap::new(),
            by_lane: Default::default(),
        }
    }

    /// Whether each queue pair has a group of its own that starts released. If so, it makes no difference
    /// when the group is made.
    pub fn is_per_queue_pair(&self) -> bool {
        self.scope == Scope::QueuePair && self.initially_released
    }

    /// The group that governs a queue pair which sends `flow`, and whether it is new. Groups are numbered in
    /// the order in which they are made.
    pub fn group_for(
        &mut self,
        config: &NicConfig,
        flow: FlowId,
        lane: VirtualLane,
        level: u8,
        now: Instant,
    ) -> (u32, bool) {
        let (class, peer) = (flow.class, Lid::new(flow.destination as u16));
        let key = match self.scope {
            Scope::QueuePair => GroupKey::QueuePair { class, peer },
            Scope::ServiceLevel | Scope::Priority => GroupKey::Level { level },
            Scope::Destination => GroupKey::Destination { peer, lane },
        };
        let is_shared = self.scope != Scope::QueuePair;
        if let Some(group) = self.by_key.get(&key) {
            return (*group, false);
        }
        // A lane with its maximum number of groups shares the latest one.
        let (groups, latest) = self.by_lane[lane.index()];
        if self.scope == Scope::Destination && groups >= self.max_groups_per_lane {
            self.by_key.insert(key, latest);
            return (latest, false);
        }
        let group = self.add_group(place(config, self.full_frame, key), flow, lane, now);
        if is_shared {
            self.by_key.insert(key, group);
        }
        (group, true)
    }

    /// Whether each queue pair has a group of its own.
    pub fn has_group_per_queue_pair(&self) -> bool {
        self.scope == Scope::QueuePair
    }

    /// Moves a group to `lane`.
    pub fn set_lane(&mut self, group: u32, lane: VirtualLane) {
        self.groups[group as usize].lane = lane;
    }

    fn add_group(&mut self, place: Place, flow: FlowId, lane: VirtualLane, now: Instant) -> u32 {
        let index = self.groups.len() as u32;
        let mut group = Group::new(self.scheme(flow.class).reaction_point(place), flow, lane, now);
        if group.has_moved || group.state != self.initial {
            group.has_moved = true;
            group.history();
            self.moved.push(index);
        }
        self.groups.push(group);
        let (groups, latest) = &mut self.by_lane[lane.index()];
        (*groups, *latest) = (*groups + 1, index);
        index
    }

    fn scheme(&self, class: u8) -> &dyn Roles {
        &**self.schemes.get(usize::from(class)).unwrap_or(&self.schemes[0])
    }

    /// Replaces every reaction point by one of its class's new scheme, in its initial state. Calls `on_permission` with
    /// each group and when it may send.
    pub fn set_schemes(
        &mut self,
        schemes: Vec<Arc<dyn Roles>>,
        config: &NicConfig,
        now: Instant,
        out: &mut Outputs,
        mut on_permission: impl FnMut(u32, Permission),
    ) {
        if !schemes.is_empty() {
            self.schemes = schemes;
        }
        for index in 0..self.groups.len() as u32 {
            let purpose = format_args!("reaction/managed/{index}");
            let place = place(config, self.full_frame, purpose);
            let group = &self.groups[index as usize];
            let class = group.flow.class;
            let reaction = self.scheme(class).reaction_point(place);
            self.groups[index as usize].reaction = reaction;
            on_permission(index, self.update(index, now, out));
        }
    }

    /// Handles a notification for `flow` of `group`.
    pub fn on_notification(
        &mut self,
        group: u32,
        flow: FlowId,
        notification: &Notification,
        now: Instant,
        out: &mut Outputs,
    ) -> Reaction {
        let member = &mut self.groups[group as usize];
        member.flow = flow;
        let outcome = member.reaction.on_notification(notification, now);
        let permission = self.update(group, now, out);
        let scalar = self.groups[group as usize].state.scalar;
        Reaction { permission, triggered: (outcome == Effect::Crossed).then_some(scalar), outcome }
    }

    /// The state of a group, by its index.
    pub fn group(&self, group: u32) -> &Group {
        &self.groups[group as usize]
    }

    /// No frame of `group` waits any more. Returns when its next frame may leave.
    pub fn on_queue_empty(&mut self, group: u32, now: Instant, out: &mut Outputs) -> Permission {
        let member = &mut self.groups[group as usize];
        member.reaction.on_queue_empty(now);
        self.update(group, now, out)
    }

    /// A data frame of `group` leaves, its first bit at `start` and its last at `end`. Returns when the next frame may
    /// leave. Logs a frame that the reaction point did not permit at `start`.
    pub fn on_transmit(
        &mut self,
        group: u32,
        size: Bytes,
        (start, end): (Instant, Instant),
        out: &mut Outputs,
    ) -> Permission {
        let member = &mut self.groups[group as usize];
        let earliest = match member.permission {
            Permission::At(at) => at,
            Permission::Stopped => Instant::NEVER,
        };
        if start < earliest {
            let kind = EventKind::Violation { law: Law::Pacing, earliest, bytes: size };
            out.log(member.lane, start, kind);
        }
        member.last_departure = Some(end);
        member.reaction.on_transmit(size, end);
        self.update(group, end, out)
    }

    /// Handles a timer entry of `group`. Returns when the group may send, if the timer expired.
    pub fn handle_entry(
        &mut self,
        group: u32,
        entry: Entry,
        now: Instant,
        out: &mut Outputs,
    ) -> Option<Permission> {
        let member = &mut self.groups[group as usize];
        if !out.timers.expires(&mut member.deadline, entry, now) {
            return None;
        }
        member.reaction.handle_timeout(now);
        Some(self.update(group, now, out))
    }

    /// The state of a new reaction point.
    pub fn initial(&self) -> ReactionState {
        self.initial
    }

    /// The next group whose state has begun to differ from the initial one.
    pub fn poll_moved(&mut self) -> Option<u32> {
        let group = self.moved.get(self.polled).copied()?;
        self.polled += 1;
        Some(group)
    }

    /// Copies rate, gap and state of `group` into `reading`, with integrals closed at `now`.
    pub fn read(&mut self, group: u32, now: Instant, reading: &mut FlowReading) {
        let member = &mut self.groups[group as usize];
        match &mut member.history {
            Some(history) => history.read(now, reading),
            None => PacingHistory::new(&member.state, member.since).read(now, reading),
        }
        reading.scalar = member.state.scalar;
        reading.neutral_since = member.neutral_since;
        reading.ever_reacted = member.ever_reacted;
    }

    /// The same for a group that does not exist yet, as if it had existed since `since`.
    pub fn read_pending(&self, since: Instant, now: Instant, reading: &mut FlowReading) {
        PacingHistory::new(&self.initial, since).read(now, reading);
        reading.scalar = self.initial.scalar;
        reading.neutral_since = Some(since);
    }

    /// Rate, gap and state of `group`, which has moved, in the bin that ends at `now`. The caller fills in
    /// flow and octets.
    pub fn read_bin(&mut self, group: u32, now: Instant) -> MovedFlow {
        let member = &mut self.groups[group as usize];
        let (flow, ever_reacted, scalar) = (member.flow, member.ever_reacted, member.state.scalar);
        let PacingHistory { gap, rate } = member.history();
        let (rate, gap) = (rate.read_bin(now), gap.read_bin(now));
        MovedFlow { flow, ever_reacted, tx_bytes: 0, rate, gap, scalar }
    }

    /// A bin begins at `now`: extremes restart. Groups that have not moved need no update.
    pub fn begin_bin(&mut self, now: Instant) {
        self.bin_begin = now;
        for group in &self.moved {
            let PacingHistory { gap, rate } = self.groups[*group as usize].history();
            gap.begin_bin(now);
            rate.begin_bin(now);
        }
    }

    /// Records the state of `group` after a call that may have changed it. Returns when it may send.
    fn update(&mut self, group: u32, now: Instant, out: &mut Outputs) -> Permission {
        let member = &mut self.groups[group as usize];
        let (had_moved, state) = (member.has_moved, member.state);
        let permission = member.update(group, now, out);
        if !had_moved && member.has_moved {
            let age = now.since(self.bin_begin);
            member.history().on_first_move(&state, age, now);
            self.moved.push(group);
        }
        permission
    }
}

#[cfg(test)]
mod tests;
