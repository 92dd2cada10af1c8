//! The figure of a comparison: what all adapters received over time, and how long messages took.
//!
//! Static SVG that reads without script, in light and dark, put together from [`chart`]. Each
//! side is a colour and a dash of its own, and is named below.

use super::{Side, completions};
use crate::completion::five;
use chart::curves::{self, Curve, HEIGHT, LEFT, LEGEND, Picture, WIDTH};
use chart::number;
use chart::palette;
use chart::quantiles::{self, Row};
use chart::scale::ticks;
use maud::{Markup, html};

/// From the axis of the upper picture to the lower one.
const GAP: f64 = 84.0;
/// Points of a line at most; beyond that neighbours are averaged.
const POINTS_MAX: usize = 400;

const STYLE: &str = ".q .whisker{fill:none;stroke:currentColor;stroke-width:2}\
    .q .box{stroke:currentColor;stroke-width:11;opacity:.42}.q .dot,.q .own{fill:currentColor}\
    .q .plain{fill:var(--muted)}.q .none{fill:none;stroke:currentColor;stroke-width:2;stroke-dasharray:1 6}";

/// The document.
pub fn svg(sides: &[Side]) -> String {
    let rows = rows(sides);
    let below = curves::ABOVE + HEIGHT + GAP;
    let legend = below + if rows.is_empty() { 0.0 } else { quantiles::height(rows.len()) + 8.0 };
    let height = legend + LEGEND * sides.len() as f64 + 8.0;
    let names = || sides.iter().map(|side| side.name.as_str());
    let body = html! {
        (throughput(sides))
        @if !rows.is_empty() {
            text class="strong h" x=(LEFT) y=(below - 20.0) { "How long messages took" }
            g transform=(format!("translate(0 {below:.0})")) {
                (quantiles::group(&rows, WIDTH, |ns| number::seconds(ns * 1e3)))
            }
        }
        (curves::legend(names(), legend))
    };
    let title = names().collect::<Vec<_>>().join(" beside ");
    curves::document(&title, height, &(palette::rules() + STYLE), &body)
}

fn throughput(sides: &[Side]) -> Markup {
    let last = sides.iter().flat_map(|side| &side.received).map(|(at, _)| *at).fold(1.0, f64::max);
    let picture = Picture {
        title: "Data received by all adapters",
        subtitle: "share of their line rate, over time in τ",
        top: curves::ABOVE,
        x_max: last,
        ticks: ticks(0.0, last, 6).iter().map(|at| (*at, number::grouped(*at as u64))).collect(),
        dots: false,
    };
    let curve = |side: &Side| Curve { name: side.name.clone(), points: points(side) };
    curves::picture(&picture, &sides.iter().map(curve).collect::<Vec<_>>())
}

/// What a side received, few enough points to be drawn.
fn points(side: &Side) -> Vec<(f64, f64)> {
    let size = side.received.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        let at = chunk.iter().map(|(at, _)| at).sum::<f64>() / n;
        (at, chunk.iter().map(|(_, share)| share).sum::<f64>() / n)
    };
    side.received.chunks(size).map(mean).collect()
}

/// A row for each traffic item and side, in nanoseconds.
fn rows(sides: &[Side]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (item, completions) in completions(sides) {
        for (index, completion) in completions.iter().enumerate() {
            let Some(completion) = completion else { continue };
            let quantiles = five(completion, 1.0);
            let role = curves::side(index).0;
            let note = quantiles::unfinished(completion.unfinished);
            rows.push(Row { name: item.clone(), role, quantiles, note });
        }
    }
    rows
}
