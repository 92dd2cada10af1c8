//! The live state: finished bins of every output, congestion trees, phases, lateness.

use dashmap::DashMap;
use emulation::recorder::bins::Slot;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::wiring::{End, NodeKind};
use launch::Progress;
use results::saturation::{BinTrees, Output, OutputState, Outputs};
use scenario::Scenario;
use scenario::render::Lab;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of bins that are kept.
pub const BINS_MAX: u64 = 1_024;
/// The number of notes that are kept for clients that connect later.
const NOTES_MAX: u64 = 200;
/// The octet that encodes a throughput of `RATIO_MAX` times the line rate.
const FULL: f64 = 254.0;
const RATIO_MAX: f64 = 1.06;
/// The octet that encodes no value.
const NONE: u8 = 255;
/// The largest class, in four bits.
const CLASS_MAX: f64 = 15.0;
/// The number of incomplete bins; beyond it the oldest is finished without the missing workers.
const OPEN_MAX: usize = 4;

/// A finished bin: two octets for each output, throughput and then the classes of hold (high) and queue (low).
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number, counted from 0.
    pub number: u64,
    /// Its end, fabric picoseconds.
    pub end_ps: u64,
    /// Its octets.
    pub octets: Vec<u8>,
}

/// An event for the page.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its JSON for the page.
    pub text: Value,
}

/// A bin, perhaps without the part of some workers.
#[derive(Clone, Debug)]
pub(crate) struct LiveBin {
    /// Its time.
    pub slot: Slot,
    /// Samples by output; none for outputs of missing workers.
    pub samples: Vec<Option<OutputState>>,
    /// Frames lost in it.
    pub drops: u64,
}

/// The fidelity of the host so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostState {
    /// Lateness, p99 in frame times.
    pub late_p99_frames: Option<f64>,
    /// Frames that the sockets lost.
    pub lost: u64,
}

/// What only the writer needs, and the state at the last bin.
#[derive(Default)]
struct Current {
    /// Bins without the part of some workers, by number.
    open: BTreeMap<u64, LiveBin>,
    roots: Vec<usize>,
    phase: Option<usize>,
    end_ps: u64,
    head: Value,
    end: Option<Value>,
}

/// The live state: written by the launcher and by actions, read by every client.
///
/// Rows and notes are in concurrent maps, so that clients that read do not stop the run.
pub struct LiveState {
    /// The outputs in the order of a row.
    pub outputs: Outputs,
    places: BTreeMap<End, usize>,
    rates: Vec<u64>,
    feeds: Vec<String>,
    buffer: u64,
    bin_ps: u64,
    tau_ps: u64,
    is_live: bool,
    phases: Vec<(u64, String)>,
    rows: DashMap<u64, Row>,
    finished: AtomicU64,
    notes: DashMap<u64, Note>,
    noted: AtomicU64,
    /// A lock, because the fields change together; held for a copy only.
    current: Mutex<Current>,
}

