//! `[[trace]]`: messages that wait for each other, replayed by the NICs that have their ranks.

use crate::fabric::FabricSettings;
use crate::frames::ETHERNET_MIN;
use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::routes::colored::Demand;
use crate::trace::Trace;
use crate::trace::patterns::PATTERNS;
use crate::traffic::classes::Classes;
use crate::traffic::{Offer, Receivers, TRANSPORTS, Traffic};
use nicd::config::{AfterConfig, Arrivals, ClassConfig, Operation, StepConfig, Transport};
use proto::ids::{Lid, ServiceLevel};
use proto::params::{Key, KeyTable, Kind};
use proto::random::Random;
use proto::units::{Bytes, Duration, Instant};
use std::collections::{HashMap, HashSet};

/// Whether ranks are dealt out at random.
const PLACEMENTS: [(&str, bool); 2] = [("linear", false), ("random", true)];

/// The keys of `[[trace]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "messages that wait for each other (docs/reference/trace.md)",
    &[
        Key::required("name", Kind::Text, "its name in results"),
        Key::optional(
            "pattern",
            Kind::Word(|| words(&PATTERNS)),
            "an application's trace; or messages, or file",
        ),
        Key::optional(
            "messages",
            Kind::Text,
            "the trace itself, a line a message: name when source destination octets",
        ),
        Key::optional("file", Kind::Text, "a file with the same, from where the command runs"),
        Key::new(
            "on",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "h*",
            "the NICs that have the ranks, in order",
        ),
        Key::new(
            "placement",
            Kind::Word(|| words(&PLACEMENTS)),
            "linear",
            "rank n on the n-th of them, or dealt out at random by the seed",
        ),
        Key::new(
            "transport",
            Kind::Word(|| words(&TRANSPORTS)),
            "rc",
            "transport service; with test, a message is as many full frames as its octets fill",
        ),
        Key::new("sl", Kind::Whole(0, 15), "0", "service level"),
        Key::new("start", Kind::Time, "0 mtu", "when it starts"),
    ],
);

/// A trace on the adapters of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// What each adapter sends.
    pub steps: HashMap<usize, Vec<StepConfig>>,
    /// What each pair has to say to each other, by phase.
    pub demands: Vec<Demand>,
    /// The least time that it can take.
    pub ideal: Duration,
    /// Messages as the NICs post them.
    pub messages: u64,
}

/// Reads every `[[trace]]`, each a traffic item with a connection class of its own.
pub fn read(
    root: &Fields<'_>,
    fabric: Option<&FabricSettings>,
    (seed, end): (u64, Option<Instant>),
    classes: &mut Classes,
    problems: &mut Problems,
) -> Vec<Traffic> {
    let (Some(fabric), Some(end)) = (fabric, end) else { return Vec::new() };
    let tables = root.tables("trace");
    tables.iter().filter_map(|fields| one(fields, fabric, (seed, end), classes, problems)).collect()
}

fn one(
    fields: &Fields<'_>,
    fabric: &FabricSettings,
    (seed, stop): (u64, Instant),
    classes: &mut Classes,
    problems: &mut Problems,
) -> Option<Traffic> {
    let class = ClassConfig {
        transport: fields.word("transport", &TRANSPORTS)?,
        operation: Operation::Send,
        service_level: ServiceLevel::new(fields.whole("sl")?).ok()?,
    };
    let ranks = ranks(fields, fabric, seed, problems)?;
    let trace = trace(fields, ranks.len() as u32, problems)?;
    if trace.ranks() as usize > ranks.len() {
        let message = format!("{} ranks on {} NICs", trace.ranks(), ranks.len());
        fields.report(problems, "on", Complaint::new(message, "more NICs, or fewer ranks"));
        return None;
    }
    let start = fields.instant("start")?;
    // A message of a connection is as long as that of the trace.
    let piece = match class.transport {
        Transport::Test => fabric.full_frame(),
        Transport::Ud => fabric.mtu,
        Transport::Rc | Transport::Uc => Bytes::new(1 << 31),
    };
    let least = if class.transport == Transport::Test { ETHERNET_MIN } else { 1 };
    Some(Traffic {
        name: fields.text("name")?.to_owned(),
        from: ranks.clone(),
        to: Receivers::Script(replay(&trace, &ranks, fabric, (piece, Bytes::new(least)), start)),
        offer: Offer::Backlog,
        arrivals: Arrivals::Paced,
        size: if class.transport == Transport::Test { piece } else { fabric.mtu },
        class: classes.own(class)?,
        start,
        stop,
        messages: 0,
    })
}

