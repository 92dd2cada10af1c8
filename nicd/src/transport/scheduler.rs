//! Whose turn it is: queue pairs with something to send, grouped by the reaction point that paces
//! them.
//!
//! A lane keeps two heaps of groups: those that may send now, by the key of their first member, and
//! those that must wait, by the instant from which they may. A group keeps a heap of its members.
//! Each group stands in one place and each member is offered once; entries that no longer count are
//! told by their generation and dropped when they come to the top. So a frame costs O(log n) however
//! many queue pairs wait, and one that is held back holds up nobody outside its group.

use proto::congestion::Permission;
use proto::ids::VirtualLane;
use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap entry: the smallest key first; it counts while its owner still holds the generation.
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
    /// Place in the service order while something can be sent.
    key: Option<u64>,
    generation: u32,
}

impl Member {
    /// In place of a group's number.
    const IN_NONE: u32 = u32::MAX;
}

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// Nothing to send, or stopped by its reaction point.
    Blocked,
    /// It may send; the key of its first member.
    Ready(u64),
    /// It may send from then on.
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

/// The next queue pair of a lane and since when its group may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSender {
    /// Index of the queue pair.
    pub queue_pair: u32,
    /// Its place in the service order.
    pub key: u64,
    /// Since when its reaction point permits it.
    pub permitted_since: Instant,
}

/// The service order of one NIC.
#[derive(Clone, Debug)]
pub struct Scheduler {
    lanes: Vec<Lane>,
    groups: Vec<Group>,
    members: Vec<Member>,
}

impl Scheduler {
    /// Over `lanes` data lanes, with nobody in it.
    pub fn new(lanes: usize) -> Scheduler {
        Scheduler { lanes: vec![Lane::default(); lanes], groups: Vec::new(), members: Vec::new() }
    }

    /// The next group, on `lane`; groups are numbered in the order of these calls.
    pub fn add_group(&mut self, lane: VirtualLane) {
        self.groups.push(Group {
            lane: lane.index(),
            members: Heap::new(),
            permission: Permission::At(Instant::ZERO),
            state: GroupState::Blocked,
            generation: 0,
        });
    }

    /// The next queue pair, in no group yet; queue pairs are numbered in the order of these calls.
    pub fn add_queue_pair(&mut self) {
        self.members.push(Member { group: Member::IN_NONE, key: None, generation: 0 });
    }

    /// `queue_pair` is in `group` from now on. Before, it cannot be offered.
    pub fn assign_group(&mut self, queue_pair: u32, group: u32) {
        self.members[queue_pair as usize].group = group;
    }

    /// The queue pairs in `group`.
    pub fn members_of(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let numbered = (0..).zip(&self.members);
        numbered.filter(move |(_, member)| member.group == group).map(|(index, _)| index)
    }

    /// Whether `queue_pair` has been offered.
    pub fn has_work(&self, queue_pair: u32) -> bool {
        self.members[queue_pair as usize].key.is_some()
    }

    /// `queue_pair` can send, with this place in the service order; `None`: it cannot.
    pub fn set_key(&mut self, queue_pair: u32, key: Option<u64>, now: Instant) {
        let group = self.set_member_key(queue_pair, key);
        self.update_state(group, now);
    }

    /// The reaction point of `group` decides anew.
    pub fn set_permission(&mut self, group: u32, permission: Permission, now: Instant) {
        self.groups[group as usize].permission = permission;
        self.update_state(group, now);
    }

    /// `queue_pair` has sent a frame: its next place in the order, and its reaction point's word.
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

    /// Whose turn it is on `lane` at `now`.
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

    /// Whether no member of `group` has anything to send.
    pub fn is_idle(&mut self, group: u32) -> bool {
        self.first_member(group).is_none()
    }

    /// Some group of `lane` may send, now or later. It may turn out that none does.
    pub fn may_have_work(&self, lane: VirtualLane) -> bool {
        let lane = &self.lanes[lane.index()];
        !lane.ready.is_empty() || !lane.waiting.is_empty()
    }

    /// Something may send on `lane` and waits for the line or for credit.
    pub fn is_ready(&self, lane: VirtualLane) -> bool {
        self.lanes[lane.index()].ready_groups > 0
    }

    /// When the next group of `lane` is permitted to send; it may turn out to be put off.
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

    /// Puts `group` where it belongs at `now`.
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
