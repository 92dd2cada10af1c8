//! `report.html`: one run, or one beside its baseline, on one page that needs no network and reads
//! without its script (seeing.md 4, 5).
//!
//! The page is made from the files of run directories alone, so it can be made again at any time and is
//! the same to the octet. A file a part of the page; pictures are put together from [`crate::chart`].

use crate::report::data::Run;
use crate::report::facts::Facts;
use crate::report::figure::Figure;
use std::path::{Path, PathBuf};

pub mod columns;
mod completion;
pub mod data;
pub mod fabric;
mod facts;
mod figure;
pub mod figures;
pub mod layout;
pub mod page;
mod pauses;
mod ports;
pub mod sheet;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;
mod waiters;

pub use columns::base64;
pub use data::ReportError;

/// Its name in a run directory.
pub const FILE: &str = "report.html";

/// A run, perhaps beside a baseline, as its files tell it.
#[derive(Debug)]
pub struct Report {
    run: Run,
    base: Option<Run>,
}

impl Report {
    /// Reads run directories.
    ///
    /// # Errors
    /// If a file of them is missing or is not what a run writes.
    pub fn load(folder: &Path, baseline: Option<&Path>) -> Result<Report, ReportError> {
        let run = Run::load(folder)?;
        Ok(Report { run, base: baseline.map(Run::load).transpose()? })
    }

    /// The page.
    pub fn page(&self) -> String {
        let facts = Facts::of(&self.run, self.base.as_ref());
        page::html(&facts, &Figure::of(&facts))
    }

    /// Its figures as files.
    pub fn figures(&self) -> Vec<figures::File> {
        let facts = Facts::of(&self.run, self.base.as_ref());
        figures::files(&facts, &Figure::of(&facts))
    }
}

/// Writes `report.html` into `folder`, from the files there; answers where it is.
///
/// # Errors
/// As [`Report::load`], or if it cannot be written.
pub fn write(folder: &Path, baseline: Option<&Path>) -> Result<PathBuf, ReportError> {
    let file = folder.join(FILE);
    let text = Report::load(folder, baseline)?.page();
    match std::fs::write(&file, text) {
        Ok(()) => Ok(file),
        Err(source) => Err(ReportError::Write { file, source }),
    }
}
