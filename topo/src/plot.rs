//! Pictures of lines as static SVG that reads without script, in light and dark. Each line is a
//! colour and a dash of its own.

use std::fmt::Write;

/// Width of every document.
pub const WIDTH: f64 = 860.0;
/// Room left and right of a picture.
pub const LEFT: f64 = 150.0;
/// Room right of a picture.
pub const RIGHT: f64 = 40.0;
/// Height of a picture without its title and axis.
pub const HEIGHT: f64 = 240.0;
/// Room above a picture, for its title.
pub const ABOVE: f64 = 60.0;
/// Room below it, for its axis.
pub const BELOW: f64 = 36.0;
/// Height of a line of a legend.
pub const LEGEND: f64 = 16.0;

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

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
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

/// The stroke and the dash of line `index`.
pub fn colour(index: usize) -> (&'static str, &'static str) {
    COLOURS[index % COLOURS.len()]
}

/// The beginning of a document; `</svg>` ends it.
pub fn open(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
         <title>{}</title><style>{STYLE}</style>\n",
        escape(title)
    )
}

/// Lines over an axis, from zero to a tenth above the greatest value.
pub fn lines(out: &mut String, picture: &Picture<'_>, lines: &[Line]) {
    let Picture { title, subtitle, top, x_max, ticks, dots } = picture;
    let most = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let most = ceiling(most);
    let x = |at: f64| LEFT + at / x_max * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| top + HEIGHT * (1.0 - value / most);
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<text class=\"h\" x=\"{LEFT}\" y=\"{}\">{}</text>\
         <text class=\"t\" x=\"{LEFT}\" y=\"{}\">{}</text>",
        top - 32.0,
        escape(title),
        top - 14.0,
        escape(subtitle)
    );
    for step in 0..=4 {
        let value = most * f64::from(step) / 4.0;
        grid_line(out, (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
        let text = if most < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
        label(out, LEFT - 8.0, y(value) + 4.0, "end", &text);
    }
    for (at, text) in ticks {
        label(out, x(*at), top + HEIGHT + 18.0, "middle", text);
    }
    for (index, line) in lines.iter().enumerate() {
        let mut path = String::new();
        for (at, value) in &line.points {
            let word = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{word}{:.1} {:.1}", x(*at), y(*value));
        }
        let (stroke, dash) = colour(index);
        let _ = writeln!(
            out,
            "<path d=\"{path}\" stroke=\"{stroke}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\">\
             <title>{}</title></path>",
            escape(&line.name)
        );
        for (at, value) in line.points.iter().filter(|_| *dots) {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{stroke}\"/>",
                x(*at),
                y(*value)
            );
        }
    }
}

/// The next of 1, 2, 3 … tenths of a power of ten, and no less than a tenth.
fn ceiling(most: f64) -> f64 {
    let power = 10f64.powf(most.max(0.1).log10().floor());
    if most <= 1.0 {
        (most * 10.0).ceil().max(1.0) / 10.0
    } else {
        (most / power * 10.0).ceil() * power / 10.0
    }
}

/// A line with its name for each of `names`, from `top` on.
pub fn legend(out: &mut String, top: f64, names: &[&str]) {
    for (index, name) in names.iter().enumerate() {
        let y = top + LEGEND * index as f64 - 8.0;
        let (stroke, dash) = colour(index);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{stroke}\" \
             stroke-width=\"2.5\" stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            LEFT + 40.0,
            LEFT + 50.0,
            y + 4.0,
            escape(name)
        );
    }
}

/// A thin line behind everything.
pub fn grid_line(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        out,
        "<line class=\"g\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// Small text.
pub fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(
        out,
        "<text class=\"t\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// Text as it may stand in a document.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
