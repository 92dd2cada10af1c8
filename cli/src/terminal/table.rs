//! Tables of plain text.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use launch::output;
use std::collections::BTreeSet;

/// A column of text is not made narrower than this.
const TEXT_LEAST: usize = 16;
/// Characters between two columns.
const GAP: usize = 2;

/// A table with numeric columns to the right; lines have no trailing spaces. On a terminal that is too narrow text is
/// wrapped inside its column, and numeric columns that still do not fit follow below in further tables.
pub(crate) fn table<H: ToString, C: ToString>(
    header: &[H],
    numeric: impl IntoIterator<Item = usize>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
) -> String {
    let cells = |row: &mut dyn Iterator<Item = String>| row.collect::<Vec<_>>();
    let mut lines = vec![cells(&mut header.iter().map(ToString::to_string))];
    lines.extend(
        rows.into_iter().map(|row| cells(&mut row.into_iter().map(|cell| cell.to_string()))),
    );
    fitted(&lines, &numeric.into_iter().collect(), output::terminal().width)
}

/// The table of `lines`, the first of which is the header, in at most `width` columns.
fn fitted(lines: &[Vec<String>], numeric: &BTreeSet<usize>, width: Option<usize>) -> String {
    let columns: Vec<usize> = (0..lines[0].len()).collect();
    let Some(width) = width else { return drawn(lines, &columns, numeric, None) };
    let content = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let is_numeric = |column: &usize| numeric.contains(column);
    let least = |column: &usize| match is_numeric(column) {
        true => content(*column) + GAP,
        false => content(*column).min(TEXT_LEAST) + GAP,
    };
    let (numbers, texts): (Vec<usize>, Vec<usize>) = columns.iter().partition(|c| is_numeric(c));
    let fits = |columns: &[usize]| columns.iter().map(least).sum::<usize>() <= width;
    if numbers.is_empty() || fits(&columns) {
        return drawn(lines, &columns, numeric, Some(width));
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some(part) if fits(&[part, &[number][..]].concat()) => part.push(number),
            _ => parts.push([&texts[..], &[number][..]].concat()),
        }
    }
    let drawn = |part: &Vec<usize>| drawn(lines, part, numeric, Some(width));
    parts.iter().map(drawn).collect::<Vec<_>>().join("\n\n")
}

/// The table of these columns.
fn drawn(
    lines: &[Vec<String>],
    columns: &[usize],
    numeric: &BTreeSet<usize>,
    width: Option<usize>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let chosen = |line: &Vec<String>| -> Vec<String> {
        columns.iter().map(|column| line.get(*column).cloned().unwrap_or_default()).collect()
    };
    table.set_header(chosen(&lines[0]));
    table.add_rows(lines[1..].iter().map(chosen));
    if let Some(width) = width.and_then(|width| u16::try_from(width).ok()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for (index, _) in columns.iter().enumerate().filter(|(_, column)| numeric.contains(column)) {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn a_narrow_terminal_wraps_text_and_keeps_numbers_whole() {
        let long = "a purpose of some words that does not fit into a line of this terminal";
        let lines = lines(&[&["name", "value", "purpose"], &["one", "1234567", long]]);
        let text = fitted(&lines, &BTreeSet::from([1]), Some(50));
        assert!(text.lines().count() > 2 && text.contains("1234567"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert_eq!(fitted(&lines, &BTreeSet::from([1]), None).lines().count(), 2);
    }

    #[test]
    fn numeric_columns_that_do_not_fit_follow_below() {
        let header = ["port", "tx frames", "tx bytes", "rx frames", "rx bytes"];
        let lines = lines(&[&header, &["leaf1:4", "1", "2048", "3", "6144"]]);
        let text = fitted(&lines, &BTreeSet::from([1, 2, 3, 4]), Some(34));
        assert!(text.lines().all(|line| line.chars().count() <= 34), "{text}");
        assert_eq!(text.matches("leaf1:4").count(), 2, "{text}");
        assert!(header[1..].iter().all(|title| text.matches(title).count() == 1), "{text}");
    }
}
