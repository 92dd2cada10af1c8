//! `[[measure]]`: what is taken from a run, where, and over which window.

use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Place, Problems, did_you_mean};
use crate::measure::{At, Counter, First, Marked, Measure, Per, Quantity, Reduce};
use crate::names;
use crate::pair::pair;
use crate::refuse_duplicates;
use crate::repeat::{REPEATS_MAX, repeat};
use crate::topology::Topology;
use crate::traffic::Plan;
use proto::params::quantity;
use proto::params::{Key, KeyTable, Kind};
use proto::units::{Bytes, Duration, Instant};
use std::collections::BTreeSet;

/// The words for [`Quantity`]; `count` stands for every [`Counter`].
const QUANTITIES: [(&str, Quantity); 21] = [
    ("throughput", Quantity::Throughput),
    ("queue", Quantity::Queue),
    ("latency", Quantity::Latency),
    ("rate", Quantity::Rate),
    ("ipd", Quantity::Ipd),
    ("count", Quantity::Count(Counter::Drops)),
    ("recovery", Quantity::Recovery),
    ("release", Quantity::Release),
    ("completion", Quantity::Completion),
    ("congested", Quantity::Congested),
    ("overhead", Quantity::Overhead),
    ("fairness", Quantity::Fairness),
    ("share", Quantity::Share),
    ("ce-between-k", Quantity::Marked(Marked::BetweenK)),
    ("ce-above-kmax", Quantity::Marked(Marked::AboveKmax)),
    ("notices", Quantity::Notices),
    ("over-ideal", Quantity::OverIdeal),
    ("spikes", Quantity::Spikes),
    ("spike-interval", Quantity::SpikeInterval),
    ("xoff-order", Quantity::Order(First::Xoff)),
    ("xon-order", Quantity::Order(First::Xon)),
];
const COUNTERS: [(&str, Counter); 13] = [
    ("drops", Counter::Drops),
    ("marks", Counter::Marks),
    ("notes", Counter::Notes),
    ("hold", Counter::Hold),
    ("watchdogs", Counter::Watchdogs),
    ("lossless-drops", Counter::LosslessDrops),
    ("pauses", Counter::Pauses),
    ("storms", Counter::Storms),
    ("storms-over", Counter::StormsOver),
    ("storm-drops", Counter::StormDrops),
    ("sequence-gaps", Counter::SequenceGaps),
    ("sequence-timeouts", Counter::SequenceTimeouts),
    ("sequence-depth", Counter::SequenceDepth),
];
const REDUCTIONS: [(&str, Reduce); 7] = [
    ("mean", Reduce::Mean),
    ("min", Reduce::Min),
    ("max", Reduce::Max),
    ("p50", Reduce::P50),
    ("p99", Reduce::P99),
    ("sum", Reduce::Sum),
    ("sd", Reduce::Sd),
];
const UNITS: [(&str, Per); 3] = [("base", Per::One), ("line", Per::Line), ("mtu", Per::Mtu)];

/// The word that scenarios have for a quantity; a counter's own where it is one.
pub fn word(of: Quantity) -> &'static str {
    let counter = match of {
        Quantity::Count(counter) => COUNTERS.iter().find(|(_, known)| *known == counter),
        _ => None,
    };
    let quantity = QUANTITIES.iter().find(|(_, known)| *known == of);
    counter.map(|row| row.0).or(quantity.map(|row| row.0)).unwrap_or("count")
}

/// The word for how values become one.
pub fn reduction(reduce: Reduce) -> &'static str {
    REDUCTIONS.iter().find(|(_, known)| *known == reduce).map_or("mean", |row| row.0)
}

/// The word for a unit.
pub fn unit(per: Per) -> &'static str {
    UNITS.iter().find(|(_, known)| *known == per).map_or("base", |row| row.0)
}

/// More bins than this in one measure are a mistake: each costs a reading of every device.
const BINS_MAX: u64 = 4096;

