//! Documents stand alone: every link, path and section that documents and sources cite is in the repository, and the
//! documents that a reader opens first stay short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Kinds of files that cite: by the ending of their names.
const CITING: [&str; 7] = ["md", "rs", "toml", "sh", "lua", "mjs", "js"];

/// Folders that are not part of the repository, by name.
const OUTSIDE: [&str; 3] = [".git", "target", "node_modules"];

/// Documents of other projects that sources cite: test plans of sonic-mgmt.
const FOREIGN: [&str; 6] = [
    "docs/testplan/",
    "PFC-test-plan.md",
    "PFC_Snappi_Additional_Testcases.md",
    // A file of a run directory.
    "hosts/NAME.out",
    // A chapter of the book, made by `pausebed man --markdown`.
    "docs/reference/commands.md",
    "reference/commands.md",
];

/// The statement of conformance is made from the cases; its sources are files of other projects.
const MADE: &str = "docs/conformance.md";

/// Documents that a reader opens first, and their greatest length in lines.
const FIRST: [(&str, usize); 2] = [("README.md", 150), ("ARCHITECTURE.md", 150)];

/// This file cites what does not exist, to show that it is found.
const ITSELF: &str = "tests/tests/documents.rs";

/// The files that cite, by their path from the root, and every path of the repository.
struct Repository {
    texts: BTreeMap<String, String>,
    paths: BTreeSet<String>,
}

impl Repository {
    /// Reads the working tree.
    fn read() -> Repository {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Repository { texts: BTreeMap::new(), paths: BTreeSet::new() };
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder of this repository can be read") {
                let path = entry.expect("its entries can be read").path();
                found.add(&root, &path, &mut folders);
            }
        }
        found
    }

    fn add(&mut self, root: &Path, path: &Path, folders: &mut Vec<PathBuf>) {
        let from_root = path.strip_prefix(root).expect("it is below the root");
        let name = from_root.to_string_lossy().into_owned();
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        if OUTSIDE.contains(&last.as_ref()) {
            return;
        }
        if path.is_dir() {
            folders.push(path.to_owned());
        } else if CITING.iter().any(|ending| name.ends_with(&format!(".{ending}"))) {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            self.texts.insert(name.clone(), text);
        }
        self.paths.insert(name);
    }

    /// A repository of these files, for tests of the checks themselves.
    fn of(files: &[(&str, &str)]) -> Repository {
        let texts: BTreeMap<_, _> =
            files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        Repository { paths: texts.keys().cloned().collect(), texts }
    }

    fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// The path of `cited` from the root: as it stands, or seen from a folder that `citing` is in, or from the `src` of
    /// such a folder.
    fn find(&self, citing: &str, cited: &str) -> Option<String> {
        let cited = cited.trim_end_matches('/');
        Path::new(citing).ancestors().skip(1).find_map(|folder| {
            let inside = [resolved(folder, cited), resolved(&folder.join("src"), cited)];
            inside.into_iter().find(|path| self.has(path))
        })
    }
}

