//! A scratch copy of this repository below the target folder, in which a daemon is built with a fault.
//!
//! It has a build folder of its own: Cargo names objects by their path in the workspace, so in the folder of this build a fault
//! would come into the program. The first build makes all crates below a program.

use super::laboratory::in_repository;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that a build does not need.
const LEFT_OUT: [&str; 3] = ["target", ".git", "docs"];

/// A row of `mutants/edits.toml`.
#[derive(Deserialize)]
struct Edit {
    file: String,
    was: String,
    is: String,
}

#[derive(Deserialize)]
struct Edits {
    edit: Vec<Edit>,
}

/// The text of a file of the repository.
fn original(file: &str) -> String {
    fs::read_to_string(in_repository(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The files of nicd with every fault of `mutants/edits.toml`, each behind a switch.
pub fn edited() -> BTreeMap<String, String> {
    let edits: Edits = toml::from_str(&original("check/dut/mutants/edits.toml")).expect("edits");
    let mut files = BTreeMap::new();
    for Edit { file, was, is } in edits.edit {
        let text = files.entry(file.clone()).or_insert_with(|| original(&file));
        assert_eq!(text.matches(was.as_str()).count(), 1, "{file}: {was}");
        *text = text.replace(was.as_str(), &with_switches(&is));
    }
    files
}

/// Builds nicd with these faults, at low priority. A copy with the same faults as before has nothing to build.
///
/// # Errors
/// What the compiler said.
pub fn build_edited() -> Result<PathBuf, String> {
    let program = std::env::current_exe().expect("a test has a path");
    let target = program.ancestors().nth(3).expect("target/<profile>/deps/<test>");
    let (tree, out) = (target.join("mutants/tree"), target.join("mutants/out"));
    let files = edited();
    copy(&in_repository(""), &tree, &files.keys().map(|file| in_repository(file)).collect());
    for (file, text) in &files {
        write_changed(&tree.join(file), text.as_bytes());
    }
    let mut command = Command::new("nice");
    command.args(["-n", "10", "cargo", "build", "-p", "nicd", "--bin", "nicd"]);
    command.args(["--profile", "quick", "--offline", "--quiet"]).current_dir(&tree);
    let output = command.env("CARGO_TARGET_DIR", &out).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(out.join("quick/nicd")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn write_changed(place: &Path, octets: &[u8]) {
    if fs::read(place).ok().as_deref() != Some(octets) {
        fs::write(place, octets).expect("the copy is ours");
    }
}

/// Replaces `FAULT(name)` by whether the environment names it, which is read once.
fn with_switches(text: &str) -> String {
    let mut parts = text.split("FAULT(");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').expect("FAULT(name)");
        whole += &format!(
            "{{ static ON: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
             std::env::var(\"PAUSEBED_FAULT\").is_ok_and(|on| on == \"{name}\")); *ON }}{rest}"
        );
    }
    whole
}

/// Copies what differs, so that unchanged files keep their times, but for files that are left out.
fn copy(from: &Path, to: &Path, written: &BTreeSet<PathBuf>) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left| name == *left) || written.contains(&path) {
            continue;
        }
        match path.is_dir() {
            true => copy(&path, &to.join(name), written),
            false => write_changed(&to.join(name), &fs::read(&path).expect("a file")),
        }
    }
}
