//! The ledger of a campaign: a line for each part that is done, so that a campaign which was stopped goes on.
//!
//! `PAUSEBED_LEDGER` names the folder of the ledger, otherwise the temporary folder has it. A line is the name of a part,
//! and behind a tab what was measured.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// The parts of a campaign that are done.
pub struct Ledger {
    file: PathBuf,
    /// Part and result.
    done: Vec<(String, String)>,
}

impl Ledger {
    /// The ledger of `campaign`.
    pub fn open(campaign: &str) -> Ledger {
        let folder = std::env::var_os("PAUSEBED_LEDGER").map(PathBuf::from);
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        let file = folder.join(format!("pausebed-{campaign}.ledger"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        let line = |line: &str| {
            let (part, result) = line.split_once('\t').unwrap_or((line, ""));
            (part.to_owned(), result.to_owned())
        };
        Ledger { file, done: text.lines().map(line).collect() }
    }

    /// The result of a part that is done.
    pub fn result(&self, part: &str) -> Option<&str> {
        let found = self.done.iter().find(|(done, _)| done == part);
        found.map(|(_, result)| result.as_str())
    }

    /// Adds a part that is done.
    pub fn add(&mut self, part: &str, result: &str) {
        let mut file = File::options().create(true).append(true).open(&self.file).expect("a file");
        writeln!(file, "{part}\t{result}").expect("a line");
        self.done.push((part.to_owned(), result.to_owned()));
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
