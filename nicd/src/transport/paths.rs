//! The paths of queue pairs on a managed fabric: LID, service level, P_Key, and the lane that follows. The path to a
//! multicast group comes with the membership.
//!
//! A queue pair sends when its path is known, or when the subnet administration has none. A connection class with service
//! level 0 takes that of the path; another class keeps its own. A queue pair whose lane changes takes along what waits in
//! the old one. Source: IBTA Vol 1, 15.2.5.16 (PathRecord), 7.6.6 (SLtoVL).

use crate::counters::Total;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::lane::{ControlContent, Lane};
use management::partitions::PartitionTable;
use management::records::{Membership, PathRecord};
use proto::frame::FrameHeaders;
use proto::ids::{Address, Lid, Psn, ServiceLevel, VirtualLane};
use proto::units::Instant;

impl ChannelAdapter {
    /// Packets to the peer with LID `planned` in the plan go along `path` from now on.
    pub fn set_path(&mut self, planned: Lid, path: PathRecord, now: Instant) {
        let before = self.wire.path(planned).map(|path| path.level);
        self.wire.set_path(planned, path);
        self.on_path(planned, before, now);
    }

    /// The port belongs to the group with LID `planned` in the plan, and its packets are as `membership` says. A group
    /// whose packets are smaller than those of the link is none for this port.
    pub fn set_membership(&mut self, planned: Lid, membership: Membership, now: Instant) {
        if membership.mtu < self.config.link.mtu.get() {
            return self.lose_membership(planned);
        }
        let before = self.wire.path(planned).map(|path| path.level);
        self.wire.set_membership(planned, membership);
        self.on_path(planned, before, now);
    }

    /// The port does not belong to the group, whatever it was before. What it sends goes where it went.
    pub fn lose_membership(&mut self, planned: Lid) {
        self.wire.lose_membership(planned);
        self.totals.count(Total::MulticastRefused);
    }

    /// There is a path to this peer or group, and there was one with the level `before`.
    fn on_path(&mut self, planned: Lid, before: Option<ServiceLevel>, now: Instant) {
        let level = self.wire.path(planned).map(|path| path.level);
        if level.unwrap_or_default() != before.unwrap_or_default() {
            let indexes: Vec<u32> = self.connections.with(planned).collect();
            indexes.into_iter().for_each(|index| self.place(index, now));
            self.refile_pending(now);
        }
        self.go_without_path(planned, now);
    }

    /// Queue pairs to this peer wait no longer for a path: there is one, or there is none.
    pub fn go_without_path(&mut self, planned: Lid, now: Instant) {
        let indexes: Vec<u32> = self.connections.with(planned).collect();
        for index in indexes {
            let pair = &mut self.queue_pairs[index as usize];
            if pair.requester.is_held() {
                pair.requester.open(Psn::default(), pair.path_mtu);
                self.reschedule(index, now, now);
            }
        }
    }

    /// Whether a queue pair to this peer must wait for its path.
    pub(super) fn awaits_path(&self, peer: Lid) -> bool {
        self.config.management.is_some() && self.wire.path(peer).is_none()
    }

    /// A packet of `class` came from a peer to which no path is known: what is sent to it takes the same way back, until
    /// the subnet administration answers.
    pub(super) fn learn_path(
        &mut self,
        (class, peer): (u8, Lid),
        headers: &FrameHeaders,
        key: u16,
        now: Instant,
    ) {
        if !self.awaits_path(peer) {
            return;
        }
        let ends = (headers.source, headers.destination);
        let key = self.wire.matching_key(key);
        if let ((Address::Lid(lid), Address::Lid(source)), Some(key)) = (ends, key) {
            // Packets of a class with a level of its own do not show that of the path.
            let own = self.config.classes[usize::from(class)].service_level;
            let level = if own.get() == 0 { headers.level } else { ServiceLevel::default() };
            self.set_path(peer, PathRecord { lid, source, level, key }, now);
        }
    }

