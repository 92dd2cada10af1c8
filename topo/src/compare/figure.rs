//! The figure of a comparison: what all adapters received over time, and how long messages took.
//!
//! Each side is a line of its own, named beside it.

use super::{Rate, Side};
use crate::plot::{
    self, ABOVE, HEIGHT, LEFT, LEGEND, Line, Picture, RIGHT, WIDTH, colour, grid_line, label,
};
use crate::run_directory::result::Completion;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The lower one begins below the other's axis; a row a traffic item and side.
const GAP: f64 = 90.0;
const ROW: f64 = 18.0;
/// Points of a line at most; beyond that neighbours are averaged.
const POINTS_MAX: usize = 400;

/// The document.
pub fn svg(sides: &[Side]) -> String {
    let completions: Vec<BTreeMap<String, Completion>> =
        sides.iter().map(Side::completions).collect();
    let items: BTreeSet<&String> = completions.iter().flat_map(BTreeMap::keys).collect();
    let rows = items.len() * sides.len();
    let below = ABOVE + HEIGHT + GAP;
    let legend = LEGEND * sides.len() as f64;
    let height = below + rows as f64 * ROW + 60.0 + legend;
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let mut out = plot::open(height, &names.join(" beside "));
    throughput(&mut out, sides);
    latencies(&mut out, sides, &completions, &items, below);
    plot::legend(&mut out, height - legend, &names);
    out.push_str("</svg>\n");
    out
}

fn throughput(out: &mut String, sides: &[Side]) {
    let rates = || sides.iter().flat_map(|side| &side.received);
    let last = rates().map(|rate| rate.at).fold(1.0, f64::max);
    let quarter = |step: i32| last * f64::from(step) / 4.0;
    let picture = Picture {
        title: "Data received by all adapters",
        subtitle: "share of their line rate, over time in τ",
        top: ABOVE,
        x_max: last,
        ticks: (0..=4).map(|step| (quarter(step), format!("{:.0}", quarter(step)))).collect(),
        dots: false,
    };
    let line = |side: &Side| {
        let chunks = side.received.chunks(side.received.len().div_ceil(POINTS_MAX).max(1));
        let point = |chunk: &[Rate]| {
            let n = chunk.len() as f64;
            let at = chunk.iter().map(|rate| rate.at).sum::<f64>() / n;
            (at, chunk.iter().map(|rate| rate.share).sum::<f64>() / n)
        };
        Line { name: side.name.clone(), points: chunks.map(point).collect() }
    };
    plot::lines(out, &picture, &sides.iter().map(line).collect::<Vec<_>>());
}

/// One row a traffic item and side: a bar from p1 to the greatest, its middle half thick, ticks at
/// the median and p99, on a logarithmic axis.
fn latencies(
    out: &mut String,
    sides: &[Side],
    completions: &[BTreeMap<String, Completion>],
    items: &BTreeSet<&String>,
    top: f64,
) {
    let all = completions.iter().flat_map(BTreeMap::values).flat_map(|c| c.quantiles_ns.values());
    let exponents = all.filter(|ns| **ns > 0).map(|ns| (*ns as f64).log10());
    let (low, high) =
        exponents.fold((f64::MAX, f64::MIN), |(low, high), e| (low.min(e), high.max(e)));
    if low > high {
        return;
    }
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let x = |ns: u64| {
        let exponent = (ns.max(1) as f64).log10().max(low);
        LEFT + (exponent - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    };
    let bottom = top + (items.len() * sides.len()) as f64 * ROW;
    let _ = writeln!(
        out,
        "<text class=\"h\" x=\"{LEFT}\" y=\"{}\">How long messages took</text>\
         <text class=\"t\" x=\"{LEFT}\" y=\"{}\">p1 to the longest, middle half thick, ticks at the \
         median and p99</text>",
        top - 32.0,
        top - 14.0
    );
    for exponent in low as i32..=high as i32 {
        let at = x(10u64.pow(exponent.max(0) as u32));
        grid_line(out, (at, top), (at, bottom));
        label(out, at, bottom + 16.0, "middle", &duration(exponent));
    }
    let mut y = top;
    for item in items {
        label(out, LEFT - 8.0, y + ROW * sides.len() as f64 / 2.0 + 4.0, "end", item);
        for (index, completions) in completions.iter().enumerate() {
            if let Some(completion) = completions.get(*item) {
                bar(out, completion, index, y + ROW / 2.0, x);
            }
            y += ROW;
        }
    }
}

fn bar(out: &mut String, completion: &Completion, side: usize, y: f64, x: impl Fn(u64) -> f64) {
    let at = |quantile: &str| completion.quantiles_ns.get(quantile).map(|ns| x(*ns));
    let (Some(p1), Some(max)) = (at("p1"), at("max")) else { return };
    let (stroke, _) = colour(side);
    let mut line = |from: f64, to: f64, width: f64| {
        let _ = writeln!(
            out,
            "<line x1=\"{from:.1}\" y1=\"{y}\" x2=\"{to:.1}\" y2=\"{y}\" stroke=\"{stroke}\" \
             stroke-width=\"{width}\"/>"
        );
    };
    line(p1, max, 1.5);
    if let (Some(p25), Some(p75)) = (at("p25"), at("p75")) {
        line(p25, p75.max(p25 + 1.0), 8.0);
    }
    for tick in [at("p50"), at("p99")].into_iter().flatten() {
        line(tick - 1.0, tick + 1.0, 14.0);
    }
}

fn duration(exponent: i32) -> String {
    let unit = ["ns", "µs", "ms", "s"][(exponent.max(0) as usize / 3).min(3)];
    format!("{} {unit}", 10u32.pow(exponent.max(0) as u32 % 3))
}
