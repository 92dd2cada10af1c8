//! `report.html`: one run, or one beside its baseline, on one page that needs no network and reads
//! without its script (seeing.md 4, 5).
//!
//! The page is made from the files of run directories alone, so it can be made again at any time and is
//! the same to the octet. A file a part of the page; pictures are put together from [`crate::chart`].

use crate::report::data::Run;
use crate::report::facts::Facts;
use std::path::{Path, PathBuf};

pub mod columns;
mod completion;
pub mod data;
pub mod fabric;
mod facts;
mod figure;
mod heat;
pub mod layout;
mod leaves;
pub mod page;
mod pauses;
mod ports;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

pub use columns::base64;
pub use data::ReportError;

/// Its name in a run directory.
pub const FILE: &str = "report.html";

/// The page of a run directory, beside that of a baseline if there is one.
///
/// # Errors
/// If a file of them is missing or is not what a run writes.
pub fn page(folder: &Path, baseline: Option<&Path>) -> Result<String, ReportError> {
    let run = Run::load(folder)?;
    let base = baseline.map(Run::load).transpose()?;
    Ok(page::html(&Facts::of(&run, base.as_ref())))
}

/// Writes `report.html` into `folder`, from the files there; answers where it is.
///
/// # Errors
/// As [`page`], or if it cannot be written.
pub fn write(folder: &Path, baseline: Option<&Path>) -> Result<PathBuf, ReportError> {
    let file = folder.join(FILE);
    let text = page(folder, baseline)?;
    match std::fs::write(&file, text) {
        Ok(()) => Ok(file),
        Err(source) => Err(ReportError::Write { file, source }),
    }
}
