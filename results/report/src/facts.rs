//! The sentences and the selections of the page: the sides, hot and cold ports, the window, titles.

use super::data::{self, Run};
use super::leaves::Drawn;
use chart::number;
use proto::congestion::schemes::{self, Signals};
use results::run_directory::result::{Definition, Phase};
use results::saturation::HELD;
use results::verdict::{Judgement, Verdict};
use scenario::measure::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A run on the page.
#[derive(Debug)]
pub struct Side<'a> {
    /// The content of its files.
    pub run: &'a Run,
    /// Its fabric in the picture.
    pub drawn: Drawn,
    /// Its scheme, or its scenario if both sides have the same scheme.
    pub name: String,
    /// Role of its colour: `run` or `base`.
    pub role: &'static str,
    /// 0 for the baseline, 1 for the run.
    pub number: usize,
    /// Mean throughput of the cold receivers, by bin.
    pub cold: Vec<f64>,
    /// Mean throughput of the hot receivers, by bin.
    pub hot: Vec<f64>,
    /// Number of held outputs, by bin.
    pub held: Vec<f64>,
    /// Number of adapters whose output is held, by bin.
    pub sources_held: Vec<f64>,
}

/// The subject of the page: a run, and optionally a baseline.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The run.
    pub run: Side<'a>,
    /// The baseline.
    pub base: Option<Side<'a>>,
    /// Adapters behind a root of congestion, in either run.
    pub hot: Vec<usize>,
    /// All other adapters that receive.
    pub cold: Vec<usize>,
    /// Adapters that send.
    pub senders: Vec<usize>,
    /// Begin and end of the window of the leading measure, picoseconds.
    pub window: (u64, u64),
    /// The longer run's length, τ.
    pub length: f64,
}

/// A root is a hot spot if it is a root in at least this share of the bins,
const HOT_SHARE: f64 = 0.05;
/// and if the outputs that waited behind it, summed over bins, are at least this share of those behind the
/// greatest root.
const HOT_WEIGHT: f64 = 0.2;
/// An adapter that never received or sent more than this share of its line does not count as receiver or sender.
const TRACE: f64 = 0.002;

impl<'a> Facts<'a> {
    /// The facts of a run and its baseline.
    pub fn of(run: &'a Run, base: Option<&'a Run>) -> Facts<'a> {
        let names = names(run, base);
        let both = || std::iter::once(run).chain(base);
        let hot_names: BTreeSet<&str> = both().flat_map(hot_names).collect();
        let takes_part = |of: &dyn Fn(&Run, usize) -> f64, node: usize| {
            both().any(|run| node < run.graph.nodes.len() && of(run, node) > TRACE)
        };
        let receives = |run: &Run, node: usize| data::most(&run.received[node]);
        let sends = |run: &Run, node: usize| {
            run.graph.output_of(node).map_or(0.0, |output| data::most(&run.series[output].sent))
        };
        let receivers: Vec<usize> =
            run.adapters().into_iter().filter(|node| takes_part(&receives, *node)).collect();
        let is_hot = |node: &usize| hot_names.contains(run.graph.nodes[*node].name.as_str());
        let (hot, cold): (Vec<usize>, Vec<usize>) = receivers.into_iter().partition(is_hot);
        let senders = run.adapters().into_iter().filter(|node| takes_part(&sends, *node)).collect();
        let side = |run: &'a Run, name, role, number| Side {
            cold: mean_of(run, &cold),
            hot: mean_of(run, &hot),
            held: counted(run, |_| true),
            sources_held: counted(run, |output| run.graph.outputs[output].level == 0),
            drawn: Drawn::of(&run.graph),
            run,
            name,
            role,
            number,
        };
        let length = both().map(Run::length_tau).fold(1.0, f64::max);
        Facts {
            run: side(run, names.0, "run", 1),
            base: base.map(|base| side(base, names.1, "base", 0)),
            window: window(run),
            hot,
            cold,
            senders,
            length,
        }
    }

    /// The sides in the order of the page: baseline first.
    pub fn sides(&self) -> impl Iterator<Item = &Side<'a>> {
        self.base.iter().chain(std::iter::once(&self.run))
    }

    /// The mean of a series over the measured window.
    pub fn window_mean(&self, side: &Side<'_>, series: &[f64]) -> Option<f64> {
        side.run.mean_over(series, self.window.0, self.window.1)
    }

    /// Role of the colour of a port in a run: hot ports of the run have one of their own.
    pub fn role(&self, side: &Side<'_>, node: usize) -> &'static str {
        if side.role == "run" && self.hot.contains(&node) { "hot" } else { side.role }
    }

    /// The adapters that receive, in the order of the fabric's picture.
    pub fn receivers(&self) -> Vec<usize> {
        let receives = |node: &usize| self.cold.contains(node) || self.hot.contains(node);
        self.run.run.adapters().into_iter().filter(receives).collect()
    }

    /// The first place of the cursor, τ: the middle of the window.
    pub fn cursor(&self) -> f64 {
        let (from, to) = self.window;
        (from + to) as f64 / 2.0 / self.run.run.tau_ps()
    }

    /// The hot adapters as text; empty if there are none.
    pub fn hot_names(&self) -> String {
        let name = |node: usize| &self.run.run.graph.nodes[node].name;
        match self.hot.as_slice() {
            [] => String::new(),
            [one] => name(*one).clone(),
            [one, two] => format!("{} and {}", name(*one), name(*two)),
            many => format!("{} hot ports", many.len()),
        }
    }

    /// The cold receivers as text.
    pub fn cold_words(&self) -> String {
        match (self.cold.len(), self.hot.is_empty()) {
            (1, _) => self.run.run.graph.nodes[self.cold[0]].name.clone(),
            (n, true) => format!("{n} ports"),
            (n, false) => format!("{n} other ports"),
        }
    }

    /// What differs between run and baseline besides the scheme.
    pub fn differences(&self) -> Vec<String> {
        let Some(base) = &self.base else { return Vec::new() };
        let (run, base) = (self.run.run, base.run);
        let graph = |run: &Run| run.result.files.get("topology.json").map(|f| f.sha256.clone());
        let all = [
            ("seed", run.result.seed != base.result.seed),
            ("fabric", graph(run) != graph(base)),
            ("back-end", run.result.backend != base.result.backend),
        ];
        let differing = all.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(what, _)| format!("{what} differs")).collect()
    }
}

