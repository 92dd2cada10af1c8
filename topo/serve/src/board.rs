//! What the page shows: finished bins of every output, trees of congestion, phases, lateness.

use emulation::recorder::bins::Slot;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::wiring::{End, NodeKind};
use launch::Progress;
use results::saturation::{Moment, Output, Outputs, Sight};
use scenario::Scenario;
use scenario::render::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bins that are kept; older ones fall out.
pub const BINS_MAX: usize = 1_024;
/// Notes that are kept for clients that come later.
pub const NOTES_MAX: usize = 200;
/// The octet of throughput at this ratio to the line rate; one more stands for no value.
const FULL: f64 = 254.0;
const RATIO_MAX: f64 = 1.06;
/// No value.
const NONE: u8 = 255;
/// Classes of four bits.
const CLASS_MAX: f64 = 15.0;
/// Bins that may lack a worker's part; then the oldest is told without it.
const OPEN_MAX: usize = 4;

/// A finished bin: two octets an output, throughput and then the classes of hold (high) and queue (low).
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number, counted from 0.
    pub number: u64,
    /// Its end, fabric picoseconds.
    pub end_ps: u64,
    /// Its octets.
    pub octets: Vec<u8>,
}

/// A word for the feed: something that happened at a time.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its number, counted from 1.
    pub number: u64,
    /// As the page gets it.
    pub text: Value,
}

/// What is known of a bin: all of it, or what some workers have told.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub slot: Slot,
    /// By output; none of those that nobody has told of.
    pub sights: Vec<Option<Sight>>,
    /// Frames lost in it.
    pub drops: u64,
}

/// How the host has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host {
    /// Lateness, p99 in frame times.
    pub late_p99_frames: Option<f64>,
    /// Frames that the sockets lost.
    pub lost: u64,
}

struct Inner {
    rows: Vec<Row>,
    finished: u64,
    open: BTreeMap<u64, Seen>,
    notes: Vec<Note>,
    noted: u64,
    roots: Vec<usize>,
    phase: Option<usize>,
    head: Value,
    end: Option<Value>,
}

/// The board: written by the launcher, read by every client.
pub struct Board {
    outputs: Outputs,
    places: BTreeMap<End, usize>,
    rates: Vec<u64>,
    feeds: Vec<String>,
    buffer: u64,
    bin_ps: u64,
    tau_ps: u64,
    is_live: bool,
    phases: Vec<(u64, String)>,
    inner: Mutex<Inner>,
}

impl Board {
    /// Of a run that has not begun.
    pub fn new(scenario: &Scenario, lab: &Lab, is_live: bool) -> Board {
        let wiring = &lab.fabric.wiring;
        let (mut all, mut rates, mut feeds) = (Vec::new(), Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        for (link, rate) in wiring.links.iter().zip(&lab.fabric.rates) {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                places.insert(from, all.len());
                rates.push(rate.get());
                feeds.push(wiring.nodes[to.node].name.clone());
                all.push(Output {
                    name: wiring.end_name(from),
                    from: from.node,
                    to: to.node,
                    level: wiring.nodes[from.node].level,
                    far_level: wiring.nodes[to.node].level,
                });
            }
        }
        let buffer = scenario.fabric.switch.buffer.get();
        let phases = lab.phases.iter().map(|phase| (phase.start.as_ps(), phase.name.clone()));
        let inner = Inner {
            rows: Vec::new(),
            finished: 0,
            open: BTreeMap::new(),
            notes: Vec::new(),
            noted: 0,
            roots: Vec::new(),
            phase: None,
            head: json!({}),
            end: None,
        };
        Board {
            // No mark has been seen yet that would say from where on a queue is long.
            outputs: Outputs::new(all, buffer / 2),
            places,
            rates,
            feeds,
            buffer: buffer.max(1),
            bin_ps: lab.plan.bin.as_ps().max(1),
            tau_ps: lab.fabric.tau.as_ps().max(1),
            is_live,
            phases: phases.collect(),
            inner: Mutex::new(inner),
        }
    }