/// `relative`, seen from `folder`, without `.` and `..`.
fn resolved(folder: &Path, relative: &str) -> String {
    let mut parts: Vec<&str> =
        folder.to_str().into_iter().flat_map(|path| path.split('/')).collect();
    parts.retain(|part| !part.is_empty());
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The lines of a document that are not a code block.
fn without_blocks(text: &str) -> String {
    let mut inside = false;
    let kept = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The anchor of a heading, as renderers of Markdown make it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn headings(text: &str) -> Vec<String> {
    let text = without_blocks(text);
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// Whether a heading of `text` has this number.
fn has_section(text: &str, number: &str) -> bool {
    let first = |heading: &String| {
        heading.split(' ').next().map(|word| word.trim_end_matches('.').to_owned())
    };
    headings(text).iter().filter_map(first).any(|own| own == number)
}

/// The numbers of sections with which `rest` begins: ` 3.2`, `, 14`, ` 7, 9.3 and 10.2`.
fn sections(rest: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut rest = rest.strip_prefix(", ").or(rest.strip_prefix(' ')).unwrap_or("");
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        if number.is_empty() || number.starts_with('.') {
            return numbers;
        }
        numbers.push(number.to_owned());
        let after = &rest[end..];
        rest = after.strip_prefix(", ").or(after.strip_prefix(" and ")).unwrap_or("");
    }
}

/// Links of a document that lead nowhere: to a missing file, heading or section.
fn broken_links(repository: &Repository, name: &str) -> Vec<String> {
    let text = without_blocks(&repository.texts[name]);
    let mut faults = Vec::new();
    for part in text.split("](").skip(1) {
        let Some((target, rest)) = part.split_once(')') else { continue };
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, place) = target.split_once('#').unwrap_or((target, ""));
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let file = if path.is_empty() { name.to_owned() } else { resolved(folder, path) };
        if !repository.has(&file) && !FOREIGN.contains(&file.as_str()) {
            faults.push(format!("{name}: the link to {target} leads nowhere"));
            continue;
        }
        let Some(other) = repository.texts.get(&file).filter(|_| file.ends_with(".md")) else {
            continue;
        };
        if !place.is_empty() && !headings(other).iter().any(|heading| anchor(heading) == place) {
            faults.push(format!("{name}: {file} has no heading for #{place}"));
        }
        let missing = sections(rest).into_iter().filter(|number| !has_section(other, number));
        faults.extend(missing.map(|number| format!("{name}: {file} has no section {number}")));
    }
    faults
}

/// Words of `text` that may be paths, each with what follows it. Braces may hold alternatives.
fn words(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let (mut start, mut braces) = (None, 0);
    let ends = text.char_indices().chain([(text.len(), ' ')]);
    for (at, c) in ends {
        let is_part =
            c.is_ascii_alphanumeric() || "_-./{}*".contains(c) || (c == ',' && braces > 0);
        match (is_part, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let word = text[from..at].trim_end_matches(['.', '-']);
                found.push((word, &text[from + word.len()..]));
                (start, braces) = (None, 0);
            }
            _ => {}
        }
        braces += i32::from(c == '{' && start.is_some()) - i32::from(c == '}' && start.is_some());
    }
    found
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`; a path with a star as the folder before the star.
fn alternatives(word: &str) -> Vec<String> {
    if let Some((before, rest)) = word.split_once('{') {
        let Some((inside, after)) = rest.split_once('}') else { return vec![] };
        return inside
            .split(',')
            .flat_map(|one| alternatives(&format!("{before}{one}{after}")))
            .collect();
    }
    match word.split_once('*') {
        Some((before, _)) => {
            vec![before.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()]
        }
        None => vec![word.to_owned()],
    }
}

/// A line of a comment without its mark; `None` for code.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["//!", "///", "//", "--", "#"].iter().find_map(|mark| line.strip_prefix(mark))
}

/// The text on one line, so that a citation that goes over the end of a line is read whole.
fn unwrapped(text: &str) -> String {
    text.lines().map(|line| comment(line).unwrap_or(line).trim()).collect::<Vec<_>>().join(" ")
}

/// Documents that `name` cites and that are missing, and sections that they do not have.
fn missing_documents(repository: &Repository, name: &str) -> Vec<String> {
    let text = unwrapped(&repository.texts[name]);
    let mut faults = Vec::new();
    for (word, rest) in words(&text).into_iter().filter(|(word, _)| word.ends_with(".md")) {
        if FOREIGN.iter().any(|foreign| word.starts_with(foreign)) {
            continue;
        }
        for cited in alternatives(word) {
            let Some(file) = repository.find(name, &cited) else {
                faults.push(format!("{name}: {cited} is not in the repository"));
                continue;
            };
            let Some(other) = repository.texts.get(&file) else { continue };
            let missing = sections(rest).into_iter().filter(|number| !has_section(other, number));
            faults.extend(missing.map(|number| format!("{name}: {file} has no section {number}")));
        }
    }
    faults
}

/// Paths that documents and comments cite and that are missing: those that begin with a folder of the root, and every
/// Rust file.
fn missing_paths(repository: &Repository, name: &str) -> Vec<String> {
    let is_document = name.ends_with(".md");
    let cited = |line: &str| is_document || comment(line).is_some();
    let lines: Vec<_> = repository.texts[name].lines().filter(|line| cited(line)).collect();
    let text = lines.join("\n");
    let is_known = |word: &str| {
        let first = word.split('/').next().unwrap_or_default();
        word.contains('/') && !first.contains('.') && !first.is_empty() && repository.has(first)
    };
    let mut faults = Vec::new();
    for (word, _) in words(&text) {
        let is_rust = word.len() > 3 && word.ends_with(".rs");
        if !(is_rust || is_known(word)) || FOREIGN.iter().any(|foreign| word.starts_with(foreign)) {
            continue;
        }
        for path in alternatives(word) {
            let is_anywhere = is_rust
                && !path.contains('/')
                && repository.paths.iter().any(|own| own.rsplit('/').next() == Some(&path));
            if !is_anywhere && repository.find(name, &path).is_none() {
                faults.push(format!("{name}: {path} is not in the repository"));
            }
        }
    }
    faults
}

/// Benches and tests that a `cargo` command of `name` runs and that its package does not have.
fn missing_targets(repository: &Repository, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for command in repository.texts[name].split("cargo ").skip(1) {
        let line = command.split(['\n', '`', '&']).next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        let after = |option: &str| {
            words
                .windows(2)
                .find(|pair| pair[0] == option)
                .map(|pair| pair[1].trim_end_matches('.'))
        };
        let Some(package) = after("-p") else { continue };
        let is_its = |text: &String| text.contains(&format!("\nname = \"{package}\""));
        let manifest = repository
            .texts
            .iter()
            .find(|(file, text)| file.ends_with("Cargo.toml") && is_its(text))
            .map(|(file, _)| file.trim_end_matches("Cargo.toml"));
        let Some(folder) = manifest else {
            faults.push(format!("{name}: there is no package {package}"));
            continue;
        };
        for (option, kind) in [("--bench", "benches"), ("--test", "tests")] {
            let Some(target) = after(option) else { continue };
            let stem = format!("{folder}{kind}/{target}");
            if !repository.has(&format!("{stem}.rs")) && !repository.has(&format!("{stem}/main.rs"))
            {
                faults.push(format!("{name}: package {package} has no {kind}/{target}"));
            }
        }
    }
    faults
}

