//! Scenario files from the command line: read, checked, and refused all together.

use super::Exit;
use scenario::files::{Loaded, load};
use std::path::{Path, PathBuf};

/// Reads all files; faults of every one of them go to standard error.
///
/// # Errors
/// [`Exit::Usage`] if any file has a fault.
pub fn load_all(files: &[PathBuf], sets: &[String]) -> Result<Vec<Loaded>, Exit> {
    let mut loaded = Vec::with_capacity(files.len());
    let mut faulty = false;
    for file in files {
        match load(file, sets) {
            Ok(scenario) => {
                for warning in &scenario.scenario.warnings {
                    eprintln!("{}: warning: {}", scenario.file.display(), warning.message);
                }
                loaded.push(scenario);
            }
            Err(faults) => {
                eprintln!("{}", faults.trim_end());
                faulty = true;
            }
        }
    }
    if faulty { Err(Exit::Usage) } else { Ok(loaded) }
}

/// The scenario files of a folder, by name; those of folders below it are not its own.
///
/// # Errors
/// [`Exit::Usage`] with a word on standard error if there are none.
pub fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, Exit> {
    let listed = std::fs::read_dir(folder).map_err(|error| {
        eprintln!("{}: {error}", folder.display());
        Exit::Usage
    })?;
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    if files.is_empty() {
        eprintln!("{}: no scenario files (*.toml) here", folder.display());
        return Err(Exit::Usage);
    }
    Ok(files)
}
