//! The figure of a comparison: what all adapters received over time, and how long messages took.
//!
//! Static SVG that reads without script, in light and dark, put together from [`crate::chart`]. Each
//! side is a colour and a dash of its own, and is named below.

use super::Side;
use crate::chart::path::{Grain, line};
use crate::chart::quantiles::{self, Row};
use crate::chart::scale::{Linear, ticks};
use crate::chart::{number, palette};
use crate::run_directory::result::Completion;
use maud::{Markup, PreEscaped, html};
use std::collections::{BTreeMap, BTreeSet};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 30.0;
/// The upper picture: throughput.
const TOP: f64 = 62.0;
const HEIGHT: f64 = 240.0;
/// From its axis to the lower one.
const GAP: f64 = 84.0;
/// A line of the legend.
const LEGEND: f64 = 18.0;
/// Points of a line at most; beyond that neighbours are averaged.
const POINTS_MAX: usize = 400;

const STYLE: &str = "svg{background:var(--page)}text{font:12px Inter,system-ui,sans-serif;fill:var(--muted)}\
    .strong{fill:var(--ink);font-weight:600}.h{font-size:14px}.gridline{fill:none;stroke:var(--grid)}\
    .side{fill:none;stroke:var(--c);stroke-width:1.8}.q .whisker{fill:none;stroke:var(--c);stroke-width:2}\
    .q .box{stroke:var(--c);stroke-width:11;opacity:.42}.q .dot{fill:var(--c)}.q .own{fill:var(--c)}\
    .q .plain{fill:var(--muted)}.q .none{fill:none;stroke:var(--c);stroke-width:2;stroke-dasharray:1 6}";

fn side_of(index: usize) -> (&'static str, &'static str) {
    palette::SIDES[index % palette::SIDES.len()]
}

/// The document.
pub fn svg(sides: &[Side]) -> String {
    let rows = rows(sides);
    let below = TOP + HEIGHT + GAP;
    let legend = below + if rows.is_empty() { 0.0 } else { quantiles::height(rows.len()) + 8.0 };
    let height = legend + LEGEND * sides.len() as f64 + 8.0;
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let title = names.join(" beside ");
    let style = palette::standalone() + STYLE;
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" {
            title { (title) }
            style { (PreEscaped(style)) }
            (throughput(sides))
            @if !rows.is_empty() {
                text class="strong h" x=(LEFT) y=(below - 20.0) { "How long messages took" }
                g transform=(format!("translate(0 {below:.0})")) {
                    (quantiles::group(&rows, WIDTH, |ns| number::seconds(ns * 1e3), |ns| number::seconds(ns * 1e3)))
                }
            }
            @for (index, side) in sides.iter().enumerate() { (named(index, side, legend)) }
        }
    };
    let mut text = document.into_string();
    text.push('\n');
    text
}

fn named(index: usize, side: &Side, top: f64) -> Markup {
    let (role, dash) = side_of(index);
    let y = top + LEGEND * index as f64 + 8.0;
    html! {
        path class="side" style=(format!("--c:var(--{role})")) stroke-dasharray=(dash) d=(format!("M{LEFT} {y:.0}h40")) {}
        text class="strong" x=(LEFT + 50.0) y=(format!("{:.0}", y + 4.0)) { (side.name) }
    }
}

fn throughput(sides: &[Side]) -> Markup {
    let rates = || sides.iter().flat_map(|side| &side.received);
    let last = rates().map(|rate| rate.at).fold(1.0, f64::max);
    let most = rates().map(|rate| rate.share).fold(0.0, f64::max);
    let most = (most * 10.0).ceil().max(1.0) / 10.0;
    let x = Linear { low: 0.0, high: last, from: LEFT, to: WIDTH - RIGHT };
    let y = Linear { low: 0.0, high: most, from: TOP + HEIGHT, to: TOP };
    html! {
        text class="strong h" x=(LEFT) y="28" { "Data received by all adapters" }
        text x=(LEFT) y="46" { "share of their line rate, over time in τ" }
        @for share in ticks(0.0, most, 4) {
            @let at = format!("{:.1}", y.at(share));
            path class="gridline" d=(format!("M{LEFT} {at}H{}", WIDTH - RIGHT)) {}
            text x=(LEFT - 8.0) y=(format!("{:.1}", y.at(share) + 4.0)) text-anchor="end" { (format!("{share:.2}")) }
        }
        @for at in ticks(0.0, last, 6) {
            text x=(format!("{:.1}", x.at(at))) y=(TOP + HEIGHT + 18.0) text-anchor="middle" { (number::grouped(at as u64)) }
        }
        @for (index, side) in sides.iter().enumerate() {
            @let (role, dash) = side_of(index);
            @let points = points(side).into_iter().map(|(at, share)| (x.at(at), y.at(share)));
            path class="side" style=(format!("--c:var(--{role})")) stroke-dasharray=(dash)
                d=(line(points, Grain::Hundredths)) { title { (side.name) } }
        }
    }
}

/// What a side received, few enough points to be drawn.
fn points(side: &Side) -> Vec<(f64, f64)> {
    let size = side.received.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[super::Rate]| {
        let n = chunk.len() as f64;
        let at = chunk.iter().map(|rate| rate.at).sum::<f64>() / n;
        (at, chunk.iter().map(|rate| rate.share).sum::<f64>() / n)
    };
    side.received.chunks(size).map(mean).collect()
}

/// A row a traffic item and side, in nanoseconds.
fn rows(sides: &[Side]) -> Vec<Row> {
    let of: Vec<BTreeMap<String, Completion>> =
        sides.iter().map(|side| side.result.completions()).collect();
    let items: BTreeSet<&String> = of.iter().flat_map(BTreeMap::keys).collect();
    let mut rows = Vec::new();
    for item in items {
        for (index, completions) in of.iter().enumerate() {
            let Some(completion) = completions.get(item) else { continue };
            let quantile = |key: &str| completion.quantiles_ns.get(key).map(|ns| *ns as f64);
            let [p1, p25, p50, p75, p99] = ["p1", "p25", "p50", "p75", "p99"].map(quantile);
            let quantiles = match (p1, p25, p50, p75, p99) {
                (Some(p1), Some(p25), Some(p50), Some(p75), Some(p99)) => {
                    Some([p1, p25, p50, p75, p99])
                }
                _ => None,
            };
            let role = side_of(index).0;
            let note = quantiles::unfinished(completion.unfinished);
            rows.push(Row { name: item.clone(), role, quantiles, note });
        }
    }
    rows
}
