//! The fabric with its tree of congestion, at one moment: a pane a run, baseline left.

use super::facts::{Facts, Side};
use super::layout::{self, Layout, PORTS, WIDTH};
use crate::chart::{number, palette, quantiles};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeSet;

/// Length of a bar at line rate.
pub const BAR: f64 = 78.0;
/// Rows closer than this have no label each.
const LABEL_PITCH: f64 = 11.0;

/// The section.
pub fn section(facts: &Facts<'_>) -> Markup {
    let verb = waits(facts);
    html! {
        section id="fabric" {
            p class="kicker" { "Where the fabric stands still" }
            h2 { (super::facts::standstill(facts)) }
            p class="how" {
                "A line stands out by the share of time in which a frame was ready there and " (verb.0)
                "; bars show what each port receives."
            }
            div class="two" {
                @for side in facts.sides() { (pane(facts, side)) }
                @if facts.base.is_none() { (super::tables::trees(facts)) }
            }
            div class="legend" {
                span { "no wait" i class="ramp" {} "always waiting (wider, too)" }
                span {
                    svg class="sample" viewBox="0 0 18 18" aria-hidden="true" { circle class="ring" cx="9" cy="9" r="6" {} }
                    "root: its queue is long and its exit free"
                }
                span id="named" role="status" { "Point at a line, or press Tab and the arrow keys, for its name." }
            }
        }
    }
}

/// What a held frame waits for, and how its link is said to be.
fn waits(facts: &Facts<'_>) -> (&'static str, &'static str) {
    match facts.run.run.technology.as_str() {
        "ethernet" => ("paused by PFC or PAUSE", "paused"),
        _ => ("had no credit", "waiting for credit"),
    }
}

fn pane(facts: &Facts<'_>, side: &Side<'_>) -> Markup {
    let layout = layout::place(&side.run.into(), &facts.senders, &receivers(facts));
    let what = if side.role == "run" { "this run" } else { "baseline" };
    let label = format!("{}: {}", side.name, caption_text(facts, side));
    let bin = side.bin_at(facts.cursor());
    html! {
        div class="pane" {
            h3 { i class=(format!("swatch {}", side.role)) {} (side.name) span { (what) } }
            div class="scroll" tabindex="0" role="region" aria-label=(format!("Fabric with {}", side.name)) {
                svg class="fabric" id=(format!("f{}", side.number)) role="img" aria-label=(label)
                    viewBox=(format!("0 -14 {WIDTH:.0} {:.0}", layout.height + 14.0)) {
                    (headers(&layout))
                    g class="ways" { (lines(side, &layout, bin)) }
                    (boxes(&layout))
                    (ends(facts, side, &layout, bin))
                    (rings(side, &layout, bin))
                }
            }
            p class="caption" id=(format!("c{}", side.number)) { (caption(facts, side)) }
        }
    }
}

fn receivers(facts: &Facts<'_>) -> Vec<usize> {
    let wanted: BTreeSet<usize> = facts.hot.iter().chain(&facts.cold).copied().collect();
    facts.run.run.adapters().into_iter().filter(|node| wanted.contains(node)).collect()
}

/// Words above the columns.
pub fn headers(layout: &Layout) -> Markup {
    let last = layout.headers.len().saturating_sub(1);
    html! {
        @for (place, (x, word)) in layout.headers.iter().enumerate() {
            @let anchor = if place == last { "start" } else { "middle" };
            text x=(format!("{:.0}", if place == last { x + 6.0 } else { *x })) y="-2" text-anchor=(anchor) { (word) }
        }
    }
}

/// Lines that wait most are drawn last, on top of the others.
fn lines(side: &Side<'_>, layout: &Layout, bin: Option<usize>) -> Markup {
    let level =
        |output: usize| bin.map_or(0, |bin| palette::level(side.run.series[output].hold[bin]));
    let mut order: Vec<&layout::Curve> = layout.curves.iter().collect();
    order.sort_by_key(|curve| (level(curve.output), curve.output));
    html! {
        @for curve in order {
            path class=(format!("w{}", level(curve.output))) data-e=(curve.output) d=(curve.path) {}
        }
    }
}

/// Switches with their names.
pub fn boxes(layout: &Layout) -> Markup {
    html! {
        @for shape in &layout.shapes {
            rect class="box" x=(format!("{:.1}", shape.x - shape.wide)) y=(format!("{:.1}", shape.y - shape.half))
                width=(format!("{:.1}", 2.0 * shape.wide)) height=(format!("{:.1}", 2.0 * shape.half)) rx="4" {}
            @if shape.half >= 6.0 {
                text x=(format!("{:.1}", shape.x)) y=(format!("{:.1}", shape.y + 4.0)) text-anchor="middle" {
                    (quantiles::shortened(&shape.label, 9))
                }
            }
        }
    }
}

/// From one row to the next.
pub fn pitch(layout: &Layout, rows: &[(usize, f64)]) -> f64 {
    rows.get(1).map_or(layout.row, |second| second.1 - rows[0].1)
}

/// Every how many rows one has its name.
pub fn label_step(row: f64) -> usize {
    let least = (LABEL_PITCH / row).ceil() as usize;
    [1, 2, 4, 8, 16, 32, 64].into_iter().find(|step| *step >= least).unwrap_or(128)
}

