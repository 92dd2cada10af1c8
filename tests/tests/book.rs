//! The pages of docs/book run as they stand: in order, in an empty folder beside the files of the repository.
//!
//! A block `console` has commands behind `$ ` and excerpts of what they print: `…` stands for anything, and a comment
//! `# exit code N` at the end of a command for its exit code. A block with `file=NAME` is written to that file. The blocks
//! with `from=FILE` are, one after the other, that file of the repository. A comment `needs: WORD …` names what a page
//! needs of the host: `root`, `scapy`, `image` (a Docker engine with the image of this version), or a program.

#![expect(clippy::disallowed_methods, reason = "these tests run commands")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;

use laboratory::{alone, in_repository, pausebed};

/// What a page does, in its order.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Writes a file.
    Write { name: String, text: String },
    /// Runs a command, which prints these excerpts.
    Run { line: String, prints: Vec<String> },
}

/// The steps of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some((_, name)) = kind.split_once("file=") {
            let text = block.iter().map(|line| format!("{line}\n")).collect();
            steps.push(Step::Write { name: name.to_owned(), text });
        } else if kind == "console" {
            steps.extend(commands(&block));
        }
    }
    steps
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for text in block {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step::Run { line: command.to_owned(), prints: Vec::new() });
            }
            (None, Some(Step::Run { line, .. })) if line.ends_with('\\') => {
                line.push('\n');
                line.push_str(text);
            }
            (None, Some(Step::Run { prints, .. })) => prints.push((*text).to_owned()),
            _ => panic!("a block begins with {text:?}, which is not a command"),
        }
    }
    steps
}

/// The exit code that a command names, otherwise 0.
fn exit_code(line: &str) -> i32 {
    let named = line.rsplit_once("# exit code ").map(|(_, code)| code.trim().parse());
    named.map_or(0, |code| code.expect("an exit code is a number"))
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `line` is `excerpt`, in which `…` stands for anything.
fn is_like(line: &str, excerpt: &str) -> bool {
    let (line, excerpt) = (words(line), words(excerpt));
    let mut parts = excerpt.split('…').map(str::trim);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The first excerpt that is not printed, in the order of the page.
fn missing<'a>(printed: &str, excerpts: &'a [String]) -> Option<&'a String> {
    let mut lines = printed.lines();
    excerpts
        .iter()
        .filter(|excerpt| !excerpt.trim().is_empty() && excerpt.trim() != "…")
        .find(|excerpt| !lines.any(|line| is_like(line, excerpt)))
}

/// The code lines of the files that a page quotes.
fn quotes(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut quotes = BTreeMap::<&str, Vec<&str>>::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| *line != "```");
        let block = block.filter(|line| !line.is_empty()).collect::<Vec<_>>();
        if let Some((_, file)) = kind.split_once("from=") {
            quotes.entry(file).or_default().extend(block);
        }
    }
    quotes
}

/// What `page` needs and this host does not have.
fn lacks<'a>(page: &'a str, tools: &Path) -> Option<&'a str> {
    let needs =
        page.lines().find_map(|line| line.strip_prefix("<!-- needs: ")?.strip_suffix(" -->"));
    needs.unwrap_or_default().split(' ').filter(|word| !word.is_empty()).find(|word| !match *word {
        "root" => nix::unistd::geteuid().is_root(),
        "scapy" => with_scapy(tools),
        "image" => {
            let name = format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
            succeeds(&["docker", "image", "inspect", &name])
        }
        program => succeeds(&["sh", "-c", &format!("command -v {program}")]),
    })
}

