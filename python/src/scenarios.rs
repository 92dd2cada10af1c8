//! Scenario files: what is wrong with them, and their JSON Schema.

use crate::{detached, error};
use pyo3::{PyResult, Python, pyfunction};
use scenario::Scenario;
use scenario::files;
use scenario::keyfile::problem::Problem;
use std::path::PathBuf;

/// Line (0 for an override), key, message, hint.
type Row = (usize, String, String, String);

fn row(problem: &Problem) -> Row {
    let Problem { place, path, message, hint, .. } = problem.clone();
    (place.line(), path, message, hint)
}

/// The faults and the warnings of a scenario file with overrides `KEY=VALUE`.
#[pyfunction]
pub fn problems(py: Python<'_>, text: String, sets: Vec<String>) -> PyResult<(Vec<Row>, Vec<Row>)> {
    detached(py, || {
        Ok(match Scenario::parse(&text, &sets) {
            Ok(scenario) => (Vec::new(), scenario.warnings.iter().map(row).collect()),
            Err(problems) => (problems.iter().map(row).collect(), Vec::new()),
        })
    })
}

/// The text of a scenario file with what it takes from the files that it varies, or its faults.
#[pyfunction]
pub fn resolved(text: &str, file: PathBuf) -> (Vec<Row>, String) {
    match files::with_bases(text, &file) {
        Ok(resolved) => (Vec::new(), resolved.text),
        Err(problems) => (problems.iter().map(row).collect(), String::new()),
    }
}

/// The JSON Schema of a scenario file, as JSON.
#[pyfunction]
pub fn schema() -> String {
    scenario::schema().to_string()
}

/// The keys of a TOML text, as JSON.
#[pyfunction]
pub fn keys(text: &str) -> PyResult<String> {
    toml::from_str::<serde_json::Value>(text).map(|value| value.to_string()).map_err(error)
}
