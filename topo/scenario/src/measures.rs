//! `[[measure]]`: what is taken from a run, where, and over which window.

use crate::fabric::FabricSettings;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::keyfile::problem::{Complaint, did_you_mean};
use crate::measure::output::compile;
use crate::measure::quantities::{Bin, QUANTITIES, Row, Taken};
use crate::measure::{At, Counter, Measure, Per, Quantity, Reduce};
use crate::names;
use crate::pair::pair;
use crate::refuse_duplicates;
use crate::repeat::{REPEATS_MAX, repeat};
use crate::traffic::Plan;
use proto::params::{KeyTable, Kind, Params, Scale, quantity};
use proto::units::{Duration, Instant};
use std::collections::BTreeSet;

/// More bins than this in one measure are a mistake: each costs a reading of every device.
const BINS_MAX: u64 = 4096;

const UNITS: Kind = Kind::Word(|| [Per::One, Per::Line, Per::Mtu].map(Per::word).to_vec());

/// The keys of `[[measure]]`.
pub static KEYS: KeyTable =
    KeyTable::new("one number, or one order of nodes, to take from a run", Written::KEYS);

proto::params! {
    /// One `[[measure]]` as written.
    pub struct Written {
        /// Its name in results.
        name: String = Text, Required;
        /// What is measured.
        of: String = Word(|| QUANTITIES.iter().map(|row| row.word).collect()), Required;
        /// Ports ("h31:rx"), nodes or flows ("h*>h31"), as the quantity needs; all but output have places.
        at: Option<Texts> = TEXTS, Optional;
        /// For output: the host whose `run` prints it.
        host: Option<String> = Text, Optional => Is("of", &["output"]);
        /// For output: a regular expression; its one group is the number, in the first match.
        r#match: Option<String> = Text, Optional => Is("of", &["output"]);
        /// Start of the window.
        from: Instant = Time, Default("0 mtu");
        /// End of the window; of the run if left out.
        to: Option<Instant> = Span, Optional;
        /// Parts left out, as "250 ms ± 20 ms".
        except: Texts = List(&Text), Default("[]");
        /// Take a value a bin of this width; for notices: the interval; for spikes: the width of a bin.
        bin: Option<Duration> = Span, Optional;
        /// For latency and over-ideal: only of these traffic items.
        traffic: Option<Texts> = TEXTS, Optional;
        /// How many windows there are; one value over all of them.
        times: u32 = Whole(1, REPEATS_MAX), Default("1");
        /// For times: from the start of one window to the start of the next.
        every: Option<Duration> = Span, Optional;
        /// For recovery: start and end of the window whose mean is to be regained.
        before: Option<Vec<Instant>> = List(&Time), Optional => Is("of", &["recovery"]);
        /// For recovery: the share of that mean that counts; 0.95 if left out.
        level: Option<f64> = Real(0.0, 1.0), Optional => Is("of", &["recovery"]);
        /// For count: which.
        counter: Option<Counter> = Counter::KIND, Optional;
        /// How several values become one.
        reduce: Reduce = Reduce::KIND, Default("mean");
        /// Unit: base, ratio to line rate, frames of the default link, or for a queue the ratio to a size, "150 KB"; for spikes: the set point.
        per: Per = Either(&[UNITS, Size]), Default("base");
    }
}

