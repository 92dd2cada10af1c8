//! A scratch copy of this repository below the target folder, in which a daemon is built with a fault.
//!
//! It has a build folder of its own: Cargo names objects by their path in the workspace, so in the folder of this build a fault
//! would come into the program. The first build makes all crates below the daemon, each fault costs one crate more.

use super::laboratory::in_repository;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that a build does not need.
const LEFT_OUT: [&str; 4] = ["target", ".git", "docs", "docker"];

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

/// A mutant that was drawn: a place in a file, as lines and columns from 1, and what replaces its text.
#[derive(Clone, Debug, Deserialize)]
pub struct Drawn {
    pub name: String,
    pub file: String,
    pub from: [usize; 2],
    pub to: [usize; 2],
    pub was: String,
    pub is: String,
    /// Why no case finds it, for mutants that survive.
    #[serde(default)]
    pub survives: Option<String>,
}

impl Drawn {
    /// The package that it is in.
    pub fn package(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }
}

/// The copy.
pub struct Scratch {
    tree: PathBuf,
    out: PathBuf,
}

impl Scratch {
    /// Makes the copy, or brings it to the state of the repository.
    pub fn new() -> Scratch {
        let program = std::env::current_exe().expect("a test has a path");
        let target = program.ancestors().nth(3).expect("target/<profile>/deps/<test>");
        let folder = target.join("mutants");
        let scratch = Scratch { tree: folder.join("tree"), out: folder.join("out") };
        copy(&in_repository(""), &scratch.tree);
        scratch
    }

    /// The text of a file of the repository.
    fn original(file: &str) -> String {
        fs::read_to_string(in_repository(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Builds nicd with every fault of `mutants/edits.toml`.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn build_edited(&self) -> Result<PathBuf, String> {
        let text = Scratch::original("tests/conformance/mutants/edits.toml");
        let edits: Edits = toml::from_str(&text).expect("edits");
        let mut files: Vec<&str> = edits.edit.iter().map(|edit| edit.file.as_str()).collect();
        files.dedup();
        for file in files {
            let mut text = Scratch::original(file);
            for Edit { was, is, .. } in edits.edit.iter().filter(|edit| edit.file == file) {
                assert_eq!(text.matches(was.as_str()).count(), 1, "{file}: {was}");
                text = text.replace(was.as_str(), &with_switches(is));
            }
            self.write(file, &text);
        }
        self.build("nicd")
    }

    /// Builds the daemon with a mutant that was drawn.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn build_drawn(&self, mutant: &Drawn) -> Result<PathBuf, String> {
        let text = Scratch::original(&mutant.file);
        let (from, to) = (offset(&text, mutant.from), offset(&text, mutant.to));
        assert_eq!(text.get(from..to), Some(mutant.was.as_str()), "{}: draw again", mutant.name);
        self.write(&mutant.file, &[&text[..from], &mutant.is, &text[to..]].concat());
        let built = self.build(mutant.package());
        self.write(&mutant.file, &text);
        built
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.tree.join(file), text).expect("the copy is ours");
    }

    /// Builds a daemon at low priority.
    fn build(&self, package: &str) -> Result<PathBuf, String> {
        let mut command = Command::new("nice");
        command.args(["-n", "10", "cargo", "build", "--profile", "quick", "--offline", "--quiet"]);
        command.args(["-p", package, "--bin", package]).current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.out);
        let output = command.output().map_err(|error| format!("cargo: {error}"))?;
        match output.status.success() {
            true => Ok(self.out.join("quick").join(package)),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// Replaces `FAULT(name)` by a look at the environment.
fn with_switches(text: &str) -> String {
    let mut parts = text.split("FAULT(");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').expect("FAULT(name)");
        whole +=
            &format!("std::env::var(\"PAUSEBED_FAULT\").is_ok_and(|on| on == \"{name}\"){rest}");
    }
    whole
}

/// The offset of a line and a column.
pub fn offset(text: &str, [line, column]: [usize; 2]) -> usize {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within: usize = text[before..].chars().take(column - 1).map(char::len_utf8).sum();
    before + within
}

/// Copies what differs, so that unchanged files keep their times.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left| name == *left) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name));
            continue;
        }
        let octets = fs::read(&path).expect("a file");
        let place = to.join(name);
        if fs::read(&place).ok().as_ref() != Some(&octets) {
            fs::write(&place, octets).expect("the copy is ours");
        }
    }
}
