//! The list of panels, and the panels of traffic: throughput of ports and sources, limits of
//! points ask for.

use super::UNIT;
use super::panel::{Group, Label, Panel, Series, Stroke};
use crate::data::{self, Throttle};
use crate::facts::{self, Facts, Side};
use chart::{number, scale};
use maud::{Markup, html};
use proto::congestion::schemes::{self, Throttling};
use results::verdict::Verdict;
use std::collections::BTreeSet;

/// Greatest number of thin lines of one kind in a panel.
const THIN_MAX: usize = 64;
/// Greatest number of ports with a line each; of more ports a band is drawn.
pub const LINES_MAX: usize = 128;
/// Up to this number ports have thick lines, and no mean.
const FEW: usize = 3;

/// All panels in the order of the page.
pub fn all<'a>(facts: &'a Facts<'a>) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'a>> = facts.sides().map(|side| received(facts, side)).collect();
    // If many send to few, the panel of senders is shown as well.
    let few = facts.hot.len() + facts.cold.len();
    if few <= 4 && facts.senders.len() > 1 {
        panels.extend(facts.sides().map(|side| sent(facts, side)));
    }
    panels.extend(super::aggregate::panel(facts));
    panels.extend(super::credits::panel(facts));
    panels.extend(facts.sides().filter_map(|side| throttled(facts, side)));
    panels.extend(super::queues::panel(facts));
    panels
}

fn received<'a>(facts: &'a Facts<'a>, side: &'a Side<'a>) -> Panel<'a> {
    let port = |node: &usize| {
        let name = facts.run.run.nodes[*node].name.clone();
        Series::new(name, side, &side.run.received[*node]).carried(&format!("x{node}"), 0.002)
    };
    let mut series: Vec<Series<'a>> = facts.cold.iter().chain(&facts.hot).map(port).collect();
    let (cold, hot) = (facts.cold.len(), facts.hot.len());
    let mut mean = |words: String, values: &'a Vec<f64>, nodes: &[usize], key: &str| {
        let (least, most) = spread(side, nodes);
        let all = Series::new(words, side, values).carried(key, 0.001);
        series.push(if nodes.len() > LINES_MAX { all.between(least, most) } else { all });
        series.len() - 1
    };
    let mean_of = |words: String, n: usize| if n > 1 { format!("{words}, mean") } else { words };
    let cold_mean = mean(mean_of(facts.cold_words(), cold), &side.cold, &facts.cold, "cold");
    let hot_mean = mean(mean_of(facts.hot_names(), hot), &side.hot, &facts.hot, "hot");
    let mut groups = Vec::new();
    let weight = if cold <= FEW { "thick" } else { "thin" };
    let class = format!("{weight} {}", side.role);
    groups.push(if cold <= LINES_MAX {
        Group::lines(class, 0..cold)
    } else {
        Group { class, stroke: Stroke::Bands, series: vec![cold_mean] }
    });
    groups.push(Group::lines("thick hot", cold..cold + hot.min(THIN_MAX)));
    if cold > FEW {
        groups.push(Group::lines(format!("thick {}", side.role), [cold_mean]));
    }
    // The mean of one is that one.
    let place = |mean: usize, of: usize, first: usize| if of == 1 { first } else { mean };
    let mut labels = Vec::new();
    if hot > 0 {
        let prefix = if hot == 1 { "hot port " } else { "" };
        let text = format!("{prefix}{}", series[hot_mean].name);
        labels.push(Label::new(place(hot_mean, hot, cold), text, "hot", 2));
    }
    if cold > 0 {
        let text = series[cold_mean].name.clone();
        let label = Label::new(place(cold_mean, cold, 0), text, side.role, 2);
        labels.push(Label { note: expected(side), ..label });
    }
    let what = if cold + hot == 1 { "received by its port" } else { "received by each port" };
    let about = format!("{what}, of line rate");
    let panel = Panel::new("received", side.name.clone(), about, "line_rate", 1.0);
    Panel { height: 118.0, under: accepted(side), series, groups, labels, ..panel }
}

/// The least and the greatest throughput of several ports.
fn spread(side: &Side<'_>, nodes: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let ends = |bin: usize| {
        let values = nodes.iter().map(|node| side.run.received[*node][bin]);
        values.fold((f64::NAN, f64::NAN), |(low, high), value| (low.min(value), high.max(value)))
    };
    (0..side.run.bins).map(ends).unzip()
}

