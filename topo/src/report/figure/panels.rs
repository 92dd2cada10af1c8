//! The panels: what ports receive, what sources send, what reaction points ask for, queues.

use super::{Label, Panel, UNIT, grain, trace};
use crate::chart::{number, path, scale};
use crate::keyfile::quantity::{self, Scale};
use crate::measure::verdict::Verdict;
use crate::report::columns::Columns;
use crate::report::facts::{self, Facts, Side};
use crate::saturation::Output;
use maud::{Markup, html};
use proto::units::{Bytes, Duration};
use std::collections::BTreeSet;

/// Thin lines of one kind in a panel.
const THIN_MAX: usize = 64;
/// Ports with a line of their own; beyond, the middle of them is a band.
pub const LINES_MAX: usize = 128;
/// Ports that are few enough to be thick lines, without a mean.
const FEW: usize = 3;
/// Expiries that are drawn; more would be a grey wall.
const EXPIRIES_MAX: f64 = 100.0;
/// Queues in the panel.
const QUEUES_MAX: usize = 3;

/// All panels in the order of the page.
pub fn all(facts: &Facts<'_>, columns: &mut Columns) -> Vec<Panel> {
    let mut panels: Vec<Panel> = facts.sides().map(|side| received(facts, side, columns)).collect();
    // Where many send to few, what each sends is the other half of the picture.
    let few = facts.hot.len() + facts.cold.len();
    if few <= 4 && facts.senders.len() > 1 {
        panels.extend(facts.sides().map(|side| sent(facts, side, columns)));
    }
    panels.extend(super::together::panel(facts, columns));
    panels.extend(super::credits::panel(facts, columns));
    panels.extend(facts.sides().filter_map(|side| throttled(facts, side, columns)));
    panels.extend(queues(facts, columns));
    panels
}

pub(super) fn at_cursor(facts: &Facts<'_>, side: &Side<'_>, series: &[f64]) -> f64 {
    side.bin_at(facts.cursor()).map_or(f64::NAN, |bin| series[bin])
}

fn received(facts: &Facts<'_>, side: &Side<'_>, columns: &mut Columns) -> Panel {
    let grain = grain(facts);
    let key = |name: &str| format!("{}.{name}", side.number);
    columns.add(key("cold"), &side.cold, 0.001);
    columns.add(key("hot"), &side.hot, 0.001);
    for node in facts.cold.iter().chain(&facts.hot) {
        columns.add(key(&format!("x{node}")), &side.run.received[*node], 0.002);
    }
    let all: Vec<usize> = facts.cold.iter().chain(&facts.hot).copied().collect();
    let body = html! {
        (accepted(side))
        g class=(format!("{} {}", if facts.cold.len() <= FEW { "thick" } else { "thin" }, side.role)) {
            @if facts.cold.len() <= LINES_MAX {
                @for node in &facts.cold {
                    path class="l" id=(format!("x{}-{node}", side.number)) d=(trace(side, &side.run.received[*node], 1.0, grain)) {}
                }
            } @else {
                path class="band" d=(spread(side, &facts.cold, grain)) {}
            }
        }
        g class="thick hot" {
            @for node in facts.hot.iter().take(THIN_MAX) {
                path class="l" id=(format!("x{}-{node}", side.number)) d=(trace(side, &side.run.received[*node], 1.0, grain)) {}
            }
        }
        @if facts.cold.len() > FEW {
            g class=(format!("thick {}", side.role)) { path class="l" d=(trace(side, &side.cold, 1.0, grain)) {} }
        }
    };
    let mut labels = Vec::new();
    let note = expected(side);
    if !facts.hot.is_empty() {
        labels.push(Label {
            y: at_cursor(facts, side, &side.hot),
            text: if facts.hot.len() == 1 {
                format!("hot port {}", facts.hot_names())
            } else {
                format!("{}, mean", facts.hot_names())
            },
            role: "hot",
            key: key("hot"),
            digits: 2,
            value: at_cursor(facts, side, &side.hot),
            note: String::new(),
        });
    }
    if !facts.cold.is_empty() {
        let mean = if facts.cold.len() > 1 { ", mean" } else { "" };
        labels.push(Label {
            y: at_cursor(facts, side, &side.cold),
            text: format!("{}{mean}", facts.cold_words()),
            role: side.role,
            key: key("cold"),
            digits: 2,
            value: at_cursor(facts, side, &side.cold),
            note,
        });
    }
    labels.iter_mut().for_each(|label| label.y = if label.y.is_finite() { label.y } else { 0.5 });
    let what = if all.len() == 1 { "received by its port" } else { "received by each port" };
    Panel {
        title: side.name.clone(),
        about: format!("{what}, of line rate"),
        height: 118.0,
        top: 1.0,
        body,
        labels,
        ticks: vec![0.0, 0.5, 1.0],
    }
}

