//! Transmission: flow-control frames first, then subnet management, then the data lanes.
//!
//! The arbiter orders the data lanes; a lane is eligible if flow control permits its whole next frame.
//! Source: IBTA Vol 1, 7.6.9, 7.9.4; IEEE 802.1Q, 8.6.8, 36.2; IEEE 802.3, 31B.3.

use super::{Grant, Head, LaneSource, LinkPort, Transmission};
use crate::departure::{Departure, Step};
use crate::events::{Direction, EventLog};
use crate::frame::{Frame, FrameKind, FramePool};
use crate::ids::VirtualLane;
use crate::link::credit::LinkState;
use crate::link::flow_control::FlowControl;
use crate::units::Instant;
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;
use std::array;

impl LinkPort {
    /// The next frame to leave, if the line is free in `step` and a frame may leave. A flow-control frame
    /// departs by itself; for any other frame the owner gets a [`Grant`].
    pub fn poll_transmit<S: LaneSource>(
        &mut self,
        source: &mut S,
        pool: &mut FramePool,
        step: Step,
        log: &mut EventLog,
    ) -> Option<Transmission<S::Offer>> {
        let now = step.now;
        if self.state.line.free_at() > now {
            return None;
        }
        self.end_pauses(now, log);
        match self.flow.control_due(now) {
            Some(due) => self.send_control(due, pool, step, log).map(Transmission::Control),
            None => self.grant(source, step, log).map(Transmission::Granted),
        }
    }

    /// Chooses among the frames that `source` offers.
    fn grant<S: LaneSource>(
        &mut self,
        source: &mut S,
        step: Step,
        log: &mut EventLog,
    ) -> Option<Grant<S::Offer>> {
        let now = step.now;
        let occupied = source.lanes();
        let is_occupied = |lane: VirtualLane| occupied & 1 << lane.index() != 0;
        if self.flow.has_management()
            && is_occupied(VirtualLane::MANAGEMENT)
            && let Some(head) = source.head(VirtualLane::MANAGEMENT, now)
        {
            self.state.counters_mut(VirtualLane::MANAGEMENT).ctl_tx += 1;
            return Some(self.take_line(VirtualLane::MANAGEMENT, None, head, step));
        }
        // `from_fn` writes only the tags; a constant of this type would be copied whole at each poll.
        let mut heads: [Option<Head<S::Offer>>; 15] = array::from_fn(|_| None);
        let mut eligible = 0u16;
        let data_lanes = (0..self.flow.lanes()).map(VirtualLane::truncate);
        for lane in data_lanes.filter(|lane| is_occupied(*lane)) {
            let Some(head) = source.head(lane, now) else { continue };
            if self.flow.may_start(lane, head.size, now) {
                eligible |= 1 << lane.index();
                heads[lane.index()] = Some(head);
            } else {
                self.hold(lane, self.state.line.start(head.ready, step), log);
            }
        }
        if eligible == 0 {
            return None;
        }
        let size = |lane: VirtualLane| heads[lane.index()].as_ref().map(|head| head.size);
        let lane = self.flow.serve(eligible, |lane| size(lane).unwrap_or_default())?;
        let head = heads[lane.index()].take()?;
        Some(self.grant_data(lane, head, step, log))
    }

    fn hold(&mut self, lane: VirtualLane, since: Instant, log: &mut EventLog) {
        // While the link trains, flow control is not the cause of the wait.
        if self.flow.state() == LinkState::Active {
            let since = self.flow.closed_since(lane).map_or(since, |closed| since.max(closed));
            self.state.begin_hold(lane, since, log);
        }
    }

    fn grant_data<O>(
        &mut self,
        lane: VirtualLane,
        head: Head<O>,
        step: Step,
        log: &mut EventLog,
    ) -> Grant<O> {
        let held_since = self.blocked_since(lane);
        let ready = head.ready.max(self.flow.opened_at(lane, held_since.is_some()));
        if held_since.is_some() {
            self.state.end_hold(lane, self.state.line.start(ready, step), log);
        }
        self.state.count_sent(lane, head.class, head.size);
        self.take_line(lane, held_since, Head { ready, ..head }, step)
    }

    fn take_line<O>(
        &mut self,
        lane: VirtualLane,
        held_since: Option<Instant>,
        head: Head<O>,
        step: Step,
    ) -> Grant<O> {
        let (start, end) = self.state.line.transmit(head.size, head.ready, step);
        self.state.traffic.sent.count(head.size);
        Grant { port: self.state.number, offer: head.offer, lane, held_since, start, end }
    }

    fn send_control(
        &mut self,
        due: Instant,
        pool: &mut FramePool,
        step: Step,
        log: &mut EventLog,
    ) -> Option<Departure> {
        let mut octets = pool.take();
        let (kind, lane) = match &mut self.flow {
            FlowControl::Credit(credit) => {
                let packet = credit.flow.poll_control(step.now)?;
                octets.resize(FlowControlPacket::LEN, 0);
                packet.emit(&mut octets);
                (FrameKind::InfinibandLink, packet.virtual_lane.index())
            }
            FlowControl::Pause(pause) => {
                let start = self.state.line.start(due, step);
                let (control, change) = pause.flow.poll_control(start);
                octets.extend_from_slice(&control.to_octets(pause.flow.address));
                self.state.log_change(change, Direction::Tx, start, log);
                (FrameKind::Ethernet, (change.xoff | change.xon).trailing_zeros() as usize)
            }
        };
        self.state.lanes[lane].counters.ctl_tx += 1;
        self.state.link_local += 1;
        let frame = Frame::intact(kind, octets);
        let (_, at) = self.state.line.transmit(frame.line_size(), due, step);
        Some(Departure { port: self.state.number, frame, at })
    }
}
