//! The fabric with its tree of congestion, at one moment: a pane a run, baseline left.

use super::columns::Columns;
use super::facts::{Facts, Side};
use super::layout::{self, Layout, PORTS, WIDTH};
use super::leaves;
use crate::chart::{number, palette, quantiles};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeSet;

/// Length of a bar at line rate.
pub const BAR: f64 = 78.0;
/// Rows closer than this have no label each.
const LABEL_PITCH: f64 = 11.0;
/// Sources that are named one by one; of more, what they hang on is.
const NAMES_MAX: usize = 64;
/// Series of single outputs are carried for at most this many of them.
const LINES_MAX: usize = 5_000;
/// Their queues for at most so many.
const QUEUES_MAX: usize = 800;

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
                @if facts.run.drawn.is_by_leaf {
                    " A row is a leaf: the mean of its adapters, dots and the stroke over a bar also the least and the greatest."
                }
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
    let drawn = &side.drawn;
    let layout =
        layout::place(&drawn.into(), &drawn.rows(&facts.senders), &drawn.rows(&receivers(facts)));
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
    let level = |output: usize| {
        bin.map_or(0, |bin| palette::level(side.drawn.held(side.run, output).mean[bin]))
    };
    let mut order: Vec<(usize, &layout::Curve)> =
        layout.curves.iter().map(|curve| (level(curve.output), curve)).collect();
    order.sort_by_key(|(level, curve)| (*level, curve.output));
    html! {
        @for (level, curve) in order {
            path class=(format!("w{level}")) data-e=(curve.output) d=(curve.path) {}
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
    html! {
        @for (node, y) in &layout.sources { (dots(side, layout, (*node, *y), bin)) }
        (source_names(side, layout))
        @for (place, (node, y)) in layout.ports.iter().enumerate() {
            (bar(facts, side, layout, (*node, *y), bin))
            @let is_hot = is_hot(facts, side, *node);
            @let step = label_step(pitch(layout, &layout.ports));
            @if is_hot || layout.sources.len() != layout.ports.len() && place % step == 0 {
                text class=(if is_hot { "hot strong" } else { "" }) x=(PORTS - 4.0) y=(format!("{:.1}", y - 3.0)) text-anchor="end" {
                    (row_name(side, *node))
                }
            }
        }
        (ideal(facts, side, layout))
    }
}

fn row_name(side: &Side<'_>, node: usize) -> Markup {
    quantiles::shortened(&side.drawn.nodes[node].name, 7)
}

fn is_hot(facts: &Facts<'_>, side: &Side<'_>, node: usize) -> bool {
    side.drawn.adapters(node).iter().any(|adapter| facts.hot.contains(adapter))
}

/// Series of a row that stands for several: those of its least and its greatest have these letters at
/// the end of their keys.
const LEAST_MOST: [&str; 2] = ["a", "z"];

/// By how much of the time a source is held: a dot, or those of the least, the mean and the greatest.
fn dots(side: &Side<'_>, layout: &Layout, (node, y): (usize, f64), bin: Option<usize>) -> Markup {
    let Some(output) = side.drawn.output_of(node) else { return html! {} };
    let held = side.drawn.held(side.run, output);
    let radius = (pitch(layout, &layout.sources) * 0.31).clamp(0.8, 3.6);
    let [least, most] = LEAST_MOST;
    let all = [(44.0, &held.min, least), (48.5, &held.mean, ""), (53.0, &held.max, most)];
    let shown = if side.drawn.is_by_leaf { &all[..] } else { &[(53.0, &held.mean, "")] };
    html! {
        @for (x, series, letter) in shown {
            circle class=(format!("w{}", bin.map_or(0, |bin| palette::level(series[bin]))))
                data-s=(format!("{output}{letter}")) cx=(x) cy=(format!("{y:.1}")) r=(format!("{radius:.1}")) {}
        }
    }
}

/// Names of sources as far as there is room, of many those of their leaves.
fn source_names(side: &Side<'_>, layout: &Layout) -> Markup {
    let sources = &layout.sources;
    let rows: Vec<usize> = sources.iter().map(|(node, _)| *node).collect();
    let x = if side.drawn.is_by_leaf { 40 } else { 45 };
    let names: Vec<(f64, usize)> = if side.drawn.is_by_leaf || rows.len() <= NAMES_MAX {
        sources.iter().map(|(node, y)| (*y, *node)).collect()
    } else {
        let leaves = leaves::of(&side.drawn.outputs, &rows);
        let middle = |leaf: &leaves::Leaf| sources[leaf.first + leaf.count / 2].1;
        leaves.iter().filter_map(|leaf| Some((middle(leaf), leaf.switch?))).collect()
    };
    let apart = names.get(1).map_or(f64::MAX, |second| second.0 - names[0].0);
    let step = label_step(apart);
    html! {
        @for (place, (y, node)) in names.iter().enumerate() {
            @if place % step == 0 || place + 1 == names.len() && place % step * 2 >= step {
                text x=(x) y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (row_name(side, *node)) }
            }
        }
    }
}

