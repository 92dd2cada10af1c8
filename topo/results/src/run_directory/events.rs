//! `events.jsonl`: the events of all devices and of the laboratory, by time, within bounds.

use crate::run_directory::{RemarkKind, RunRecord, Sealed};
use emulation::recorder::bins::Slot;
use emulation::recorder::event_log::{FoldedEvents, KIND_NAMES};
use emulation::recorder::event_log::{LINES_MAX, LoggedEvent, is_always_kept, kind_index};
use emulation::wiring::End;
use proto::counters::FlowId;
use proto::events::{DeviceEvent, EventKind};
use scenario::inventory::FlowNames;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most octets of the file, without the lines that are always kept.
const OCTETS_MAX: u64 = 48 << 20;

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
            Line::Event(logged) => is_always_kept(&logged.event.kind),
            Line::Folded(folded, ..) => {
                ["drop", "watchdog", "queue-pair-error", "storm", "storm-over", "headroom-alarm"]
                    .contains(&&*folded.kind)
            }
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
    let readings = record.recordings.iter().flat_map(|recording| &recording.last);
    let flows = readings.flat_map(|reading| reading.flows.iter().map(|flow| flow.flow));
    let names = FlowNames::new(record.fabric, flows);
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
        let mut text = serde_json::to_string(&members(at, &line, record, &names))?;
        text.push('\n');
        out.write_all(text.as_bytes())?;
        rows += 1;
        octets += text.len() as u64;
    }
    let stop = record.recordings.iter().map(|recording| recording.stopped.as_ps()).max();
    let last = Members::at(stop.unwrap_or(0)).with("ev", "folded");
    let last = last.with("counted", counted).with("left_out", left_out);
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

/// The members of a line, in the order in which they are written.
struct Members(Vec<(&'static str, Value)>);

impl Members {
    fn at(t: u64) -> Members {
        Members(vec![("t", t.into())])
    }

    fn with(mut self, name: &'static str, value: impl Serialize) -> Members {
        self.0.push((name, json!(value)));
        self
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn members(at: u64, line: &Line<'_>, record: &RunRecord<'_>, names: &FlowNames<'_>) -> Members {
    let members = Members::at(at);
    match line {
        Line::Remark(RemarkKind::Phase { index, name }) => {
            members.with("ev", "phase").with("index", index).with("name", name)
        }
        Line::Remark(RemarkKind::Null { measure, why }) => {
            members.with("ev", "null").with("measure", measure).with("why", why)
        }
        Line::Remark(RemarkKind::Late { worker, by_ps, frames }) => {
            let members = members.with("ev", "late").with("worker", worker);
            members.with("by_ps", by_ps).with("frames", frames)
        }
        Line::Remark(RemarkKind::Deadlock { tc, circle }) => {
            let names = circle.iter().map(|end| record.fabric.wiring.end_name(*end));
            let members = members.with("ev", "deadlock").with("tc", tc);
            members.with("circle", names.collect::<Vec<_>>())
        }
        Line::Remark(RemarkKind::DeadlockOver { tc }) => {
            members.with("ev", "deadlock-over").with("tc", tc)
        }
        Line::Folded(folded, slot, n) => members
            .with("dt", slot.length().as_ps())
            .with("at", record.fabric.wiring.end_name(folded.at))
            .with("ev", &folded.kind)
            .with("n", n),
        Line::Event(logged) => event_members(members, logged, record, names),
    }
}

fn event_members(
    members: Members,
    logged: &LoggedEvent,
    record: &RunRecord<'_>,
    names: &FlowNames<'_>,
) -> Members {
    let DeviceEvent { port, tc, kind, .. } = logged.event;
    let end = End { node: logged.node as usize, port };
    let name = |flow: FlowId| names.name(flow);
    let members = members
        .with("at", record.fabric.wiring.end_name(end))
        .with("tc", tc)
        .with("ev", KIND_NAMES[kind_index(&kind)]);
    match kind {
        EventKind::Hold { cause } => members.with("cause", cause),
        EventKind::Free { cause, waited } => {
            members.with("cause", cause).with("waited_ps", waited.as_ps())
        }
        EventKind::Mark { flow, mark, queue, limit } => members
            .with("flow", name(flow))
            .with("kind", mark)
            .with("queue", queue.get())
            .with("limit", limit.get()),
        EventKind::Note { flow, note, dir } => {
            members.with("flow", name(flow)).with("kind", note).with("dir", dir)
        }
        EventKind::React { flow, gap, scalar } => {
            members.with("flow", name(flow)).with("gap_ps", gap.as_ps()).with("scalar", scalar)
        }
        EventKind::Drop { reason, bytes } => {
            members.with("reason", reason.name()).with("bytes", bytes.get())
        }
        EventKind::Xoff { priorities, quanta, fill, dir } => members
            .with("priorities", priorities)
            .with("quanta", quanta)
            .with("fill", fill.get())
            .with("dir", dir),
        EventKind::Xon { priorities, fill, dir } => {
            members.with("priorities", priorities).with("fill", fill.get()).with("dir", dir)
        }
        EventKind::PauseExpired { priorities } => members.with("priorities", priorities),
        EventKind::HeadroomAlarm { used, headroom } => {
            members.with("used", used.get()).with("headroom", headroom.get())
        }
        EventKind::Storm { stuck } => members.with("stuck_ps", stuck.as_ps()),
        EventKind::StormOver { lasted } => members.with("lasted_ps", lasted.as_ps()),
        EventKind::Watchdog => members,
        EventKind::Trigger { flow, qp, sl, ccti } => {
            members.with("flow", name(flow)).with("qp", qp).with("sl", sl).with("ccti", ccti)
        }
        EventKind::QueuePairError { flow } => members.with("flow", name(flow)),
    }
}
