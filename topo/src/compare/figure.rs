//! The figure of a comparison: what all adapters received over time, and how long messages took.
//!
//! Static SVG that reads without script, in light and dark. Each side is a colour and a dash of its
//! own, and is named beside its line.

use super::Side;
use crate::run_directory::result::Completion;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 40.0;
/// The upper picture: throughput.
const TOP: f64 = 60.0;
const HEIGHT: f64 = 240.0;
/// The lower one begins below the other's axis; a row a traffic item and side.
const GAP: f64 = 90.0;
const ROW: f64 = 18.0;
/// Points of a line at most; beyond that neighbours are averaged.
const POINTS_MAX: usize = 400;

/// Distinct in colour, and in grey by their dash.
const COLOURS: [(&str, &str); 6] = [
    ("#0b6bcb", ""),
    ("#c8500a", "7 3"),
    ("#2b8a3e", "2 3"),
    ("#99397a", "9 3 2 3"),
    ("#8a6d00", "4 4"),
    ("#5b6370", "1 4"),
];

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#191d24}.h{font-weight:600;font-size:14px}\
    .t{fill:#5b6370;font-size:11px}.g{stroke:#d8dbe0;stroke-width:1}path,line{fill:none}\
    @media(prefers-color-scheme:dark){text{fill:#e9ebee}.t{fill:#9aa3b0}.g{stroke:#3a414b}\
    svg{background:#14171c}}";

fn colour(index: usize) -> (&'static str, &'static str) {
    COLOURS[index % COLOURS.len()]
}

/// The document.
pub fn svg(sides: &[Side]) -> String {
    let completions: Vec<BTreeMap<String, Completion>> =
        sides.iter().map(Side::completions).collect();
    let items: BTreeSet<&String> = completions.iter().flat_map(BTreeMap::keys).collect();
    let rows = items.len() * sides.len();
    let below = TOP + HEIGHT + GAP;
    let legend = 16.0 * sides.len() as f64;
    let height = below + rows as f64 * ROW + 60.0 + legend;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
         <title>{}</title><style>{STYLE}</style>\n",
        escape(&sides.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(" beside "))
    );
    throughput(&mut out, sides);
    latencies(&mut out, sides, &completions, &items, below);
    for (index, side) in sides.iter().enumerate() {
        let y = height - legend + 16.0 * index as f64 - 8.0;
        let (stroke, dash) = colour(index);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{stroke}\" \
             stroke-width=\"2.5\" stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            LEFT + 40.0,
            LEFT + 50.0,
            y + 4.0,
            escape(&side.name)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn throughput(out: &mut String, sides: &[Side]) {
    let rates = || sides.iter().flat_map(|side| &side.received);
    let last = rates().map(|rate| rate.at).fold(1.0, f64::max);
    let most = rates().map(|rate| rate.share).fold(0.0, f64::max);
    let most = (most * 10.0).ceil().max(1.0) / 10.0;
    let x = |at: f64| LEFT + at / last * (WIDTH - LEFT - RIGHT);
    let y = |share: f64| TOP + HEIGHT * (1.0 - share / most);
    let _ = writeln!(
        out,
        "<text class=\"h\" x=\"{LEFT}\" y=\"28\">Data received by all adapters</text>\
         <text class=\"t\" x=\"{LEFT}\" y=\"46\">share of their line rate, over time in τ</text>"
    );
    for step in 0..=4 {
        let share = most * f64::from(step) / 4.0;
        grid_line(out, (LEFT, y(share)), (WIDTH - RIGHT, y(share)));
        label(out, LEFT - 8.0, y(share) + 4.0, "end", &format!("{share:.2}"));
        let at = last * f64::from(step) / 4.0;
        label(out, x(at), TOP + HEIGHT + 18.0, "middle", &format!("{at:.0}"));
    }
    for (index, side) in sides.iter().enumerate() {
        let mut path = String::new();
        for chunk in side.received.chunks(side.received.len().div_ceil(POINTS_MAX).max(1)) {
            let n = chunk.len() as f64;
            let at = chunk.iter().map(|rate| rate.at).sum::<f64>() / n;
            let share = chunk.iter().map(|rate| rate.share).sum::<f64>() / n;
            let word = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{word}{:.1} {:.1}", x(at), y(share));
        }
        let (stroke, dash) = colour(index);
        let _ = writeln!(
            out,
            "<path d=\"{path}\" stroke=\"{stroke}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\">\
             <title>{}</title></path>",
            escape(&side.name)
        );
    }
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

fn grid_line(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        out,
        "<line class=\"g\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(
        out,
        "<text class=\"t\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