impl Side<'_> {
    /// The bin at a time in τ; `None` after the end of the run.
    pub fn bin_at(&self, tau: f64) -> Option<usize> {
        let bin = (tau / self.run.bin_tau().max(1e-9)) as usize;
        (bin < self.run.bins).then_some(bin)
    }
}

/// The names of both sides: the schemes, if they differ.
fn names(run: &Run, base: Option<&Run>) -> (String, String) {
    let (own, other) = (&run.result, base.map(|base| &base.result));
    match other {
        Some(other) if other.scheme == own.scheme && other.scenario != own.scenario => {
            (own.scenario.clone(), other.scenario.clone())
        }
        Some(other) if other.scheme == own.scheme => ("this run".into(), "the other".into()),
        Some(other) => (own.scheme.clone(), other.scheme.clone()),
        None => (own.scheme.clone(), String::new()),
    }
}

/// Adapters that a root leads to, if it is a root often enough with enough outputs behind it: while a fabric drains, many
/// outputs are roots of one or two others for a while.
fn hot_names(run: &Run) -> impl Iterator<Item = &str> {
    let mut weights: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for moment in &run.moments {
        for (root, members) in &moment.trees {
            let (bins, weight) = weights.entry(*root).or_default();
            (*bins, *weight) = (*bins + 1, *weight + members.len() + 1);
        }
    }
    let most = weights.values().map(|(_, weight)| *weight).max().unwrap_or(0);
    let (least_bins, least) = (run.bins as f64 * HOT_SHARE, most as f64 * HOT_WEIGHT);
    let hot = weights
        .into_iter()
        .filter(move |(_, (bins, weight))| *bins as f64 >= least_bins && *weight as f64 >= least);
    let fed = hot.map(|(root, _)| &run.graph.nodes[run.graph.outputs[root].to]);
    fed.filter(|node| node.is_adapter()).map(|node| node.name.as_str())
}

fn mean_of(run: &Run, nodes: &[usize]) -> Vec<f64> {
    let mean = |bin: usize| {
        let values = nodes.iter().filter_map(|node| run.received.get(*node)).map(|s| s[bin]);
        data::mean(values, 0).unwrap_or(f64::NAN)
    };
    (0..run.bins).map(mean).collect()
}

/// Number of held outputs of a kind, by bin.
fn counted(run: &Run, of: impl Fn(usize) -> bool) -> Vec<f64> {
    let is_held = |output: &usize, bin: usize| of(*output) && run.series[*output].hold[bin] >= HELD;
    let count = |bin| (0..run.series.len()).filter(|output| is_held(output, bin)).count() as f64;
    (0..run.bins).map(count).collect()
}

