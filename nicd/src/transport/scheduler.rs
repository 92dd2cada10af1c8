//! The scheduler: which queue pair sends next. Queue pairs under one reaction point form a group.
//!
//! A lane has two heaps of groups: ready groups by the lowest key of their members, and waiting groups by the
//! instant from which they may send. A group has a heap of its members by key. Entries are deleted lazily: an
//! entry with an old generation is stale. So a frame costs O(log n) for n queue pairs, and a limited queue
//! pair delays nothing outside its group.

use proto::congestion::Permission;
use proto::ids::VirtualLane;
use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap entry, lowest key first. It is stale unless its owner has the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: u64,
    index: u32,
    generation: u32,
}

type Heap = BinaryHeap<Reverse<Entry>>;

/// A queue pair.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: u32,
    /// Its key while it can send. The lowest key sends first.
    key: Option<u64>,
    generation: u32,
}

impl Member {
    /// Stands for "no group".
    const IN_NONE: u32 = u32::MAX;
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// It has nothing to send, or its reaction point has stopped it.
    Blocked,
    /// It may send; the lowest key of its members.
    Ready(u64),
    /// It may send from this instant on.
    Waiting(Instant),
}

/// Queue pairs under one reaction point.
#[derive(Clone, Debug)]
struct Group {
    lane: usize,
    members: Heap,
    permission: Permission,
    state: GroupState,
    generation: u32,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    ready: Heap,
    waiting: Heap,
    ready_groups: u32,
}

/// The queue pair that sends next on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSender {
    /// Index of the queue pair.
    pub queue_pair: u32,
    /// Its key.
    pub key: u64,
    /// Since when its reaction point permits it to send.
    pub permitted_since: Instant,
}

/// The scheduler of one NIC.
#[derive(Clone, Debug)]
pub struct Scheduler {
    lanes: Vec<Lane>,
    groups: Vec<Group>,
    members: Vec<Member>,
}

impl Scheduler {
    /// A scheduler for `lanes` data lanes, without queue pairs.
    pub fn new(lanes: usize) -> Scheduler {
        Scheduler { lanes: vec![Lane::default(); lanes], groups: Vec::new(), members: Vec::new() }
    }

    /// Adds a group on `lane`. Groups are numbered in the order of these calls.
    pub fn add_group(&mut self, lane: VirtualLane) {
        self.groups.push(Group {
            lane: lane.index(),
            members: Heap::new(),
            permission: Permission::At(Instant::ZERO),
            state: GroupState::Blocked,
            generation: 0,
        });
    }

    /// Moves a group to `lane`.
    pub fn set_lane(&mut self, index: u32, lane: VirtualLane, now: Instant) {
        let group = &mut self.groups[index as usize];
        let is_ready = matches!(group.state, GroupState::Ready(_));
        self.lanes[group.lane].ready_groups -= u32::from(is_ready);
        (group.lane, group.state) = (lane.index(), GroupState::Blocked);
        group.generation = group.generation.wrapping_add(1);
        self.update_state(index, now);
    }

    /// Adds a queue pair without a group. Queue pairs are numbered in the order of these calls.
    pub fn add_queue_pair(&mut self) {
        self.members.push(Member { group: Member::IN_NONE, key: None, generation: 0 });
    }

    /// Puts `queue_pair` into `group`. Required before [`Scheduler::set_key`].
    pub fn assign_group(&mut self, queue_pair: u32, group: u32) {
        self.members[queue_pair as usize].group = group;
    }

    /// The queue pairs of `group`.
    pub fn members_of(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let numbered = (0..).zip(&self.members);
        numbered.filter(move |(_, member)| member.group == group).map(|(index, _)| index)
    }

    /// Whether `queue_pair` has a key.
    pub fn has_work(&self, queue_pair: u32) -> bool {
        self.members[queue_pair as usize].key.is_some()
    }

    /// Sets the key of `queue_pair`; `None` if it has nothing to send.
    pub fn set_key(&mut self, queue_pair: u32, key: Option<u64>, now: Instant) {
        let group = self.set_member_key(queue_pair, key);
        self.update_state(group, now);
    }

    /// Sets when `group` may send. A permission since some instant in the past begins at `now`, unless the group may
    /// send already: a notification or a timer that raises a rate gives no time back.
    pub fn set_permission(&mut self, group: u32, permission: Permission, now: Instant) {
        let was_permitted =
            |group: &Group| matches!(group.permission, Permission::At(at) if at <= now);
        let group_index = group as usize;
        let from = match permission {
            Permission::At(at) if at < now && !was_permitted(&self.groups[group_index]) => {
                Permission::At(now)
            }
            other => other,
        };
        self.groups[group_index].permission = from;
        self.update_state(group, now);
    }

