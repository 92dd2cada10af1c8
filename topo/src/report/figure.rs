//! The figure over time: stacked panels on one axis with one cursor, names and values at the ends of
//! lines, phases shaded.

use super::columns::Columns;
use super::facts::{Facts, Side};
use crate::chart::path::Grain;
use crate::chart::{number, scale};
use crate::measure::verdict::Verdict;
use maud::{Markup, html};

mod credits;
mod lanes;
mod panels;
mod together;

pub use panels::LINES_MAX;

/// Where time begins and ends, and how wide all is, pixels.
pub const LEFT: f64 = 54.0;
/// Where time ends.
pub const RIGHT: f64 = 1_000.0;
const WIDTH: f64 = 1_210.0;
/// Height of a unit in data coordinates: a value of one is a thousand.
pub const UNIT: f64 = 1_000.0;

/// A name with its value at the end of a line.
struct Label {
    /// Where it would like to stand.
    y: f64,
    text: String,
    role: &'static str,
    /// The series that the value comes from, and its digits.
    key: String,
    digits: usize,
    /// The value at the cursor.
    value: f64,
    /// A further line in small print.
    note: String,
}

impl Label {
    /// Where the line itself is at the cursor, or at the foot where it is not drawn.
    fn at(value: f64, text: String, role: &'static str, (key, digits): (String, usize)) -> Label {
        let y = if value.is_finite() { value } else { 0.0 };
        Label { y, text, role, key, digits, value, note: String::new() }
    }
}

/// A panel ready to be set.
struct Panel {
    title: String,
    about: String,
    height: f64,
    /// Greatest value of the axis.
    top: f64,
    /// Lines, bands and whatever else, in data coordinates.
    body: Markup,
    labels: Vec<Label>,
    /// Values with a tick.
    ticks: Vec<f64>,
}

/// How x is rounded in paths.
pub fn grain(facts: &Facts<'_>) -> Grain {
    let finest = facts.sides().map(|side| side.run.bin_tau()).fold(f64::MAX, f64::min);
    if finest >= 20.0 { Grain::Whole } else { Grain::Hundredths }
}

/// A line of a series in data coordinates, `top` being the value of the axis' end; ratios have one of
/// one.
pub fn trace(side: &Side<'_>, series: &[f64], top: f64, grain: Grain) -> String {
    let points = series.iter().enumerate();
    let points = points.map(|(bin, value)| (side.run.middle(bin), -value / top * UNIT));
    crate::chart::path::line(points, grain)
}

/// The section with the whole figure.
pub fn section(facts: &Facts<'_>, columns: &mut Columns) -> Markup {
    let panels = panels::all(facts, columns);
    let lanes = lanes::all(facts, columns);
    let mut y = 40.0;
    let mut set = Vec::new();
    for panel in &panels {
        y += 16.0;
        set.push(html! { (self::panel(facts, panel, y)) });
        y += panel.height + 20.0;
    }
    let lanes_top = y + 14.0;
    let bottom = lanes_top + lanes.height() + 8.0;
    let title = super::facts::over_time(facts);
    html! {
        section id="time" {
            p class="kicker" { "Over time" @if !facts.run.run.result.source.is_empty() { " · " (facts.run.run.result.source) } }
            h2 { (title) }
            p class="how" {
                "Thin lines are single ports or flows, thick ones their mean. A band is what was accepted, "
                "drawn over the window it was measured in; dashed: theory. Drag to zoom, Esc to see all."
            }
            div class="pane scroll" tabindex="0" role="region" aria-label="Figure over time" {
                svg id="figure" viewBox=(format!("0 0 {WIDTH:.0} {:.0}", bottom + 34.0)) role="img" aria-label=(title) {
                    (phases(facts, bottom))
                    @for panel in set { (panel) }
                    (lanes.draw(facts, lanes_top))
                    (axis(facts, bottom))
                    (overlay(facts, bottom))
                }
                div id="pinned" {}
            }
            (numbers(facts))
        }
    }
}

/// `x y width height` of data coordinates for an axis up to `top` units.
pub fn view(length: f64, low: f64, high: f64) -> String {
    let length = (length * 100.0).round() / 100.0;
    format!("0 {:.0} {length} {:.0}", -high * UNIT, (high - low) * UNIT)
}

fn phases(facts: &Facts<'_>, bottom: f64) -> Markup {
    let result = &facts.run.run.result;
    let tau = result.tau_ps.max(1) as f64;
    let x = |t: f64| LEFT + t / facts.length * (RIGHT - LEFT);
    let phases: Vec<(f64, f64, &str)> = result
        .phases
        .iter()
        .map(|phase| (phase.from_ps as f64 / tau, phase.to_ps as f64 / tau, phase.name.as_str()))
        .collect();
    html! {
        svg class="t" x=(LEFT) y="24" width=(RIGHT - LEFT) height=(format!("{:.0}", bottom - 24.0))
            viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
            @for (from, to, _) in phases.iter().skip(1).step_by(2) {
                rect class="phase" x=(from) y="0" width=(to - from) height="1" {}
            }
            @if result.verdict == Verdict::Inconclusive { (late(facts)) }
        }
        @for (from, to, name) in &phases {
            @let room = ((to - from) / facts.length * (RIGHT - LEFT) / 6.4) as usize;
            @if room >= 3 {
                text class="when" data-a=(from) data-b=(to) x=(format!("{:.1}", x((from + to) / 2.0))) y="16" text-anchor="middle" {
                    (crate::chart::quantiles::shortened(name, room))
                }
            }
        }
    }
}

