//! The fabric with its tree of congestion, at one moment: a pane a run, baseline left.

use super::columns::Columns;
use super::facts::{Facts, Side};
use super::figure_head::figure_head;
use super::layout::{self, Layout, WIDTH};
use super::leaves::{self, Drawn};
use super::sheet::{GUTTER, Picture, Sheet};
use chart::{number, palette, quantiles, words};
use maud::{Markup, html};
use proto::technology::Technology;
use scenario::figures::FigureName;
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

/// How rows of leaves are read.
pub const BY_LEAF: &str = " A row is a leaf: the mean of its adapters, dots and the stroke over a bar also the least and the greatest.";

/// The section.
pub fn section(facts: &Facts<'_>) -> Markup {
    let verb = waits(facts);
    html! {
        section id="fabric" {
            (figure_head(facts, FigureName::Fabric, "Congestion trees", true))
            h2 { (super::facts::trees_title(facts)) }
            p class="how" {
                "A line stands out by the share of time in which a frame was ready there and " (verb.0)
                "; bars show what each port receives."
                @if facts.run.drawn.is_by_leaf {
                    (BY_LEAF)
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

/// The cause for which a held frame waits, and the word for the state of its link.
fn waits(facts: &Facts<'_>) -> (&'static str, &'static str) {
    match facts.run.run.graph.technology {
        Technology::Ethernet => ("paused by PFC or PAUSE", "paused"),
        Technology::Infiniband => ("had no credit", "waiting for credit"),
    }
}

fn pane(facts: &Facts<'_>, side: &Side<'_>) -> Markup {
    let layout = layout(facts, side, WIDTH);
    let label = format!("{} at {}: {}", side.name, number::tau(facts.cursor()), said(facts, side));
    html! {
        div class="pane" {
            h3 { i class=(format!("swatch {}", side.role)) {} (side.name) " " span { (which(side)) } }
            div class="scroll" tabindex="0" role="region" aria-label=(format!("Fabric with {}", side.name)) {
                svg class="fabric" id=(format!("f{}", side.number)) role="img" aria-label=(label)
                    viewBox=(format!("0 -14 {WIDTH:.0} {:.0}", layout.height + 14.0)) {
                    (drawn(facts, side, &layout, true))
                }
            }
            p class="caption" id=(format!("c{}", side.number)) { (caption(facts, side)) }
        }
    }
}

fn which(side: &Side<'_>) -> &'static str {
    if side.role == "run" { "this run" } else { "baseline" }
}

fn layout(facts: &Facts<'_>, side: &Side<'_>, width: f64) -> Layout {
    let drawn = &side.drawn;
    let (senders, receivers) = (drawn.rows(&facts.senders), drawn.rows(&facts.receivers()));
    layout::place(drawn, &senders, &receivers, width)
}

/// A run's fabric. What may be a root at another time is on a page that has a cursor.
fn drawn(facts: &Facts<'_>, side: &Side<'_>, layout: &Layout, is_page: bool) -> Markup {
    let bin = side.bin_at(facts.cursor());
    html! {
        (headers(layout))
        g class="ways" { (lines(side, layout, bin)) }
        (boxes(layout))
        (ends(facts, side, layout, bin))
        (rings(side, layout, bin, is_page))
    }
}

/// All panes in print: beside each other where two have room, each with its sentence.
pub fn printed(facts: &Facts<'_>, sheet: &Sheet) -> Picture {
    let sides: Vec<&Side<'_>> = facts.sides().collect();
    let abreast = if sheet.has_margin() { sides.len() } else { 1 };
    let width = (sheet.width - GUTTER * (abreast - 1) as f64) / abreast as f64;
    let mut panes = Vec::new();
    let (mut top, mut bottom) = (0.0, 0.0_f64);
    for (place, side) in sides.into_iter().enumerate() {
        if place % abreast == 0 {
            top = bottom;
        }
        let x = (place % abreast) as f64 * (width + GUTTER);
        let layout = layout(facts, side, width);
        let said = words::lines(&said(facts, side), width, width);
        let below = 36.0 + layout.height + 12.0;
        panes.push(html! {
            g transform=(format!("translate({x:.1} {top:.1})")) {
                rect class=(side.role) y="3" width="10" height="10" rx="2" {}
                text class="strong" x="16" y="12" {
                    (quantiles::shortened(&side.name, 30)) tspan class="plain" dx="7" { (which(side)) }
                }
                g transform="translate(0 36)" { (drawn(facts, side, &layout, false)) }
                @for (row, line) in said.iter().enumerate() {
                    text y=(format!("{:.1}", below + 14.0 * row as f64)) { (line) }
                }
            }
        });
        bottom = bottom.max(top + below + 14.0 * said.len() as f64 + GUTTER);
    }
    let body = html! { @for pane in panes { (pane) } (legend(sheet, bottom)) };
    Picture { body, height: bottom + if sheet.has_margin() { 8.0 } else { 24.0 } }
}

/// What strength means, and the ring.
fn legend(sheet: &Sheet, y: f64) -> Markup {
    const STEP: f64 = 9.0;
    let end = 52.0 + STEP * palette::LEVELS as f64;
    let (x, below) = if sheet.has_margin() { (end + 120.0, y) } else { (0.0, y + 17.0) };
    html! {
        text y=(y) { "no wait" }
        g class="ways" { @for level in 0..palette::LEVELS {
            path class=(format!("w{level}")) d=(format!("M{:.1} {:.1}h{STEP}", 48.0 + STEP * level as f64, y - 4.0)) {}
        } }
        text x=(end + 4.0) y=(y) { "always waiting" }
        circle class="ring" cx=(x + 7.0) cy=(below - 4.0) r="5" {}
        text x=(x + 18.0) y=(below) { "root: its queue is long and its exit free" }
    }
}

/// Words above the columns.
pub fn headers(layout: &Layout) -> Markup {
    let last = layout.headers.len().saturating_sub(1);
    html! {
        @for (place, (x, word)) in layout.headers.iter().enumerate() {
            @let anchor = if place == last { "start" } else { "middle" };
            text x=(format!("{:.0}", if place == last { x + 6.0 } else { *x })) y="-2" text-anchor=(anchor) { (quantiles::shortened(word, layout.letters + 3)) }
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
                    (quantiles::shortened(&shape.label, layout.letters))
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
        (source_names(&side.drawn, layout))
        @for (place, (node, y)) in layout.ports.iter().enumerate() {
            (bar(facts, side, layout, (*node, *y), bin))
            @let is_hot = is_hot(facts, side, *node);
            @let step = label_step(pitch(layout, &layout.ports));
            @if is_hot || layout.sources.len() != layout.ports.len() && place % step == 0 {
                text class=(if is_hot { "hot strong" } else { "" }) x=(layout.bars - 4.0) y=(format!("{:.1}", y - 3.0)) text-anchor="end" {
                    (row_name(&side.drawn, *node))
                }
            }
        }
        (ideal(facts, side, layout))
    }
}

fn row_name(drawn: &Drawn, node: usize) -> Markup {
    quantiles::shortened(&drawn.graph.nodes[node].name, 7)
}

fn is_hot(facts: &Facts<'_>, side: &Side<'_>, node: usize) -> bool {
    side.drawn.adapters(node).iter().any(|adapter| facts.hot.contains(adapter))
}

/// Series of a row that stands for several: those of its least and its greatest have these letters at
/// the end of their keys.
const LEAST_MOST: [&str; 2] = ["a", "z"];

/// By how much of the time a source is held: a dot, or those of the least, the mean and the greatest.
fn dots(side: &Side<'_>, layout: &Layout, (node, y): (usize, f64), bin: Option<usize>) -> Markup {
    let Some(output) = side.drawn.graph.output_of(node) else { return html! {} };
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
pub fn source_names(drawn: &Drawn, layout: &Layout) -> Markup {
    let sources = &layout.sources;
    let rows: Vec<usize> = sources.iter().map(|(node, _)| *node).collect();
    let x = if drawn.is_by_leaf { 40 } else { 45 };
    let names: Vec<(f64, usize)> = if drawn.is_by_leaf || rows.len() <= NAMES_MAX {
        sources.iter().map(|(node, y)| (*y, *node)).collect()
    } else {
        let leaves = leaves::of(&drawn.graph.outputs, &rows).into_iter();
        leaves
            .filter_map(|leaf| Some((sources[leaf.first + leaf.count / 2].1, leaf.switch?)))
            .collect()
    };
    let apart = names.get(1).map_or(f64::MAX, |second| second.0 - names[0].0);
    let step = label_step(apart);
    html! {
        @for (place, (y, node)) in names.iter().enumerate() {
            @let is_last = place + 1 == names.len();
            @if place % step == 0 || is_last && (place % step) as f64 * apart >= LABEL_PITCH {
                text x=(x) y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (source_name(drawn, *node)) }
            }
        }
    }
}

/// Left of three dots there is room for the number of a leaf alone.
fn source_name(drawn: &Drawn, node: usize) -> Markup {
    let name = &drawn.graph.nodes[node].name;
    let number = &name[layout::stem(name).len()..];
    if drawn.is_by_leaf && !number.is_empty() {
        return quantiles::shortened(number, 5);
    }
    row_name(drawn, node)
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
    let x = layout.bars + 6.0;
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
        let Side { drawn, run, number, .. } = side;
        let mut add = |key: String, values: &[f64], step| {
            columns.add(format!("{number}.{key}"), values, step);
        };
        add("held".to_owned(), &side.held, 1.0);
        add("sheld".to_owned(), &side.sources_held, 1.0);
        let lines: Vec<usize> = drawn.lines().collect();
        if lines.len() > LINES_MAX {
            continue;
        }
        for output in lines {
            let held = drawn.held(run, output);
            add(format!("h{output}"), &held.mean, 0.004);
            if drawn.is_by_leaf && drawn.graph.outputs[output].level == 0 {
                add(format!("h{output}{least}"), &held.min, 0.004);
                add(format!("h{output}{most}"), &held.max, 0.004);
            }
        }
        if run.series.len() <= QUEUES_MAX {
            for (output, series) in run.series.iter().enumerate() {
                add(format!("q{output}"), &series.queue.mean, 64.0);
            }
        }
        if drawn.is_by_leaf {
            for row in drawn.rows(&facts.receivers()) {
                let received = drawn.received(run, row);
                add(format!("x{row}"), &received.mean, 0.002);
                add(format!("x{row}{least}"), &received.min, 0.002);
                add(format!("x{row}{most}"), &received.max, 0.002);
            }
        }
    }
}

/// What the ports should receive by theory, as a dashed line along the bars of several.
fn ideal(facts: &Facts<'_>, side: &Side<'_>, layout: &Layout) -> Markup {
    let result = &side.run.result;
    let theory = result.expectations.iter().find_map(|judged| {
        let definition = result.definitions.get(&judged.measure)?;
        let fits = definition.of == "throughput" && definition.per == "line";
        let window = (definition.from_ps, definition.to_ps) == facts.window;
        judged.theory.filter(|_| fits && window)
    });
    let Some(theory) = theory.filter(|_| layout.ports.len() > 2) else { return html! {} };
    let x = layout.bars + 6.0 + BAR * theory;
    html! { path class="theory" d=(format!("M{x:.1} 12V{:.1}", layout.height - 4.0)) {} }
}

/// A ring at every output that was ever a root; those that are none at the moment are hidden, or left out.
fn rings(side: &Side<'_>, layout: &Layout, bin: Option<usize>, is_page: bool) -> Markup {
    let roots: BTreeSet<usize> =
        side.run.moments.iter().flat_map(|moment| moment.trees.keys().copied()).collect();
    let ever = |line: usize| -> Vec<usize> {
        side.drawn.outputs(line).iter().copied().filter(|output| roots.contains(output)).collect()
    };
    let is_root = |outputs: &[usize]| {
        let trees = bin.map(|bin| &side.run.moments[bin].trees);
        trees.is_some_and(|trees| outputs.iter().any(|output| trees.contains_key(output)))
    };
    let ringed = layout.curves.iter().map(|curve| (curve.start, ever(curve.output)));
    html! {
        @for ((x, y), outputs) in ringed.filter(|(_, o)| if is_page { !o.is_empty() } else { is_root(o) }) {
            g class="root" data-r=(numbers(&outputs)) hidden[!is_root(&outputs)] {
                circle class="ring" cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="6.5" {}
                text class="hot strong" x=(format!("{:.1}", x + 9.0)) y=(format!("{:.1}", y + 16.0)) { "root" }
            }
        }
    }
}

/// As an attribute has several.
pub fn numbers(outputs: &[usize]) -> String {
    outputs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// A number of the caption: its series, its digits, what it is at the cursor.
type Figure = (&'static str, usize, f64);

/// The picture as a sentence: numbers, each behind its words, and how it ends.
fn sentence(facts: &Facts<'_>, side: &Side<'_>) -> (Vec<(String, Figure)>, String) {
    let Some(bin) = side.bin_at(facts.cursor()) else {
        return (Vec::new(), "This run had ended by then.".to_owned());
    };
    let outputs = format!(" of {} outputs are {}, ", side.run.graph.outputs.len(), waits(facts).1);
    let mut parts = vec![
        (String::new(), ("held", 0, side.held[bin])),
        (outputs, ("sheld", 0, side.sources_held[bin])),
    ];
    let mut rest = format!(" of {} sources are held up", facts.senders.len());
    let cold = (facts.cold_words(), "cold", &side.cold);
    let hot = (facts.hot_names(), "hot", &side.hot);
    for (words, key, series) in [cold, hot].into_iter().filter(|(.., s)| s[bin].is_finite()) {
        rest += &match parts.len() {
            2 => format!("; {words} received "),
            _ => format!(", {words} "),
        };
        parts.push((std::mem::take(&mut rest), (key, 2, series[bin])));
    }
    (parts, rest + ".")
}

/// The sentence, whose numbers are kept up with the cursor.
fn caption(facts: &Facts<'_>, side: &Side<'_>) -> Markup {
    let (parts, end) = sentence(facts, side);
    html! {
        @for (words, (key, digits, value)) in &parts {
            (words) b data-k=(format!("{}.{key}", side.number)) data-d=(digits) { (format!("{value:.digits$}")) }
        }
        (end)
    }
}

/// The sentence as text.
fn said(facts: &Facts<'_>, side: &Side<'_>) -> String {
    let (parts, end) = sentence(facts, side);
    let part = |(words, (_, digits, value)): &(String, Figure)| format!("{words}{value:.digits$}");
    parts.iter().map(part).collect::<String>() + &end
}