/// From the least to the greatest of many.
fn spread(side: &Side<'_>, nodes: &[usize], grain: path::Grain) -> String {
    let points: Vec<(f64, f64, f64)> = (0..side.run.bins)
        .map(|bin| {
            let values = nodes.iter().map(|node| side.run.received[*node][bin]);
            let known = values.filter(|v| v.is_finite());
            let (low, high) = known.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            let (low, high) = if low > high { (f64::NAN, f64::NAN) } else { (low, high) };
            (side.run.middle(bin), -low * UNIT, -high * UNIT)
        })
        .collect();
    path::band(&points, grain)
}

/// Expectations about throughput, over their windows.
fn accepted(side: &Side<'_>) -> Markup {
    let result = &side.run.result;
    let tau = result.tau_ps.max(1) as f64;
    let is_judged = result.verdict != Verdict::Inconclusive;
    html! {
        @for judged in &result.expectations {
            @if let Some(definition) = result.definitions.get(&judged.measure)
                && definition.of == "throughput" && definition.per == "line" {
                @let (from, to) = (definition.from_ps as f64 / tau, definition.to_ps as f64 / tau);
                @let (low, high) = (judged.min.unwrap_or(0.0), judged.max.unwrap_or(1.0));
                @if is_judged && (judged.min.is_some() || judged.max.is_some()) {
                    rect class="accept" x=(from) y=(format!("{:.0}", -high * UNIT)) width=(to - from)
                        height=(format!("{:.0}", ((high - low) * UNIT).max(8.0))) {}
                }
                @if let Some(theory) = judged.theory {
                    path class="l theory" d=(format!("M{from} {0:.0}H{to}", -theory * UNIT)) {}
                }
            }
        }
    }
}

/// The leading expectation about several ports, in small print.
fn expected(side: &Side<'_>) -> String {
    let result = &side.run.result;
    let leading = facts::leading(side.run).into_iter().find(|judged| {
        let definition = result.definitions.get(&judged.measure);
        definition.is_some_and(|d| {
            d.of == "throughput" && d.per == "line" && d.at.iter().any(|at| at.contains(['*', '[']))
        })
    });
    leading.map_or(String::new(), |judged| {
        let theory =
            judged.theory.map_or(String::new(), |t| format!(", theory {}", number::bound(t)));
        format!("accepted {}{theory}", facts::accepted(judged))
    })
}

fn sent(facts: &Facts<'_>, side: &Side<'_>, columns: &mut Columns) -> Panel {
    const ROLES: [&str; 5] = ["run", "third", "fourth", "fifth", "signal"];
    let grain = grain(facts);
    let series = |node: usize| {
        let output = side.run.output_of(node);
        output.map_or(&[][..], |output| &side.run.series[output].sent[..])
    };
    let own = facts.senders.len() <= ROLES.len();
    let mut labels = Vec::new();
    // Named are those that send most over the run: beyond five, colours say nothing any more.
    let mut order: Vec<(f64, usize)> = facts
        .senders
        .iter()
        .map(|node| (series(*node).iter().filter(|v| v.is_finite()).sum::<f64>(), *node))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let named: Vec<usize> = order.iter().take(if own { 5 } else { 2 }).map(|(_, n)| *n).collect();
    for (place, node) in named.iter().enumerate() {
        let key = format!("{}.s{node}", side.number);
        let values = series(*node);
        columns.add(key.clone(), values, 0.002);
        let value = at_cursor(facts, side, values);
        let text = format!("sent by {}", side.run.nodes[*node].name);
        labels.push(Label::at(value, text, ROLES[place], (key, 2)));
    }
    let body = html! {
        g class="thin base" { @for node in facts.senders.iter().filter(|node| !named.contains(node)).take(THIN_MAX) {
            path class="l" d=(trace(side, series(*node), 1.0, grain)) {}
        } }
        @for (place, node) in named.iter().enumerate().rev() {
            g class=(format!("thick {}", ROLES[place])) { path class="l" d=(trace(side, series(*node), 1.0, grain)) {} }
        }
    };
    Panel {
        title: side.name.clone(),
        about: "sent by each source, of line rate".to_owned(),
        height: 118.0,
        top: 1.0,
        body,
        labels,
        ticks: vec![0.0, 0.5, 1.0],
    }
}