/// Sources with their dots, ports with their bars.
fn ends(facts: &Facts<'_>, side: &Side<'_>, layout: &Layout, bin: Option<usize>) -> Markup {
    let nodes = &side.run.nodes;
    let step = label_step(pitch(layout, &layout.sources));
    let name = |node: usize| quantiles::shortened(&nodes[node].name, 7);
    let thick = (layout.row * 0.62).clamp(1.4, 12.0);
    let thick_ports = (pitch(layout, &layout.ports) * 0.62).clamp(1.4, 12.0);
    html! {
            @for (place, (node, y)) in layout.sources.iter().enumerate() {
                @let hold = side.run.output_of(*node).and_then(|o| Some((o, side.run.series[o].hold[bin?])));
                @let class = format!("w{}", hold.map_or(0, |(_, hold)| palette::level(hold)));
                circle class=(class) data-s=[hold.map(|(output, _)| output)] cx="53" cy=(format!("{y:.1}")) r=(format!("{:.1}", (thick / 2.0).clamp(0.8, 3.6))) {}
                @if place % step == 0 || place + 1 == layout.sources.len() && step <= 8 {
                    text x="45" y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (name(*node)) }
                }
            }
            @for (place, (node, y)) in layout.ports.iter().enumerate() {
                @let value = bin.map_or(0.0, |bin| side.run.received[*node][bin]);
                @let value = if value.is_finite() { value.clamp(0.0, 1.06) } else { 0.0 };
                @let is_hot = facts.hot.contains(node);
                @let top = format!("{:.1}", y - thick_ports / 2.0);
                @let high = format!("{thick_ports:.1}");
                rect class="track" x=(PORTS + 6.0) y=(top) width=(BAR) height=(high) rx="1.5" {}
                rect class=(if is_hot { "bar hot" } else { side.role }) data-x=(node)
                    x=(PORTS + 6.0) y=(top) width=(format!("{:.1}", value * BAR)) height=(high) rx="1.5" {}
                @if is_hot {
                    text class="hot strong" x=(PORTS - 4.0) y=(format!("{:.1}", y - 3.0)) text-anchor="end" { (name(*node)) }
                } @else if layout.sources.len() != layout.ports.len() && place % label_step(pitch(layout, &layout.ports)) == 0 {
    text x=(PORTS - 4.0) y=(format!("{:.1}", y - 3.0)) text-anchor="end" { (name(*node)) }
                }
            }
            (ideal(facts, side, layout))
        }
}

/// What theory says the ports should receive, as a dashed line along the bars of several.
fn ideal(facts: &Facts<'_>, side: &Side<'_>, layout: &Layout) -> Markup {
    let result = &side.run.result;
    let theory = result.expectations.iter().find_map(|judged| {
        let definition = result.definitions.get(&judged.measure)?;
        let fits = definition.of == "throughput" && definition.per == "line";
        let window = (definition.from_ps, definition.to_ps) == facts.window;
        judged.theory.filter(|_| fits && window)
    });
    let Some(theory) = theory.filter(|_| layout.ports.len() > 2) else { return html! {} };
    let x = PORTS + 6.0 + BAR * theory;
    html! { path class="theory" d=(format!("M{x:.1} 12V{:.1}", layout.height - 4.0)) {} }
}

/// A ring at every output that was ever a root; those that are none at the moment are hidden.
fn rings(side: &Side<'_>, layout: &Layout, bin: Option<usize>) -> Markup {
    let roots: BTreeSet<usize> =
        side.run.moments.iter().flat_map(|moment| moment.trees.keys().copied()).collect();
    let is_root =
        |output: usize| bin.is_some_and(|bin| side.run.moments[bin].trees.contains_key(&output));
    html! {
        @for curve in layout.curves.iter().filter(|curve| roots.contains(&curve.output)) {
            @let (x, y) = curve.start;
            g class="root" data-r=(curve.output) hidden[!is_root(curve.output)] {
                circle class="ring" cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="6.5" {}
                text class="hot strong" x=(format!("{:.1}", x + 9.0)) y=(format!("{:.1}", y + 16.0)) { "root" }
            }
        }
    }
}

/// The picture in numbers; what is marked is kept up with the cursor.
fn caption(facts: &Facts<'_>, side: &Side<'_>) -> Markup {
    let Some(bin) = side.bin_at(facts.cursor()) else {
        return html! { "This run had ended by then." };
    };
    let number = side.number;
    let live = |key: &str, digits: usize, value: f64| {
        html! { b data-k=(format!("{number}.{key}")) data-d=(digits) { (format!("{value:.digits$}")) } }
    };
    html! {
        (live("held", 0, side.held[bin])) " of " (side.run.outputs.all.len()) " outputs are " (waits(facts).1)
        ", " (live("sheld", 0, side.sources_held[bin])) " of " (facts.senders.len()) " sources are held up"
        @if !facts.cold.is_empty() && side.cold[bin].is_finite() {
            "; " (facts.cold_words()) " received " (live("cold", 2, side.cold[bin]))
        }
        @if !facts.hot.is_empty() && side.hot[bin].is_finite() {
            ", " (facts.hot_names()) " " (live("hot", 2, side.hot[bin]))
        }
        "."
        (PreEscaped(""))
    }
}

fn caption_text(facts: &Facts<'_>, side: &Side<'_>) -> String {
    let Some(bin) = side.bin_at(facts.cursor()) else { return "had ended".to_owned() };
    format!(
        "{} of {} outputs are {}, {} of {} sources are held up, at {}",
        side.held[bin],
        side.run.outputs.all.len(),
        waits(facts).1,
        side.sources_held[bin],
        facts.senders.len(),
        number::tau(side.run.middle(bin)),
    )
}