/// What a port receives; over the bar of several, from the least to the greatest of them.
fn bar(
    facts: &Facts<'_>,
    side: &Side<'_>,
    layout: &Layout,
    (node, y): (usize, f64),
    bin: Option<usize>,
) -> Markup {
    let received = side.drawn.received(side.run, node);
    let wide = |series: &[f64]| {
        let value = bin.map_or(0.0, |bin| series[bin]);
        BAR * if value.is_finite() { value.clamp(0.0, 1.06) } else { 0.0 }
    };
    let thick = (pitch(layout, &layout.ports) * 0.62).clamp(1.4, 12.0);
    let (top, high) = (format!("{:.1}", y - thick / 2.0), format!("{thick:.1}"));
    let x = PORTS + 6.0;
    let role = if is_hot(facts, side, node) { "bar hot" } else { side.role };
    html! {
        rect class="track" x=(x) y=(top) width=(BAR) height=(high) rx="1.5" {}
        rect class=(role) data-x=(node) x=(x) y=(top) width=(format!("{:.1}", wide(&received.mean))) height=(high) rx="1.5" {}
        @if side.drawn.is_by_leaf {
            path class="range" data-v=(node)
                d=(format!("M{:.1} {y:.1}H{:.1}", x + wide(&received.min), x + wide(&received.max))) {}
        }
    }
}

/// What lines, dots and bars follow as the cursor moves.
pub fn series(facts: &Facts<'_>, columns: &mut Columns) {
    let [least, most] = LEAST_MOST;
    for side in facts.sides() {
        let drawn = &side.drawn;
        let number = side.number;
        let lines: Vec<usize> = drawn.lines().collect();
        if lines.len() > LINES_MAX {
            continue;
        }
        for output in &lines {
            let held = drawn.held(side.run, *output);
            columns.add(format!("{number}.h{output}"), &held.mean, 0.004);
            if drawn.is_by_leaf && drawn.outputs[*output].level == 0 {
                columns.add(format!("{number}.h{output}{least}"), &held.min, 0.004);
                columns.add(format!("{number}.h{output}{most}"), &held.max, 0.004);
            }
        }
        if side.run.series.len() <= QUEUES_MAX {
            for (output, series) in side.run.series.iter().enumerate() {
                columns.add(format!("{number}.q{output}"), &series.queue.mean, 64.0);
            }
        }
        if drawn.is_by_leaf {
            for row in drawn.rows(&receivers(facts)) {
                let received = drawn.received(side.run, row);
                for (series, letter) in
                    [(&received.mean, ""), (&received.min, least), (&received.max, most)]
                {
                    columns.add(format!("{number}.x{row}{letter}"), series, 0.002);
                }
            }
        }
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
