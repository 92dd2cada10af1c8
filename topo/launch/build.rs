//! Sets the commit of the build for the program.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=PAUSEBED_COMMIT={commit}");
}

/// What HEAD points at, read from git's own files: no program needs to be there.
fn commit() -> Option<String> {
    let git = git_folder(Path::new("../../.git"))?;
    let head = watched(&git.join("HEAD"))?;
    let hash = match head.trim().strip_prefix("ref: ") {
        Some(reference) => {
            // In a second work tree branches are kept with the first.
            let common = fs::read_to_string(git.join("commondir")).unwrap_or_default();
            let shared = git.join(common.trim());
            watched(&shared.join(reference)).or_else(|| watched(&git.join(reference)))?
        }
        None => head,
    };
    Some(hash.trim().chars().take(12).collect())
}

/// The folder itself, or the folder that the file of a second work tree names.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let file = fs::read_to_string(git).ok()?;
    Some(PathBuf::from(file.trim().strip_prefix("gitdir: ")?))
}

/// The text of a file; cargo builds again when it changes.
fn watched(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    println!("cargo:rerun-if-changed={}", file.display());
    Some(text)
}
