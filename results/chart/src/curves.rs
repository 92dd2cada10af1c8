//! Pictures of lines over an axis, and the legend that names them. Each line is a colour and a dash of
//! its own.

use super::palette;
use super::path::{Precision, line};
use super::scale::Linear;
use maud::{Markup, PreEscaped, html};

/// Width of every document.
pub const WIDTH: f64 = 860.0;
/// Room left of a picture.
pub const LEFT: f64 = 150.0;
/// Room right of a picture.
const RIGHT: f64 = 30.0;
/// Room above a picture, for its title.
pub const ABOVE: f64 = 62.0;
/// Height of a picture without its title and axis.
pub const HEIGHT: f64 = 240.0;
/// Room below a picture, for its axis.
pub const BELOW: f64 = 36.0;
/// Height of a line of the legend.
pub const LEGEND: f64 = 18.0;

const STYLE: &str = "svg{background:var(--page)}text{font:12px Inter,system-ui,sans-serif;fill:var(--muted)}\
    .strong{fill:var(--ink);font-weight:600}.h{font-size:14px}.gridline{fill:none;stroke:var(--grid)}\
    .side{fill:none;stroke:var(--c);stroke-width:1.8}.point{fill:var(--c)}";

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// What stands around the lines.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// What it shows.
    pub title: &'a str,
    /// In which units, over what.
    pub subtitle: &'a str,
    /// Where it begins.
    pub top: f64,
    /// The right end of its axis, which begins at 0.
    pub x_max: f64,
    /// What is written at the axis, and where.
    pub ticks: Vec<(f64, String)>,
    /// Each point is shown, not only the line through them.
    pub dots: bool,
}

/// Role and dash of line `index`.
pub fn side(index: usize) -> (&'static str, &'static str) {
    palette::SIDES[index % palette::SIDES.len()]
}

/// A document of its own, with a style beyond that of lines.
pub fn document(title: &str, height: f64, style: &str, body: &Markup) -> String {
    let style = palette::standalone() + STYLE + style;
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" {
            title { (title) }
            style { (PreEscaped(style)) }
            (body)
        }
    };
    document.into_string() + "\n"
}

/// Lines over an axis, from zero to a tenth above the greatest value at most.
pub fn picture(picture: &Picture<'_>, curves: &[Curve]) -> Markup {
    let Picture { title, subtitle, top, x_max, ticks, dots } = picture;
    let most = curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let most = ceiling(most);
    let x = Linear { low: 0.0, high: *x_max, from: LEFT, to: WIDTH - RIGHT };
    let y = Linear { low: 0.0, high: most, from: top + HEIGHT, to: *top };
    let value =
        |value: f64| if most < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    html! {
        text class="strong h" x=(LEFT) y=(top - 34.0) { (title) }
        text x=(LEFT) y=(top - 16.0) { (subtitle) }
        @for at in (0..=4).map(|step| most * f64::from(step) / 4.0) {
            path class="gridline" d=(format!("M{LEFT} {:.1}H{}", y.at(at), WIDTH - RIGHT)) {}
            text x=(LEFT - 8.0) y=(format!("{:.1}", y.at(at) + 4.0)) text-anchor="end" { (value(at)) }
        }
        @for (at, name) in ticks {
            text x=(format!("{:.1}", x.at(*at))) y=(top + HEIGHT + 18.0) text-anchor="middle" { (name) }
        }
        @for (index, curve) in curves.iter().enumerate() {
            @let (role, dash) = side(index);
            @let places: Vec<_> = curve.points.iter().map(|(at, value)| (x.at(*at), y.at(*value))).collect();
            path class="side" style=(format!("--c:var(--{role})")) stroke-dasharray=(dash)
                d=(line(places.iter().copied(), Precision::Hundredths)) { title { (curve.name) } }
            @for (cx, cy) in places.iter().filter(|_| *dots) {
                circle class="point" style=(format!("--c:var(--{role})")) r="3"
                    cx=(format!("{cx:.1}")) cy=(format!("{cy:.1}")) {}
            }
        }
    }
}

/// A line with its name for each of `names`, from `top` on.
pub fn legend<'a>(names: impl Iterator<Item = &'a str>, top: f64) -> Markup {
    html! {
        @for (index, name) in names.enumerate() {
            @let (role, dash) = side(index);
            @let y = top + LEGEND * index as f64 + 8.0;
            path class="side" style=(format!("--c:var(--{role})")) stroke-dasharray=(dash) d=(format!("M{LEFT} {y:.0}h40")) {}
            text class="strong" x=(LEFT + 50.0) y=(format!("{:.0}", y + 4.0)) { (name) }
        }
    }
}

/// The next whole number of tenths of its power of ten; of one up to 1 the next tenth, and no less
/// than a tenth.
fn ceiling(most: f64) -> f64 {
    let tenth = if most <= 1.0 { 0.1 } else { 10f64.powf(most.log10().floor() - 1.0) };
    (most / tenth).ceil().max(1.0) * tenth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_a_little_above_the_greatest_value() {
        let ends = [0.0, 0.05, 0.81, 1.0, 1.21, 9.99, 152.0, 999.0].map(ceiling);
        assert_eq!(
            ends.map(|end| (end * 100.0).round() / 100.0),
            [0.1, 0.1, 0.9, 1.0, 1.3, 10.0, 160.0, 1000.0]
        );
    }
}
