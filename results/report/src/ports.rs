//! All ports as small multiples on one scale.

use super::facts::{Facts, Side};
use super::figure::{self, trace};
use super::figure_head::figure_head;
use super::heat;
use super::sheet::{Picture, Sheet};
use super::tables::clipped;
use chart::{number, quantiles, words};
use maud::{Markup, html};
use scenario::figures::FigureName;

/// Greatest number of small pictures; of more ports those that received least have one.
const PICTURES_MAX: usize = 128;
/// Small pictures in a row in one column of print, few and many, and in two columns.
const ABREAST: [usize; 3] = [4, 6, 8];
/// From this number on there are many pictures in a column.
const MANY: usize = 96;
/// Means that differ by less count as equal.
const ALIKE: f64 = 0.005;

/// The section.
pub fn section(facts: &Facts<'_>) -> Markup {
    let (all, shown) = (facts.receivers().len(), shown(facts));
    html! {
        section id="ports" {
            (figure_head(facts, FigureName::EveryPort, "Every port", true))
            h2 { (finding(facts)) }
            p class="how" {
                "Received over time, from nothing to one line rate, all on one scale. "
                @for side in facts.sides() { i class=(format!("swatch {}", side.role)) {} " " (side.name) " " }
                "Numbers are those at the cursor."
                @if shown.len() < all {
                    " Shown are the " (shown.len()) " that received least, of " (all) "; the heat map has all."
                }
            }
            div class="multiples" { @for node in &shown { (picture(facts, *node)) } }
            (heat::map(facts, shown.len() < all))
        }
    }
}

/// The ports with a small picture in the order of the fabric's picture; of too many, those that received least.
pub fn shown(facts: &Facts<'_>) -> Vec<usize> {
    let mut all = facts.receivers();
    if all.len() > PICTURES_MAX {
        let mean = |node: &usize| window_mean(facts, *node).unwrap_or(0.0);
        all.sort_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.cmp(b)));
        all.truncate(PICTURES_MAX);
    }
    all
}

/// The pictures in print, row by row.
pub fn printed(facts: &Facts<'_>, sheet: &Sheet) -> Picture {
    const HEIGHT: f64 = 30.0;
    const PITCH: f64 = 56.0;
    let shown = shown(facts);
    let abreast = match (sheet.has_margin(), shown.len() > MANY) {
        (true, _) => ABREAST[2],
        (false, true) => ABREAST[1],
        (false, false) => ABREAST[0],
    };
    let width = sheet.width / abreast as f64;
    let top = if sheet.has_margin() { 24.0 } else { 38.0 };
    let place = |at: usize| ((at % abreast) as f64 * width, top + (at / abreast) as f64 * PITCH);
    let body = html! {
        (key(facts, sheet))
        @for (at, node) in shown.iter().enumerate() {
            @let (x, y) = place(at);
            g class=[facts.hot.contains(node).then_some("hot")] transform=(format!("translate({x:.1} {y:.1})")) {
                (heading(facts, *node, width - 14.0))
                rect class="frame" x="1" y="15" width=(format!("{:.1}", width - 6.0)) height=(HEIGHT + 4.0) rx="3" {}
                svg class="t" x="3" y="17" width=(format!("{:.1}", width - 10.0)) height=(HEIGHT)
                    viewBox=(figure::view(facts.length, -0.03, 1.06)) preserveAspectRatio="none" { (lines(facts, *node, false)) }
            }
        }
    };
    Picture { body, height: top + shown.len().div_ceil(abreast) as f64 * PITCH }
}

/// The legend: colours of the runs, and the meaning of the numbers.
fn key(facts: &Facts<'_>, sheet: &Sheet) -> Markup {
    let (runs, wide) = swatches(facts);
    let (x, y) = if sheet.has_margin() { (wide, 12.0) } else { (0.0, 27.0) };
    html! {
        (runs)
        text x=(format!("{x:.1}")) y=(y) { "received, 0 to 1 line rate; numbers at the line, " (number::tau(facts.cursor())) }
    }
}