/// Expectations about throughput, over their windows.
fn accepted(side: &Side<'_>) -> Markup {
    let result = &side.run.result;
    let is_judged = result.verdict != Verdict::Inconclusive;
    html! {
        @for judged in &result.expectations {
            @if let Some(definition) = result.definitions.get(&judged.measure)
                && definition.of == "throughput" && definition.per == "line" {
                @let (from, to) = (side.run.in_tau(definition.from_ps), side.run.in_tau(definition.to_ps));
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
        // No more digits than a measured value has: there is little room in print.
        let rounded = |share: f64| number::bound((share * 1e3).round() / 1e3);
        let theory = judged.theory.map_or(String::new(), |t| format!(", theory {}", rounded(t)));
        format!("accepted {}{theory}", facts::accepted(judged))
    })
}

fn sent<'a>(facts: &'a Facts<'a>, side: &'a Side<'a>) -> Panel<'a> {
    const ROLES: [&str; 5] = ["run", "third", "fourth", "fifth", "signal"];
    let values = |node: usize| {
        let output = side.run.output_of(node);
        output.map_or(&[][..], |output| &side.run.series[output].sent[..])
    };
    // Named are those that send most over the run: beyond five, colours say nothing any more.
    let mut order: Vec<(f64, usize)> = facts
        .senders
        .iter()
        .map(|node| (values(*node).iter().filter(|v| v.is_finite()).sum::<f64>(), *node))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let named = order.len().min(if order.len() <= ROLES.len() { 5 } else { 2 });
    let is_named = |node: &usize| order[..named].iter().any(|(_, own)| own == node);
    let own = |node: usize| Series::new(side.run.nodes[node].name.clone(), side, values(node));
    let mut series: Vec<Series<'a>> = order[..named]
        .iter()
        .map(|(_, node)| own(*node).carried(&format!("s{node}"), 0.002))
        .collect();
    let others = facts.senders.iter().filter(|node| !is_named(node));
    series.extend(others.take(THIN_MAX).map(|node| own(*node)));
    let mut groups = vec![Group::lines("thin base", named..series.len())];
    let thick = |place: usize| Group::lines(format!("thick {}", ROLES[place]), [place]);
    groups.extend((0..named).rev().map(thick));
    let label = |place: usize| {
        Label::new(place, format!("sent by {}", series[place].name), ROLES[place], 2)
    };
    let labels = (0..named).map(label).collect();
    let about = "sent by each source, of line rate".to_owned();
    let panel = Panel::new("sent", side.name.clone(), about, "line_rate", 1.0);
    Panel { height: 118.0, series, groups, labels, ..panel }
}

/// Gaps or rates, whichever the scheme limits.
fn throttled<'a>(facts: &'a Facts<'a>, side: &'a Side<'a>) -> Option<Panel<'a>> {
    let run = side.run;
    let reaches = |name: &str| {
        let flow = run.flows.iter().find(|flow| flow.flow == name);
        flow.and_then(|flow| run.nodes.iter().position(|node| node.name == flow.dst))
    };
    let acted = |gap: &[f64]| gap.iter().any(|gap| *gap > 0.0);
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for (name, throttle) in run.throttles.iter().filter(|(_, t)| acted(&t.gap)) {
        let is_hot = reaches(name).is_some_and(|node| facts.hot.contains(&node));
        if is_hot { hot.push((name, throttle)) } else { cold.push((name, throttle)) }
    }
    if hot.is_empty() && cold.is_empty() {
        return None;
    }
    let scheme = schemes::find(&run.result.scheme);
    let by_rate = scheme.is_some_and(|scheme| scheme.shows == Throttling::Rate);
    let of = |throttle: &'a Throttle| -> &'a [f64] {
        if by_rate { &throttle.rate } else { &throttle.gap }
    };
    let hot_names: BTreeSet<&str> = facts.hot.iter().map(|n| run.nodes[*n].name.as_str()).collect();
    let total =
        |hot: bool| run.flows.iter().filter(|f| hot_names.contains(f.dst.as_str()) == hot).count();
    let most = data::most(hot.iter().chain(&cold).flat_map(|(_, throttle)| of(throttle)));
    let top = if by_rate { 1.0 } else { scale::round_up(most) };
    let (mut series, mut groups, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (flows, role, word, total) in
        [(hot, "hot", "hot", total(true)), (cold, side.role, "other", total(false))]
    {
        if flows.is_empty() {
            continue;
        }
        // What never left neutral counts as no gap; of rates only those that are limited have a mean.
        let among = if by_rate { 0 } else { total.max(flows.len()) };
        let mean: Vec<f64> = (0..run.bins)
            .map(|bin| mean_of(flows.iter().map(|(_, throttle)| of(throttle)[bin]), among))
            .collect();
        let thin = if role == "hot" { THIN_MAX } else { THIN_MAX / 2 };
        let first = series.len();
        let own = flows.iter().take(thin);
        series.extend(own.map(|(name, t)| Series::new((*name).clone(), side, of(t))));
        let noun = if total == 1 { "flow" } else { "flows" };
        let text = format!("{} {word} {noun}, mean", among.max(flows.len()));
        let mean = Series::new(text.clone(), side, mean);
        let place = series.len();
        series.push(mean.carried(&format!("t{word}"), top / 2_000.0));
        // Those to hot ports lie on top of the others.
        groups.insert(0, Group::lines(format!("thick {role}"), [place]));
        groups.insert(0, Group::lines(format!("thin {role}"), first..place));
        labels.push(Label::new(place, text, role, if by_rate { 2 } else { 1 }));
    }
    let (name, unit, about) = if by_rate {
        ("rate", "line_rate", "rate allowed, per flow, of line rate")
    } else {
        ("delay", "tau", "inter-packet delay asked for, per flow, in τ")
    };
    let panel = Panel::new(name, side.name.clone(), about.to_owned(), unit, top);
    Some(Panel { series, groups, labels, ..panel })
}

fn mean_of(values: impl Iterator<Item = f64>, among: usize) -> f64 {
    let known = values.filter(|value| value.is_finite());
    let (sum, n) = known.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    match among.max(n) {
        0 => f64::NAN,
        among => sum / among as f64,
    }
}