    /// The outputs in the order of a row.
    pub const fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a run tells of itself.
    pub fn enter(&self, progress: Progress<'_>) {
        let mut inner = self.inner();
        for snapshot in progress.bins {
            self.part(&mut inner, snapshot);
        }
        let is_whole = |open: &Seen| open.sights.iter().all(Option::is_some);
        let host = Host { late_p99_frames: progress.late_p99_frames, lost: progress.lost };
        while let Some((_, first)) = inner.open.first_key_value() {
            if !is_whole(first) && inner.open.len() <= OPEN_MAX {
                break;
            }
            let Some((_, open)) = inner.open.pop_first() else { break };
            self.finish(&mut inner, &open, host);
        }
    }

    /// Takes in a bin of which everything is known.
    pub fn enter_bin(&self, seen: &Seen, host: Host) {
        self.finish(&mut self.inner(), seen, host);
    }

    /// What an output did in a bin of `length_ps`: time held, octets that waited, octets sent.
    pub fn sight(
        &self,
        output: usize,
        length_ps: u64,
        hold_ps: u64,
        queue: u64,
        sent: u64,
    ) -> Sight {
        let (length, rate) = (length_ps.max(1) as f64, self.rates[output].max(1) as f64);
        Sight {
            hold: hold_ps as f64 / length,
            queue: queue as f64,
            sent: sent as f64 * 8e12 / length / rate,
        }
    }

    /// One worker's part of a bin.
    fn part(&self, inner: &mut Inner, snapshot: &BinSnapshot) {
        // Bins that have merged are longer: their end still tells them apart.
        let key = (snapshot.slot.end.as_ps() + self.bin_ps / 2) / self.bin_ps;
        let blank = || Seen { slot: snapshot.slot, sights: vec![None; self.rates.len()], drops: 0 };
        let open = inner.open.entry(key).or_insert_with(blank);
        let length = snapshot.slot.length().as_ps();
        for port in &snapshot.ports {
            let Some(place) = self.places.get(&port.at).copied() else { continue };
            let sight = self.sight(place, length, port.hold_ps, port.queue, port.tx_bytes);
            open.sights[place] = Some(sight);
            open.drops += port.drops;
        }
    }

    fn finish(&self, inner: &mut Inner, open: &Seen, host: Host) {
        let seen: Vec<Sight> = open.sights.iter().map(|sight| sight.unwrap_or_default()).collect();
        let moment = self.outputs.look(&seen);
        let octets = open.sights.iter().flat_map(|sight| self.octets(*sight)).collect();
        let end_ps = open.slot.end.as_ps();
        inner.rows.push(Row { number: inner.finished, end_ps, octets });
        inner.finished += 1;
        if inner.rows.len() > BINS_MAX {
            inner.rows.remove(0);
        }
        self.remark(inner, open, &moment);
        inner.head = self.head(end_ps, inner.phase, &seen, &moment, host);
    }

    fn octets(&self, sight: Option<Sight>) -> [u8; 2] {
        let Some(sight) = sight else { return [NONE, 0] };
        let sent = (sight.sent / RATIO_MAX * FULL).round().clamp(0.0, FULL) as u8;
        let class = |share: f64| (share * CLASS_MAX).ceil().clamp(0.0, CLASS_MAX) as u8;
        [sent, class(sight.hold) << 4 | class(sight.queue / self.buffer as f64)]
    }

    /// What is worth a word: a phase begins, roots come and go, frames are lost.
    fn remark(&self, inner: &mut Inner, open: &Seen, moment: &Moment) {
        let middle = open.slot.begin.as_ps() + open.slot.length().as_ps() / 2;
        let at_tau = open.slot.begin.as_ps() / self.tau_ps;
        let phase = self.phases.iter().rposition(|(start, _)| *start <= middle);
        if phase != inner.phase {
            inner.phase = phase;
            if let Some(phase) = phase {
                note(inner, at_tau, "phase", &self.phases[phase].1);
            }
        }
        let roots: Vec<usize> = trees(moment).into_iter().map(|(root, _)| root).collect();
        for root in
            roots.iter().filter(|root| !inner.roots.contains(root)).copied().collect::<Vec<_>>()
        {
            note(inner, at_tau, "root", &self.root(root));
        }
        for root in inner.roots.clone().into_iter().filter(|root| !roots.contains(root)) {
            note(inner, at_tau, "unroot", &self.root(root));
        }
        inner.roots = roots;
        if open.drops > 0 {
            note(inner, at_tau, "drop", &format!("{} frames", open.drops));
        }
    }