/// The colours and names of the runs, and their width.
pub fn swatches(facts: &Facts<'_>) -> (Markup, f64) {
    let mut x = 0.0;
    let mut runs = Vec::new();
    for side in facts.sides() {
        runs.push(html! {
            rect class=(side.role) x=(format!("{x:.1}")) y="3" width="10" height="10" rx="2" {}
            text x=(format!("{:.1}", x + 15.0)) y="12" { (quantiles::shortened(&side.name, 22)) }
        });
        x += 30.0 + words::width(&side.name).min(140.0);
    }
    (html! { @for run in runs { (run) } }, x)
}

/// A throughput of a port at the cursor.
fn value(facts: &Facts<'_>, side: &Side<'_>, node: usize) -> String {
    let bin = side.bin_at(facts.cursor());
    figure::shown(bin.map_or(f64::NAN, |bin| side.run.received[node][bin]), 2)
}

/// The name of a port and, if there is room, its throughput at the cursor: the run's number last.
fn heading(facts: &Facts<'_>, node: usize, width: f64) -> Markup {
    let name = &facts.run.run.graph.nodes[node].name;
    let wide = 30.0;
    let room = ((width - words::width(&name.chars().take(12).collect::<String>())) / wide) as usize;
    let sides: Vec<&Side<'_>> = facts.sides().collect();
    html! {
        text class="strong" x="1" y="11" { (quantiles::shortened(name, 12)) }
        @for (place, side) in sides.iter().rev().take(room).enumerate() {
            g class=(format!("own {}", facts.role(side, node))) {
                text x=(format!("{:.1}", width + 8.0 - wide * place as f64)) y="11" text-anchor="end" { (value(facts, side, node)) }
            }
        }
    }
}

/// Mean throughput of a port of the run in the measured window.
fn window_mean(facts: &Facts<'_>, node: usize) -> Option<f64> {
    facts.window_mean(&facts.run, facts.run.run.received.get(node)?)
}

/// The title.
pub fn finding(facts: &Facts<'_>) -> String {
    let name = |node: usize| &facts.run.run.graph.nodes[node].name;
    let all = facts.receivers().into_iter();
    let means = all.filter_map(|node| Some((window_mean(facts, node)?, node)));
    let mut means: Vec<(f64, usize)> = means.collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    match means.as_slice() {
        [] => "No port received anything".to_owned(),
        [(mean, node)] => format!("{} received {mean:.2} of its line", name(*node)),
        [(least, _), .., (most, _)] if most - least < ALIKE => format!(
            "In the measured window each of {} ports received {least:.2} of its line",
            means.len()
        ),
        [(least, lowest), .., (most, highest)] => format!(
            "In the measured window {} received least, {least:.2} of its line, and {} most, {most:.2}",
            name(*lowest),
            name(*highest)
        ),
    }
}

fn picture(facts: &Facts<'_>, node: usize) -> Markup {
    let is_hot = facts.hot.contains(&node);
    let name = &facts.run.run.graph.nodes[node].name;
    html! {
        figure class=(if is_hot { "hot" } else { "" }) {
            figcaption {
                b { (clipped(name, 12)) } " "
                span { @for side in facts.sides() {
                    span class=(facts.role(side, node)) data-k=(format!("{}.x{node}", side.number)) data-d="2" {
                        (value(facts, side, node))
                    } " "
                } }
            }
            svg class="t" viewBox=(figure::view(facts.length, -0.03, 1.06)) preserveAspectRatio="none" role="img"
                aria-label=(format!("What {name} received over time")) {
                (lines(facts, node, true))
            }
        }
    }
}

/// The throughput of a port, from 0 to one line rate. The figure of the page may have the same lines, which are used
/// again.
fn lines(facts: &Facts<'_>, node: usize, is_page: bool) -> Markup {
    let is_again = is_page && (facts.hot.contains(&node) || facts.cold.len() <= figure::LINES_MAX);
    html! {
        @for (from, to, _) in facts.run.run.phases().skip(1).step_by(2) {
            rect class="phase" x=(from) y="-1060" width=(to - from) height="1090" {}
        }
        path class="l zero" d=(format!("M0 0H{0}M0 -1000H{0}", facts.length)) {}
        @for side in facts.sides() {
            g class=(format!("small {}", facts.role(side, node))) {
                @if is_again {
                    use href=(format!("#{}.x{node}", side.number)) {}
                } @else {
                    path class="l" d=(trace(side, &side.run.received[node], 1.0, figure::precision(facts))) {}
                }
            }
        }
        path class="cursor" d=(format!("M{} -1060V30", facts.cursor())) {}
    }
}
