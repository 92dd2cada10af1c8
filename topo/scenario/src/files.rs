//! Scenario files read from the file system.

use crate::Scenario;
use crate::keyfile::problem::Problems;
use crate::keyfile::variant::{Resolved, resolve};
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

/// Reads one file, with the files that it varies, and overrides.
///
/// # Errors
/// Every fault of the file, ready to be printed.
pub fn load(file: &Path, sets: &[String]) -> Result<Loaded, String> {
    let scenario = parse(&read(file)?, sets);
    let scenario = scenario.map_err(|faults| with_pages(&faults, &file.display().to_string()))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Loaded { file: file.to_owned(), stem, scenario })
}

/// Reads one file, with the files that it varies.
///
/// # Errors
/// If one cannot be read, ready to be printed.
pub fn read(file: &Path) -> Result<Resolved, String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    with_bases(&text, file).map_err(|faults| with_pages(&faults, &name))
}

/// The text of `file` with the files that it varies.
///
/// # Errors
/// If the text is not TOML, a base cannot be read, or `without` names what the base does not have.
pub fn with_bases(text: &str, file: &Path) -> Result<Resolved, Problems> {
    let mut open = |base: &Path| {
        std::fs::read_to_string(base).map_err(|error| format!("{}: {error}", base.display()))
    };
    resolve(text, file, &mut open)
}

/// The scenario of a file, with overrides.
///
/// # Errors
/// Every fault, at its place in the file or its base.
pub fn parse(resolved: &Resolved, sets: &[String]) -> Result<Scenario, Problems> {
    let parsed = Scenario::parse(&resolved.text, sets);
    let mut scenario = parsed.map_err(|faults| faults.changed(|fault| resolved.locate(fault)))?;
    scenario.warnings.iter_mut().for_each(|warning| resolved.locate(warning));
    Ok(scenario)
}

/// The faults of a file, and the pages that explain their keys.
pub fn with_pages(faults: &Problems, file: &str) -> String {
    let pages: BTreeSet<&str> = faults.iter().map(|fault| pages::of_key(&fault.path)).collect();
    let pages = pages.into_iter().collect::<Vec<_>>().join(", ");
    format!("{}see {pages}\n", faults.in_file(file))
}