    /// Service levels have these lanes from now on. A level with a lane that this port does not have keeps its lane.
    pub fn set_lanes(&mut self, lanes: [VirtualLane; 16], now: Instant) {
        let kept = |level: usize| match lanes[level] {
            lane if lane.index() < self.lanes.len() => lane,
            _ => self.wire.lane(ServiceLevel::truncate(level as u8)),
        };
        let lanes = std::array::from_fn(kept);
        self.wire.set_lanes(lanes);
        (0..self.queue_pairs.len() as u32).for_each(|index| self.place(index, now));
        self.refile_pending(now);
    }

    /// The port has these P_Keys.
    pub fn set_partitions(&mut self, table: PartitionTable) {
        self.wire.set_partitions(table);
    }

    /// The service level of a connection.
    pub(super) fn level(&self, class: u8, peer: Lid) -> ServiceLevel {
        let own = self.config.classes[usize::from(class)].service_level;
        let path = self.wire.path(peer).filter(|_| own.get() == 0);
        path.map_or(own, |path| path.level)
    }

    /// Gives a queue pair the level and the lanes that it has now.
    fn place(&mut self, index: u32, now: Instant) {
        let pair = &self.queue_pairs[index as usize];
        let level = self.level(pair.class, pair.peer);
        let to = (self.wire.lane(level), self.wire.notification_lane(level));
        let from = (pair.lane, pair.notification_lane);
        if to == from && pair.config.service_level == level {
            return;
        }
        let octets = pair.requester.unsent_octets();
        let pair = &mut self.queue_pairs[index as usize];
        pair.config.service_level = level;
        (pair.lane, pair.notification_lane) = to;
        move_octets(&mut self.lanes, (from.0, to.0), octets, now);
        self.move_control(index, from);
        let Some(group) = self.queue_pairs[index as usize].group else { return };
        if self.pacer.has_group_per_queue_pair() {
            self.pacer.set_lane(group, to.0);
            self.scheduler.set_lane(group, to.0, now);
        } else {
            self.scheduler.set_key(index, None, now);
            self.queue_pairs[index as usize].group = None;
            self.assign_pacing_group(index, now);
            self.reschedule(index, now, now);
        }
    }

    /// Takes along the control frames of a queue pair that wait in these lanes.
    fn move_control(&mut self, index: u32, (data, notifications): (VirtualLane, VirtualLane)) {
        let pair = &self.queue_pairs[index as usize];
        let mut frames = Vec::new();
        for lane in [data, notifications] {
            let control = &mut self.lanes[lane.index()].control;
            frames.extend(control.iter().filter(|frame| frame.queue_pair == index).copied());
            control.retain(|frame| frame.queue_pair != index);
        }
        for frame in frames {
            let lane = match frame.content {
                ControlContent::Acknowledgement(_) => pair.lane,
                ControlContent::Notification(_) => pair.notification_lane,
            };
            self.lanes[lane.index()].control.push_back(frame);
        }
    }

    fn refile_pending(&mut self, now: Instant) {
        let mut pending = std::mem::take(&mut self.pending);
        let lane = |class, peer| self.wire.lane(self.level(class, peer));
        let mut moved = Vec::new();
        pending.refile(lane, |from, to, octets| moved.push((from, to, octets)));
        self.pending = pending;
        for (from, to, octets) in moved {
            move_octets(&mut self.lanes, (from, to), octets, now);
        }
    }
}

/// Octets that wait to be sent change their lane.
fn move_octets(
    lanes: &mut [Lane],
    (from, to): (VirtualLane, VirtualLane),
    octets: u64,
    now: Instant,
) {
    for (lane, left, joined) in [(from, octets, 0), (to, 0, octets)] {
        let gauge = &mut lanes[lane.index()].source_queue;
        gauge.set(gauge.value - left + joined, now);
    }
}
