//! The result of a sweep as a table, CSV and JSON.

use super::outcome::{Cell, Row};
use super::{Sweep, Swept};
use comfy_table::{CellAlignment, Table, presets};
use results::verdict::Verdict;
use results::wording::{number, word};
use serde_json::json;
use std::io::Write;

/// A table with a row for each point and a column for each measure; then the expectations.
pub fn text(sweep: &Sweep, swept: &Swept) -> String {
    let shown = sweep.shown(&swept.rows);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let axes = sweep.axes.iter().map(|axis| axis.name.clone());
    table.set_header(axes.chain(["verdict".to_owned()]).chain(shown.iter().cloned()));
    for row in &swept.rows {
        let cells = shown.iter().map(|name| written(row.cells.get(name)));
        let labels = row.point.labels.iter().cloned();
        table.add_row(labels.chain([word(row.verdict).to_owned()]).chain(cells));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let seeds =
        if sweep.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", sweep.seeds) };
    let mut out = format!("{}, {} points, {seeds}\n", sweep.name, swept.rows.len());
    for line in table.to_string().lines() {
        out += line.trim_end();
        out.push('\n');
    }
    for judged in &swept.judged {
        let values: Vec<String> = judged.values.iter().map(|value| number(*value)).collect();
        let mark = if judged.verdict == Verdict::Pass { "ok  " } else { "FAIL" };
        out += &format!("\n  {mark} {}: {}", judged.expectation, values.join(", "));
    }
    out
}

fn written(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell { mean, deviation: Some(deviation) }) => {
            format!("{} ± {}", number(*mean), number(Some(*deviation)))
        }
        Some(Cell { mean, .. }) => number(*mean),
        None => number(None),
    }
}

/// The document of `--json`, and `sweep.json`.
pub fn json(sweep: &Sweep, swept: &Swept) -> serde_json::Value {
    let rows: Vec<_> = swept
        .rows
        .iter()
        .map(|row| {
            let at = sweep.axes.iter().map(|axis| axis.name.clone()).zip(&row.point.labels);
            let at: serde_json::Map<String, serde_json::Value> =
                at.map(|(axis, label)| (axis, json!(label))).collect();
            let of = |(name, cell): (&String, &Cell)| {
                let value = json!({ "mean": cell.mean, "deviation": cell.deviation });
                (name.clone(), value)
            };
            let measures: serde_json::Map<String, serde_json::Value> =
                row.cells.iter().map(of).collect();
            json!({ "at": at, "set": row.point.sets, "verdict": row.verdict, "measures": measures })
        })
        .collect();
    let expectations: Vec<_> = swept
        .judged
        .iter()
        .map(|judged| {
            json!({
                "expectation": judged.expectation,
                "values": judged.values,
                "verdict": judged.verdict,
            })
        })
        .collect();
    json!({
        "schema": 1,
        "name": sweep.name,
        "source": sweep.source,
        "base": sweep.base,
        "set": sweep.sets,
        "seeds": sweep.seeds,
        "points": rows,
        "expectations": expectations,
        "verdict": swept.verdict(),
    })
}

/// `sweep.csv`: a row for each point and measure.
///
/// # Errors
/// If it cannot be written.
pub fn csv(sweep: &Sweep, swept: &Swept, into: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(into);
    let axes = sweep.axes.iter().map(|axis| axis.name.as_str());
    writer.write_record(axes.chain(["measure", "mean", "deviation", "verdict"]))?;
    for row in &swept.rows {
        for (name, cell) in &row.cells {
            writer.write_record(record(row, name, cell))?;
        }
    }
    writer.flush()?;
    Ok(())
}

fn record(row: &Row, name: &str, cell: &Cell) -> Vec<String> {
    let plain = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let values =
        [name.to_owned(), plain(cell.mean), plain(cell.deviation), word(row.verdict).to_owned()];
    row.point.labels.iter().cloned().chain(values).collect()
}
