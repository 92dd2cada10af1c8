//! The event log: events in full up to fixed bounds, counted by bin beyond them (docs/spec/seeing.md, 3.5).

use crate::recorder::bins::{Closed, Grid, Series};
use crate::recorder::ledger::Ledger;
use crate::wiring::End;
use proto::counters::DropReason;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::PortNumber;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Events of one kind that one port logs in full.
pub(crate) const FULL_MAX: u64 = 2_000;
/// Events that a log holds, not counting kinds that are always kept.
pub const LINES_MAX: usize = 250_000;

/// Number of event kinds.
const KINDS: usize = 19;

/// Number, name and retention of an event kind in the log.
#[derive(Clone, Copy, Debug)]
pub struct KindRow {
    /// Its place among the kinds.
    index: usize,
    /// Its name in `events.jsonl`.
    pub name: &'static str,
    /// Events of this kind are kept even if the log is full: losses and faults.
    pub is_always_kept: bool,
}

/// The row of an event kind.
pub const fn kind_row(kind: &EventKind) -> KindRow {
    let (index, name, is_always_kept) = match kind {
        EventKind::Hold { .. } => (0, "hold", false),
        EventKind::Free { .. } => (1, "free", false),
        EventKind::Mark { .. } => (2, "mark", false),
        EventKind::Note { .. } => (3, "note", false),
        EventKind::React { .. } => (4, "react", false),
        EventKind::Drop { .. } => (5, "drop", true),
        EventKind::Watchdog => (6, "watchdog", true),
        EventKind::Trigger { .. } => (7, "trigger", false),
        EventKind::QueuePairError { .. } => (8, "queue-pair-error", true),
        EventKind::Xoff { .. } => (9, "xoff", false),
        EventKind::Xon { .. } => (10, "xon", false),
        EventKind::PauseExpired { .. } => (11, "pause-expired", false),
        EventKind::Storm { .. } => (12, "storm", true),
        EventKind::StormOver { .. } => (13, "storm-over", true),
        EventKind::HeadroomAlarm { .. } => (14, "headroom-alarm", true),
        EventKind::CarrierDown { .. } => (15, "carrier-down", true),
        EventKind::CarrierUp { .. } => (16, "carrier-up", true),
        EventKind::InterfaceMtu { .. } => (17, "interface-mtu", true),
        EventKind::Violation { .. } => (18, "violation", true),
    };
    KindRow { index, name, is_always_kept }
}

/// An event and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Index into [`crate::wiring::Wiring::nodes`].
    pub node: u32,
    /// The event.
    pub event: DeviceEvent,
    /// The instant of the step in which the device logged it. Logs of several workers merge in this order.
    pub handled: Instant,
}

/// Events of one kind at one port that were counted and not logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldedEvents {
    /// The port.
    pub at: End,
    /// The name of the kind ([`KindRow::name`]).
    pub kind: String,
    /// Number of events, by bin.
    pub counts: Series<u64>,
}

/// Frames of one lane that a port dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneDrops {
    /// The port.
    pub at: End,
    /// Virtual lane or priority.
    pub tc: u8,
    /// The reason.
    pub reason: DropReason,
    /// Number of frames.
    pub frames: u64,
    /// The instant of the first.
    pub first: Instant,
}

/// The events of a worker's devices, in the order in which they occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvents {
    /// Events logged in full.
    pub events: Vec<LoggedEvent>,
    /// Events only counted, by port and kind.
    pub folded: Vec<FoldedEvents>,
    /// Every dropped frame, logged or only counted, by port, lane and reason.
    #[serde(default)]
    pub drops: Vec<LaneDrops>,
}

#[derive(Clone, Default)]
struct Tally {
    kind: &'static str,
    seen: u64,
    /// Events only counted in the open bin.
    open: u64,
    /// The series of the events only counted.
    series: Option<u32>,
}

/// Device, port and kind.
type Place = (usize, usize, usize);

/// Decides for each event whether it is logged or counted.
pub(super) struct EventLogger {
    unbounded: bool,
    lines_max: usize,
    events: Vec<LoggedEvent>,
    devices: Vec<(usize, Vec<[Tally; KINDS]>)>,
    /// Places with events that were only counted in the open bin.
    open: Vec<Place>,
    counts: Ledger<u64>,
    /// Number and first instant of the drops of a port, lane and reason.
    drops: BTreeMap<(End, u8, DropReason), (u64, Instant)>,
}

impl EventLogger {
    /// A logger for devices given as (node, number of ports).
    pub fn new(devices: impl Iterator<Item = (usize, usize)>, unbounded: bool) -> EventLogger {
        let devices = devices.map(|(node, ports)| (node, vec![Default::default(); ports]));
        EventLogger {
            unbounded,
            lines_max: LINES_MAX,
            events: Vec::new(),
            devices: devices.collect(),
            open: Vec::new(),
            counts: Ledger::new(),
            drops: BTreeMap::new(),
        }
    }

