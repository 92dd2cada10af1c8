//! A table of numbers as a picture: the greater a number, the stronger its cell. The numbers stand in the
//! cells, so colour carries nothing alone.

use super::curves::{LEFT, WIDTH};
use super::number;
use maud::{Markup, html};

/// Height of a row.
const ROW: f64 = 30.0;
/// Room below the rows, for the names of columns.
const BELOW: f64 = 50.0;
/// Room right of the cells.
const RIGHT: f64 = 30.0;
/// How strong a cell is at least and at most: ink is to be read on all of them, in both themes.
const FAINT: f64 = 0.04;
const STRONG: f64 = 0.5;

/// Rules for cells, beside those of documents.
pub const STYLE: &str = ".cell{fill:var(--run);stroke:var(--page);stroke-width:2}\
    .cell.none{fill:none;stroke:var(--line);stroke-dasharray:3 3}\
    .cell.unsure{stroke:var(--unsure);stroke-dasharray:4 3;stroke-width:2}\
    .number{fill:var(--ink);font-variant-numeric:tabular-nums}";

/// A number, and whether it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// None where nothing came out.
    pub value: Option<f64>,
    /// The runs behind it did not pass.
    pub is_unsure: bool,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Heat<'a> {
    /// What it shows.
    pub title: &'a str,
    /// What goes across, and its values.
    pub across: (&'a str, Vec<String>),
    /// What goes down, and its values.
    pub down: (&'a str, Vec<String>),
    /// By row, then by column.
    pub cells: Vec<Vec<Cell>>,
}

/// What a picture of so many rows takes below its top.
pub fn height(rows: usize) -> f64 {
    ROW * rows as f64 + BELOW
}

/// The picture, whose first row begins at `top`.
pub fn picture(heat: &Heat<'_>, top: f64) -> Markup {
    let Heat { title, across, down, cells } = heat;
    let values = || cells.iter().flatten().filter_map(|cell| cell.value);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let strength = |value: f64| {
        let way = if high > low { (value - low) / (high - low) } else { 0.0 };
        FAINT + (STRONG - FAINT) * way
    };
    let wide = (WIDTH - LEFT - RIGHT) / across.1.len().max(1) as f64;
    let bottom = top + ROW * cells.len() as f64;
    html! {
        text class="strong h" x=(LEFT) y=(top - 34.0) { (title) }
        text x=(LEFT) y=(top - 16.0) { (down.0) " down, " (across.0) " across" }
        @for (row, (label, cells)) in down.1.iter().zip(cells).enumerate() {
            @let y = top + ROW * row as f64;
            text x=(LEFT - 8.0) y=(y + ROW / 2.0 + 4.0) text-anchor="end" { (label) }
            @for (column, cell) in cells.iter().enumerate() {
                @let x = LEFT + wide * column as f64;
                @let class = match (cell.value, cell.is_unsure) {
                    (None, _) => "cell none",
                    (_, true) => "cell unsure",
                    _ => "cell",
                };
                rect class=(class) x=(format!("{x:.1}")) y=(y) width=(format!("{wide:.1}")) height=(ROW)
                    fill-opacity=(format!("{:.3}", cell.value.map_or(0.0, strength))) {}
                text class="number" x=(format!("{:.1}", x + wide / 2.0)) y=(y + ROW / 2.0 + 4.0) text-anchor="middle" {
                    (number::measured_or_dash(cell.value))
                }
            }
        }
        @for (column, label) in across.1.iter().enumerate() {
            text x=(format!("{:.1}", LEFT + wide * (column as f64 + 0.5))) y=(bottom + 18.0) text-anchor="middle" { (label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_is_the_strongest_cell_and_none_is_no_number() {
        let cell = |value: f64| Cell { value: Some(value), is_unsure: value > 5.0 };
        let heat = Heat {
            title: "m",
            across: ("a", vec!["1".to_owned(), "2".to_owned()]),
            down: ("b", vec!["x".to_owned(), "y".to_owned()]),
            cells: vec![vec![cell(1.0), cell(3.0)], vec![Cell::default(), cell(9.0)]],
        };
        let text = picture(&heat, 62.0).into_string();
        let strengths: Vec<&str> = text
            .split("fill-opacity=\"")
            .skip(1)
            .filter_map(|part| part.split('"').next())
            .collect();
        assert_eq!(strengths, ["0.040", "0.155", "0.000", "0.500"]);
        for (class, count) in [("\"cell\"", 2), ("\"cell none\"", 1), ("\"cell unsure\"", 1)] {
            assert_eq!(text.matches(class).count(), count, "{class}");
        }
        assert!(text.contains(">–</text>") && text.contains(">9</text>"), "{text}");
        assert!(text.contains("b down, a across"));
        assert_eq!(height(2), 110.0);
    }
}
