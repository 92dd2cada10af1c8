//! A campaign: parts that take hours together, and what is done of them.
//!
//! A file outside the repository has a line for each part that is done, so that a campaign which was stopped goes on. It is
//! `NAME.jsonl` in the folder `PAUSEBED_CAMPAIGNS`, or in `pausebed-campaigns` in the folder for temporary files. A part that
//! was done at another commit is due again. At its end a campaign prints its parts as a table and as JSON, and removes the
//! file. `PAUSEBED_PART="kills/seed 7"` runs one part of one campaign and writes no file.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a part in which a fault was found begins with this word. Such a part stays due.
const FOUND: &str = "FOUND";
/// Characters of a panic that a result keeps.
const PANIC_MAX: usize = 1_500;

/// A part that was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    part: String,
    commit: String,
    result: String,
}

impl Part {
    fn has_found(&self) -> bool {
        self.result.starts_with(FOUND)
    }
}

/// A campaign under way.
pub struct Campaign {
    name: String,
    file: PathBuf,
    commit: String,
    done: Vec<Part>,
    /// The only part to run, if one is named; empty if it is one of another campaign.
    only: Option<String>,
}

impl Campaign {
    /// Goes on with the campaign `name` where it was stopped, or begins it.
    pub fn open(name: &str) -> Campaign {
        let named = std::env::var_os("PAUSEBED_CAMPAIGNS").map(PathBuf::from);
        let folder = named.unwrap_or_else(|| std::env::temp_dir().join("pausebed-campaigns"));
        let only = std::env::var("PAUSEBED_PART").ok().map(|named| {
            let (campaign, part) = named.split_once('/').expect("PAUSEBED_PART is CAMPAIGN/PART");
            if campaign == name { part.to_owned() } else { String::new() }
        });
        Campaign::at(&folder, name, commit(), only)
    }

    fn at(folder: &Path, name: &str, commit: String, only: Option<String>) -> Campaign {
        fs::create_dir_all(folder).expect("a folder for campaigns");
        let file = folder.join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        let done = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let done = done.filter(|part: &Part| part.commit == commit && !part.has_found()).collect();
        Campaign { name: name.to_owned(), file, commit, done, only }
    }

    /// The result of a part, which is made now unless it is done. One that panics has found a fault, and stays due.
    pub fn part(&mut self, part: &str, make: impl FnOnce() -> String) -> String {
        if let Some(done) = self.done.iter().find(|done| done.part == part) {
            return done.result.clone();
        }
        if self.only.as_deref().is_some_and(|only| only != part) {
            return String::new();
        }
        let result = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|why| {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
            format!("{FOUND} {}", text.chars().take(PANIC_MAX).collect::<String>())
        });
        println!("{part}: {result}");
        let row = Part { part: part.to_owned(), commit: self.commit.clone(), result };
        let result = row.result.clone();
        if self.only.is_none() {
            let mut file =
                File::options().create(true).append(true).open(&self.file).expect("a file");
            let line = serde_json::to_string(&row).expect("text") + "\n";
            file.write_all(line.as_bytes()).expect("a line");
        }
        self.done.push(row);
        result
    }

    /// Prints the results.
    ///
    /// # Panics
    /// If a part has found a fault.
    pub fn end(self) {
        println!("| {} at {} | result |\n|---|---|", self.name, self.commit);
        for Part { part, result, .. } in &self.done {
            println!("| {part} | {} |", result.replace('\n', " "));
        }
        println!("{}", serde_json::to_string(&self.done).expect("text"));
        let found: Vec<&Part> = self.done.iter().filter(|part| part.has_found()).collect();
        assert!(found.is_empty(), "{found:#?}");
        if self.only.is_none() {
            // A campaign without parts has no file.
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// The commit of the repository, with `+` if files have changed since.
#[expect(clippy::disallowed_methods, reason = "the test starts git")]
fn commit() -> String {
    let words = ["describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"];
    let output = Command::new("git").args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_due_again_after_a_fault_and_at_another_commit() {
        let folder = std::env::temp_dir().join(format!("campaign-{}", std::process::id()));
        let campaign = |commit: &str| Campaign::at(&folder, "c", commit.to_owned(), None);
        assert_eq!(campaign("1").part("a", || panic!("it")), "FOUND it");
        assert_eq!(campaign("1").part("a", || "good".to_owned()), "good");
        assert_eq!(campaign("1").part("a", || "again".to_owned()), "good");
        assert_eq!(campaign("2").part("a", || "again".to_owned()), "again");
        let mut alone = Campaign::at(&folder, "c", "2".to_owned(), Some("b".to_owned()));
        assert_eq!(alone.part("c", || "not run".to_owned()), "");
        assert_eq!(alone.part("b", || "run".to_owned()), "run");
        alone.end();
        assert_eq!(campaign("2").done.len(), 1, "a part that runs alone is not written");
        campaign("2").end();
        assert!(!folder.join("c.jsonl").exists());
        fs::remove_dir(&folder).expect("it is empty");
    }

    #[test]
    #[should_panic(expected = "FOUND it")]
    fn a_campaign_with_a_fault_fails() {
        let folder = std::env::temp_dir().join(format!("campaign-{}-found", std::process::id()));
        let mut campaign = Campaign::at(&folder, "c", "1".to_owned(), Some("a".to_owned()));
        fs::remove_dir(&folder).expect("it is empty");
        campaign.part("a", || panic!("it"));
        campaign.end();
    }
}
