//! A scratch copy of this repository below the target folder, in which a daemon is built with a fault.
//!
//! It has a build folder of its own: Cargo names objects by their path in the workspace, so in the folder of this build a fault
//! would come into the program. The first build makes all crates below a program.

use super::laboratory::in_repository;
use super::schema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
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

/// A mutant that was drawn: a place in a file, and what replaces its text.
#[derive(Clone, Debug, Deserialize)]
pub struct Drawn {
    pub name: String,
    pub file: String,
    /// Line and column, from 1, when it was drawn.
    pub from: [usize; 2],
    /// The text of that line, by which it is found again after lines before it have changed.
    pub line: String,
    pub was: String,
    pub is: String,
    /// Why it behaves as what it replaces.
    pub equivalent: Option<String>,
    /// Why no case finds it, for other mutants that survive.
    pub survives: Option<String>,
}

impl Drawn {
    /// The package that it is in.
    pub fn package(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }

    /// The octets of its file that it replaces.
    pub fn place(&self, text: &str) -> Range<usize> {
        let [line, column] = self.from;
        let is_it = |(_, text): &(usize, &str)| *text == self.line;
        let lines = (1..).zip(text.lines()).filter(is_it).map(|(number, _)| number);
        let nearest = lines.min_by_key(|number| number.abs_diff(line));
        let start = nearest.map_or(text.len(), |line| offset(text, [line, column]));
        let place = start..start + self.was.len();
        assert_eq!(text.get(place.clone()), Some(self.was.as_str()), "{}: draw again", self.name);
        place
    }
}

/// `pausebed` with mutants.
pub struct Built {
    pub program: PathBuf,
    /// Those that do not build, by number, with the error of the compiler.
    pub unbuildable: BTreeMap<usize, String>,
    /// Those that are not in it, and may be built alone.
    pub alone: Vec<usize>,
}

/// The copy.
pub struct Scratch {
    tree: PathBuf,
    out: PathBuf,
}

impl Scratch {
    /// Makes the copy, or brings it to the state of the repository, but for the files that a build writes: a build with the
    /// same faults as before has nothing to do.
    pub fn new<'a>(written: impl Iterator<Item = &'a str>) -> Scratch {
        let program = std::env::current_exe().expect("a test has a path");
        let target = program.ancestors().nth(3).expect("target/<profile>/deps/<test>");
        let folder = target.join("mutants");
        let scratch = Scratch { tree: folder.join("tree"), out: folder.join("out") };
        let written: BTreeSet<PathBuf> = written.map(in_repository).collect();
        copy(&in_repository(""), &scratch.tree, &written);
        scratch
    }

    /// The text of a file of the repository.
    fn original(file: &str) -> String {
        fs::read_to_string(in_repository(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The files of nicd with every fault of `mutants/edits.toml`, each behind a switch.
    pub fn edited() -> BTreeMap<String, String> {
        let text = Scratch::original("tests/dut/mutants/edits.toml");
        let edits: Edits = toml::from_str(&text).expect("edits");
        let mut files = BTreeMap::new();
        for Edit { file, was, is } in edits.edit {
            let original = || Scratch::original(&file);
            let text = files.entry(file.clone()).or_insert_with(original);
            assert_eq!(text.matches(was.as_str()).count(), 1, "{file}: {was}");
            *text = text.replace(was.as_str(), &with_switches(&is));
        }
        files
    }

    /// Builds nicd with these faults.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn build_edited() -> Result<PathBuf, String> {
        let files = Scratch::edited();
        let scratch = Scratch::new(files.keys().map(String::as_str));
        for (file, text) in &files {
            scratch.write(file, text);
        }
        scratch.build("nicd", "nicd")
    }

    /// Builds `pausebed` with all mutants that were drawn but those known to be `unbuildable`. `PAUSEBED_FAULT` names one by
    /// its number.
    pub fn build_drawn(
        &self,
        mutants: &[Drawn],
        mut unbuildable: BTreeMap<usize, String>,
    ) -> Built {
        let mut alone = Vec::new();
        let write = |unbuildable: &BTreeMap<usize, String>| {
            alone.clear();
            for (file, mut wanted) in by_file(mutants) {
                wanted.retain(|(number, _)| !unbuildable.contains_key(number));
                self.write_switched(file, |text| {
                    let (text, left_out) = schema::insert(text, &wanted);
                    alone.extend(left_out);
                    text
                });
            }
        };
        let program =
            self.build_without(&mut unbuildable, write, || self.build("topo", "pausebed"));
        Built { program, unbuildable, alone }
    }

    /// Builds until the compiler blames no mutant: `write` writes all but those that are `unbuildable`.
    pub fn build_without<T>(
        &self,
        unbuildable: &mut BTreeMap<usize, String>,
        mut write: impl FnMut(&BTreeMap<usize, String>),
        build: impl Fn() -> Result<T, String>,
    ) -> T {
        loop {
            write(unbuildable);
            let said = match build() {
                Ok(built) => return built,
                Err(said) => said,
            };
            let text_of = |file: &str| fs::read_to_string(self.tree.join(file)).unwrap_or_default();
            let blamed = schema::blamed(&said, text_of);
            assert!(blamed.keys().any(|number| !unbuildable.contains_key(number)), "{said}");
            unbuildable.extend(blamed);
        }
    }

    /// Builds `pausebed` with one of the mutants, which holds always.
    ///
    /// # Errors
    /// The first error of the compiler.
    pub fn build_alone(&self, mutants: &[Drawn], number: usize) -> Result<PathBuf, String> {
        for (file, mutants) in by_file(mutants) {
            let mut text = Scratch::original(file);
            if let Some((_, mutant)) = mutants.iter().find(|(known, _)| *known == number) {
                text.replace_range(mutant.place(&text), &mutant.is);
            }
            self.write(file, &text);
        }
        self.build("topo", "pausebed").map_err(|said| {
            said.lines().find(|line| line.starts_with("error")).unwrap_or(&said).to_owned()
        })
    }

    /// Writes a file as `insert` changes it, with switches for `FAULT(name)`.
    pub fn write_switched(&self, file: &str, insert: impl FnOnce(&str) -> String) {
        self.write(file, &with_switches(&insert(&Scratch::original(file))));
    }

    /// Writes what differs, so that unchanged files keep their times.
    fn write(&self, file: &str, text: &str) {
        write_changed(&self.tree.join(file), text.as_bytes());
    }

    /// Builds a program.
    pub fn build(&self, package: &str, program: &str) -> Result<PathBuf, String> {
        self.cargo(&["build", "-p", package, "--bin", program])?;
        Ok(self.out.join("quick").join(program))
    }

    /// What Cargo prints. It builds at low priority.
    pub fn cargo(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("nice");
        command.args(["-n", "10", "cargo"]).args(words).current_dir(&self.tree);
        command.args(["--profile", "quick", "--offline", "--quiet"]);
        command.env("CARGO_TARGET_DIR", &self.out);
        let output = command.output().map_err(|error| format!("cargo: {error}"))?;
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

/// The mutants of each file, with their numbers.
fn by_file(mutants: &[Drawn]) -> BTreeMap<&str, Vec<(usize, &Drawn)>> {
    let mut files: BTreeMap<&str, Vec<(usize, &Drawn)>> = BTreeMap::new();
    for (number, mutant) in (0..).zip(mutants) {
        files.entry(&mutant.file).or_default().push((number, mutant));
    }
    files
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

/// The offset of a line and a column.
pub fn offset(text: &str, [line, column]: [usize; 2]) -> usize {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within: usize = text[before..].chars().take(column - 1).map(char::len_utf8).sum();
    before + within
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
