//! Scenario files from the command line.

use crate::exit::Failure;
use scenario::files::{Loaded, load};
use std::path::{Path, PathBuf};

/// Reads all files and prints their warnings.
///
/// # Errors
/// The faults of all files.
pub(super) fn load_all(files: &[PathBuf], sets: &[String]) -> Result<Vec<Loaded>, Failure> {
    let mut loaded = Vec::with_capacity(files.len());
    let mut faults = String::new();
    for file in files {
        match load(file, sets) {
            Ok(scenario) => {
                for warning in &scenario.scenario.warnings {
                    eprintln!("{}", warning.as_warning(&scenario.file));
                }
                loaded.push(scenario);
            }
            Err(found) => faults += &format!("{}\n", found.trim_end()),
        }
    }
    if faults.is_empty() { Ok(loaded) } else { Err(Failure::usage(faults)) }
}

/// Reads one file and prints its warnings.
///
/// # Errors
/// The faults of the file.
pub(super) fn load_one(file: &Path, sets: &[String]) -> Result<Loaded, Failure> {
    Ok(load_all(&[file.to_owned()], sets)?.remove(0))
}

/// The scenario files of a folder, sorted by name, without those of subfolders.
///
/// # Errors
/// If the folder cannot be read or has none.
pub(super) fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let listed = std::fs::read_dir(folder).map_err(Failure::bad_file(folder))?;
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(Failure::bad_file(folder)("no scenario files (*.toml) here"));
    }
    Ok(files)
}
