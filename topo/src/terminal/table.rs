//! Tables of plain text.

use comfy_table::{CellAlignment, Table, presets};

/// A table with numeric columns to the right; lines have no trailing spaces.
pub(crate) fn table<H: ToString, C: ToString>(
    header: &[H],
    numeric: impl IntoIterator<Item = usize>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(ToString::to_string));
    table.add_rows(rows.into_iter().map(|row| row.into_iter().map(|cell| cell.to_string())));
    for column in numeric {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
