//! Every port as a small picture of its own, all on one scale; and what was waited for longest.

use super::facts::{Facts, Side};
use super::figure::{self, trace};
use super::heat;
use crate::chart::path::Grain;
use crate::chart::{number, quantiles};
use maud::{Markup, html};

/// Pictures of their own; of more ports the ones that received least of all are shown.
const PICTURES_MAX: usize = 128;
/// Means that differ by less are told as one.
const ALIKE: f64 = 0.005;
/// Rows of those who waited.
const WAITERS: usize = 8;

/// The section.
pub fn section(facts: &Facts<'_>) -> Markup {
    let all: Vec<usize> = order(facts);
    let shown = &all[..all.len().min(PICTURES_MAX)];
    html! {
        section id="ports" {
            p class="kicker" { "Every port" }
            h2 { (title(facts, &all)) }
            p class="how" {
                "Received over time, from nothing to one line rate, all on one scale. "
                @for side in facts.sides() { i class=(format!("swatch {}", side.role)) {} " " (side.name) " " }
                "Numbers are those at the cursor."
                @if shown.len() < all.len() {
                    " Shown are the " (shown.len()) " that received least, of " (all.len()) "; the heat map has all."
                }
            }
            div class="multiples" { @for node in shown { (picture(facts, *node)) } }
            (heat::map(facts, shown.len() < all.len()))
        }
    }
}

/// Those that take part, in the order of the fabric's picture.
pub fn in_order(facts: &Facts<'_>) -> Vec<usize> {
    let takes_part = |node: &usize| facts.cold.contains(node) || facts.hot.contains(node);
    facts.run.run.adapters().into_iter().filter(takes_part).collect()
}

/// In that order; of too many, those that received least first.
fn order(facts: &Facts<'_>) -> Vec<usize> {
    let mut all = in_order(facts);
    if all.len() > PICTURES_MAX {
        let mean = |node: &usize| window_mean(facts, &facts.run, *node).unwrap_or(0.0);
        all.sort_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.cmp(b)));
    }
    all
}

fn window_mean(facts: &Facts<'_>, side: &Side<'_>, node: usize) -> Option<f64> {
    side.run.mean_over(side.run.received.get(node)?, facts.window.0, facts.window.1)
}

fn title(facts: &Facts<'_>, all: &[usize]) -> String {
    let name = |node: usize| &facts.run.run.nodes[node].name;
    let means = all.iter().filter_map(|n| Some((window_mean(facts, &facts.run, *n)?, *n)));
    let mut means: Vec<(f64, usize)> = means.collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    match (means.first(), means.last()) {
        (Some(least), Some(most)) if means.len() > 1 && most.0 - least.0 < ALIKE => {
            format!(
                "In the measured window each of {} ports received {:.2} of its line",
                means.len(),
                least.0
            )
        }
        (Some(least), Some(most)) if means.len() > 1 => format!(
            "In the measured window {} received least, {:.2} of its line, and {} most, {:.2}",
            name(least.1),
            least.0,
            name(most.1),
            most.0
        ),
        (Some((mean, node)), _) => format!("{} received {mean:.2} of its line", name(*node)),
        _ => "No port received anything".to_owned(),
    }
}

fn picture(facts: &Facts<'_>, node: usize) -> Markup {
    let is_hot = facts.hot.contains(&node);
    let name = &facts.run.run.nodes[node].name;
    let tau = facts.run.run.result.tau_ps.max(1) as f64;
    let grain = figure::grain(facts);
    html! {
        figure class=(if is_hot { "hot" } else { "" }) {
            figcaption {
                b { (quantiles_name(name)) }
                span { @for side in facts.sides() {
                    @let value = side.bin_at(facts.cursor()).map_or(f64::NAN, |bin| side.run.received[node][bin]);
                    span class=(if is_hot && side.role == "run" { "hot" } else { side.role })
                        data-k=(format!("{}.x{node}", side.number)) data-d="2" {
                        @if value.is_finite() { (format!("{value:.2}")) } @else { "–" }
                    } " "
                } }
            }
            svg class="t" viewBox=(figure::view(facts.length, -0.03, 1.06)) preserveAspectRatio="none" role="img"
                aria-label=(format!("What {name} received over time")) {
                @for phase in facts.run.run.result.phases.iter().skip(1).step_by(2) {
                    rect class="phase" x=(phase.from_ps as f64 / tau) y="-1060"
                        width=((phase.to_ps - phase.from_ps) as f64 / tau) height="1090" {}
                }
                path class="l zero" d=(format!("M0 0H{0}M0 -1000H{0}", facts.length)) {}
                @for side in facts.sides() { (line(facts, side, node, is_hot, grain)) }
                path class="cursor" d=(format!("M{} -1060V30", facts.cursor())) {}
            }
        }
    }
}