/// What `check` finds in every citing file that `wanted` names.
fn faults(wanted: fn(&str) -> bool, check: fn(&Repository, &str) -> Vec<String>) -> Vec<String> {
    let repository = Repository::read();
    let names = repository.texts.keys().filter(|name| *name != ITSELF && wanted(name));
    let found: Vec<_> = names.flat_map(|name| check(&repository, name)).collect();
    assert!(repository.texts.len() > 300, "only {} files were read", repository.texts.len());
    found
}

#[track_caller]
fn none_of(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    none_of(&faults(|name| name.ends_with(".md"), broken_links));
}

#[test]
fn every_document_and_section_that_is_cited_exists() {
    none_of(&faults(|_| true, missing_documents));
}

#[test]
fn every_path_that_documents_and_comments_cite_exists() {
    none_of(&faults(|name| name != MADE, missing_paths));
}

#[test]
fn every_cargo_command_names_a_package_and_its_target() {
    none_of(&faults(|_| true, missing_targets));
}

#[test]
fn the_first_documents_are_short() {
    let repository = Repository::read();
    for (name, most) in FIRST {
        let lines = repository.texts[name].lines().count();
        assert!(lines <= most, "{name} has {lines} lines, {most} are allowed");
    }
}

/// The two indexes of the documents.
const FRONT: [&str; 2] = ["README.md", "SUMMARY.md"];

#[test]
fn every_document_is_in_both_indexes() {
    let repository = Repository::read();
    for index in FRONT {
        let text = &repository.texts[&format!("docs/{index}")];
        let documents = repository.texts.keys().filter_map(|name| name.strip_prefix("docs/"));
        for page in documents.filter(|page| page.ends_with(".md") && !FRONT.contains(page)) {
            assert!(text.contains(&format!("]({page})")), "docs/{index} does not link {page}");
        }
    }
}

#[test]
fn a_broken_link_is_found() {
    let page = "# One\n[a](b.md) [c](../d.rs#x) [e](#one) [f](#two) [g](https://h/i.md) [j](b.md) 1.2, 3\n";
    let repository = Repository::of(&[("docs/a.md", page), ("docs/b.md", "## 1.2 Two\n")]);
    let found = broken_links(&repository, "docs/a.md");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("../d.rs") && found[1].contains("#two") && found[2].contains("section 3")
    );
}

#[test]
fn a_missing_document_or_section_is_found() {
    let source = "//! Source: docs/spec/a.md 1, 2.5; docs/spec/a.md\n//! 7 and docs/b.md, algorithms.md 3.\n";
    let repository =
        Repository::of(&[("x/src/y.rs", source), ("docs/spec/a.md", "## 1. One\n### 2.5 Two\n")]);
    let found = missing_documents(&repository, "x/src/y.rs");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("section 7")
            && found[1].contains("docs/b.md")
            && found[2].contains("algorithms.md")
    );
}

#[test]
fn a_missing_path_is_found() {
    let page = "`x/src/{y,z}.rs`, `x/src/*.rs`, `w/y.rs`, y.rs, other/thing.rs and x/v/.\n";
    let mut repository = Repository::of(&[("docs/a.md", page), ("x/src/y.rs", "")]);
    repository.paths.extend(["x", "x/src", "docs"].map(str::to_owned));
    let found = missing_paths(&repository, "docs/a.md");
    let expected = ["x/src/z.rs", "w/y.rs", "other/thing.rs", "x/v/"];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(fault, path)| fault.contains(path)), "{found:?}");
}

#[test]
fn a_missing_package_or_bench_is_found() {
    let page = "`cargo bench -p x --bench a`, `cargo bench -p x --bench b`, `cargo test -p z`\n";
    let manifest = "[package]\nname = \"x\"\n";
    let files = [("docs/a.md", page), ("x/Cargo.toml", manifest), ("x/benches/a.rs", "")];
    let found = missing_targets(&Repository::of(&files), "docs/a.md");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("benches/b") && found[1].contains("package z"), "{found:?}");
}