    /// Logs or counts one event.
    pub(super) fn push(&mut self, device: usize, event: DeviceEvent, handled: Instant) {
        let (node, ports) = &mut self.devices[device];
        let KindRow { index, name, is_always_kept } = kind_row(&event.kind);
        if let EventKind::Drop { reason, .. } = event.kind {
            let at = End { node: *node, port: event.port };
            self.drops.entry((at, event.tc, reason)).or_insert((0, event.at)).0 += 1;
        }
        let port = event.port.index();
        let tally = &mut ports[port][index];
        tally.kind = name;
        tally.seen += 1;
        let room = self.events.len() < self.lines_max || is_always_kept;
        if self.unbounded || (tally.seen <= FULL_MAX && room) {
            self.events.push(LoggedEvent { node: *node as u32, event, handled });
        } else {
            if tally.open == 0 {
                self.open.push((device, port, index));
            }
            tally.open += 1;
        }
    }

    /// A bin has closed: assigns the events only counted to it.
    pub(super) fn close_bin(&mut self, closed: &Closed) {
        self.counts.turn(closed);
        for (device, port, kind) in self.open.drain(..) {
            let tally = &mut self.devices[device].1[port][kind];
            let series = *tally.series.get_or_insert_with(|| self.counts.begin_series());
            self.counts.enter(series, std::mem::take(&mut tally.open));
        }
    }

    /// The finished log.
    pub(super) fn finish(self) -> RecordedEvents {
        let mut folded = Vec::new();
        let mut counts = self.counts.into_series();
        for (node, ports) in self.devices {
            for (index, tallies) in ports.into_iter().enumerate() {
                let at = End { node, port: PortNumber::from_index(index) };
                folded.extend(tallies.into_iter().filter_map(|Tally { kind, series, .. }| {
                    let counts = std::mem::take(&mut counts[series? as usize]);
                    Some(FoldedEvents { at, kind: kind.to_owned(), counts })
                }));
            }
        }
        let drops = self.drops.into_iter().map(|((at, tc, reason), (frames, first))| LaneDrops {
            at,
            tc,
            reason,
            frames,
            first,
        });
        let mut log = RecordedEvents { events: self.events, folded, drops: drops.collect() };
        log.sort();
        log
    }
}