impl LiveState {
    /// The state of a run that has not begun.
    pub fn new(scenario: &Scenario, lab: &Lab, is_live: bool) -> LiveState {
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
        LiveState {
            // Before the first mark, half of a buffer is the threshold of a long queue.
            outputs: Outputs::new(all, buffer / 2),
            places,
            rates,
            feeds,
            buffer: buffer.max(1),
            bin_ps: lab.plan.bin.as_ps().max(1),
            tau_ps: lab.fabric.tau.as_ps().max(1),
            is_live,
            phases: phases.collect(),
            rows: DashMap::new(),
            finished: AtomicU64::new(0),
            notes: DashMap::new(),
            noted: AtomicU64::new(0),
            current: Mutex::default(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the progress of a run.
    pub fn update(&self, progress: Progress<'_>) {
        let mut current = self.current();
        for snapshot in progress.bins {
            self.add_part(&mut current, snapshot);
        }
        let is_complete = |open: &LiveBin| open.samples.iter().all(Option::is_some);
        let host = HostState { late_p99_frames: progress.late_p99_frames, lost: progress.lost };
        while let Some((_, first)) = current.open.first_key_value() {
            if !is_complete(first) && current.open.len() <= OPEN_MAX {
                break;
            }
            let Some((_, open)) = current.open.pop_first() else { break };
            self.finish(&mut current, &open, host);
        }
    }

    /// Adds a complete bin.
    pub(crate) fn add_bin(&self, bin: &LiveBin, host: HostState) {
        self.finish(&mut self.current(), bin, host);
    }

    /// The sample of an output in a bin of `length_ps`: time held in ps, octets queued, octets sent.
    pub fn sample(
        &self,
        output: usize,
        length_ps: u64,
        hold_ps: u64,
        queue: u64,
        sent: u64,
    ) -> OutputState {
        let (length, rate) = (length_ps.max(1) as f64, self.rates[output].max(1) as f64);
        OutputState {
            hold: hold_ps as f64 / length,
            queue: queue as f64,
            sent: sent as f64 * 8e12 / length / rate,
        }
    }

    /// Adds one worker's part of a bin.
    fn add_part(&self, current: &mut Current, snapshot: &BinSnapshot) {
        // Merged bins are longer, but their end is unique.
        let key = (snapshot.slot.end.as_ps() + self.bin_ps / 2) / self.bin_ps;
        let blank =
            || LiveBin { slot: snapshot.slot, samples: vec![None; self.rates.len()], drops: 0 };
        let open = current.open.entry(key).or_insert_with(blank);
        let length = snapshot.slot.length().as_ps();
        for port in &snapshot.ports {
            let Some(place) = self.places.get(&port.at).copied() else { continue };
            let sample = self.sample(place, length, port.hold_ps, port.queue, port.tx_bytes);
            open.samples[place] = Some(sample);
            open.drops += port.drops;
        }
    }

    fn finish(&self, current: &mut Current, bin: &LiveBin, host: HostState) {
        let samples: Vec<OutputState> =
            bin.samples.iter().map(|one| one.unwrap_or_default()).collect();
        let moment = self.outputs.trees(&samples);
        let octets = bin.samples.iter().flat_map(|sample| self.octets(*sample)).collect();
        current.end_ps = bin.slot.end.as_ps();
        let number = self.finished.load(Ordering::Relaxed);
        self.rows.insert(number, Row { number, end_ps: current.end_ps, octets });
        self.finished.store(number + 1, Ordering::Release);
        number.checked_sub(BINS_MAX).and_then(|old| self.rows.remove(&old));
        self.note_changes(current, bin, &moment);
        current.head = self.head(current.end_ps, current.phase, &samples, &moment, host);
    }

    fn octets(&self, sample: Option<OutputState>) -> [u8; 2] {
        let Some(sample) = sample else { return [NONE, 0] };
        let sent = (sample.sent / RATIO_MAX * FULL).round().clamp(0.0, FULL) as u8;
        let class = |share: f64| (share * CLASS_MAX).ceil().clamp(0.0, CLASS_MAX) as u8;
        [sent, class(sample.hold) << 4 | class(sample.queue / self.buffer as f64)]
    }

    /// Notes for a new phase, roots that appear or disappear, and lost frames.
    fn note_changes(&self, current: &mut Current, bin: &LiveBin, moment: &BinTrees) {
        let middle = bin.slot.begin.as_ps() + bin.slot.length().as_ps() / 2;
        let at_tau = bin.slot.begin.as_ps() / self.tau_ps;
        let phase = self.phases.iter().rposition(|(start, _)| *start <= middle);
        if phase != current.phase {
            current.phase = phase;
            if let Some(phase) = phase {
                self.push_note(at_tau, "phase", &self.phases[phase].1);
            }
        }
        let roots: Vec<usize> = trees(moment).into_iter().map(|(root, _)| root).collect();
        for (kind, these, others) in
            [("root", &roots, &current.roots), ("unroot", &current.roots, &roots)]
        {
            for root in these.iter().filter(|root| !others.contains(root)) {
                self.push_note(at_tau, kind, &self.root(*root));
            }
        }
        current.roots = roots;
        if bin.drops > 0 {
            self.push_note(at_tau, "drop", &format!("{} frames", bin.drops));
        }
    }

    fn root(&self, output: usize) -> String {
        format!("{} → {}", self.outputs.all[output].name, self.feeds[output])
    }

    fn head(
        &self,
        end_ps: u64,
        phase: Option<usize>,
        samples: &[OutputState],
        moment: &BinTrees,
        host: HostState,
    ) -> Value {
        let held = |place: &usize| samples[*place].hold >= results::saturation::HELD;
        let all = || (0..samples.len()).filter(held);
        let sources = all().filter(|place| self.outputs.all[*place].level == 0).count();
        let trees = trees(moment)
            .into_iter()
            .map(|(root, size)| json!({ "root": root, "name": self.root(root), "size": size }));
        // The virtual clock has no lateness.
        let late = host.late_p99_frames.filter(|_| self.is_live);
        json!({
            "t": end_ps / self.tau_ps,
            "phase": phase.map(|phase| &self.phases[phase].1),
            "held": all().count(),
            "sources_held": sources,
            "trees": trees.collect::<Vec<_>>(),
            "late": late,
            "live": self.is_live,
            "lost": host.lost,
        })
    }

    /// Adds a note at the end of the last bin.
    pub(crate) fn add_note(&self, kind: &str, what: &str) {
        let current = self.current();
        self.push_note(current.end_ps / self.tau_ps, kind, what);
    }

    fn push_note(&self, t: u64, kind: &str, what: &str) {
        // The number is published after the note, and only writers that hold `current` get here.
        let number = self.noted.load(Ordering::Relaxed) + 1;
        let text = json!({ "t": t, "kind": kind, "what": what });
        self.notes.insert(number, Note { number, text });
        self.noted.store(number, Ordering::Release);
        number.checked_sub(NOTES_MAX).and_then(|old| self.notes.remove(&old));
    }

    /// Marks the end of the run.
    pub fn end(&self, verdict: &str, sentence: &str, report: Option<&str>) {
        let end = json!({ "verdict": verdict, "sentence": sentence, "report": report });
        self.current().end = Some(end);
    }

    /// The number of finished bins, the head of the page, and the end of the run if it is over.
    pub fn summary(&self) -> (u64, Value, Option<Value>) {
        let current = self.current();
        (self.finished.load(Ordering::Acquire), current.head.clone(), current.end.clone())
    }

    /// The rows from a number on that are kept.
    pub(crate) fn rows_from(&self, number: u64) -> Vec<Row> {
        let end = self.finished.load(Ordering::Acquire);
        let kept = number.max(end.saturating_sub(BINS_MAX))..end;
        kept.filter_map(|number| Some(self.rows.get(&number)?.clone())).collect()
    }

    /// The notes after a number that are kept.
    pub(crate) fn notes_after(&self, number: u64) -> Vec<Note> {
        let last = self.noted.load(Ordering::Acquire);
        let kept = number.max(last.saturating_sub(NOTES_MAX)) + 1..=last;
        kept.filter_map(|number| Some(self.notes.get(&number)?.clone())).collect()
    }

    /// JSON of every adapter with its outputs and the outputs that lead to it.
    pub fn adapters(&self, lab: &Lab) -> Vec<Value> {
        let nodes = lab.fabric.wiring.nodes.iter().enumerate();
        let of = |by: &dyn Fn(&Output) -> bool| -> Vec<usize> {
            (0..self.rates.len()).filter(|place| by(&self.outputs.all[*place])).collect()
        };
        let adapters = nodes.filter(|(_, node)| node.kind == NodeKind::Nic);
        let described = adapters.map(|(number, node)| {
            let (from, to) =
                (of(&|output| output.from == number), of(&|output| output.to == number));
            json!({ "node": number, "name": node.name, "from": from, "to": to })
        });
        described.collect()
    }
}

/// The roots of trees with at least one further output, and the sizes, the largest first. While a fabric drains
/// many outputs are roots of empty trees.
fn trees(moment: &BinTrees) -> Vec<(usize, usize)> {
    let sizes = moment.trees.iter().map(|(root, members)| (*root, members.len()));
    let mut trees: Vec<(usize, usize)> = sizes.filter(|(_, size)| *size > 0).collect();
    trees.sort_by_key(|(root, size)| (std::cmp::Reverse(*size), *root));
    trees
}
