//! `[[trace]]`: messages that wait for each other, replayed by the NICs that have their ranks.

use crate::fabric::FabricSettings;
use crate::frames::ETHERNET_MIN;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::keyfile::problem::Complaint;
use crate::names;
use crate::routes::colored::Demand;
use crate::trace::Trace;
use crate::trace::patterns::Pattern;
use crate::traffic::classes::Classes;
use crate::traffic::frame_size::check_frame;
use crate::traffic::{Context, MESSAGE_MAX, Offer, Receivers, Traffic};
use nicd::config::{AfterConfig, Arrivals, ClassConfig, Operation, StepConfig, Transport};
use proto::ids::{Lid, ServiceLevel};
use proto::params::{KeyTable, Params};
use proto::random::Random;
use proto::units::{Bytes, Duration, Instant};
use std::collections::{HashMap, HashSet};

/// The keys of `[[trace]]`.
pub static KEYS: KeyTable =
    KeyTable::new("messages that wait for each other (docs/reference/trace.md)", Written::KEYS);

proto::params! {
    /// One `[[trace]]` as written.
    pub struct Written {
        /// Its name in results.
        name: String = Text, Required;
        /// An application's trace; or messages, or file.
        pattern: Option<Pattern> = Pattern::KIND, Optional;
        /// The trace itself, a line a message: name when source destination octets.
        messages: Option<String> = Text, Optional;
        /// A file with the same, from where the command runs.
        file: Option<String> = Text, Optional;
        /// The NICs that have the ranks, in order.
        on: Texts = TEXTS, Default("h*");
        /// Rank n on the n-th of them, or dealt out at random by the seed.
        placement: Placement = Placement::KIND, Default("linear");
        /// Transport service; with test, a message is as many full frames as its octets fill.
        transport: Transport = Transport::KIND, Default("rc");
        /// Service level.
        sl: u8 = Whole(0, 15), Default("0");
        /// When it starts.
        start: Instant = Time, Default("0 mtu");
    }
}

proto::words! {
    /// How ranks are placed on NICs.
    pub enum Placement {
        /// In their order.
        Linear = "linear",
        /// At random.
        Random = "random",
    }
}

/// A trace on the adapters of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// What each adapter sends.
    pub steps: HashMap<usize, Vec<StepConfig>>,
    /// The messages between each pair, by phase.
    pub demands: Vec<Demand>,
    /// The least time that it can take.
    pub ideal: Duration,
    /// Messages as the NICs post them.
    pub messages: u64,
}

/// Reads every `[[trace]]`, each a traffic item with a connection class of its own.
pub(super) fn read(root: &Fields<'_>, context: Context<'_>, classes: &mut Classes) -> Vec<Traffic> {
    let all = root.each("trace").into_iter();
    all.filter_map(|(fields, written)| one(&fields, written, context, classes)).collect()
}

fn one(
    fields: &Fields<'_>,
    written: Written,
    Context { fabric, seed, end }: Context<'_>,
    classes: &mut Classes,
) -> Option<Traffic> {
    let class = ClassConfig {
        transport: written.transport,
        operation: Operation::Send,
        service_level: ServiceLevel::new(written.sl).ok()?,
    };
    let ranks = ranks(fields, &written, fabric, seed)?;
    let trace = trace(fields, &written, ranks.len() as u32)?;
    if trace.ranks() > ranks.len() as u64 {
        let message = format!("{} ranks on {} NICs", trace.ranks(), ranks.len());
        return fields.refuse("on", message, "more NICs, or fewer ranks");
    }
    if class.transport != Transport::Test {
        let longest = trace.messages.iter().map(|message| message.size).max().unwrap_or_default();
        let service = (class.transport, class.operation);
        check_frame(fields, "transport", longest, service, fabric)?;
    }
    let (name, start) = (written.name, written.start);
    // A message of a connection is as long as that of the trace.
    let (piece, least) = match class.transport {
        Transport::Test => (fabric.full_frame(), ETHERNET_MIN),
        Transport::Ud => (fabric.mtu, 1),
        Transport::Rc | Transport::Uc => (Bytes::new(MESSAGE_MAX), 1),
    };
    Some(Traffic {
        name,
        from: ranks.clone(),
        to: Receivers::Script(replay(&trace, &ranks, fabric, (piece, Bytes::new(least)), start)),
        offer: Offer::Backlog,
        arrivals: Arrivals::Paced,
        size: if class.transport == Transport::Test { piece } else { fabric.mtu },
        class: classes.own(class)?,
        start,
        stop: end,
        messages: 0,
        port: 0,
    })
}

fn trace(fields: &Fields<'_>, written: &Written, ranks: u32) -> Option<Trace> {
    let (key, text) = match (written.pattern, &written.messages, &written.file) {
        (Some(pattern), None, None) if pattern.takes(ranks) => return Some(pattern.trace(ranks)),
        (Some(_), None, None) => {
            let message = format!("no such application on {ranks} NICs");
            return fields.refuse("on", message, "cg takes 128, ft a power of two");
        }
        (None, Some(text), None) => ("messages", Ok(text.clone())),
        (None, None, Some(path)) => {
            let error = |error| Complaint::new(format!("{path}: {error}"), "a file to read");
            ("file", std::fs::read_to_string(path).map_err(error))
        }
        _ => {
            let given = ["file", "messages"].into_iter().find(|key| fields.is_written(key));
            let message = "a trace has one of pattern, messages and file";
            let hint = "pattern = \"cg\", messages = \"…\" or file = \"…\"";
            return fields.refuse(given.unwrap_or("pattern"), message, hint);
        }
    };
    fields.accept(key, text.and_then(|text| Trace::parse(&text, &fields.scale)))
}

/// The adapters by rank.
fn ranks(
    fields: &Fields<'_>,
    written: &Written,
    fabric: &FabricSettings,
    seed: u64,
) -> Option<Vec<usize>> {
    let find = |text: &str| names::adapters(&fabric.topology, text);
    let mut ranks = fields.gather("on", &written.on, find)?;
    let mut seen = HashSet::new();
    ranks.retain(|node| seen.insert(*node));
    if written.placement == Placement::Random {
        // Source: Fisher, Yates, in the form of Knuth, vol 2, 3.4.2, algorithm P.
        let mut random = Random::stream(seed, &written.name, "placement");
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