/// Bins in which the host was late, hatched.
fn late(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let is_late = |bin: &usize| run.lateness.get(*bin).is_some_and(|late| *late > 0.10);
    html! {
        @for bin in (0..run.bins).filter(is_late) {
            rect class="late" x=(bin as f64 * run.bin_tau()) y="0" width=(run.bin_tau()) height="1" {}
        }
    }
}

fn panel(facts: &Facts<'_>, panel: &Panel, y: f64) -> Markup {
    let high = 1.04;
    let low = -0.03;
    let place = |value: f64| y + panel.height * (high - value / panel.top) / (high - low);
    html! {
        text class="strong" x=(LEFT) y=(format!("{:.0}", y - 5.0)) {
            (panel.title) tspan class="plain" dx="7" { (panel.about) }
        }
        @for tick in &panel.ticks {
            @let at = format!("{:.1}", place(*tick));
            path class=(if *tick == 0.0 { "zero" } else { "gridline" }) d=(format!("M{LEFT} {at}H{RIGHT}")) {}
            text x=(LEFT - 7.0) y=(format!("{:.1}", place(*tick) + 4.0)) text-anchor="end" { (number::bound(*tick)) }
        }
        svg class="t" x=(LEFT) y=(format!("{y:.0}")) width=(RIGHT - LEFT) height=(format!("{:.0}", panel.height))
            viewBox=(view(facts.length, low, high)) preserveAspectRatio="none" { (panel.body) }
        (labels(&panel.labels, y, panel.height, &place))
    }
}

/// Labels at the right end, moved apart where they would meet.
fn labels(labels: &[Label], y: f64, height: f64, place: &impl Fn(f64) -> f64) -> Markup {
    let room = |label: &Label| if label.note.is_empty() { 17.0 } else { 31.0 };
    let mut order: Vec<(f64, &Label)> = labels.iter().map(|l| (place(l.y) + 4.0, l)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut least = y + 8.0;
    for (at, label) in &mut order {
        *at = at.max(least);
        least = *at + room(label);
    }
    let mut most = y + height + 8.0;
    for (at, label) in order.iter_mut().rev() {
        *at = at.min(most);
        most = *at - room(label);
    }
    html! {
        @for (at, label) in order {
            g class=(format!("own {}", label.role)) {
                text x=(RIGHT + 12.0) y=(format!("{at:.1}")) { (crate::chart::quantiles::shortened(&label.text, 25)) }
                text x=(WIDTH - 4.0) y=(format!("{at:.1}")) text-anchor="end" data-k=(label.key) data-d=(label.digits) {
                    (shown(label.value, label.digits))
                }
            }
            @if !label.note.is_empty() {
                text class="note" x=(RIGHT + 12.0) y=(format!("{:.1}", at + 14.0)) { (label.note) }
            }
        }
    }
}

fn shown(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "–".to_owned() }
}

/// Time in τ along the bottom.
fn axis(facts: &Facts<'_>, bottom: f64) -> Markup {
    let x = |t: f64| LEFT + t / facts.length * (RIGHT - LEFT);
    html! {
        g id="axis" data-y=(format!("{bottom:.0}")) {
            @for t in scale::ticks(0.0, facts.length, 10) {
                path class="zero" d=(format!("M{:.1} {bottom:.0}v5", x(t))) {}
                text x=(format!("{:.1}", x(t))) y=(format!("{:.0}", bottom + 19.0)) text-anchor="middle" { (number::grouped(t as u64)) }
            }
        }
        text x=(RIGHT + 36.0) y=(format!("{:.0}", bottom + 19.0)) { "τ (MTU times)" }
    }
}

/// What the pointer meets, and the cursor.
fn overlay(facts: &Facts<'_>, bottom: f64) -> Markup {
    let t = facts.cursor();
    html! {
        svg class="t pointer" x=(LEFT) y="24" width=(RIGHT - LEFT) height=(format!("{:.0}", bottom - 24.0))
            viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
            rect class="catch" x="0" y="0" width=(facts.length) height="1" {}
            rect id="chosen" x="0" y="0" width="0" height="1" {}
            path class="cursor" d=(format!("M{t} 0V1")) {}
        }
    }
}

/// The figure as a table: means by phase.
fn numbers(facts: &Facts<'_>) -> Markup {
    let phases = &facts.run.run.result.phases;
    let rows: Vec<(String, &Side<'_>, &Vec<f64>)> = facts
        .sides()
        .flat_map(|side| {
            let cold = (!facts.cold.is_empty())
                .then(|| (format!("{}: {}", side.name, facts.cold_words()), side, &side.cold));
            let hot = (!facts.hot.is_empty())
                .then(|| (format!("{}: {}", side.name, facts.hot_names()), side, &side.hot));
            cold.into_iter().chain(hot)
        })
        .collect();
    html! {
        @if !phases.is_empty() && !rows.is_empty() {
            details {
                summary { "The same in numbers: received over line rate, mean by phase" }
                div class="scroll" tabindex="0" role="region" aria-label="Means by phase" { table {
                    thead { tr { th { "run" } @for phase in phases { th class="n" { (phase.name) } } } }
                    tbody { @for (name, side, series) in rows { tr {
                        td { (name) }
                        @for phase in phases {
                            td class="n" { (number::measured_or_dash(side.run.mean_over(series, phase.from_ps, phase.to_ps))) }
                        }
                    } } }
                } }
            }
        }
    }
}