impl RecordedEvents {
    /// Merges the logs of all workers of a run with exact pace, whose bins are those of `grid`. As in one log, events past
    /// the first `lines_max` are counted by bin.
    pub(super) fn merge(
        workers: Vec<RecordedEvents>,
        grid: &Grid,
        lines_max: usize,
    ) -> RecordedEvents {
        let mut merged = RecordedEvents::default();
        let mut all = Vec::new();
        for RecordedEvents { events, folded, drops } in workers {
            all.extend(events);
            merged.folded.extend(folded);
            merged.drops.extend(drops);
        }
        // Stable: the events of one device stay in their order.
        all.sort_by_key(|logged| (logged.handled, logged.node));
        let mut counts: BTreeMap<(End, &'static str), BTreeMap<u32, u64>> = BTreeMap::new();
        for logged in all {
            let KindRow { name, is_always_kept, .. } = kind_row(&logged.event.kind);
            if merged.events.len() < lines_max || is_always_kept {
                merged.events.push(logged);
                continue;
            }
            let at = End { node: logged.node as usize, port: logged.event.port };
            let after = grid.slots.partition_point(|slot| slot.end <= logged.handled);
            let place = after.min(grid.slots.len().saturating_sub(1)) as u32;
            *counts.entry((at, name)).or_default().entry(place).or_default() += 1;
        }
        for ((at, kind), mut bins) in counts {
            let before =
                merged.folded.iter().position(|folded| folded.at == at && folded.kind == kind);
            if let Some(place) = before {
                let folded = merged.folded.swap_remove(place);
                folded.counts.iter().for_each(|(at, n)| *bins.entry(at).or_default() += n);
            }
            let mut counts = Series::with_room(bins.len());
            bins.into_iter().for_each(|(place, n)| counts.push(place, n));
            merged.folded.push(FoldedEvents { at, kind: kind.to_owned(), counts });
        }
        merged.sort();
        merged
    }

    fn sort(&mut self) {
        self.folded.sort_by(|a, b| (a.at, &a.kind).cmp(&(b.at, &b.kind)));
        self.drops.sort_by_key(|drops| (drops.at, drops.tc, drops.reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::units::Duration;

    fn event(at: u64, kind: EventKind) -> DeviceEvent {
        DeviceEvent { at: Instant::from_ps(at), port: PortNumber::from_index(0), tc: 0, kind }
    }

    const TRIGGER: EventKind = EventKind::Trigger {
        flow: proto::counters::FlowId { source: 1, destination: 2, class: 0 },
        qp: proto::ids::QueuePairNumber::truncate(0x1_0002),
        sl: proto::ids::ServiceLevel::truncate(3),
        ccti: 9,
    };

    const DROP: EventKind = EventKind::Drop {
        reason: DropReason::HeadroomOverrun,
        bytes: proto::units::Bytes::new(64),
    };

    #[test]
    fn every_drop_is_counted_by_lane_and_reason_with_the_first_instant() {
        let mut log = EventLogger::new([(4, 1)].into_iter(), false);
        let icrc =
            EventKind::Drop { reason: DropReason::Icrc, bytes: proto::units::Bytes::new(64) };
        for at in 7..7 + FULL_MAX + 5 {
            log.push(0, event(at, DROP), Instant::ZERO);
        }
        log.push(0, DeviceEvent { tc: 3, ..event(9_000, icrc) }, Instant::ZERO);
        let found: Vec<_> = log
            .finish()
            .drops
            .into_iter()
            .map(|drops| (drops.at.node, drops.tc, drops.reason, drops.frames, drops.first.as_ps()))
            .collect();
        let overrun = (4, 0, DropReason::HeadroomOverrun, FULL_MAX + 5, 7);
        assert_eq!(found, [overrun, (4, 3, DropReason::Icrc, 1, 9_000)]);
    }

    #[test]
    fn past_two_thousand_a_kind_at_a_port_is_counted_by_bin() {
        let mut grid = Grid::new(Duration::from_ps(3_000));
        let mut log = EventLogger::new([(4, 1)].into_iter(), false);
        for at in 1..=9_000u64 {
            log.push(0, event(at, TRIGGER), Instant::ZERO);
            if at % 3_000 == 0 {
                log.close_bin(&grid.close(Instant::from_ps(at)).expect("time has passed"));
            }
        }
        let log = log.finish();
        assert_eq!(log.events.len(), 2_000);
        assert_eq!(log.events[1_999].event.at, Instant::from_ps(2_000));
        assert_eq!(log.folded.len(), 1);
        assert_eq!((log.folded[0].at.node, log.folded[0].kind.as_str()), (4, "trigger"));
        let counts: Vec<_> = log.folded[0].counts.iter().map(|(place, n)| (place, *n)).collect();
        assert_eq!(counts, [(0, 1_000), (1, 3_000), (2, 3_000)]);
    }

    #[test]
    fn a_full_log_still_takes_losses_and_all_events_lifts_every_bound() {
        let mut log = EventLogger::new([(0, 1)].into_iter(), false);
        log.lines_max = 3;
        for at in 0..5 {
            log.push(0, event(at, TRIGGER), Instant::ZERO);
        }
        log.push(0, event(9, EventKind::Watchdog), Instant::ZERO);
        assert_eq!(log.events.len(), 4);
        let mut log = EventLogger::new([(0, 1)].into_iter(), true);
        for at in 0..5_000 {
            log.push(0, event(at, TRIGGER), Instant::ZERO);
        }
        assert_eq!(log.finish().events.len(), 5_000);
    }

    /// Two devices in one log with room for ten events, and each in a log of its own, merged.
    #[test]
    fn merged_logs_are_the_log_that_one_worker_would_have_kept() {
        let mut grid = Grid::new(Duration::from_ps(10));
        let log = |nodes: &[usize]| EventLogger::new(nodes.iter().map(|node| (*node, 1)), false);
        let (mut one, mut parts) = (log(&[3, 7]), [log(&[3]), log(&[7])]);
        one.lines_max = 10;
        for at in 0..30 {
            let handled = Instant::from_ps(at);
            for device in [0, 1] {
                // Device 1 logs what happened before, and every fifth event is always kept.
                let kind = if at % 5 == 4 { DROP } else { TRIGGER };
                let event = event(at.saturating_sub(device as u64 * 3), kind);
                one.push(device, event, handled);
                parts[device].push(0, event, handled);
            }
            if at % 10 == 9 {
                let closed = grid.close(Instant::from_ps(at + 1)).expect("time has passed");
                [&mut one].into_iter().chain(&mut parts).for_each(|log| log.close_bin(&closed));
            }
        }
        let one = one.finish();
        let [a, b] = parts.map(EventLogger::finish);
        assert_eq!(RecordedEvents::merge(vec![b, a], &grid, 10), one);
        assert!(one.events.len() > 10 && one.folded.len() == 2, "{one:?}");
        assert_eq!(one.drops.len(), 2, "a row for each device: {:?}", one.drops);
    }

    #[test]
    fn what_a_merged_log_has_no_room_for_is_counted_with_what_was_folded_before() {
        let mut grid = Grid::new(Duration::from_ps(3_000));
        let mut log = EventLogger::new([(4, 1)].into_iter(), false);
        for at in 1..=3_000u64 {
            log.push(0, event(at, TRIGGER), Instant::from_ps(at));
        }
        log.close_bin(&grid.close(Instant::from_ps(3_000)).expect("time has passed"));
        let merged = RecordedEvents::merge(vec![log.finish()], &grid, 500);
        assert_eq!((merged.events.len(), merged.folded.len()), (500, 1));
        let folded: u64 = merged.folded[0].counts.iter().map(|(_, n)| *n).sum();
        assert_eq!(folded, 2_500);
    }

    #[test]
    fn every_kind_has_its_serialized_name() {
        let text = serde_json::to_string(&TRIGGER).expect("an event is plain data");
        assert!(text.contains(&format!("\"ev\":\"{}\"", kind_row(&TRIGGER).name)));
        let text = serde_json::to_string(&EventKind::Watchdog).expect("an event is plain data");
        assert_eq!(text, r#"{"ev":"watchdog"}"#);
    }
}
