//! The event log: slices of waiting and of pauses, instants of everything else, arrows from a mark to the
//! reaction it led to.

use super::trace::{EventPlace, Track};
use super::tracks::Tracks;
use crate::ReportError;
use crate::data::{self, Run};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Priorities of one PFC frame.
const PRIORITIES: u64 = 8;

/// Reads `events.jsonl` into the trace.
pub fn all(run: &Run, folder: &Path, tracks: &mut Tracks<'_>) -> Result<(), ReportError> {
    let mut reader = Reader::default();
    data::each_event(&folder.join("events.jsonl"), |text| {
        let members: Map<String, Value> = serde_json::from_str(text)?;
        reader.line(&Line(&members), tracks);
        Ok(())
    })?;
    let stop = (run.result.fabric_seconds * 1e12).round() as u64;
    reader.close(stop, tracks);
    Ok(())
}

/// A line of the log.
struct Line<'a>(&'a Map<String, Value>);

impl<'a> Line<'a> {
    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    fn text(&self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// All members except time, place and name. A mark or notification has its kind as name. Lane
    /// 0 is left out, because nearly all events are about it.
    fn notes(&self) -> Vec<(&'a str, Value)> {
        let has_kind_for_name = ["mark", "note"].contains(&self.text("ev"));
        let is_noted = |name: &str, value: &Value| match name {
            "t" | "at" | "ev" => false,
            "kind" => !has_kind_for_name,
            "tc" => *value != 0,
            _ => true,
        };
        let noted = self.0.iter().filter(|(name, value)| is_noted(name, value));
        let mut notes: Vec<(&str, Value)> =
            noted.map(|(name, value)| (name.as_str(), value.clone())).collect();
        // The trace counts nanoseconds, and where frames are marked or lost that is too coarse.
        if ["mark", "drop"].contains(&self.text("ev")) {
            notes.push(("t_ps", self.number("t").into()));
        }
        notes
    }
}

/// The events of one flow from a mark to the reaction.
#[derive(Default)]
struct Chain {
    mark: Option<EventPlace>,
    notes: Vec<EventPlace>,
    /// A notification has reached the sender.
    has_arrived: bool,
}

/// State of the reader.
#[derive(Default)]
struct Reader {
    /// Slices that have begun: when, and at which port.
    open: BTreeMap<Track, (u64, String)>,
    /// By port, the end of the first bin of which some events are only counted.
    counted: BTreeMap<String, u64>,
    chains: BTreeMap<String, Chain>,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, tracks: &mut Tracks<'_>) {
        let (t, at, event) = (line.number("t"), line.text("at"), line.text("ev"));
        let (port, tc) = (tracks.port(at), line.number("tc"));
        if line.0.contains_key("n") {
            let end = t + line.number("dt");
            let counted = self.counted.entry(at.to_owned()).or_insert(end);
            *counted = end.min(*counted);
            let name = format!("{event} ×{}, counted", line.number("n"));
            tracks.trace.instant(port, t, &name, &line.notes());
            return;
        }
        match (event, line.text("dir")) {
            ("hold", _) => {
                let track = tracks.below(port, &format!("held {tc}"));
                let lane =
                    if line.text("cause") == "pfc" { format!(" p{tc}") } else { String::new() };
                self.begin(track, t, at, &format!("held: {}{lane}", line.text("cause")), tracks);
            }
            ("free", _) => {
                let track = tracks.below(port, &format!("held {tc}"));
                let begin = t.saturating_sub(line.number("waited_ps"));
                self.begin(track, begin, at, &format!("held: {}", line.text("cause")), tracks);
                self.end(track, t, tracks);
            }
            ("xoff", "rx") => {
                for priority in each_priority(line) {
                    let track = tracks.below(port, &format!("paused {priority}"));
                    self.begin(track, t, at, &format!("paused p{priority}"), tracks);
                }
            }
            ("xon", "rx") | ("pause-expired", _) => {
                for priority in each_priority(line) {
                    let track = tracks.below(port, &format!("paused {priority}"));
                    self.end(track, t, tracks);
                }
            }
            ("phase", _) => {
                let track = tracks.below(tracks.fabric, "phase");
                self.end(track, t, tracks);
                self.begin(track, t, "", &format!("phase {}", line.text("name")), tracks);
            }
            ("deadlock", _) => {
                let track = tracks.below(tracks.fabric, "deadlock");
                self.begin(track, t, "", "deadlock", tracks);
            }
            ("deadlock-over", _) => {
                let track = tracks.below(tracks.fabric, "deadlock");
                self.end(track, t, tracks);
            }
            ("late", _) => {
                let worker = tracks.worker(line.number("worker"));
                tracks.trace.instant(worker, t, "late", &line.notes());
            }
            // Events for the report only: a measure without a value, and the number of events left out.
            ("null" | "folded", _) => {}
            _ => self.instant(line, port, tracks),
        }
    }

    fn instant(&mut self, line: &Line<'_>, port: Track, tracks: &mut Tracks<'_>) {
        let (event, flow) = (line.text("ev"), line.text("flow"));
        let name = match event {
            "mark" | "note" => line.text("kind").to_uppercase(),
            "drop" => format!("drop: {}", line.text("reason")),
            "xoff" | "xon" => format!("{} sent", event.to_uppercase()),
            other => other.to_owned(),
        };
        let place = tracks.trace.instant(port, line.number("t"), &name, &line.notes());
        let chain = self.chains.entry(flow.to_owned()).or_default();
        match event {
            "mark" => _ = chain.mark.get_or_insert(place),
            // A notification without a mark belongs to an earlier reaction.
            "note" if chain.mark.is_some() => {
                chain.notes.push(place);
                chain.has_arrived |= line.text("dir") == "rx";
            }
            "react" | "trigger" if chain.has_arrived => {
                let Chain { mark, notes, .. } = std::mem::take(chain);
                let steps = mark.into_iter().chain(notes).chain([place]);
                tracks.trace.arrow(&steps.collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    /// Begins a slice. A slice that is open goes on: another XOFF extends the pause.
    fn begin(&mut self, track: Track, t: u64, at: &str, name: &str, tracks: &mut Tracks<'_>) {
        self.open.entry(track).or_insert_with(|| {
            tracks.trace.begin(track, t, name);
            (t, at.to_owned())
        });
    }

    fn end(&mut self, track: Track, t: u64, tracks: &mut Tracks<'_>) {
        if self.open.remove(&track).is_some() {
            tracks.trace.end(track, t);
        }
    }

    /// Ends open slices: at the stop, or where the log of its port begins only to count.
    fn close(self, stop: u64, tracks: &mut Tracks<'_>) {
        for (track, (begin, at)) in self.open {
            let counted = self.counted.get(&at).copied().filter(|end| *end > begin);
            tracks.trace.end(track, counted.map_or(stop, |end| end.min(stop)).max(begin));
        }
    }
}

fn each_priority(line: &Line<'_>) -> impl Iterator<Item = u64> + use<> {
    let mask = line.number("priorities");
    (0..PRIORITIES).filter(move |priority| mask >> priority & 1 == 1)
}