/// The keys of `[[measure]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "one number, or one order of nodes, to take from a run",
    &[
        Key::required("name", Kind::Text, "its name in results"),
        Key::required("of", Kind::Word(|| words(&QUANTITIES)), "what is measured"),
        Key::required(
            "at",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "ports (\"h31:rx\"), nodes or flows (\"h*>h31\"), as the quantity needs",
        ),
        Key::new("from", Kind::Time, "0 mtu", "start of the window"),
        Key::optional("to", Kind::Span, "end of the window; of the run if left out"),
        Key::new("except", Kind::List(&Kind::Text), "[]", "parts left out, as \"250 ms ± 20 ms\""),
        Key::optional(
            "bin",
            Kind::Span,
            "take a value a bin of this width; for notices: the interval; for spikes: the width of a bin",
        ),
        Key::optional(
            "traffic",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "for latency and over-ideal: only of these traffic items",
        ),
        Key::new(
            "times",
            Kind::Whole(1, REPEATS_MAX),
            "1",
            "how many windows there are; one value over all of them",
        ),
        Key::optional(
            "every",
            Kind::Span,
            "for times: from the start of one window to the start of the next",
        ),
        Key::optional(
            "before",
            Kind::List(&Kind::Time),
            "for recovery: start and end of the window whose mean is to be regained",
        ),
        Key::optional(
            "level",
            Kind::Real(0.0, 1.0),
            "for recovery: the share of that mean that counts; 0.95 if left out",
        ),
        Key::optional("counter", Kind::Word(|| words(&COUNTERS)), "for count: which"),
        Key::new(
            "reduce",
            Kind::Word(|| words(&REDUCTIONS)),
            "mean",
            "how several values become one",
        ),
        Key::new(
            "per",
            Kind::Either(&[Kind::Word(|| words(&UNITS)), Kind::Size]),
            "base",
            "unit: base, ratio to line rate, frames of the default link, or for a queue the \
                    ratio to a size, \"150 KB\"; for spikes: the set point",
        ),
    ],
);

/// Whether what a `[[measure]]` gives is names in an order, and no number.
pub fn is_order(fields: &Fields<'_>) -> bool {
    matches!(fields.word("of", &QUANTITIES), Some(Quantity::Order(_)))
}

