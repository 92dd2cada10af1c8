//! Results as a table of plain text.

use comfy_table::{CellAlignment, Table, presets};

/// A table; all columns but the first `left` are aligned to the right, and lines have no trailing spaces.
pub(crate) fn table(
    header: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = Vec<String>>,
    left: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