    fn root(&self, output: usize) -> String {
        format!("{} → {}", self.outputs.all[output].name, self.feeds[output])
    }

    fn head(
        &self,
        end_ps: u64,
        phase: Option<usize>,
        seen: &[Sight],
        moment: &Moment,
        host: Host,
    ) -> Value {
        let held = |place: &usize| seen[*place].hold >= results::saturation::HELD;
        let all = || (0..seen.len()).filter(held);
        let sources = all().filter(|place| self.outputs.all[*place].level == 0).count();
        let trees = trees(moment)
            .into_iter()
            .map(|(root, size)| json!({ "root": root, "name": self.root(root), "size": size }));
        // Nothing is late on the virtual clock.
        let late = host.late_p99_frames.filter(|_| self.is_live);
        json!({
            "t": end_ps / self.tau_ps,
            "phase": phase.map(|phase| &self.phases[phase].1),
            "held": all().count(),
            "sources_held": sources,
            "trees": trees.collect::<Vec<_>>(),
            "late": late,
            "lost": host.lost,
        })
    }

    /// Puts a word into everybody's feed, at the end of the last bin.
    pub fn tell(&self, kind: &str, what: &str) {
        let mut inner = self.inner();
        let now = inner.rows.last().map_or(0, |row| row.end_ps / self.tau_ps);
        note(&mut inner, now, kind, what);
    }

    /// The run is over; nothing follows.
    pub fn end(&self, verdict: &str, sentence: &str, report: Option<&str>) {
        let end = json!({ "verdict": verdict, "sentence": sentence, "report": report });
        self.inner().end = Some(end);
    }

    /// How many bins are finished, and what stands at the top.
    pub fn now(&self) -> (u64, Value, Option<Value>) {
        let inner = self.inner();
        (inner.finished, inner.head.clone(), inner.end.clone())
    }

    /// Rows from a number on that are still there.
    pub fn rows_from(&self, number: u64) -> Vec<Row> {
        self.inner().rows.iter().filter(|row| row.number >= number).cloned().collect()
    }

    /// Notes after a number.
    pub fn notes_after(&self, number: u64) -> Vec<Note> {
        self.inner().notes.iter().filter(|note| note.number > number).cloned().collect()
    }

    /// Every adapter with its outputs and the outputs that lead to it.
    pub fn adapters(&self, lab: &Lab) -> Vec<Value> {
        let nodes = lab.fabric.wiring.nodes.iter().enumerate();
        let of = |by: &dyn Fn(&Output) -> bool| -> Vec<usize> {
            (0..self.rates.len()).filter(|place| by(&self.outputs.all[*place])).collect()
        };
        let adapters = nodes.filter(|(_, node)| node.kind == NodeKind::Nic);
        adapters
            .map(|(number, node)| {
                let (from, to) =
                    (of(&|o: &Output| o.from == number), of(&|o: &Output| o.to == number));
                json!({ "node": number, "name": node.name, "from": from, "to": to })
            })
            .collect()
    }
}

/// Roots that anything waits behind, with how many outputs do, the greatest first: where a fabric drains,
/// many outputs are roots of nothing for a while.
fn trees(moment: &Moment) -> Vec<(usize, usize)> {
    let sizes = moment.trees.iter().map(|(root, members)| (*root, members.len()));
    let mut trees: Vec<(usize, usize)> = sizes.filter(|(_, size)| *size > 0).collect();
    trees.sort_by_key(|(root, size)| (std::cmp::Reverse(*size), *root));
    trees
}

fn note(inner: &mut Inner, t: u64, kind: &str, what: &str) {
    inner.noted += 1;
    let text = json!({ "t": t, "kind": kind, "what": what });
    inner.notes.push(Note { number: inner.noted, text });
    if inner.notes.len() > NOTES_MAX {
        inner.notes.remove(0);
    }
}