/// Reads every `[[measure]]`.
pub fn read(
    root: &Fields<'_>,
    topology: Option<&Topology>,
    traffic: &Plan,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Vec<Measure> {
    let list = root.tables("measure");
    refuse_duplicates(&list, "measures", problems);
    list.iter().filter_map(|fields| measure(fields, topology, traffic, end, problems)).collect()
}

fn measure(
    fields: &Fields<'_>,
    topology: Option<&Topology>,
    traffic: &Plan,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<Measure> {
    let of = fields.word("of", &QUANTITIES).map(|of| with_counter(fields, of, problems));
    let at = of.zip(topology).and_then(|(of, topology)| place(fields, of, topology, problems));
    let window = window(fields, end, problems);
    let except = exceptions(fields, problems);
    let before = pair(fields, "before", "[\"0 mtu\", \"2000 mtu\"]", end, problems);
    let per = fields.word("per", &UNITS).or_else(|| fields.size("per").map(Per::Size));
    let (of, per) = (of?, per?);
    check_unit(fields, of, per, problems);
    if of == Quantity::Recovery && before.is_none() && !fields.has("before") {
        let hint = "before = [\"0 mtu\", \"2000 mtu\"]";
        fields.report(problems, "before", Complaint::new("recovery needs a level", hint));
    }
    let (at, (from, to)) = (at?, window?);
    check_bins(fields, of, (from, to), problems);
    let repeat = repeat(fields, end, problems);
    let items = items(fields, of, traffic, problems);
    Some(Measure {
        name: fields.text("name")?.to_owned(),
        of,
        at,
        named: fields.texts("at").into_iter().map(|(text, _)| text.to_owned()).collect(),
        from,
        to,
        items,
        repeat,
        except,
        bin: fields.time("bin"),
        before,
        level_permille: (fields.real("level").unwrap_or(0.95) * 1000.0).round() as u32,
        reduce: fields.word("reduce", &REDUCTIONS)?,
        per,
    })
}

/// The traffic items that `traffic` names, by number; `burst` stands for burst.1, burst.2, ….
fn items(fields: &Fields<'_>, of: Quantity, plan: &Plan, problems: &mut Problems) -> Vec<u16> {
    let named = fields.texts("traffic");
    if !matches!(of, Quantity::Latency | Quantity::OverIdeal) && !named.is_empty() {
        let message = "only latency and over-ideal tell traffic items apart";
        let complaint = Complaint::new(message, "leave it out");
        fields.report(problems, "traffic", complaint);
        return Vec::new();
    }
    let mut items = Vec::new();
    for (name, place) in named {
        let names = plan.items.iter().map(|item| item.name.as_str());
        let is_it = |item: &str| {
            let rest = item.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let found = (0u16..).zip(names.clone()).filter(|(_, item)| is_it(item));
        let before = items.len();
        items.extend(found.map(|(number, _)| number));
        if items.len() == before {
            let complaint = Complaint::new(
                format!("no traffic item is called {name:?}"),
                did_you_mean(name, names),
            );
            problems.report(place, format!("{}.traffic", fields.path), complaint);
        }
    }
    items
}

fn with_counter(fields: &Fields<'_>, of: Quantity, problems: &mut Problems) -> Quantity {
    match (of, fields.word("counter", &COUNTERS)) {
        (Quantity::Count(_), Some(counter)) => Quantity::Count(counter),
        (Quantity::Count(_), None) => {
            let hint = format!("counter = one of {}", words(&COUNTERS).join(", "));
            fields.report(problems, "counter", Complaint::new("a count of what?", hint));
            of
        }
        (_, Some(_)) => {
            let complaint = Complaint::new("only count takes a counter", "leave it out");
            fields.report(problems, "counter", complaint);
            of
        }
        _ => of,
    }
}

fn place(
    fields: &Fields<'_>,
    of: Quantity,
    topology: &Topology,
    problems: &mut Problems,
) -> Option<At> {
    match of {
        Quantity::Throughput
        | Quantity::Queue
        | Quantity::Count(_)
        | Quantity::Marked(_)
        | Quantity::Spikes
        | Quantity::SpikeInterval
        | Quantity::Recovery => gather(fields, topology, names::directed, problems).map(At::Ports),
        Quantity::Rate
        | Quantity::Ipd
        | Quantity::Release
        | Quantity::Completion
        | Quantity::Congested
        | Quantity::Overhead
        | Quantity::Fairness
        | Quantity::Share
        | Quantity::OverIdeal
        | Quantity::Notices => gather(fields, topology, names::flows, problems).map(At::Flows),
        Quantity::Order(_) => gather(fields, topology, names::nodes, problems).map(At::Nodes),
        Quantity::Latency => gather(fields, topology, names::adapters, problems).map(At::Nodes),
    }
}

/// Everything the strings of `at` name, each once.
fn gather<T: Copy + Ord>(
    fields: &Fields<'_>,
    topology: &Topology,
    find: fn(&Topology, &str) -> Result<Vec<T>, Complaint>,
    problems: &mut Problems,
) -> Option<Vec<T>> {
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    let mut sound = true;
    for (text, place) in fields.texts("at") {
        match find(topology, text) {
            Ok(found) => all.extend(found.into_iter().filter(|item| known.insert(*item))),
            Err(complaint) => {
                problems.report(place, format!("{}.at", fields.path), complaint);
                sound = false;
            }
        }
    }
    (sound && !all.is_empty()).then_some(all)
}

fn window(
    fields: &Fields<'_>,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<(Instant, Instant)> {
    let (from, end) = (fields.instant("from")?, end?);
    let to = fields.instant("to").unwrap_or(end);
    if to > end {
        let message = format!("the window ends {} after the run", fields.in_frames(to.since(end)));
        fields.report(problems, "to", Complaint::new(message, "see run.duration"));
        return None;
    }
    if from >= to {
        let complaint = Complaint::new("the window is empty", "from must be earlier than to");
        fields.report(problems, "from", complaint);
        return None;
    }
    Some((from, to))
}

fn exceptions(fields: &Fields<'_>, problems: &mut Problems) -> Vec<(Instant, Instant)> {
    let mut all = Vec::new();
    for (text, place) in fields.texts("except") {
        match exception(fields, text) {
            Some(part) => all.push(part),
            None => report_exception(&fields.path, text, place, problems),
        }
    }
    all
}

fn exception(fields: &Fields<'_>, text: &str) -> Option<(Instant, Instant)> {
    let (middle, reach) = text.split_once('±').or_else(|| text.split_once("+-"))?;
    let time = |text: &str| quantity::time(text.trim(), fields.scale()).ok();
    let (middle, reach): (Duration, Duration) = (time(middle)?, time(reach)?);
    Some((Instant::ZERO + (middle - reach), Instant::ZERO + (middle + reach)))
}

fn report_exception(path: &str, text: &str, place: &Place, problems: &mut Problems) {
    let message = format!("{text:?} is no part of a window");
    let complaint = Complaint::new(message, "for example \"250 ms ± 20 ms\"");
    problems.report(place, format!("{path}.except"), complaint);
}

fn check_unit(fields: &Fields<'_>, of: Quantity, per: Per, problems: &mut Problems) {
    let fits = match per {
        Per::One => !matches!(of, Quantity::Spikes | Quantity::SpikeInterval),
        Per::Line => matches!(of, Quantity::Throughput | Quantity::Rate),
        Per::Size(size) => {
            let of_queues = [Quantity::Queue, Quantity::Spikes, Quantity::SpikeInterval];
            of_queues.contains(&of) && size > Bytes::ZERO
        }
        Per::Mtu => matches!(
            of,
            Quantity::Queue
                | Quantity::Latency
                | Quantity::Ipd
                | Quantity::Recovery
                | Quantity::Release
                | Quantity::Count(Counter::Hold)
        ),
    };
    if !fits {
        let message = format!(
            "{} cannot be given per {}",
            fields.text("of").unwrap_or_default(),
            fields.text("per").unwrap_or_default(),
        );
        let hint = "line is for throughputs and rates, mtu for times and queues";
        fields.report(problems, "per", Complaint::new(message, hint));
    }
}

fn check_bins(
    fields: &Fields<'_>,
    of: Quantity,
    (from, to): (Instant, Instant),
    problems: &mut Problems,
) {
    match fields.time("bin") {
        None if matches!(of, Quantity::Spikes | Quantity::SpikeInterval) => {
            let complaint = Complaint::new("spikes need a bin", "bin = \"0.25 ms\"");
            fields.report(problems, "bin", complaint);
        }
        None if of == Quantity::Recovery => {
            let complaint = Complaint::new("recovery needs a bin", "bin = \"200 mtu\"");
            fields.report(problems, "bin", complaint);
        }
        None if of == Quantity::Notices => {
            let complaint = Complaint::new("notices of what interval?", "bin = \"50 us\"");
            fields.report(problems, "bin", complaint);
        }
        Some(_) if of == Quantity::Notices => {}
        Some(bin) if bin > to.since(from) => {
            let complaint = Complaint::new("a bin longer than the window", "a shorter one");
            fields.report(problems, "bin", complaint);
        }
        Some(bin) if to.since(from).as_ps() / bin.as_ps() > BINS_MAX => {
            let message = format!("more than {BINS_MAX} bins");
            fields.report(problems, "bin", Complaint::new(message, "a wider one"));
        }
        _ => {}
    }
}