/// Gaps where the scheme asks for gaps, rates where it allows rates.
fn throttled(facts: &Facts<'_>, side: &Side<'_>, columns: &mut Columns) -> Option<Panel> {
    let run = side.run;
    let reaches = |name: &str| {
        let flow = run.flows.iter().find(|flow| flow.flow == name);
        flow.and_then(|flow| run.nodes.iter().position(|node| node.name == flow.dst))
    };
    let acted = |gap: &[f64]| gap.iter().any(|gap| *gap > 0.0);
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for (name, throttle) in run.throttles.iter().filter(|(_, t)| acted(&t.gap)) {
        let is_hot = reaches(name).is_some_and(|node| facts.hot.contains(&node));
        if is_hot { hot.push(throttle) } else { cold.push(throttle) }
    }
    if hot.is_empty() && cold.is_empty() {
        return None;
    }
    let by_rate = run.result.scheme == "dcqcn";
    let of = |throttle: &crate::report::data::Throttle| {
        if by_rate { throttle.rate.clone() } else { throttle.gap.clone() }
    };
    let hot_names: BTreeSet<&str> = facts.hot.iter().map(|n| run.nodes[*n].name.as_str()).collect();
    let total =
        |hot: bool| run.flows.iter().filter(|f| hot_names.contains(f.dst.as_str()) == hot).count();
    let groups = [(hot, "hot", "hot", total(true)), (cold, side.role, "other", total(false))];
    let grain = grain(facts);
    let most = groups.iter().flat_map(|(flows, ..)| flows.iter());
    let most = most.flat_map(|t| of(t)).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let top = if by_rate { 1.0 } else { scale::round_up(most) };
    let mut labels = Vec::new();
    let mut body = Vec::new();
    for (flows, role, word, total) in groups.iter().filter(|(flows, ..)| !flows.is_empty()) {
        // What never left neutral counts as no gap; of rates only those that are limited have a mean.
        let among = if by_rate { 0 } else { (*total).max(flows.len()) };
        let series: Vec<Vec<f64>> = flows.iter().map(|throttle| of(throttle)).collect();
        let mean: Vec<f64> = (0..run.bins).map(|bin| mean_at(&series, bin, among)).collect();
        let thin = if *role == "hot" { THIN_MAX } else { THIN_MAX / 2 };
        body.push(html! {
            g class=(format!("thin {role}")) { @for series in series.iter().take(thin) {
                path class="l" d=(trace(side, series, top, grain)) {}
            } }
            g class=(format!("thick {role}")) { path class="l" d=(trace(side, &mean, top, grain)) {} }
        });
        let key = format!("{}.t{word}", side.number);
        columns.add(key.clone(), &mean, top / 2_000.0);
        let value = at_cursor(facts, side, &mean);
        let noun = if *total == 1 { "flow" } else { "flows" };
        let text = format!("{} {word} {noun}, mean", among.max(flows.len()));
        labels.push(Label::at(value, text, role, (key, if by_rate { 2 } else { 1 })));
    }
    let about = if by_rate {
        "rate allowed, per flow, of line rate"
    } else {
        "inter-packet delay asked for, per flow, in τ"
    };
    Some(Panel {
        title: side.name.clone(),
        about: about.to_owned(),
        height: 90.0,
        top,
        body: html! { @for part in body.iter().rev() { (part) } },
        labels,
        ticks: vec![0.0, top / 2.0, top],
    })
}

fn mean_at(series: &[Vec<f64>], bin: usize, among: usize) -> f64 {
    let known = series.iter().map(|s| s[bin]).filter(|v| v.is_finite());
    let (sum, n) = known.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    match among.max(n) {
        0 => f64::NAN,
        among => sum / among as f64,
    }
}