/// The row of the quantity that a `[[measure]]` names.
fn row(fields: &Fields<'_>) -> Option<&'static Row> {
    QUANTITIES.iter().find(|row| Some(row.word) == fields.text("of"))
}

/// Whether a `[[measure]]` gives names in an order, and no number.
pub fn is_order(fields: &Fields<'_>) -> bool {
    row(fields).is_some_and(|row| matches!(row.of, Quantity::Order(_)))
}

/// Reads every `[[measure]]`.
pub fn read(
    root: &Fields<'_>,
    fabric: &FabricSettings,
    traffic: &Plan,
    end: Instant,
) -> Vec<Measure> {
    refuse_duplicates(&root.tables("measure"), "measures");
    let all = root.each("measure").into_iter();
    all.filter_map(|(fields, written)| one(&fields, written, fabric, traffic, end)).collect()
}

fn one(
    fields: &Fields<'_>,
    written: Written,
    fabric: &FabricSettings,
    traffic: &Plan,
    end: Instant,
) -> Option<Measure> {
    let row = row(fields)?;
    let of = quantity_of(fields, row, written.counter);
    let at = match row.at {
        Taken::Host => output(fields, &written, fabric),
        taken => written_places(fields, &written).and_then(|at| places(fields, taken, at, fabric)),
    };
    let window = window(fields, (written.from, written.to), end);
    let part = |text: &str| exception(text, &fields.scale);
    let except = fields.gather("except", &written.except, part).unwrap_or_default();
    let example = "[\"0 mtu\", \"2000 mtu\"]";
    let before = pair(fields, "before", example, written.before.as_deref(), end);
    if !of.is_given(written.per) {
        let per = fields.text("per").unwrap_or_default();
        let hint = "line is for throughputs and rates, mtu for times and queues";
        fields.error("per", format!("{} cannot be given per {per}", row.word), hint);
    }
    if of == Quantity::Recovery && written.before.is_none() {
        fields.error("before", "recovery needs a level", format!("before = {example}"));
    }
    let (at, (from, to)) = (at?, window?);
    check_bin(fields, row, written.bin, to.since(from));
    let repeat = repeat(fields, (written.times, written.every), (from, to), end);
    let items = items(fields, of, written.traffic, traffic);
    Some(Measure {
        name: written.name,
        of,
        at,
        named: written.at.map_or_else(|| Vec::from_iter(written.host), |at| at.0),
        from,
        to,
        items,
        repeat,
        except,
        bin: written.bin,
        before,
        level_permille: (written.level.unwrap_or(0.95) * 1000.0).round() as u32,
        reduce: written.reduce,
        per: written.per,
    })
}

/// The quantity of `row`, of a count with its counter.
fn quantity_of(fields: &Fields<'_>, row: &Row, counter: Option<Counter>) -> Quantity {
    match (row.of, counter) {
        (Quantity::Count(_), Some(counter)) => return Quantity::Count(counter),
        (Quantity::Count(_), None) => {
            let words = Counter::KIND.expected();
            fields.error("counter", "the counter is missing", format!("counter = {words}"));
        }
        (_, Some(_)) => fields.error("counter", "only count takes a counter", "leave it out"),
        _ => {}
    }
    row.of
}

/// The traffic items that `traffic` names, by number; `burst` stands for burst.1, burst.2, ….
fn items(fields: &Fields<'_>, of: Quantity, named: Option<Texts>, plan: &Plan) -> Vec<u16> {
    let Some(named) = named else { return Vec::new() };
    if !matches!(of, Quantity::Latency | Quantity::OverIdeal) {
        let message = "only latency and over-ideal distinguish traffic items";
        return fields.refuse("traffic", message, "leave it out").unwrap_or_default();
    }
    let names = || plan.items.iter().map(|item| item.name.as_str());
    let find = |name: &str| {
        let is_it = |item: &str| {
            let rest = item.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let found = (0u16..).zip(names()).filter(|(_, item)| is_it(item));
        let found: Vec<u16> = found.map(|(number, _)| number).collect();
        let message = || format!("no traffic item is called {name:?}");
        let none = || Complaint::new(message(), did_you_mean(name, names()));
        if found.is_empty() { Err(none()) } else { Ok(found) }
    };
    fields.gather("traffic", &named, find).unwrap_or_default()
}

/// The places of a measure that has some.
fn written_places<'a>(fields: &Fields<'_>, written: &'a Written) -> Option<&'a Texts> {
    let none = || fields.refuse("at", "the place is missing", "ports, nodes or flows");
    written.at.as_ref().or_else(none)
}

/// The host and the expression of a measure of output.
fn output(fields: &Fields<'_>, written: &Written, fabric: &FabricSettings) -> Option<At> {
    if written.at.is_some() {
        return fields.refuse("at", "output is taken on a host", "host = \"…\", and no at");
    }
    let Some(name) = &written.host else {
        return fields.refuse("host", "the host is missing", "host = \"v1\"");
    };
    let Some(host) = fabric.hosts.iter().position(|host| host.name == *name) else {
        let names = fabric.hosts.iter().map(|host| host.name.as_str());
        let hint = did_you_mean(name, names);
        return fields.refuse("host", format!("no host is called {name:?}"), hint);
    };
    if fabric.hosts[host].command.is_none() {
        return fields.refuse("host", format!("{name} runs nothing"), "run = \"…\" in [[host]]");
    }
    let Some(pattern) = &written.r#match else {
        let hint = "match = \"([0-9.]+) Mb/s\"";
        return fields.refuse("match", "the expression is missing", hint);
    };
    fields.accept("match", compile(pattern))?;
    Some(At::Output(host, pattern.clone()))
}

/// Everything that the strings of `at` name, each once.
fn places(
    fields: &Fields<'_>,
    taken: Taken,
    texts: &Texts,
    FabricSettings { topology, .. }: &FabricSettings,
) -> Option<At> {
    fn once<T: Copy + Ord>(all: Option<Vec<T>>) -> Option<Vec<T>> {
        let mut known = BTreeSet::new();
        let once: Vec<T> = all?.into_iter().filter(|item| known.insert(*item)).collect();
        (!once.is_empty()).then_some(once)
    }
    let gather = |find: fn(&_, &str) -> _| fields.gather("at", texts, |text| find(topology, text));
    match taken {
        Taken::Ports => {
            once(fields.gather("at", texts, |text| names::directed(topology, text))).map(At::Ports)
        }
        Taken::Flows => {
            once(fields.gather("at", texts, |text| names::flows(topology, text))).map(At::Flows)
        }
        Taken::Nodes => once(gather(names::nodes)).map(At::Nodes),
        Taken::Adapters => once(gather(names::adapters)).map(At::Nodes),
        Taken::Host => None,
    }
}

fn window(
    fields: &Fields<'_>,
    (from, to): (Instant, Option<Instant>),
    end: Instant,
) -> Option<(Instant, Instant)> {
    let to = to.unwrap_or(end);
    if to > end {
        let message = format!("the window ends {} after the run", fields.in_frames(to.since(end)));
        return fields.refuse("to", message, "see run.duration");
    }
    if from >= to {
        return fields.refuse("from", "the window is empty", "from must be earlier than to");
    }
    Some((from, to))
}

/// The part of a window that `"250 ms ± 20 ms"` leaves out.
fn exception(text: &str, scale: &Scale) -> Result<Vec<(Instant, Instant)>, Complaint> {
    let time = |text: &str| quantity::time(text.trim(), scale).ok();
    let parts = text.split_once('±').or_else(|| text.split_once("+-"));
    let part = parts.and_then(|(middle, reach)| Some((time(middle)?, time(reach)?)));
    let (middle, reach) = part.ok_or_else(|| {
        let message = format!("{text:?} is not part of a window");
        Complaint::new(message, "for example \"250 ms ± 20 ms\"")
    })?;
    Ok(vec![(Instant::ZERO + (middle - reach), Instant::ZERO + (middle + reach))])
}

fn check_bin(fields: &Fields<'_>, row: &Row, bin: Option<Duration>, window: Duration) {
    match (row.bin, bin) {
        (Bin::Required(example) | Bin::Interval(example), None) => {
            fields.error("bin", format!("{} needs a bin", row.word), format!("bin = {example:?}"));
        }
        (Bin::Never, Some(_)) => {
            let complaint = Complaint::new(format!("{} has no bins", row.word), "leave it out");
            fields.warn("bin", complaint);
        }
        (Bin::Optional | Bin::Required(_), Some(bin)) if bin > window => {
            fields.error("bin", "a bin longer than the window", "a shorter one");
        }
        (Bin::Optional | Bin::Required(_), Some(bin))
            if window.as_ps() / bin.as_ps() > BINS_MAX =>
        {
            fields.error("bin", format!("more than {BINS_MAX} bins"), "a wider one");
        }
        _ => {}
    }
}
