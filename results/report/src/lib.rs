//! `report.html`: a run, or a run beside its baseline, on one page that needs no network and can be read
//! without its script (docs/spec/seeing.md 4, 5).
//!
//! The page is made from the files of run directories alone, so it can be made again at any time with the same
//! octets. Each part of the page has a file; [`chart`] has the pictures.

use crate::data::Run;
use crate::facts::Facts;
use crate::figure::Figure;
use crate::reference::{Calibration, Reference};
use std::path::{Path, PathBuf};

mod columns;
pub mod compare;
mod completion;
pub mod data;
pub mod export;
pub mod fabric;
mod facts;
mod figure;
mod figure_head;
mod figures;
pub mod graph;
mod heat;
pub mod layout;
pub mod leaves;
mod longest_waits;
pub mod page;
mod pauses;
mod ports;
pub mod reference;
mod sheet;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

pub use data::ReportError;

/// Its name in a run directory.
pub const FILE: &str = "report.html";

/// A run, and optionally its baseline.
#[derive(Debug)]
pub struct Report {
    run: Run,
    base: Option<Run>,
    references: Vec<Reference>,
}

impl Report {
    /// Reads run directories.
    ///
    /// # Errors
    /// If a file is missing or is not what a run writes.
    pub fn load(folder: &Path, baseline: Option<&Path>) -> Result<Report, ReportError> {
        let run = Run::load(folder)?;
        let base = baseline.map(Run::load).transpose()?;
        Ok(Report { run, base, references: Vec::new() })
    }

    /// Adds published points or pictures for comparison.
    ///
    /// # Errors
    /// If a file is not a reference, or two are pictures.
    pub fn refer(
        &mut self,
        files: &[PathBuf],
        calibration: Option<&Calibration>,
    ) -> Result<(), String> {
        let facts = Facts::of(&self.run, self.base.as_ref());
        let figure = Figure::of(&facts);
        let read = |file: &PathBuf| reference::read(file, calibration, &figure);
        let references = files.iter().map(read).collect::<Result<Vec<Reference>, _>>()?;
        let pictures = references.iter().filter(|one| matches!(one, Reference::Picture(_))).count();
        match (pictures, calibration) {
            (2.., _) => Err("a page has one picture beside it".to_owned()),
            (0, Some(_)) => Err("--over lays a picture, and there is none".to_owned()),
            _ => {
                self.references = references;
                Ok(())
            }
        }
    }

    /// The page.
    pub fn page(&self) -> String {
        let facts = Facts::of(&self.run, self.base.as_ref());
        page::html(&facts, &Figure::of(&facts).beside(&self.references))
    }

    /// The figures as files.
    pub fn figures(&self) -> Vec<figures::File> {
        let facts = Facts::of(&self.run, self.base.as_ref());
        figures::files(&facts, &Figure::of(&facts).beside(&self.references))
    }
}

/// Writes `report.html` into `folder` from the files there; returns its path.
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