fn trace(fields: &Fields<'_>, ranks: u32, problems: &mut Problems) -> Option<Trace> {
    let given: Vec<&str> =
        ["pattern", "messages", "file"].into_iter().filter(|key| fields.has(key)).collect();
    let &[key] = &given[..] else {
        let hint = "pattern = \"cg\", messages = \"…\" or file = \"…\"";
        let complaint = Complaint::new("a trace has one of pattern, messages and file", hint);
        fields.report(problems, given.last().copied().unwrap_or("pattern"), complaint);
        return None;
    };
    if let Some(pattern) = fields.word("pattern", &PATTERNS) {
        if pattern.takes(ranks) {
            return Some(pattern.trace(ranks));
        }
        let message = format!("no such application on {ranks} NICs");
        let hint = "cg takes 128, ft a power of two";
        fields.report(problems, "on", Complaint::new(message, hint));
        return None;
    }
    let text = match (fields.text("messages"), fields.text("file")) {
        (Some(text), _) => Ok(text.to_owned()),
        (None, path) => {
            let path = path?;
            let told = |error| Complaint::new(format!("{path}: {error}"), "a file to read");
            std::fs::read_to_string(path).map_err(told)
        }
    };
    match text.and_then(|text| Trace::parse(&text, fields.scale())) {
        Ok(trace) => Some(trace),
        Err(complaint) => {
            fields.report(problems, key, complaint);
            None
        }
    }
}

/// The adapters by rank.
fn ranks(
    fields: &Fields<'_>,
    fabric: &FabricSettings,
    seed: u64,
    problems: &mut Problems,
) -> Option<Vec<usize>> {
    let mut ranks = Vec::new();
    for (text, place) in fields.texts("on") {
        match names::adapters(&fabric.topology, text) {
            Ok(found) => ranks.extend(found),
            Err(complaint) => {
                problems.report(place, format!("{}.on", fields.path), complaint);
                return None;
            }
        }
    }
    let mut seen = HashSet::new();
    ranks.retain(|node| seen.insert(*node));
    if fields.word("placement", &PLACEMENTS)? {
        // Source: Fisher, Yates, in the form of Knuth, vol 2, 3.4.2, algorithm P.
        let mut random = Random::stream(seed, fields.text("name")?, "placement");
        for last in (1..ranks.len()).rev() {
            ranks.swap(last, random.below(last as u64 + 1) as usize);
        }
    }
    Some(ranks)
}

/// A trace as steps of its adapters, whose messages have at most `piece` octets, and `least` at least. What
/// one adapter sends to another goes in the order of the trace.
fn replay(
    trace: &Trace,
    ranks: &[usize],
    fabric: &FabricSettings,
    (piece, least): (Bytes, Bytes),
    start: Instant,
) -> Replay {
    let node = |rank: u32| ranks[rank as usize];
    let lid = |rank: u32| -> Lid { fabric.topology.nodes[node(rank)].lid };
    let mut replay = Replay {
        steps: HashMap::new(),
        demands: Vec::new(),
        ideal: trace.ideal(fabric.link.rate),
        messages: 0,
    };
    // By pair: messages so far. By message of the trace: the same up to its own last.
    let mut counts: HashMap<(u32, u32), u64> = HashMap::new();
    let mut ends: Vec<u64> = Vec::with_capacity(trace.messages.len());
    for (message, phase) in trace.messages.iter().zip(trace.levels()) {
        let pieces = message.size.get().div_ceil(piece.get());
        let last = message.size - Bytes::new((pieces - 1) * piece.get());
        let count = counts.entry((message.from, message.to)).or_default();
        let waited = message.after.iter().map(|place| {
            let other = &trace.messages[*place];
            match other.from == message.from {
                true => AfterConfig::Sent(lid(other.to), ends[*place]),
                false => AfterConfig::Received(lid(other.from), ends[*place]),
            }
        });
        let earlier = (*count > 0).then(|| AfterConfig::Sent(lid(message.to), *count));
        let mut after: Vec<AfterConfig> = waited.chain(earlier).collect();
        after.sort();
        after.dedup();
        *count += pieces;
        ends.push(*count);
        replay.messages += pieces;
        replay.steps.entry(node(message.from)).or_default().push(StepConfig {
            to: lid(message.to),
            messages: pieces,
            size: if pieces > 1 { piece } else { last.max(least) },
            last: last.max(least),
            at: start + message.at,
            after,
        });
        let (from, to, weight) = (node(message.from), node(message.to), message.size.get());
        replay.demands.push(Demand { phase, from, to, weight });
    }
    replay
}