    /// `queue_pair` has sent a frame. Sets its next key and when its group may send.
    pub fn on_frame_sent(
        &mut self,
        queue_pair: u32,
        key: Option<u64>,
        permission: Permission,
        now: Instant,
    ) {
        let group = self.set_member_key(queue_pair, key);
        self.groups[group as usize].permission = permission;
        self.update_state(group, now);
    }

    /// The queue pair that sends next on `lane` at `now`. The call changes no order.
    pub fn next_sender(&mut self, lane: VirtualLane, now: Instant) -> Option<NextSender> {
        self.promote(lane, now);
        let ready = &mut self.lanes[lane.index()].ready;
        let (group, permitted_since) = loop {
            let Reverse(entry) = ready.peek()?;
            let group = &self.groups[entry.index as usize];
            match (group.state, group.permission) {
                (GroupState::Ready(_), Permission::At(at))
                    if group.generation == entry.generation =>
                {
                    break (entry.index, at);
                }
                _ => ready.pop(),
            };
        };
        let first = self.first_member(group).expect("a ready group has a member to send");
        Some(NextSender { queue_pair: first.index, key: first.key, permitted_since })
    }

    /// Since when the group of `queue_pair`, which may send, is permitted to.
    pub fn permitted_since(&self, queue_pair: u32) -> Instant {
        let group = self.members[queue_pair as usize].group;
        match self.groups[group as usize].permission {
            Permission::At(at) => at,
            Permission::Stopped => Instant::ZERO,
        }
    }

    /// Whether no member of `group` has a frame to send.
    pub fn is_idle(&mut self, group: u32) -> bool {
        self.first_member(group).is_none()
    }

    /// Whether a group of `lane` may be ready or waiting. Stale entries can make this true without need.
    pub fn may_have_work(&self, lane: VirtualLane) -> bool {
        let lane = &self.lanes[lane.index()];
        !lane.ready.is_empty() || !lane.waiting.is_empty()
    }

    /// Whether a group of `lane` may send now.
    pub fn is_ready(&self, lane: VirtualLane) -> bool {
        self.lanes[lane.index()].ready_groups > 0
    }

    /// When the first waiting group of `lane` may send. The entry may be stale, and the instant too early.
    pub fn next_permission(&self, lane: VirtualLane) -> Instant {
        let waiting = &self.lanes[lane.index()].waiting;
        waiting.peek().map_or(Instant::NEVER, |Reverse(entry)| Instant::from_ps(entry.key))
    }

    fn set_member_key(&mut self, queue_pair: u32, key: Option<u64>) -> u32 {
        let member = &mut self.members[queue_pair as usize];
        let group = member.group;
        if member.key != key {
            member.key = key;
            member.generation = member.generation.wrapping_add(1);
            if let Some(key) = key {
                let entry = Entry { key, index: queue_pair, generation: member.generation };
                self.groups[group as usize].members.push(Reverse(entry));
            }
        }
        group
    }

    fn first_member(&mut self, group: u32) -> Option<Entry> {
        let members = &mut self.groups[group as usize].members;
        loop {
            let Reverse(entry) = *members.peek()?;
            let member = self.members[entry.index as usize];
            if member.generation == entry.generation && member.key.is_some() {
                return Some(entry);
            }
            members.pop();
        }
    }

    /// Computes the state of a group at `now` and queues it accordingly.
    fn update_state(&mut self, index: u32, now: Instant) {
        let first = self.first_member(index);
        let group = &mut self.groups[index as usize];
        let state = match (first, group.permission) {
            (None, _) | (_, Permission::Stopped) => GroupState::Blocked,
            (Some(first), Permission::At(at)) if at <= now => GroupState::Ready(first.key),
            (Some(_), Permission::At(at)) => GroupState::Waiting(at),
        };
        if state == group.state {
            return;
        }
        let lane = &mut self.lanes[group.lane];
        lane.ready_groups -= u32::from(matches!(group.state, GroupState::Ready(_)));
        group.state = state;
        group.generation = group.generation.wrapping_add(1);
        let entry = |key| Reverse(Entry { key, index, generation: group.generation });
        match state {
            GroupState::Blocked => {}
            GroupState::Ready(key) => {
                lane.ready_groups += 1;
                lane.ready.push(entry(key));
            }
            GroupState::Waiting(at) => lane.waiting.push(entry(at.as_ps())),
        }
    }

    fn promote(&mut self, lane: VirtualLane, now: Instant) {
        loop {
            let waiting = &mut self.lanes[lane.index()].waiting;
            let Some(Reverse(entry)) = waiting.peek() else { return };
            let group = &self.groups[entry.index as usize];
            let counts = group.generation == entry.generation;
            if counts && entry.key > now.as_ps() {
                return;
            }
            let index = entry.index;
            waiting.pop();
            if counts {
                self.update_state(index, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
