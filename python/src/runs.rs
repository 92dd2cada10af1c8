//! Runs on the virtual clock in this process, and pictures of run directories.

use crate::{detached, error};
use emulation::clock::monotonic_ns;
use launch::experiment::{Conditions, Experiment};
use launch::{substrate, with_sources};
use pyo3::{Py, PyAny, PyErr, PyResult, Python, pyfunction};
use report::Report;
use scenario::Scenario;
use scenario::run::Backend;
use std::path::{Path, PathBuf};

/// Wall time between two looks at signals, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// Runs a scenario file with overrides `KEY=VALUE` on the virtual clock and writes the run directory `folder`. `progress`
/// gets the part of fabric time that has passed, 0 to 1. A signal that raises an exception in Python ends all runs of this
/// process.
#[pyfunction]
#[pyo3(signature = (text, sets, folder, threads, progress=None))]
pub fn run(
    py: Python<'_>,
    text: String,
    sets: Vec<String>,
    folder: PathBuf,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let mut raised: Option<PyErr> = None;
    let ended = detached(py, || {
        let scenario = Scenario::parse(&text, &sets).map_err(error)?;
        let conditions = Conditions::new(substrate(Backend::Virtual), "pausebed.run (Python)");
        let conditions = Conditions { threads, folder: Some(&folder), ..conditions };
        let end_ps = scenario.run.end().as_ps().max(1) as f64;
        let mut due_ns = 0;
        let mut look = |part: f64| {
            if monotonic_ns() < due_ns || raised.is_some() {
                return;
            }
            due_ns = monotonic_ns() + LOOK_NS;
            let said = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |call| call.call1(py, (part,)).map(drop))
            });
            if let Err(error) = said {
                interrupt(true);
                raised = Some(error);
            }
        };
        let run = Experiment::run(&scenario, conditions, &mut |progress| {
            look((progress.at.as_ps() as f64 / end_ps).min(1.0));
        });
        run.map(drop).map_err(|failed| error(with_sources(&failed)))
    });
    match raised {
        Some(raised) => {
            interrupt(false);
            Err(raised)
        }
        None => ended,
    }
}

/// Asks for the end of all runs of this process, or withdraws that.
#[pyfunction]
pub fn interrupt(is_requested: bool) {
    launch::interrupt::request(is_requested);
}

fn load(folder: &Path, baseline: Option<PathBuf>) -> PyResult<Report> {
    Report::load(folder, baseline.as_deref()).map_err(|failed| error(with_sources(&failed)))
}

/// The page `report.html` of a run directory.
#[pyfunction]
#[pyo3(signature = (folder, baseline=None))]
pub fn report_page(py: Python<'_>, folder: PathBuf, baseline: Option<PathBuf>) -> PyResult<String> {
    detached(py, || Ok(load(&folder, baseline)?.page()))
}

/// The figures of a run directory: names and contents of files.
#[pyfunction]
pub fn figures(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<(String, String)>> {
    detached(py, || {
        let files = load(&folder, None)?.figures();
        Ok(files.into_iter().map(|file| (file.name, file.text)).collect())
    })
}