/// The window of the leading measure; the whole run without one.
fn window(run: &Run) -> (u64, u64) {
    let whole = (run.length_tau() * run.result.tau_ps as f64) as u64;
    let of = |judged: &&Judgement| run.result.definitions.get(&judged.measure);
    let definition = leading(run).first().and_then(of);
    definition.map_or((0, whole), |definition| (definition.from_ps, definition.to_ps.min(whole)))
}

/// The expectations by importance: those in the scenario's sentence, then those over the
/// same window as the first of them, then the others, each in the order of the scenario.
pub fn leading(run: &Run) -> Vec<&Judgement> {
    let all = &run.result.expectations;
    let of = |name: &String| all.iter().find(|judged| judged.measure == *name);
    let said = run.result.say.iter().flat_map(|said| &said.measures);
    let named: Vec<&Judgement> = said.filter_map(of).collect();
    let window = |judged: &Judgement| {
        let definition = run.result.definitions.get(&judged.measure);
        definition.map(|definition| (definition.from_ps, definition.to_ps))
    };
    let first = named.first().and_then(|judged| window(judged));
    let rank = |judged: &&Judgement| {
        let place = named.iter().position(|one| std::ptr::eq(*one, *judged));
        (place.unwrap_or(named.len()), first.is_none() || window(judged) != first)
    };
    let mut order: Vec<&Judgement> = all.iter().collect();
    order.sort_by_key(rank);
    order
}

/// The name of a measure as the begin of a sentence.
pub fn title(judged: &Judgement) -> String {
    number::sentence(&number::words(&judged.measure))
}

/// The unit of a measure, as a suffix of its value.
pub fn unit(definition: Option<&Definition>) -> &'static str {
    let Some(definition) = definition else { return "" };
    match (definition.per.as_str(), definition.of.as_str()) {
        ("line", _) => " of line rate",
        ("mtu", "queue") => " MTU",
        ("mtu", _) => " τ",
        (_, "latency" | "recovery" | "release" | "ipd" | "hold") => " s",
        (_, "throughput" | "rate") => " bit/s",
        (_, "queue") => " B",
        _ => "",
    }
}

/// The accepted range as text.
pub fn accepted(judged: &Judgement) -> String {
    if let Some(order) = &judged.order {
        let groups = order.iter().map(|group| group.join(" "));
        return groups.collect::<Vec<_>>().join(" → ");
    }
    match (judged.min, judged.max) {
        (Some(min), Some(max)) if min == max => format!("= {}", number::bound(min)),
        (Some(min), Some(max)) => format!("{} – {}", number::bound(min), number::bound(max)),
        (Some(min), None) => format!("≥ {}", number::bound(min)),
        (None, Some(max)) => format!("≤ {}", number::bound(max)),
        (None, None) => "any".to_owned(),
    }
}

/// The value of a measure as text.
pub fn written(value: Option<&Value>) -> String {
    match value {
        None => "–".to_owned(),
        Some(Value::Number(value)) => number::measured(*value),
        Some(names) => names.to_string(),
    }
}

/// The headline: the sentence of the scenario, the worst miss, or that the host did not keep up.
pub fn headline(facts: &Facts<'_>) -> String {
    let result = &facts.run.run.result;
    match result.verdict {
        Verdict::Inconclusive => {
            "This host did not keep up, so nothing on this page counts.".into()
        }
        Verdict::Fail => worst_miss(facts.run.run),
        Verdict::Pass => match &result.say {
            Some(said) => said.sentence.clone(),
            None => found(facts.run.run),
        },
    }
}

/// The leading measure as a sentence.
fn found(run: &Run) -> String {
    let count = run.result.expectations.len() as u64;
    match leading(run).first() {
        None => "The run came to its end; nothing was expected of it.".to_owned(),
        Some(judged) => {
            let unit = unit(run.result.definitions.get(&judged.measure));
            let others = match count {
                1 => String::new(),
                n => format!(", and so are {} other measures", n - 1),
            };
            let value = written(judged.value.as_ref());
            format!("{}: {value}{unit}, as expected{others}.", title(judged))
        }
    }
}

