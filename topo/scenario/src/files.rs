//! Scenario files read from the file system.

use crate::Scenario;
use crate::keyfile::problem::Problems;
use crate::pages;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A scenario with the file it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The file.
    pub file: PathBuf,
    /// The file's name without folder and ending: names its run directory.
    pub stem: String,
    /// Its contents.
    pub scenario: Scenario,
}

/// Reads one file with overrides.
///
/// # Errors
/// Every fault of the file, ready to be printed.
pub fn load(file: &Path, sets: &[String]) -> Result<Loaded, String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let scenario = Scenario::parse(&text, sets).map_err(|faults| with_pages(&faults, &name))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Loaded { file: file.to_owned(), stem, scenario })
}

/// The faults of a file, and the pages that explain their keys.
pub fn with_pages(faults: &Problems, file: &str) -> String {
    let pages: BTreeSet<&str> = faults.iter().map(|fault| pages::of_key(&fault.path)).collect();
    let pages = pages.into_iter().collect::<Vec<_>>().join(", ");
    format!("{}see {pages}\n", faults.in_file(file))
}
