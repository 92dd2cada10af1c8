//! `events.jsonl`: the events of all devices and of the laboratory, by time, within bounds.

use crate::run_directory::{RemarkKind, RunRecord, Sealed};
use emulation::recorder::bins::Slot;
use emulation::recorder::event_log::{FoldedEvents, LINES_MAX, LoggedEvent, kind_row};
use emulation::wiring::End;
use proto::counters::FlowId;
use proto::events::{DeviceEvent, EventKind};
use proto::units::{Bytes, Duration, Instant};
use scenario::inventory::FlowNames;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most octets of the file, without the lines that are always kept.
const OCTETS_MAX: u64 = 48 << 20;

/// Kinds of which even the counts of a full log are written.
const ALWAYS_KEPT: [&str; 9] = [
    "drop",
    "watchdog",
    "queue-pair-error",
    "storm",
    "storm-over",
    "headroom-alarm",
    "carrier-down",
    "carrier-up",
    "interface-mtu",
];

/// One line before it is written.
enum Line<'a> {
    Remark(&'a RemarkKind),
    Event(&'a LoggedEvent),
    Folded(&'a FoldedEvents, Slot, u64),
}

impl Line<'_> {
    fn is_always_kept(&self) -> bool {
        match self {
            Line::Remark(_) => true,
            Line::Event(logged) => kind_row(&logged.event.kind).is_always_kept,
            Line::Folded(folded, ..) => ALWAYS_KEPT.contains(&&*folded.kind),
        }
    }

    /// Number of events that it represents, and whether they are only counted.
    fn events(&self) -> (u64, bool) {
        match self {
            Line::Remark(_) | Line::Event(_) => (1, false),
            Line::Folded(_, _, n) => (*n, true),
        }
    }
}

/// Writes the file; the last line states how many events were folded and left out.
pub(super) fn write(record: &RunRecord<'_>, out: &mut Sealed) -> io::Result<u64> {
    let names = record.flow_names();
    let (mut rows, mut octets) = (0, 0);
    let (mut counted, mut left_out) = (0, 0);
    for (at, line) in lines(record) {
        let (events, folded) = line.events();
        let room = rows < LINES_MAX as u64 && octets < OCTETS_MAX;
        if !(room || record.all_events || line.is_always_kept()) {
            left_out += events;
            continue;
        }
        counted += if folded { events } else { 0 };
        let mut text = text(at, &line, record, &names)?;
        text.push('\n');
        out.write_all(text.as_bytes())?;
        rows += 1;
        octets += text.len() as u64;
    }
    let stop = record.recordings.iter().map(|recording| recording.stopped.as_ps()).max();
    let last = Summary { t: stop.unwrap_or(0), ev: "folded", counted, left_out };
    writeln!(out, "{}", serde_json::to_string(&last)?)?;
    Ok(rows + 1)
}

/// All lines by time; at one instant laboratory events first, then worker by worker.
fn lines<'a>(record: &'a RunRecord<'_>) -> Vec<(u64, Line<'a>)> {
    let mut lines: Vec<(u64, Line<'a>)> = record
        .remarks
        .iter()
        .map(|remark| (remark.at.as_ps(), Line::Remark(&remark.kind)))
        .collect();
    for recording in record.recordings {
        let events = &recording.events;
        lines.extend(
            events.events.iter().map(|logged| (logged.event.at.as_ps(), Line::Event(logged))),
        );
        for folded in &events.folded {
            lines.extend(folded.counts.iter().map(|(place, n)| {
                let slot = recording.grid.slots[place as usize];
                (slot.begin.as_ps(), Line::Folded(folded, slot, *n))
            }));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines
}

/// The line of a laboratory event.
#[derive(Serialize)]
struct RemarkLine<'a> {
    t: u64,
    #[serde(flatten)]
    kind: &'a RemarkKind,
}

/// The line of the events of a kind that were only counted in a bin.
#[derive(Serialize)]
struct FoldedLine<'a> {
    t: u64,
    dt: u64,
    at: String,
    ev: &'a str,
    n: u64,
}

/// The last line.
#[derive(Serialize)]
struct Summary {
    t: u64,
    ev: &'static str,
    counted: u64,
    left_out: u64,
}

fn text(
    t: u64,
    line: &Line<'_>,
    record: &RunRecord<'_>,
    names: &FlowNames<'_>,
) -> serde_json::Result<String> {
    let name = |end| record.fabric.wiring.end_name(end);
    match line {
        Line::Remark(kind) => serde_json::to_string(&RemarkLine { t, kind }),
        Line::Folded(FoldedEvents { at, kind, .. }, slot, n) => {
            let dt = slot.length().as_ps();
            serde_json::to_string(&FoldedLine { t, dt, at: name(*at), ev: kind, n: *n })
        }
        Line::Event(LoggedEvent { node, event, .. }) => {
            let DeviceEvent { port, tc, kind, .. } = event;
            let at = name(End { node: *node as usize, port: *port });
            let ev = kind_row(kind).name;
            let common = [("t", json!(t)), ("at", json!(at)), ("tc", json!(tc)), ("ev", json!(ev))];
            serde_json::to_string(&Members([&common, &*members(kind, names)].concat()))
        }
    }
}

/// The members of a line, in the order in which they are written.
struct Members(Vec<(&'static str, Value)>);

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The members that only events of this kind have.
fn members(kind: &EventKind, names: &FlowNames<'_>) -> Vec<(&'static str, Value)> {
    let of_flow = |flow: &FlowId| ("flow", json!(names.name(*flow)));
    let octets = |name, octets: &Bytes| (name, json!(octets.get()));
    let time = |name, time: &Duration| (name, json!(time.as_ps()));
    match kind {
        EventKind::Hold { cause } => vec![("cause", json!(cause))],
        EventKind::Free { cause, waited } => {
            vec![("cause", json!(cause)), time("waited_ps", waited)]
        }
        EventKind::Mark { flow, mark, queue, limit } => {
            let levels = [octets("queue", queue), octets("limit", limit)];
            [vec![of_flow(flow), ("kind", json!(mark))], levels.to_vec()].concat()
        }
        EventKind::Note { flow, note, dir } => {
            vec![of_flow(flow), ("kind", json!(note)), ("dir", json!(dir))]
        }
        EventKind::React { flow, gap, scalar } => {
            vec![of_flow(flow), time("gap_ps", gap), ("scalar", json!(scalar))]
        }
        EventKind::Drop { reason, bytes } => {
            vec![("reason", json!(reason.name())), octets("bytes", bytes)]
        }
        EventKind::Xoff { priorities, quanta, fill, dir } => {
            let pause = [("priorities", json!(priorities)), ("quanta", json!(quanta))];
            [pause, [octets("fill", fill), ("dir", json!(dir))]].concat()
        }
        EventKind::Xon { priorities, fill, dir } => {
            vec![("priorities", json!(priorities)), octets("fill", fill), ("dir", json!(dir))]
        }
        EventKind::PauseExpired { priorities } => vec![("priorities", json!(priorities))],
        EventKind::HeadroomAlarm { used, headroom } => {
            vec![octets("used", used), octets("headroom", headroom)]
        }
        EventKind::Storm { stuck } => vec![time("stuck_ps", stuck)],
        EventKind::StormOver { lasted } => vec![time("lasted_ps", lasted)],
        EventKind::Watchdog => Vec::new(),
        EventKind::CarrierDown { cause } => vec![("cause", json!(cause))],
        EventKind::CarrierUp { away, dropped } => {
            vec![time("away_ps", away), ("dropped", json!(dropped))]
        }
        EventKind::InterfaceMtu { mtu } => vec![octets("mtu", mtu)],
        EventKind::Trigger { flow, qp, sl, ccti } => {
            let path = [("qp", json!(qp)), ("sl", json!(sl)), ("ccti", json!(ccti))];
            [vec![of_flow(flow)], path.to_vec()].concat()
        }
        EventKind::Violation { law, earliest, bytes } => {
            let earliest = (*earliest < Instant::NEVER).then_some(earliest.as_ps());
            let permitted = ("earliest_ps", json!(earliest));
            vec![("law", json!(law)), permitted, octets("bytes", bytes)]
        }
        EventKind::QueuePairError { flow } => vec![of_flow(flow)],
    }
}