fn succeeds(words: &[&str]) -> bool {
    let output = Command::new(words[0]).args(&words[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

/// A folder with an interpreter of Python that has scapy under the name `python3`, if there is one.
fn with_scapy(folder: &Path) -> bool {
    let has = |python: &&str| succeeds(&[python, "-c", "import scapy"]);
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if let Some(python) = found.filter(|python| python.starts_with('/')) {
        symlink(python, folder.join("python3")).expect("a new link");
    }
    found.is_some()
}

/// Calls its function at the end of a scope.
struct End<F: Fn()>(F);

impl<F: Fn()> Drop for End<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Runs a page, in the folder of its own that a reader's checkout is, too.
fn run(page: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in ["topo", "check", "tests", "docs", "docker", "python"] {
        symlink(in_repository(entry), folder.path().join(entry)).expect("a new link");
    }
    let tools = folder.path().join(".tools");
    fs::create_dir(&tools).expect("a new folder");
    let page_name = page.display();
    let page = fs::read_to_string(page).expect("a page");
    if let Some(word) = lacks(&page, &tools) {
        skip::because!("{page_name} needs {word}");
        return;
    }
    let programs = pausebed().parent().expect("target/<profile>").to_owned();
    let folders =
        [tools, programs.join("examples"), programs].map(|path| path.display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let shell = |line: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder.path());
        command.env("PATH", &path).env("PAUSEBED_LABS", folder.path().join("labs"));
        command.output().expect("bash is there")
    };
    // A page that fails leaves no lab.
    let _ending =
        End(|| drop(shell("for lab in labs/*/; do pausebed down $(basename $lab); done")));
    for step in steps(&page) {
        match step {
            Step::Write { name, text } => {
                fs::write(folder.path().join(name), text).expect("a new file");
            }
            Step::Run { line, prints } => {
                let output = shell(&line);
                let printed = String::from_utf8_lossy(&output.stdout);
                let code = output.status.code();
                assert_eq!(code, Some(exit_code(&line)), "{page_name}: $ {line}\n{printed}");
                let missing = missing(&printed, &prints);
                assert!(missing.is_none(), "{page_name}: $ {line}\nno {missing:?} in\n{printed}");
            }
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(in_repository("docs/book")).expect("the book").flatten();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    pages.sort();
    pages
}

#[test]
fn every_page_is_in_the_summary_and_has_a_test_and_commands() {
    let summary = fs::read_to_string(in_repository("docs/SUMMARY.md")).expect("the summary");
    for page in pages() {
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(summary.contains(&format!("(book/{name})")), "{name} is not in docs/SUMMARY.md");
        let file = format!("docs/book/{name}");
        assert!(PAGES.contains(&file.as_str()), "{name} has no test below");
        let steps = steps(&fs::read_to_string(&page).expect("a page"));
        assert!(steps.iter().any(|step| matches!(step, Step::Run { .. })), "{name} runs nothing");
    }
}

#[test]
fn an_excerpt_is_found_in_its_place_or_not_at_all() {
    let page =
        "```console\n$ a \\\n  b   # exit code 3\nx … z\n…\n$ c\n```\n```c file=f\nint\n```\n";
    let run = |line: &str, prints: &[&str]| {
        let prints = prints.iter().map(|line| (*line).to_owned()).collect();
        Step::Run { line: line.to_owned(), prints }
    };
    let write = Step::Write { name: "f".to_owned(), text: "int\n".to_owned() };
    let first = "a \\\n  b   # exit code 3";
    assert_eq!(steps(page), [run(first, &["x … z", "…"]), run("c", &[]), write]);
    assert_eq!([first, "c"].map(exit_code), [3, 0]);
    for (line, excerpt, is) in [
        ("x  y z", "x … z", true),
        ("x z", "x y z", false),
        ("took 3.1 s", "took … s", true),
        ("x y", "x … z", false),
        ("x", "x y", false),
    ] {
        assert_eq!(is_like(line, excerpt), is, "{line} {excerpt}");
    }
    let excerpts = ["b".to_owned(), "a".to_owned()];
    assert_eq!(missing("a\nb\n", &excerpts), Some(&excerpts[1]));
    assert_eq!(missing("b\na\n", &excerpts), None);
}

#[test]
fn files_are_quoted_whole() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (file, quoted) in quotes(&text) {
            let whole = fs::read_to_string(in_repository(file)).expect("the page names a file");
            let lines = whole.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>();
            assert_eq!(quoted, lines, "{}: {file}", page.display());
            count += 1;
        }
    }
    assert!(count > 0, "no page quotes a file");
}

/// A test for each page. `./test.sh --slow book` runs those that are slow or need root.
macro_rules! pages {
    ($($(#[$slow:meta])? $name:ident: $file:literal,)+) => {
        const PAGES: &[&str] = &[$($file),+];
        $(
            #[test]
            $(#[$slow])?
            fn $name() {
                let _alone = alone();
                run(&in_repository($file));
            }
        )+
    };
}

pages! {
    #[ignore = "slow: exact runs"]
    book_ci: "docs/book/ci.md",
    #[ignore = "slow: containers"]
    book_containers: "docs/book/containers.md",
    #[ignore = "slow: conformance cases"]
    book_device: "docs/book/device.md",
    #[ignore = "slow: a lab"]
    book_encoder: "docs/book/encoder.md",
    #[ignore = "slow: exact runs and a lab"]
    book_hot_spot: "docs/book/hot-spot.md",
    #[ignore = "slow: sweeps"]
    book_papers: "docs/book/papers.md",
    book_scheme: "docs/book/scheme.md",
    #[ignore = "slow: long runs"]
    book_storms: "docs/book/storms.md",
    #[ignore = "slow: programs in namespaces"]
    book_testbed: "docs/book/testbed.md",
}

#[test]
fn examples_run_devices_without_a_laboratory() {
    let examples = pausebed().parent().expect("target/<profile>").join("examples");
    let printed = |name: &str| {
        let output =
            Command::new(examples.join(name)).output().expect("it is built with the tests");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    // 64 octets take 51.2 ns at 10 Gb/s. Preamble and gap count where a link has the key `overhead`.
    let switched = printed("drive_a_switch");
    assert!(switched.contains("out by port 2: 60 octets, over at 1051.2 ns"), "{switched}");
    // Half of 8 Gb/s for a millisecond are 500 000 octets.
    assert!(printed("two_nics").starts_with("252 frames with 485424 octets came to b"));
}
