//! The event log: events in full up to fixed bounds, counted by bin beyond them (docs/spec/seeing.md, 3.5).

use crate::recorder::bins::{Closed, Series};
use crate::wiring::End;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::PortNumber;
use serde::{Deserialize, Serialize};

/// Events of one kind that one port logs in full.
pub(crate) const FULL_MAX: u64 = 2_000;
/// Events that a log holds, not counting kinds that are always kept.
pub const LINES_MAX: usize = 250_000;

/// The names of the event kinds, by [`kind_index`].
pub const KIND_NAMES: [&str; 15] = [
    "hold",
    "free",
    "mark",
    "note",
    "react",
    "drop",
    "watchdog",
    "trigger",
    "queue-pair-error",
    "xoff",
    "xon",
    "pause-expired",
    "storm",
    "storm-over",
    "headroom-alarm",
];

/// The index of the kind in [`KIND_NAMES`].
pub const fn kind_index(kind: &EventKind) -> usize {
    match kind {
        EventKind::Hold { .. } => 0,
        EventKind::Free { .. } => 1,
        EventKind::Mark { .. } => 2,
        EventKind::Note { .. } => 3,
        EventKind::React { .. } => 4,
        EventKind::Drop { .. } => 5,
        EventKind::Watchdog => 6,
        EventKind::Trigger { .. } => 7,
        EventKind::QueuePairError { .. } => 8,
        EventKind::Xoff { .. } => 9,
        EventKind::Xon { .. } => 10,
        EventKind::PauseExpired { .. } => 11,
        EventKind::Storm { .. } => 12,
        EventKind::StormOver { .. } => 13,
        EventKind::HeadroomAlarm { .. } => 14,
    }
}

/// Whether the kind is kept even if the log is full: losses and faults.
pub const fn is_always_kept(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Drop { .. }
            | EventKind::Watchdog
            | EventKind::QueuePairError { .. }
            | EventKind::Storm { .. }
            | EventKind::StormOver { .. }
            | EventKind::HeadroomAlarm { .. }
    )
}

/// An event and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Index into [`crate::wiring::Wiring::nodes`].
    pub node: u32,
    /// The event.
    pub event: DeviceEvent,
}

/// Events of one kind at one port that were counted and not logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldedEvents {
    /// The port.
    pub at: End,
    /// A name of [`KIND_NAMES`].
    pub kind: String,
    /// Number of events, by bin.
    pub counts: Series<u64>,
}

/// The events of a worker's devices, in the order in which they occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvents {
    /// Events logged in full.
    pub events: Vec<LoggedEvent>,
    /// Events only counted, by port and kind.
    pub folded: Vec<FoldedEvents>,
}

#[derive(Clone, Default)]
struct Tally {
    seen: u64,
    open: u64,
    counts: Series<u64>,
}

/// Device, port and kind.
type Place = (usize, usize, usize);

/// Decides for each event whether it is logged or counted.
pub(super) struct EventLogger {
    unbounded: bool,
    lines_max: usize,
    events: Vec<LoggedEvent>,
    devices: Vec<(usize, Vec<[Tally; KIND_NAMES.len()]>)>,
    /// Places with events that were only counted in the open bin.
    open: Vec<Place>,
}

impl EventLogger {
    /// A logger for devices given as (node, number of ports).
    pub(super) fn new(
        devices: impl Iterator<Item = (usize, usize)>,
        unbounded: bool,
    ) -> EventLogger {
        let devices = devices.map(|(node, ports)| (node, vec![Default::default(); ports]));
        EventLogger {
            unbounded,
            lines_max: LINES_MAX,
            events: Vec::new(),
            devices: devices.collect(),
            open: Vec::new(),
        }
    }

    /// Logs or counts one event.
    pub(super) fn push(&mut self, device: usize, event: DeviceEvent) {
        let (node, ports) = &mut self.devices[device];
        let (port, kind) = (event.port.index(), kind_index(&event.kind));
        let tally = &mut ports[port][kind];
        tally.seen += 1;
        let room = self.events.len() < self.lines_max || is_always_kept(&event.kind);
        if self.unbounded || (tally.seen <= FULL_MAX && room) {
            self.events.push(LoggedEvent { node: *node as u32, event });
        } else {
            if tally.open == 0 {
                self.open.push((device, port, kind));
            }
            tally.open += 1;
        }
    }

    /// A bin has closed: assigns the events only counted to it.
    pub(super) fn close_bin(&mut self, closed: &Closed) {
        for places in &closed.regroupings {
            let tallies = self.devices.iter_mut().flat_map(|(_, ports)| ports.iter_mut().flatten());
            tallies.for_each(|tally| tally.counts.regroup(places));
        }
        for (device, port, kind) in self.open.drain(..) {
            let tally = &mut self.devices[device].1[port][kind];
            tally.counts.enter(closed, std::mem::take(&mut tally.open));
        }
    }

    /// The finished log.
    pub(super) fn finish(self) -> RecordedEvents {
        let mut folded = Vec::new();
        for (node, ports) in self.devices {
            for (index, tallies) in ports.into_iter().enumerate() {
                let at = End { node, port: PortNumber::from_index(index) };
                let counted = tallies
                    .into_iter()
                    .zip(KIND_NAMES)
                    .filter(|(tally, _)| tally.counts.iter().next().is_some());
                folded.extend(counted.map(|(tally, kind)| FoldedEvents {
                    at,
                    kind: kind.to_owned(),
                    counts: tally.counts,
                }));
            }
        }
        RecordedEvents { events: self.events, folded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::bins::Grid;
    use proto::units::{Duration, Instant};

    fn event(at: u64, kind: EventKind) -> DeviceEvent {
        DeviceEvent { at: Instant::from_ps(at), port: PortNumber::from_index(0), tc: 0, kind }
    }

    const TRIGGER: EventKind = EventKind::Trigger {
        flow: proto::counters::FlowId { source: 1, destination: 2, class: 0 },
        qp: proto::ids::QueuePairNumber::truncate(0x1_0002),
        sl: proto::ids::ServiceLevel::truncate(3),
        ccti: 9,
    };

    #[test]
    fn past_two_thousand_a_kind_at_a_port_is_counted_by_bin() {
        let mut grid = Grid::new(Duration::from_ps(3_000));
        let mut log = EventLogger::new([(4, 1)].into_iter(), false);
        for at in 1..=9_000u64 {
            log.push(0, event(at, TRIGGER));
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
            log.push(0, event(at, TRIGGER));
        }
        log.push(0, event(9, EventKind::Watchdog));
        assert_eq!(log.events.len(), 4);
        let mut log = EventLogger::new([(0, 1)].into_iter(), true);
        for at in 0..5_000 {
            log.push(0, event(at, TRIGGER));
        }
        assert_eq!(log.finish().events.len(), 5_000);
    }

    #[test]
    fn every_kind_has_its_serialized_name() {
        let text = serde_json::to_string(&TRIGGER).expect("an event is plain data");
        assert!(text.contains(&format!("\"ev\":\"{}\"", KIND_NAMES[kind_index(&TRIGGER)])));
        let text = serde_json::to_string(&EventKind::Watchdog).expect("an event is plain data");
        assert_eq!(text, r#"{"ev":"watchdog"}"#);
    }
}