fn worst_miss(run: &Run) -> String {
    let result = &run.result;
    if !result.conservation.closes() {
        return "Frames are missing: what was sent is not what arrived, waits or was dropped."
            .into();
    }
    if let Some(broken) = &result.violations {
        return format!("{broken}.");
    }
    if let Some(drops) = result.lossless_drops.as_ref().filter(|drops| drops.expected.is_none()) {
        return format!("{drops}.");
    }
    let missed = result.expectations.iter().filter(|judged| judged.verdict == Verdict::Fail);
    let Some(judged) = missed.max_by(|a, b| miss(a).total_cmp(&miss(b))) else {
        return found(run);
    };
    let unit = unit(result.definitions.get(&judged.measure));
    let value = match &judged.value {
        None => " has no value".to_owned(),
        value => format!(": {}{unit}", written(value.as_ref())),
    };
    format!("{}{value}; {} was expected.", title(judged), accepted(judged))
}

/// Distance of a value from the bound that it misses, as a share of the bound.
fn miss(judged: &Judgement) -> f64 {
    let Some(value) = judged.value.as_ref().and_then(Value::number) else { return f64::MAX };
    let below = judged.min.map_or(0.0, |min| min - value);
    let above = judged.max.map_or(0.0, |max| value - max);
    let bound = if below > above { judged.min } else { judged.max };
    below.max(above) / bound.map_or(1.0, f64::abs).max(1e-9)
}

/// The names of marks and notifications in a run, by its scheme and technology.
pub fn signals(run: &Run) -> Signals {
    let technology = run.graph.technology;
    let scheme = schemes::find(&run.result.scheme);
    scheme.map_or(Signals::of(technology), |scheme| scheme.signals_on(technology))
}

/// The title of the picture of the fabric.
pub fn trees_title(facts: &Facts<'_>) -> String {
    let run = facts.run.run;
    if let Some(base) = &facts.base {
        let waiting =
            |side: &Side<'_>| facts.window_mean(side, &side.held).unwrap_or(0.0).round() as u64;
        return format!(
            "In the measured window {} of {} outputs wait with {}, {} with {}",
            waiting(base),
            base.run.graph.outputs.len(),
            base.name,
            waiting(&facts.run),
            facts.run.name
        );
    }
    let Some(tree) = run.result.saturation.trees.first().filter(|tree| tree.size > 0) else {
        return match run.result.saturation.strays.first() {
            None => format!("None of {} outputs is held", run.graph.outputs.len()),
            Some(stray) => {
                let n = run.result.saturation.strays.len() as u64;
                let n = number::count(n, "output was", "outputs were");
                format!("{n} held without a root, {} longest", stray.port)
            }
        };
    };
    let size = number::count(tree.size, "output waits", "outputs wait");
    let sources = match tree.sources {
        0 => String::new(),
        n => format!(", {} among them", number::count(n, "source", "sources")),
    };
    let tau = |ps: u64| number::tau(run.in_tau(ps));
    let (first, last) = (tau(tree.first_ps), tau(tree.last_ps));
    format!("Up to {size} behind {}{sources}, between {first} and {last}", tree.feeds)
}

/// The title of the figure over time: throughput phase by phase.
pub fn over_time(facts: &Facts<'_>) -> String {
    let cold = !facts.cold.is_empty();
    let who = if cold { facts.cold_words() } else { facts.hot_names() };
    let mean = |side: &Side<'_>, from, to| {
        let series = if cold { &side.cold } else { &side.hot };
        side.run.mean_over(series, from, to).map(|mean| format!("{mean:.2}"))
    };
    let phases = &facts.run.run.result.phases;
    if (2..=4).contains(&phases.len()) {
        let steps = |side: &Side<'_>, written: &dyn Fn(String, &Phase) -> String| {
            let step = |p: &Phase| Some(written(mean(side, p.from_ps, p.to_ps)?, p));
            phases.iter().filter_map(step).collect::<Vec<_>>().join(", ")
        };
        let before = facts.base.as_ref().map_or(String::new(), |base| {
            format!("; with {} {}", base.name, steps(base, &|mean, _| mean))
        });
        let steps = steps(&facts.run, &|mean, phase| format!("{mean} in “{}”", phase.name));
        return format!("{who} received {steps} of line rate{before}");
    }
    let (from, to) = facts.window;
    let before = facts.base.as_ref().and_then(|base| Some((mean(base, from, to)?, &base.name)));
    let before = before.map_or(String::new(), |(mean, name)| format!(", with {name} {mean}"));
    match mean(&facts.run, from, to) {
        Some(mean) => format!("In the measured window {who} received {mean} of line rate{before}"),
        None => "No port received anything in the measured window".to_owned(),
    }
}