/// The queues of the greatest trees, of both runs.
fn queues(facts: &Facts<'_>, columns: &mut Columns) -> Option<Panel> {
    const ROLES: [&str; 3] = ["hot", "signal", "third"];
    let grain = grain(facts);
    let most = |output: usize| {
        let values = facts.sides().filter_map(|side| side.run.series.get(output));
        values.flat_map(|s| &s.queue.mean).copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
    };
    let run = facts.run.run;
    let measured: BTreeSet<&str> = (run.result.definitions.values())
        .filter(|definition| definition.of == "queue")
        .flat_map(|definition| definition.at.iter().map(String::as_str))
        .collect();
    // Those that the scenario measures, then those to hot ports, the longest first.
    let rank = |output: usize| {
        let Output { name, to, .. } = &run.outputs.all[output];
        2 * u8::from(measured.contains(name.as_str())) + u8::from(facts.hot.contains(to))
    };
    let mut order: Vec<(u8, f64, usize)> = (0..run.outputs.all.len())
        .filter(|output| run.outputs.all[*output].level > 0)
        .map(|output| (rank(output), most(output), output))
        .filter(|(_, most, _)| *most > 0.0)
        .collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    let chosen: Vec<usize> = order.iter().take(QUEUES_MAX).map(|(_, _, output)| *output).collect();
    if chosen.is_empty() {
        return None;
    }
    let highest = |output: usize| {
        let values = facts.sides().filter_map(|side| side.run.series.get(output));
        values.flat_map(|s| &s.queue.max).copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
    };
    let top =
        scale::round_up(chosen.iter().map(|o| highest(*o)).fold(1.0, f64::max) / 1_024.0) * 1_024.0;
    let mut labels = Vec::new();
    let mut parts = Vec::new();
    for (place, output) in chosen.iter().enumerate() {
        for side in facts.sides() {
            let Some(series) = side.run.series.get(*output) else { continue };
            let queue = &series.queue;
            let band: Vec<(f64, f64, f64)> = (0..side.run.bins)
                .map(|bin| {
                    (
                        side.run.middle(bin),
                        -queue.min[bin] / top * UNIT,
                        -queue.max[bin] / top * UNIT,
                    )
                })
                .collect();
            let dashed = if side.role == "base" { " dashed" } else { "" };
            parts.push(html! {
                g class=(format!("queue {}{dashed}", ROLES[place])) {
                    path class="band" d=(path::band(&band, grain)) {}
                    path class="l" d=(trace(side, &queue.mean, top, grain)) {}
                }
            });
        }
        let mean: Vec<f64> = run.series[*output].queue.mean.iter().map(|q| q / 1_024.0).collect();
        let key = format!("1.n{output}");
        columns.add(key.clone(), &mean, top / 1_024.0 / 2_000.0);
        let value = at_cursor(facts, &facts.run, &mean);
        let label = Label::at(value, facts.run.drawn.output_name(*output), ROLES[place], (key, 0));
        labels.push(Label { y: label.y * 1_024.0, ..label });
    }
    let mut about = "in KiB, least to most as a band".to_owned();
    if let Some(base) = &facts.base {
        about += &format!("; dashed: {}", base.name);
    }
    if let Some((every, times)) = expiries(&facts.run) {
        about += &format!("; dotted: what was told of congestion expires, every {every}");
        let lines: String = times.iter().map(|t| format!("M{t:.0} -1040V30")).collect();
        parts.push(html! { path class="l expiry" d=(lines) {} });
    }
    // Ticks are written in KiB while lines are in octets: the axis is scaled once.
    let kib = top / 1_024.0;
    for label in &mut labels {
        label.y /= 1_024.0;
    }
    Some(Panel {
        title: "queue".to_owned(),
        about,
        height: 90.0,
        top: kib,
        body: html! { @for part in parts.iter().rev() { (part) } },
        labels,
        ticks: vec![0.0, kib / 2.0, kib],
    })
}

/// With adaptive routing, how long a word about congestion holds, and when the words expire that the
/// first notification and those after each expiry brought, τ.
fn expiries(side: &Side<'_>) -> Option<(String, Vec<f64>)> {
    let run = side.run;
    if run.parameter("fabric.routing") != Some("adaptive") {
        return None;
    }
    let every = run.parameter("fabric.switch.adaptive.timeout")?;
    let first = run.happenings.first_note_ps? as f64;
    let tau = run.result.tau_ps.max(1) as f64;
    let scale = Scale { tau: Duration::from_ps(run.result.tau_ps), frame: Bytes::new(0) };
    let step = quantity::time(every, &scale).ok()?.as_ps() as f64;
    let count = ((run.length_tau() * tau - first) / step.max(1.0)).floor().min(EXPIRIES_MAX);
    let times = (1..=count.max(0.0) as u64).map(|n| (first + n as f64 * step) / tau);
    Some((every.to_owned(), times.collect()))
}
