//! Many runs as one table: side by side, spread over seeds, as JSON, and as `suite.json`.

use comfy_table::{CellAlignment, Table, presets};
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use results::wording::{number, word, written};
use scenario::measure::value::Value;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// One run in `suite.json`.
pub struct Row<'a> {
    /// Its scenario file without ending.
    pub stem: &'a str,
    /// Where its files are.
    pub folder: &'a Path,
    /// What came of it.
    pub result: Result<&'a RunResult, String>,
}

/// All results as one JSON document: the run itself if there is one, else a list.
pub fn json(results: &[&RunResult]) -> String {
    let text = match results {
        [single] => serde_json::to_string_pretty(single),
        many => serde_json::to_string_pretty(many),
    };
    text.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string())
}

/// Runs side by side: a row a measure, a column a run.
pub fn comparison(results: &[&RunResult]) -> String {
    let mut table = plain_table();
    let names = results.iter().map(|result| result.scenario.clone());
    table.set_header(std::iter::once(String::new()).chain(names));
    let verdicts = results.iter().map(|result| word(result.verdict).to_owned());
    table.add_row(std::iter::once("verdict".to_owned()).chain(verdicts));
    for measure in measures(results) {
        let values = results.iter().map(|result| written(value(result, &measure)));
        table.add_row(std::iter::once(measure.clone()).chain(values));
    }
    if results.len() > 4 {
        return by_run(results);
    }
    right_aligned(table, results.len())
}

/// Many runs: a row a run.
fn by_run(results: &[&RunResult]) -> String {
    let mut table = plain_table();
    let leading = ["hot_port", "cold_ports_mean"];
    let present: Vec<&str> = leading
        .into_iter()
        .filter(|name| results.iter().any(|r| r.measures.contains_key(*name)))
        .collect();
    let mut header = vec!["run".to_owned(), "verdict".to_owned(), "expectations".to_owned()];
    header.extend(present.iter().map(|name| (*name).to_owned()));
    table.set_header(header);
    for result in results {
        let met = result.expectations.iter().filter(|e| e.verdict == Verdict::Pass).count();
        let mut row = vec![
            result.scenario.clone(),
            word(result.verdict).to_owned(),
            format!("{met}/{}", result.expectations.len()),
        ];
        row.extend(present.iter().map(|name| written(value(result, name))));
        table.add_row(row);
    }
    let passed = results.iter().filter(|result| result.verdict == Verdict::Pass).count();
    format!(
        "{}\n{passed} of {} runs passed",
        right_aligned(table, present.len() + 2),
        results.len()
    )
}

/// Mean, spread and extremes of each measure over runs of one scenario with several seeds.
pub fn spread(results: &[&RunResult]) -> String {
    let scenarios: BTreeSet<&str> = results.iter().map(|result| result.scenario.as_str()).collect();
    let mut out = String::new();
    for scenario in scenarios {
        let runs: Vec<&RunResult> =
            results.iter().copied().filter(|result| result.scenario == scenario).collect();
        let mut table = plain_table();
        table.set_header(["measure", "mean", "sd", "min", "max", "seeds"]);
        for measure in measures(&runs) {
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|run| value(run, &measure).and_then(Value::number))
                .collect();
            let n = values.len().max(1) as f64;
            let mean = values.iter().sum::<f64>() / n;
            let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            let sd = (square / (n - 1.0).max(1.0)).sqrt();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let cells = [mean, sd, least, most].map(|v| number(v.is_finite().then_some(v)));
            let row = std::iter::once(measure.clone()).chain(cells);
            table.add_row(row.chain(std::iter::once(values.len().to_string())));
        }
        out += &format!("{scenario}, {} seeds\n{}\n", runs.len(), right_aligned(table, 5));
    }
    out
}

/// Writes `suite.json` into `folder`.
///
/// # Errors
/// If it cannot be written.
pub fn write_suite(folder: &Path, rows: Vec<Row<'_>>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let runs: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            let at = row.folder.strip_prefix(folder).unwrap_or(row.folder).display().to_string();
            match &row.result {
                Ok(result) => json!({
                    "name": row.stem, "scenario": result.scenario, "dir": at, "seed": result.seed,
                    "backend": result.backend, "verdict": result.verdict,
                    "measures": result.measures, "expectations": result.expectations,
                }),
                Err(error) => json!({ "name": row.stem, "dir": at, "error": error }),
            }
        })
        .collect();
    let count = |wanted| {
        let of = |row: &&Row<'_>| row.result.as_ref().is_ok_and(|r| r.verdict == wanted);
        rows.iter().filter(of).count()
    };
    let suite = json!({
        "schema": 1,
        "runs": runs,
        "pass": count(Verdict::Pass),
        "fail": count(Verdict::Fail),
        "inconclusive": count(Verdict::Inconclusive),
        "error": rows.iter().filter(|row| row.result.is_err()).count(),
    });
    std::fs::write(folder.join("suite.json"), format!("{suite:#}\n"))
}

fn measures(results: &[&RunResult]) -> Vec<String> {
    let all = results.iter().flat_map(|result| result.measures.keys().cloned());
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn value<'a>(result: &'a RunResult, measure: &str) -> Option<&'a Value> {
    result.measures.get(measure)?.as_ref()
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn right_aligned(mut table: Table, columns: usize) -> String {
    for column in 1..=columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