/// The figure's own line again, or a new one where the figure has none.
fn line(facts: &Facts<'_>, side: &Side<'_>, node: usize, is_hot: bool, grain: Grain) -> Markup {
    let role = if is_hot && side.role == "run" { "hot" } else { side.role };
    let in_figure = is_hot || facts.cold.len() <= figure::LINES_MAX;
    html! {
        g class=(format!("small {role}")) {
            @if in_figure {
                use href=(format!("#x{}-{node}", side.number)) {}
            } @else {
                path class="l" d=(trace(side, &side.run.received[node], 1.0, grain)) {}
            }
        }
    }
}

fn quantiles_name(name: &str) -> Markup {
    if name.chars().count() <= 12 {
        return html! { (name) };
    }
    let short: String = name.chars().take(11).chain(['…']).collect();
    html! { span title=(name) { (short) } }
}

/// The outputs that were held longest in the window, both runs.
pub fn waiters(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let share = |side: &Side<'_>, output: usize| {
        let series = side.run.series.get(output)?;
        side.run.mean_over(&series.hold, facts.window.0, facts.window.1)
    };
    let worst =
        |output: usize| facts.sides().filter_map(|side| share(side, output)).fold(0.0, f64::max);
    let mut order: Vec<(f64, usize)> =
        (0..run.outputs.all.len()).map(|o| (worst(o), o)).filter(|(w, _)| *w > 0.0005).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let rows: Vec<usize> = order.iter().take(WAITERS).map(|(_, output)| *output).collect();
    let sides = facts.sides().count() as f64;
    let pitch = 12.0 + 10.0 * sides;
    let bottom = 10.0 + rows.len() as f64 * pitch;
    let (left, full) = (170.0, 350.0);
    let name = |output: usize| {
        let output = &run.outputs.all[output];
        format!("{} → {}", output.name, run.nodes[output.to].name)
    };
    let title = match rows.first() {
        Some(first) => format!(
            "{} waited {} of the measured window",
            name(*first),
            number::per_cent(worst(*first))
        ),
        None => "No output waited in the measured window".to_owned(),
    };
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Who waited longest" {
            p class="kicker" { "Who waited longest" }
            h3 { (title) }
            @if !rows.is_empty() {
                svg viewBox=(format!("0 0 570 {:.0}", bottom + 22.0)) role="img" aria-label=(title) {
                    @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                        @let x = format!("{:.1}", left + share * full);
                        path class="gridline" d=(format!("M{x} 6V{bottom:.0}")) {}
                        text x=(x) y=(format!("{:.0}", bottom + 16.0)) text-anchor="middle" { (number::per_cent(share)) }
                    }
                    @for (place, output) in rows.iter().enumerate() {
                        @let top = 10.0 + place as f64 * pitch;
                        text x="0" y=(format!("{:.1}", top + 4.0 + 5.0 * sides)) { (quantiles::shortened(&name(*output), 26)) }
                        @for (row, side) in facts.sides().enumerate() {
                            @let value = share(side, *output).unwrap_or(0.0);
                            @let y = top + row as f64 * 10.0;
                            rect class=(side.role) x=(left) y=(format!("{y:.1}")) width=(format!("{:.1}", (value * full).max(1.0))) height="8" rx="2" {}
                            text class="tiny" x=(format!("{:.1}", left + value * full + 6.0)) y=(format!("{:.1}", y + 7.6)) { (number::per_cent(value)) }
                        }
                    }
                }
            }
        }
    }
}
