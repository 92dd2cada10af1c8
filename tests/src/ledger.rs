//! The ledger of a campaign: a line for each part that is done, so that a campaign which was stopped goes on.
//!
//! A line is the name of a part, the commit and a hash of the code under proof, and what was measured, between tabs. A
//! change of that code makes every part due again; older lines stay. `PAUSEBED_LEDGER` names another folder of ledgers.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a part in which a fault was found begins with this word. Such a part stays due.
pub const FOUND: &str = "FOUND";

/// The unit tests of a file begin here and are its end.
const UNIT_TESTS: &[u8] = b"#[cfg(test)]\nmod tests {";

/// A part of a campaign that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The part, as in `seed 7`.
    pub part: String,
    /// The commit, with `+` if files had changed since.
    pub commit: String,
    /// A hash of the code under proof.
    pub code: String,
    /// What was measured.
    pub result: String,
}

impl Line {
    /// The lines of a ledger.
    pub fn all(text: &str) -> Vec<Line> {
        let line = |line: &str| {
            let mut columns = line.splitn(4, '\t').map(str::to_owned);
            let mut next = || columns.next();
            Some(Line { part: next()?, commit: next()?, code: next()?, result: next()? })
        };
        text.lines().filter_map(line).collect()
    }

    /// Whether a fault was found.
    pub fn has_found(&self) -> bool {
        self.result.starts_with(FOUND)
    }
}

/// The parts of a campaign that are done.
pub struct Ledger {
    file: PathBuf,
    commit: String,
    code: String,
    lines: Vec<Line>,
}

impl Ledger {
    /// The ledger of `campaign` in the folder for temporary files. `under_proof` are files and folders of the repository.
    pub fn open(campaign: &str, under_proof: &[&str]) -> Ledger {
        Ledger::in_folder(&std::env::temp_dir(), campaign, under_proof)
    }

    /// The ledger of `campaign` in the repository.
    pub fn kept(campaign: &str, under_proof: &[&str]) -> Ledger {
        Ledger::in_folder(&kept(), campaign, under_proof)
    }

    fn in_folder(folder: &Path, campaign: &str, under_proof: &[&str]) -> Ledger {
        let named = std::env::var_os("PAUSEBED_LEDGER").map(PathBuf::from);
        let file = named.as_deref().unwrap_or(folder).join(format!("pausebed-{campaign}.ledger"));
        let lines = Line::all(&fs::read_to_string(&file).unwrap_or_default());
        Ledger { file, commit: commit(), code: hash(under_proof), lines }
    }

    /// The result of a part that is done.
    pub fn result(&self, part: &str) -> Option<&str> {
        let is_it = |line: &&Line| line.part == part && line.code == self.code && !line.has_found();
        self.lines.iter().find(is_it).map(|line| line.result.as_str())
    }

    /// Adds a part that is done.
    pub fn add(&mut self, part: &str, result: &str) {
        let result = result.replace(['\n', '\t'], " ");
        let (part, commit, code) = (part.to_owned(), self.commit.clone(), self.code.clone());
        let line = Line { part, commit, code, result };
        let mut text = String::new();
        writeln!(text, "{}\t{}\t{}\t{}", line.part, line.commit, line.code, line.result)
            .expect("a string takes all");
        let mut file = File::options().create(true).append(true).open(&self.file).expect("a file");
        file.write_all(text.as_bytes()).expect("a line");
        self.lines.push(line);
    }

    /// The result of a part, which is made now unless it is done.
    pub fn once(&mut self, part: &str, make: impl FnOnce() -> String) -> String {
        if let Some(result) = self.result(part) {
            return result.to_owned();
        }
        let result = make();
        println!("{part}: {result}");
        self.add(part, &result);
        result
    }

    /// The campaign is over: the next one begins anew.
    pub fn close(self) {
        fs::remove_file(&self.file).expect("the ledger is ours");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder of the ledgers that the repository keeps.
pub fn kept() -> PathBuf {
    root().join("tests/ledgers")
}

/// The commit of the repository, with `+` if files have changed since.
#[expect(clippy::disallowed_methods, reason = "the test starts git")]
fn commit() -> String {
    let words = ["describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"];
    let said = Command::new("git").args(words).current_dir(root()).output();
    let said = said.ok().filter(|said| said.status.success());
    said.map_or("unknown".to_owned(), |said| {
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    })
}

/// The octets of a file without its unit tests: a test that is added or changed makes no part due again.
fn product<'a>(name: &str, octets: &'a [u8]) -> Option<&'a [u8]> {
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    let end = octets.windows(UNIT_TESTS.len()).position(|window| window == UNIT_TESTS);
    (!is_test).then(|| octets[..end.unwrap_or(octets.len())].trim_ascii_end())
}

/// A hash (64-bit FNV-1a) of names and octets of all files below these paths of the repository, without unit tests.
fn hash(under_proof: &[&str]) -> String {
    let mut files = Vec::new();
    let mut rest: Vec<PathBuf> = under_proof.iter().map(|path| root().join(path)).collect();
    while let Some(path) = rest.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder of the repository");
            rest.extend(entries.map(|entry| entry.expect("its entries can be read").path()));
        } else {
            files.push(path);
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let octets = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(root()).expect("it is below the root").display().to_string();
        let Some(octets) = product(&name, &octets) else { continue };
        for octet in name.bytes().chain(octets.iter().copied()) {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_due_again_after_a_fault_or_a_change_of_the_code() {
        let file = std::env::temp_dir().join(format!("ledger-{}", std::process::id()));
        let ledger = |code: &str| {
            let lines = Line::all(&fs::read_to_string(&file).unwrap_or_default());
            Ledger { file: file.clone(), commit: "c".to_owned(), code: code.to_owned(), lines }
        };
        assert_eq!(ledger("1").once("a", || "FOUND\tit".to_owned()), "FOUND\tit");
        assert_eq!(ledger("1").once("a", || "good".to_owned()), "good");
        assert_eq!(ledger("1").once("a", || "again".to_owned()), "good");
        assert_eq!(ledger("2").once("a", || "again".to_owned()), "again");
        let lines = ledger("2").lines;
        assert_eq!(lines.iter().filter(|line| line.has_found()).count(), 1);
        assert_eq!((lines.len(), lines[0].result.as_str()), (3, "FOUND it"));
        ledger("2").close();
        assert!(!file.exists());
    }

    #[test]
    fn a_hash_depends_on_names_and_octets() {
        let one = hash(&["tests/src/ledger.rs"]);
        assert_eq!(one, hash(&["tests/src/ledger.rs"]));
        assert_ne!(one, hash(&["tests/src"]));
        assert_ne!(one, hash(&["tests/src/lib.rs"]));
    }

    #[test]
    fn unit_tests_are_not_under_proof() {
        let text = b"fn f() {}\n\n#[cfg(test)]\nmod tests {}";
        assert_eq!(product("a/src/a.rs", text), Some(&b"fn f() {}"[..]));
        assert_eq!(product("a/src/a.rs", b"fn f() {}\n"), Some(&b"fn f() {}"[..]));
        assert_eq!(product("a/src/a/tests.rs", text), None);
        assert_eq!(product("a/src/tests/b.rs", text), None);
    }
}
