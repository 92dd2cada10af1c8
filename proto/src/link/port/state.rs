//! The part of a port that both technologies share: its line, its counters and its event log entries.

use crate::counters::{Condition, DropReason, Drops, Gauge, LaneCounters};
use crate::events::{DeviceEvent, EventKind, EventLog, HoldCause};
use crate::frame::{FrameClass, FrameHeaders};
use crate::ids::{PortNumber, VirtualLane};
use crate::link::port::managed::{Traffic, TrafficDetail};
use crate::link::serializer::Serializer;
use crate::units::{Bytes, Instant};

/// Line and counters of one port.
#[derive(Debug)]
pub(super) struct PortState {
    pub(super) number: PortNumber,
    pub(super) mtu: Bytes,
    pub(super) line: Serializer,
    /// The cause of every hold on this port.
    pub(super) hold_cause: HoldCause,
    /// By data lane.
    pub(super) lanes: Vec<LaneState>,
    /// VL15, from its first frame on.
    pub(super) management: Option<Box<LaneCounters>>,
    pub(super) drops: Drops,
    /// Credit time-outs that retrained the link.
    pub(super) watchdogs: u64,
    /// Flow-control frames sent.
    pub(super) link_local: u64,
    pub(super) traffic: Traffic,
    /// Only under a subnet manager.
    pub(super) detail: Option<Box<TrafficDetail>>,
}

/// Counters of one data lane.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneState {
    pub(super) counters: LaneCounters,
    /// Holds while a ready frame waits for flow control.
    pub(super) hold: Condition,
    pub(super) in_queue: Gauge,
}

impl PortState {
    pub(super) fn log(&self, log: &mut EventLog, at: Instant, lane: VirtualLane, kind: EventKind) {
        log.push(DeviceEvent { at, port: self.number, tc: lane.get(), kind });
    }

    pub(super) fn count_drop(
        &mut self,
        reason: DropReason,
        size: Bytes,
        lane: VirtualLane,
        now: Instant,
        log: &mut EventLog,
    ) {
        self.drops.count(reason);
        if reason.is_want_of_room()
            && let Some(state) = self.lanes.get_mut(lane.index())
        {
            state.counters.no_room += 1;
        }
        self.log(log, now, lane, EventKind::Drop { reason, bytes: size });
    }

    pub(super) fn counters_mut(&mut self, lane: VirtualLane) -> &mut LaneCounters {
        match self.lanes.get_mut(lane.index()) {
            Some(state) => &mut state.counters,
            None => self.management.get_or_insert_default(),
        }
    }

    /// Counts a good packet of any lane, as performance management does.
    pub(super) fn count_traffic(&mut self, headers: &FrameHeaders) {
        self.traffic.receive(headers);
        if let Some(detail) = &mut self.detail {
            detail.receive(headers);
        }
    }

    /// Counts a good packet that arrived on its data lane.
    pub(super) fn count_received(&mut self, headers: &FrameHeaders) {
        let counters = &mut self.lanes[headers.lane.index()].counters;
        match headers.class {
            FrameClass::Data => {
                counters.rx_frames += 1;
                counters.rx_bytes += headers.size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_rx += 1
            }
        }
        // A receiver's notification has BECN set; a switch's message has no queue pair.
        let is_message = headers.class == FrameClass::Notification && headers.queue_pair == 0;
        counters.notes_rx += u64::from(headers.becn || is_message);
    }

    /// Counts a frame of `size` octets that leaves on a data lane.
    pub(super) fn count_sent(&mut self, lane: VirtualLane, class: FrameClass, size: Bytes) {
        let counters = &mut self.lanes[lane.index()].counters;
        match class {
            FrameClass::Data => {
                counters.tx_frames += 1;
                counters.tx_bytes += size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_tx += 1
            }
        }
    }

    /// Flow control holds a ready frame of `lane` from `since` on.
    pub(super) fn begin_hold(&mut self, lane: VirtualLane, since: Instant, log: &mut EventLog) {
        if self.lanes[lane.index()].hold.begin(since) {
            self.log(log, since, lane, EventKind::Hold { cause: self.hold_cause });
        }
    }

    /// Flow control no longer holds `lane`, from `at` on.
    pub(super) fn end_hold(&mut self, lane: VirtualLane, at: Instant, log: &mut EventLog) {
        if let Some(waited) = self.lanes[lane.index()].hold.end(at) {
            self.log(log, at, lane, EventKind::Free { cause: self.hold_cause, waited });
        }
    }

    pub(super) fn blocked_since(&self, lane: VirtualLane) -> Option<Instant> {
        self.lanes.get(lane.index()).and_then(|state| state.hold.since())
    }
}
