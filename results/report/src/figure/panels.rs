//! The list of panels, and the panels of traffic: throughput of ports and sources, limits of reaction points.

use super::UNIT;
use super::panel::{Panel, Series, Stroke};
use crate::data::{self, Throttle};
use crate::facts::{self, Facts, Side};
use chart::{number, scale};
use maud::{Markup, html};
use proto::congestion::schemes::{self, Throttling};
use results::verdict::Verdict;

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
    let (cold, hot) = (facts.cold.len(), facts.hot.len());
    let what = if cold + hot == 1 { "received by its port" } else { "received by each port" };
    let about = format!("{what}, of line rate");
    let mut panel = Panel::new("received", side.name.clone(), about, "line_rate", 1.0);
    (panel.height, panel.under) = (118.0, accepted(side));
    panel.series.extend(facts.cold.iter().chain(&facts.hot).map(|node| {
        let name = facts.run.run.graph.nodes[*node].name.clone();
        Series::new(name, side, &side.run.received[*node]).carried(&format!("x{node}"), 0.002)
    }));
    for (nodes, name, values, key) in [
        (&facts.cold, facts.cold_words(), &side.cold, "cold"),
        (&facts.hot, facts.hot_names(), &side.hot, "hot"),
    ] {
        let name = if nodes.len() > 1 { format!("{name}, mean") } else { name };
        let mean = Series::new(name, side, values).carried(key, 0.001);
        let (least, most) = spread(side, nodes);
        let is_band = nodes.len() > LINES_MAX;
        panel.series.push(if is_band { mean.between(least, most) } else { mean });
    }
    let (cold_mean, hot_mean) = (cold + hot, cold + hot + 1);
    let weight = if cold <= FEW { "thick" } else { "thin" };
    let class = format!("{weight} {}", side.role);
    if cold <= LINES_MAX {
        panel.group(Stroke::Lines, class, 0..cold);
    } else {
        panel.group(Stroke::Bands, class, [cold_mean]);
    }
    panel.group(Stroke::Lines, "thick hot".to_owned(), cold..cold + hot.min(THIN_MAX));
    if cold > FEW {
        panel.group(Stroke::Lines, format!("thick {}", side.role), [cold_mean]);
    }
    // The mean of one is that one.
    if hot > 0 {
        let prefix = if hot == 1 { "hot port " } else { "" };
        let text = format!("{prefix}{}", panel.series[hot_mean].name);
        panel.label(if hot == 1 { cold } else { hot_mean }, text, "hot", 2);
    }
    if cold > 0 {
        let text = panel.series[cold_mean].name.clone();
        panel.label(if cold == 1 { 0 } else { cold_mean }, text, side.role, 2);
        panel.labels.last_mut().expect("it was just added").note = expected(side);
    }
    panel
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
        let output = side.run.graph.output_of(node);
        output.map_or(&[][..], |output| &side.run.series[output].sent[..])
    };
    // Only the five that send most over the run have names: more colours cannot be distinguished.
    let total = |node: &usize| -> f64 { values(*node).iter().filter(|v| v.is_finite()).sum() };
    let mut order: Vec<(f64, usize)> = facts.senders.iter().map(|n| (total(n), *n)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.truncate(if order.len() <= ROLES.len() { 5 } else { 2 });
    let about = "sent by each source, of line rate".to_owned();
    let mut panel = Panel::new("sent", side.name.clone(), about, "line_rate", 1.0);
    panel.height = 118.0;
    let own =
        |node: usize| Series::new(side.run.graph.nodes[node].name.clone(), side, values(node));
    let named = order.iter().map(|(_, node)| own(*node).carried(&format!("s{node}"), 0.002));
    panel.series.extend(named);
    let is_named = |node: &&usize| order.iter().any(|(_, own)| own == *node);
    let others = facts.senders.iter().filter(|node| !is_named(node));
    panel.series.extend(others.take(THIN_MAX).map(|node| own(*node)));
    panel.group(Stroke::Lines, "thin base".to_owned(), order.len()..panel.series.len());
    for place in (0..order.len()).rev() {
        panel.group(Stroke::Lines, format!("thick {}", ROLES[place]), [place]);
    }
    for (place, role) in ROLES.iter().enumerate().take(order.len()) {
        panel.label(place, format!("sent by {}", panel.series[place].name), role, 2);
    }
    panel
}

/// Gaps or rates, whichever the scheme limits.
fn throttled<'a>(facts: &'a Facts<'a>, side: &'a Side<'a>) -> Option<Panel<'a>> {
    let run = side.run;
    let is_hot = |name: &str| facts.hot.iter().any(|node| run.graph.nodes[*node].name == name);
    let leads_to_hot = |name: &&String| {
        let flow = run.flows.iter().find(|flow| flow.flow == **name);
        flow.is_some_and(|flow| is_hot(&flow.dst))
    };
    let acted =
        run.throttles.iter().filter(|(_, throttle)| throttle.gap.iter().any(|gap| *gap > 0.0));
    let (hot, cold): (Vec<_>, Vec<_>) = acted.partition(|(name, _)| leads_to_hot(name));
    if hot.is_empty() && cold.is_empty() {
        return None;
    }
    let scheme = schemes::find(&run.result.scheme);
    let by_rate = scheme.is_some_and(|scheme| scheme.shows == Throttling::Rate);
    let of = |throttle: &'a Throttle| -> &'a [f64] {
        if by_rate { &throttle.rate } else { &throttle.gap }
    };
    let most = data::most(hot.iter().chain(&cold).flat_map(|(_, throttle)| of(throttle)));
    let mut panel = if by_rate {
        let about = "rate allowed, per flow, of line rate".to_owned();
        Panel::new("rate", side.name.clone(), about, "line_rate", 1.0)
    } else {
        let about = "inter-packet delay asked for, per flow, in τ".to_owned();
        Panel::new("delay", side.name.clone(), about, "tau", scale::round_up(most))
    };
    let step = panel.top / 2_000.0;
    for (flows, role, word) in [(hot, "hot", "hot"), (cold, side.role, "other")] {
        if flows.is_empty() {
            continue;
        }
        let total = run.flows.iter().filter(|flow| is_hot(&flow.dst) == (word == "hot")).count();
        // What never left neutral counts as no gap; of rates only those that are limited have a mean.
        let among = if by_rate { 0 } else { total.max(flows.len()) };
        let mean = |bin| data::mean(flows.iter().map(|(_, t)| of(t)[bin]), among);
        let mean: Vec<f64> = (0..run.bins).map(|bin| mean(bin).unwrap_or(f64::NAN)).collect();
        let noun = if total == 1 { "flow" } else { "flows" };
        let text = format!("{} {word} {noun}, mean", among.max(flows.len()));
        let thin = if role == "hot" { THIN_MAX } else { THIN_MAX / 2 };
        let first = panel.series.len();
        let own = flows.iter().take(thin);
        panel.series.extend(own.map(|(name, t)| Series::new((*name).clone(), side, of(t))));
        let mean = Series::new(text.clone(), side, mean).carried(&format!("t{word}"), step);
        let place = panel.draws(mean, Stroke::Lines, format!("thick {role}"));
        panel.group(Stroke::Lines, format!("thin {role}"), first..place);
        panel.label(place, text, role, if by_rate { 2 } else { 1 });
    }
    // Means lie on top of single flows, and those to hot ports on top of the others.
    panel.groups.reverse();
    Some(panel)
}
