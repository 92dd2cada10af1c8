//! Summaries of several runs: side by side, spread over seeds, as JSON, and as `suite.json`.

use crate::terminal::table::table;
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use results::wording::{number, word, written};
use scenario::measure::value::Value;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// One run in `suite.json`.
pub struct Row<'a> {
    /// The name of its scenario file without extension.
    pub stem: &'a str,
    /// Its run directory, relative to that of the suite.
    pub folder: &'a Path,
    /// Its result, or why it has none.
    pub result: Result<&'a RunResult, String>,
}

/// All results as one JSON document: the run itself if it is the only one, else a list.
pub fn json(results: &[&RunResult]) -> String {
    let text = match results {
        [single] => serde_json::to_string_pretty(single),
        many => serde_json::to_string_pretty(many),
    };
    text.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string())
}

/// Runs side by side: a row for each measure, a column for each run; for many runs a row for each run.
pub fn comparison(results: &[&RunResult]) -> String {
    if results.len() > 4 {
        return by_run(results);
    }
    let cells = |first: &str, rest: &dyn Fn(&RunResult) -> String| -> Vec<String> {
        std::iter::once(first.to_owned()).chain(results.iter().map(|one| rest(one))).collect()
    };
    let mut rows = vec![cells("verdict", &|result| word(result.verdict).to_owned())];
    rows.extend(
        measures(results)
            .iter()
            .map(|measure| cells(measure, &|result| written(value(result, measure)))),
    );
    table(&cells("", &|result| result.scenario.clone()), 1..=results.len(), rows)
}

/// Many runs: a row for each run.
fn by_run(results: &[&RunResult]) -> String {
    let mut present = vec!["hot_port", "cold_ports_mean"];
    present.retain(|name| results.iter().any(|result| result.measures.contains_key(*name)));
    let rows = results.iter().map(|result| {
        let met = result.expectations.iter().filter(|e| e.verdict == Verdict::Pass).count();
        let mut row = vec![
            result.scenario.clone(),
            word(result.verdict).to_owned(),
            format!("{met}/{}", result.expectations.len()),
        ];
        row.extend(present.iter().map(|name| written(value(result, name))));
        row
    });
    let header = [&["run", "verdict", "expectations"], &present[..]].concat();
    let text = table(&header, 1..=present.len() + 2, rows);
    let passed = results.iter().filter(|result| result.verdict == Verdict::Pass).count();
    format!("{text}\n{passed} of {} runs passed", results.len())
}

/// Mean, standard deviation and extremes of each measure over the seeds of each scenario.
pub fn spread(results: &[&RunResult]) -> String {
    let scenarios: BTreeSet<&str> = results.iter().map(|result| result.scenario.as_str()).collect();
    let mut out = String::new();
    for scenario in scenarios {
        let runs: Vec<&RunResult> =
            results.iter().copied().filter(|result| result.scenario == scenario).collect();
        let rows = measures(&runs).into_iter().map(|measure| {
            let values = runs.iter().filter_map(|run| value(run, &measure).and_then(Value::number));
            let values: Vec<f64> = values.collect();
            let n = values.len().max(1) as f64;
            let mean = values.iter().sum::<f64>() / n;
            let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            let sd = (square / (n - 1.0).max(1.0)).sqrt();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let cells = [mean, sd, least, most].map(|v| number(v.is_finite().then_some(v)));
            [&[measure], &cells[..], &[values.len().to_string()]].concat()
        });
        let text = table(&["measure", "mean", "sd", "min", "max", "seeds"], 1..=5, rows);
        out += &format!("{scenario}, {} seeds\n{text}\n", runs.len());
    }
    out
}

/// Writes `suite.json` into `folder`.
///
/// # Errors
/// If it cannot be written.
pub fn write_suite(folder: &Path, rows: &[Row<'_>]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let runs: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            let at = row.folder.display().to_string();
            match &row.result {
                Ok(result) => json!({
                    "name": row.stem, "scenario": result.scenario, "dir": at, "seed": result.seed,
                    "backend": result.backend, "verdict": result.verdict,
                    "measures": result.measures, "expectations": result.expectations,
                    "lossless_drops": result.lossless_drops,
                    "violations": result.violations,
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
