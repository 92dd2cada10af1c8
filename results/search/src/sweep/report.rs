//! The result of a sweep as a table, CSV and JSON.

use super::outcome::Cell;
use super::{Sweep, Swept};
use crate::table::table;
use results::verdict::Verdict;
use results::wording::{number, word};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

/// A table with a row for each point and a column for each measure; then the expectations.
pub fn text(sweep: &Sweep, swept: &Swept) -> String {
    let shown = sweep.shown(&swept.rows);
    let axes = sweep.axes.iter().map(|axis| axis.name.clone());
    let header = axes.chain(["verdict".to_owned()]).chain(shown.iter().cloned());
    let rows = swept.rows.iter().map(|row| {
        let cells = shown.iter().map(|name| written(row.cells.get(name)));
        let labels = row.point.labels.iter().cloned();
        labels.chain([word(row.verdict).to_owned()]).chain(cells).collect()
    });
    let seeds =
        if sweep.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", sweep.seeds) };
    let table = table(header, rows, 0);
    let mut out = format!("{}, {} points, {seeds}\n{table}\n", sweep.name, swept.rows.len());
    for row in &swept.rows {
        let Some(drops) = &row.lossless_drops else { continue };
        out += &format!("\n  {} ({})", drops.line(true), row.point.labels.join(", "));
    }
    for judged in &swept.judged {
        let values: Vec<String> = judged.values.iter().map(|value| number(*value)).collect();
        let mark = if judged.verdict == Verdict::Pass { "ok  " } else { "FAIL" };
        out += &format!("\n  {mark} {}: {}", judged.expectation, values.join(", "));
    }
    out
}

fn written(cell: Option<&Cell>) -> String {
    let mean = number(cell.and_then(|cell| cell.mean));
    match cell.and_then(|cell| cell.deviation) {
        Some(deviation) => format!("{mean} ± {}", number(Some(deviation))),
        None => mean,
    }
}

/// The document of `--json`, and `sweep.json`.
pub fn json(sweep: &Sweep, swept: &Swept) -> Value {
    let points = swept.rows.iter().map(|row| {
        let axes = sweep.axes.iter().map(|axis| &axis.name);
        let at: BTreeMap<_, _> = axes.zip(&row.point.labels).collect();
        json!({
            "at": at, "set": row.point.sets, "verdict": row.verdict, "measures": row.cells,
            "lossless_drops": row.lossless_drops,
        })
    });
    json!({
        "schema": 1,
        "name": sweep.name,
        "source": sweep.source,
        "base": sweep.base,
        "set": sweep.sets,
        "seeds": sweep.seeds,
        "points": points.collect::<Vec<_>>(),
        "expectations": swept.judged,
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
            let plain = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let (mean, deviation) = (plain(cell.mean), plain(cell.deviation));
            let figures = [name, &mean, &deviation, word(row.verdict)];
            let labels = row.point.labels.iter().map(String::as_str);
            writer.write_record(labels.chain(figures))?;
        }
    }
    Ok(writer.flush()?)
}
