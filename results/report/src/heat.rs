//! A heat map of all ports over time: one row for each port in the order of the fabric's picture, stronger for
//! higher throughput. It shows all ports, however many.

use super::fabric::label_step;
use super::facts::{Facts, Side};
use super::leaves;
use base64::prelude::{BASE64_STANDARD, Engine};
use chart::{quantiles, shades};
use maud::{Markup, html};

/// Width of a map with its names, and where time begins, pixels.
const WIDTH: f64 = 590.0;
const LEFT: f64 = 56.0;
/// Height of all rows together, within the limits of a row.
const HEIGHT: f64 = 360.0;
const ROW: (f64, f64) = (0.5, 14.0);
/// Rows lower than this have the name of their leaf only.
const NAME: f64 = 11.0;

/// The folded map, open if it has more ports than the small pictures.
pub fn map(facts: &Facts<'_>, has_more: bool) -> Markup {
    let rows = facts.receivers();
    html! {
        @if rows.len() > 1 {
            details id="heat" open[has_more] {
                summary { "As a heat map: a row a port, over time; the stronger, the more it received" }
                div class="two" { @for side in facts.sides() { (pane(facts, side, &rows)) } }
                p class="caption" id="cell" role="status" { "Point at a row for its port." }
            }
        }
    }
}

fn pane(facts: &Facts<'_>, side: &Side<'_>, rows: &[usize]) -> Markup {
    let row = (HEIGHT / rows.len() as f64).clamp(ROW.0, ROW.1);
    let high = row * rows.len() as f64;
    let label = format!("What {} ports received over time with {}", rows.len(), side.name);
    html! {
        div class="pane" {
            h3 { i class=(format!("swatch {}", side.role)) {} (side.name) }
            div class="scroll" tabindex="0" role="region" aria-label=(label) {
                svg viewBox=(format!("0 -5 {WIDTH:.0} {:.1}", high + 10.0)) role="img" aria-label=(label) {
                    (names(side, rows, row))
                    (cells(facts, side, rows, high))
                }
            }
        }
    }
}

fn names(side: &Side<'_>, rows: &[usize], row: f64) -> Markup {
    let nodes = &side.run.graph.nodes;
    let middle = |first: usize, count: usize| row * (first as f64 + count as f64 / 2.0);
    let named: Vec<(f64, usize)> = if row >= NAME {
        rows.iter().enumerate().map(|(place, node)| (middle(place, 1), *node)).collect()
    } else {
        let leaves = leaves::of(&side.run.graph.outputs, rows).into_iter();
        leaves.filter_map(|leaf| Some((middle(leaf.first, leaf.count), leaf.switch?))).collect()
    };
    let step = label_step(named.get(1).map_or(f64::MAX, |second| second.0 - named[0].0));
    html! {
        @for (y, node) in named.into_iter().step_by(step) {
            text x=(LEFT - 6.0) y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (quantiles::shortened(&nodes[node].name, 8)) }
        }
    }
}

/// The grey image of all cells is a mask over the colour of the side, in the coordinates of time and rows.
fn cells(facts: &Facts<'_>, side: &Side<'_>, rows: &[usize], high: f64) -> Markup {
    let series: Vec<&[f64]> = rows.iter().map(|node| &side.run.received[*node][..]).collect();
    let Ok(greys) = shades::picture(&series) else { return html! {} };
    // After the end of a run the map is empty.
    let long = side.run.bins as f64 * side.run.bin_tau();
    let (name, n) = (format!("m{}", side.number), rows.len());
    html! {
        svg class="t heat" x=(LEFT) y="0" width=(WIDTH - LEFT) height=(format!("{high:.1}"))
            viewBox=(format!("0 0 {} {n}", facts.length)) preserveAspectRatio="none" {
            mask id=(name) maskUnits="userSpaceOnUse" x="0" y="0" width=(long) height=(n) {
                image width=(long) height=(n) preserveAspectRatio="none" image-rendering="pixelated"
                    href=(format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&greys))) {}
            }
            rect class="track" width=(facts.length) height=(n) {}
            rect class=(side.role) width=(long) height=(n) mask=(format!("url(#{name})")) {}
            path class="cursor" d=(format!("M{} 0V{n}", facts.cursor())) {}
        }
    }
}
