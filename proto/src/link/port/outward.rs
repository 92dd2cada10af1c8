//! The way out: frames of flow control first, then subnet management, then the data lanes.
//!
//! Data lanes go as the arbiter says, each only if flow control permits it all of its next frame.
//! Source: IBTA Vol 1, 7.6.9, 7.9.4; IEEE 802.1Q, 8.6.8, 36.2; IEEE 802.3, 31B.3.

use super::{Head, LaneSource, LinkPort};
use crate::device::Departure;
use crate::events::{Direction, EventKind, EventLog};
use crate::frame::{Frame, FrameClass, FrameKind, FramePool};
use crate::ids::VirtualLane;
use crate::link::credit::LinkState;
use crate::link::flow::Flow;
use crate::units::{Bytes, Instant};
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;

impl LinkPort {
    /// The next frame to leave, if the line is free at `now` and something may go.
    pub fn poll_transmit(
        &mut self,
        source: &mut impl LaneSource,
        pool: &mut FramePool,
        now: Instant,
        log: &mut EventLog,
    ) -> Option<Departure> {
        if self.line.free_at() > now {
            return None;
        }
        self.end_pauses(now, log);
        if let Some(due) = self.flow.control_due(now) {
            return self.send_control(due, pool, now, log);
        }
        let asked = source.lanes();
        let is_asked = |lane: VirtualLane| asked & 1 << lane.index() != 0;
        if self.flow.has_management()
            && is_asked(VirtualLane::MANAGEMENT)
            && let Some(head) = source.head(VirtualLane::MANAGEMENT, now)
        {
            self.counters_mut(VirtualLane::MANAGEMENT).ctl_tx += 1;
            return Some(self.send(source, VirtualLane::MANAGEMENT, None, head.size, head.ready));
        }
        let mut heads = [None; 15];
        let mut eligible = 0u16;
        let data_lanes = (0..self.flow.lanes()).map(VirtualLane::truncate);
        for lane in data_lanes.filter(|lane| is_asked(*lane)) {
            let Some(head) = source.head(lane, now) else { continue };
            heads[lane.index()] = Some(head);
            if self.flow.may_transmit(lane, head.size, now) {
                eligible |= 1 << lane.index();
            } else {
                self.hold(lane, head.ready.max(self.line.free_at()), log);
            }
        }
        if eligible == 0 {
            return None;
        }
        let head = |lane: VirtualLane| heads[lane.index()].expect("an eligible lane has a head");
        let lane = self.flow.serve(eligible, |lane| head(lane).size)?;
        Some(self.send_data(source, lane, head(lane), log))
    }

    fn hold(&mut self, lane: VirtualLane, since: Instant, log: &mut EventLog) {
        let since = self.flow.shut_since(lane).map_or(since, |shut| since.max(shut));
        // Before the link is up there is nobody to wait for.
        if self.flow.state() == LinkState::Active && self.lanes[lane.index()].hold.begin(since) {
            self.log(log, since, lane.get(), EventKind::Hold { cause: self.flow.hold_cause() });
        }
    }

    /// What `lane` waited for came at `at`.
    pub(super) fn free(&mut self, lane: VirtualLane, at: Instant, log: &mut EventLog) {
        if let Some(waited) = self.lanes[lane.index()].hold.end(at) {
            let cause = self.flow.hold_cause();
            self.log(log, at, lane.get(), EventKind::Free { cause, waited });
        }
    }

    fn send_data(
        &mut self,
        source: &mut impl LaneSource,
        lane: VirtualLane,
        head: Head,
        log: &mut EventLog,
    ) -> Departure {
        let held_since = self.blocked_since(lane);
        let ready = head.ready.max(self.flow.opened_at(lane, held_since.is_some()));
        if held_since.is_some() {
            self.free(lane, ready.max(self.line.free_at()), log);
        }
        let counters = &mut self.lanes[lane.index()].counters;
        match head.class {
            FrameClass::Data => {
                counters.tx_frames += 1;
                counters.tx_bytes += head.size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_tx += 1
            }
        }
        self.send(source, lane, held_since, head.size, ready)
    }

    fn send(
        &mut self,
        source: &mut impl LaneSource,
        lane: VirtualLane,
        held_since: Option<Instant>,
        size: Bytes,
        ready: Instant,
    ) -> Departure {
        let (start, end) = self.line.transmit(size, ready);
        let frame = source.take(lane, held_since, start, end);
        Departure { port: self.number, frame, at: end }
    }

    fn send_control(
        &mut self,
        due: Instant,
        pool: &mut FramePool,
        now: Instant,
        log: &mut EventLog,
    ) -> Option<Departure> {
        let mut octets = pool.take();
        let (kind, lane) = match &mut self.flow {
            Flow::Credits(credits) => {
                let packet = credits.flow.poll_control(now)?;
                octets.resize(FlowControlPacket::LEN, 0);
                packet.emit(&mut octets);
                (FrameKind::InfinibandLink, packet.virtual_lane.index())
            }
            Flow::Pause(pauses) => {
                let start = due.max(self.line.free_at());
                let (control, said) = pauses.flow.poll_control(start);
                octets.extend_from_slice(&control.to_octets(pauses.flow.address()));
                self.log_said(said, Direction::Tx, start, log);
                (FrameKind::Ethernet, (said.xoff | said.xon).trailing_zeros() as usize)
            }
        };
        self.lanes[lane].counters.ctl_tx += 1;
        self.link_local += 1;
        let frame = Frame::intact(kind, octets);
        let (_, at) = self.line.transmit(frame.line_size(), due);
        Some(Departure { port: self.number, frame, at })
    }
}
