//! The native part of the Python package `pausebed`: runs, tables, frames and scenario files.
//!
//! It exchanges texts, octets and tables only. What Python can state as well is in `pausebed/`, which documents it.

use pyo3::exceptions::PyException;
use pyo3::{PyErr, PyResult, Python, create_exception, pymodule};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod frames;
mod runs;
mod scenarios;
mod tables;

create_exception!(pausebed, Error, PyException, "What pausebed cannot do, and why.");

/// An error of this package.
fn error(why: impl Display) -> PyErr {
    Error::new_err(why.to_string())
}

/// Runs `work` without the lock of the interpreter. A panic, which is a defect of the program, becomes an error.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    let caught = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    caught.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(error(format!("a defect of pausebed: {}", said.unwrap_or("it panicked"))))
    })
}

/// The module `pausebed._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::Error;
    #[pymodule_export]
    use super::frames::{decode_capture, decode_frame, encode_frame, icrc, vcrc, verify_capture};
    #[pymodule_export]
    use super::runs::{figures, interrupt, report_page, run};
    #[pymodule_export]
    use super::scenarios::{keys, problems, resolved, schema};
    #[pymodule_export]
    use super::tables::Table;
}
