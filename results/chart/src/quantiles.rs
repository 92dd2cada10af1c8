//! Durations as quantiles on a logarithmic axis: a line from the first per cent to the
//! last, the middle half thick, the median a dot.

use super::number;
use super::scale::Log;
use super::words;
use maud::{Markup, PreEscaped, html};

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Role of its colour.
    pub role: &'static str,
    /// p1, p25, p50, p75, p99, in the unit of the axis; `None` if nothing was completed.
    pub quantiles: Option<[f64; 5]>,
    /// A note beside it.
    pub note: String,
}

/// Height of a row.
const ROW: f64 = 38.0;
/// Space for names.
const LEFT: f64 = 150.0;
/// What stands below the names ends so long before the axis begins, in a wide font.
const GAP: f64 = 4.0;
/// Space for the label of the last tick.
const RIGHT: f64 = 24.0;

/// Height of a picture with this number of rows.
pub fn height(rows: usize) -> f64 {
    16.0 + rows as f64 * ROW + 22.0
}

/// The picture of some rows; `value` writes a value of the axis.
pub fn svg(rows: &[Row], width: f64, label: &str, value: fn(f64) -> String) -> Markup {
    html! {
        svg viewBox=(format!("0 0 {width:.0} {:.0}", height(rows.len()))) role="img" aria-label=(label) {
            (group(rows, width, value))
        }
    }
}

/// The same as a part of another picture, whose style has the rules of roles.
pub fn group(rows: &[Row], width: f64, value: fn(f64) -> String) -> Markup {
    let values = rows.iter().flat_map(|row| row.quantiles.iter().flatten().copied());
    let axis = Log::over(values, LEFT, width - RIGHT);
    let bottom = height(rows.len()) - 22.0;
    html! {
        @if let Some(axis) = axis {
            @for decade in axis.decades() {
                @let x = format!("{:.1}", axis.at(decade));
                path class="gridline" d=(format!("M{x} 12V{bottom}")) {}
                @let name = value(decade);
                @let half = words::width(&name) / 2.0;
                @let middle = axis.at(decade).max(LEFT - GAP + half).min(width - half);
                text x=(format!("{middle:.1}")) y=(format!("{:.0}", bottom + 16.0)) text-anchor="middle" { (name) }
            }
        }
        text x="0" y=(format!("{:.0}", bottom + 16.0)) { "median, 25–75, 1–99 %" }
        @for (place, row) in rows.iter().enumerate() {
            (self::row(row, axis.as_ref(), 30.0 + place as f64 * ROW, width, value))
        }
    }
}

fn row(row: &Row, axis: Option<&Log>, y: f64, width: f64, value: fn(f64) -> String) -> Markup {
    let shown = shortened(&row.name, 22);
    html! {
        g class=(format!("q {}", row.role)) {
            text class="strong" x="0" y=(format!("{:.0}", y + 4.0)) { (shown) }
            @if let (Some([p1, p25, p50, p75, p99]), Some(axis)) = (row.quantiles, axis) {
                @let x = |value: f64| axis.at(value);
                @let middle = x(p50).clamp(LEFT + 20.0, width - 60.0);
                path class="whisker" d=(format!("M{:.1} {y}H{:.1}m0 -5v10", x(p1), x(p99))) {}
                path class="box" d=(format!("M{:.1} {y}H{:.1}", x(p25), x(p75).max(x(p25) + 1.5))) {}
                circle class="dot" cx=(format!("{:.1}", x(p50))) cy=(y) r="5" {}
                text class="own" x=(format!("{middle:.1}")) y=(format!("{:.0}", y - 10.0)) text-anchor="middle" {
                    (value(p50))
                    @if !row.note.is_empty() { tspan class="plain" dx="8" { (row.note) } }
                }
            } @else {
                path class="none" d=(format!("M{LEFT} {y}H{:.0}", width - RIGHT)) {}
                text class="own" x=(format!("{:.0}", (LEFT + width) / 2.0)) y=(format!("{:.0}", y - 8.0)) text-anchor="middle" { (row.note) }
            }
        }
    }
}

/// A text of at most `most` letters; the whole of it stays as a tooltip.
pub fn shortened(text: &str, most: usize) -> Markup {
    if text.chars().count() <= most {
        return html! { (text) };
    }
    let short: String = text.chars().take(most.saturating_sub(1)).chain(['…']).collect();
    html! { title { (text) } (PreEscaped("")) (short) }
}

/// A row's note about messages that never completed.
pub fn unfinished(open: u64) -> String {
    if open == 0 { String::new() } else { format!("{} unfinished", number::grouped(open)) }
}
