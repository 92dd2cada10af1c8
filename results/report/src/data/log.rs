//! The event log as the page needs it: pauses in the order of their first, and when notifications began.

use super::{ReportError, Run};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Pauses, and the first notification.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// XOFF sent, by bin.
    pub xoff: Vec<f64>,
    /// XON sent, by bin.
    pub xon: Vec<f64>,
    /// Devices that sent XOFF, in the order of their first XOFF.
    pub first_pauses: Vec<FirstPause>,
    /// Instant of the first notification sent or received, fabric picoseconds.
    pub first_note_ps: Option<u64>,
}

/// The first XOFF of a device, and how many followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstPause {
    /// Index of the device.
    pub node: usize,
    /// Its first XOFF, fabric picoseconds.
    pub xoff_ps: u64,
    /// Its first XON, fabric picoseconds, if any.
    pub xon_ps: Option<u64>,
    /// Number of XOFFs.
    pub xoffs: u64,
}

/// A line of the log, with the members in use.
#[derive(Deserialize)]
struct Line<'a> {
    t: u64,
    #[serde(default)]
    dt: u64,
    #[serde(borrow, default)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    ev: Cow<'a, str>,
    #[serde(borrow, default)]
    dir: Option<Cow<'a, str>>,
    #[serde(default)]
    n: Option<u64>,
}

/// Lines of one port and kind that are kept: sent frames, and all frames. Lines that are only
/// counted do not state the direction; they are divided in the same proportion.
#[derive(Clone, Copy, Default)]
struct Ways {
    sent: u64,
    all: u64,
}

/// Reads `events.jsonl`.
pub fn read(run: &Run, file: &Path) -> Result<EventLog, ReportError> {
    let blank = vec![0.0; run.bins];
    let mut found = EventLog { xoff: blank.clone(), xon: blank, ..EventLog::default() };
    let nodes: BTreeMap<&str, usize> =
        run.graph.nodes.iter().enumerate().map(|(n, node)| (node.name.as_str(), n)).collect();
    let mut ways: BTreeMap<(String, bool), Ways> = BTreeMap::new();
    let mut first: BTreeMap<usize, FirstPause> = BTreeMap::new();
    super::each_event(file, |text| {
        // Most lines are of other kinds; to parse all of them would take seconds.
        if !["\"xoff\"", "\"xon\"", "\"note\""].iter().any(|kind| text.contains(kind)) {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(text)?;
        let stops = match &*line.ev {
            "xoff" => true,
            "xon" => false,
            "note" => {
                found.first_note_ps.get_or_insert(line.t);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let count = sent(&mut ways, &line, stops);
        if count <= 0.0 {
            return Ok(());
        }
        let series = if stops { &mut found.xoff } else { &mut found.xon };
        series[run.bin_at(line.t + line.dt / 2)] += count;
        let name = line.at.rsplit_once(':').map_or(&*line.at, |(name, _)| name);
        let Some(node) = nodes.get(name).copied() else { return Ok(()) };
        if stops {
            let blank = FirstPause { node, xoff_ps: line.t, xon_ps: None, xoffs: 0 };
            first.entry(node).or_insert(blank).xoffs += count.round() as u64;
        } else if let Some(pause) = first.get_mut(&node) {
            pause.xon_ps.get_or_insert(line.t);
        }
        Ok(())
    })?;
    found.first_pauses = first.into_values().collect();
    found.first_pauses.sort_by_key(|pause| (pause.xoff_ps, pause.node));
    Ok(found)
}

/// The number of sent frames that a line represents.
fn sent(ways: &mut BTreeMap<(String, bool), Ways>, line: &Line<'_>, stops: bool) -> f64 {
    let known = ways.entry((line.at.clone().into_owned(), stops)).or_default();
    match (&line.dir, line.n) {
        (Some(dir), _) => {
            let is_sent = dir == "tx";
            known.all += 1;
            known.sent += u64::from(is_sent);
            f64::from(u8::from(is_sent))
        }
        (None, Some(n)) if known.all > 0 => n as f64 * known.sent as f64 / known.all as f64,
        (None, _) => 0.0,
    }
}
