//! Hooks: commands of a DUT file that set up a feature, shown before they run and undone afterwards.
//!
//! A journal lists what is still to be undone, so the next check undoes what a killed one left.

use super::change::Target;
use super::file::{Hook, HookPlace};
use host::local;
use launch::owner::{self, ProcessIdentity};
use launch::with_sources;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time of one command.
const LIMIT: Duration = Duration::from_secs(30);
/// What the names of journals begin with.
const PREFIX: &str = "hooks.";

/// Commands to be undone, in the order in which they were done.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    undo: Vec<Vec<String>>,
}

/// Hooks that have run. They are undone when this is dropped.
#[derive(Debug)]
pub struct Hooks {
    journal: Journal,
    file: PathBuf,
}

impl Hooks {
    /// Shows hooks by `report` and runs them, on this host or in `target`. Those in a machine end with it.
    ///
    /// # Errors
    /// If one is for this host and that is not allowed, or one fails; those before it are undone.
    pub fn run(
        hooks: &[Hook],
        allowed: bool,
        target: &Target,
        report: &mut dyn FnMut(&str),
    ) -> Result<Hooks, String> {
        let folder =
            owner::folder().map_err(|error| format!("no folder for a journal: {error}"))?;
        undo_leftovers(&folder, allowed, report);
        let own = ProcessIdentity::this().map_err(|error| format!("cannot read /proc: {error}"))?;
        let file = folder.join(format!("{PREFIX}{own}"));
        let mut done = Hooks { journal: Journal::default(), file };
        for hook in hooks {
            let shown = hook.run.join(" ");
            report(&format!("hook ({}): {shown}", hook.place.word()));
            match hook.place {
                HookPlace::Vm | HookPlace::Lab => target.run(&hook.run)?,
                HookPlace::Host if !allowed => {
                    return Err(format!(
                        "a hook changes this host: {shown}\n  hint: --allow-hooks"
                    ));
                }
                HookPlace::Host => {
                    // The journal is first: a command that is killed half way is undone as well.
                    done.journal.undo.extend(hook.undo.clone());
                    done.write()?;
                    run_here(&hook.run)?;
                }
            }
        }
        Ok(done)
    }

    fn write(&self) -> Result<(), String> {
        let text = serde_json::to_vec(&self.journal).map_err(|error| error.to_string())?;
        fs::write(&self.file, text).map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        for words in self.journal.undo.iter().rev() {
            if let Err(error) = run_here(words) {
                eprintln!("  {error}");
            }
        }
        // Without hooks on this host there is no journal.
        let _ = fs::remove_file(&self.file);
    }
}

fn run_here(words: &[String]) -> Result<(), String> {
    match local::run(words, LIMIT) {
        Ok((0, _)) => Ok(()),
        Ok((code, text)) => Err(format!("{} ends with {code}: {}", words.join(" "), text.trim())),
        Err(error) => Err(with_sources(&error)),
    }
}

/// Undoes what checks left that have ended.
fn undo_leftovers(folder: &Path, allowed: bool, report: &mut dyn FnMut(&str)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.starts_with(PREFIX).then(|| ProcessIdentity::named(&name)).flatten();
        if owner.is_none_or(ProcessIdentity::is_alive) {
            continue;
        }
        let text = fs::read(entry.path()).unwrap_or_default();
        let journal: Journal = serde_json::from_slice(&text).unwrap_or_default();
        if !allowed {
            report("a check that was killed left hooks: --allow-hooks undoes them");
            continue;
        }
        for words in journal.undo.iter().rev() {
            report(&format!("undo of a check that was killed: {}", words.join(" ")));
            if let Err(error) = run_here(words) {
                report(&error);
            }
        }
        let _ = fs::remove_file(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::When;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A process has one journal, so one test at a time runs hooks.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hook(run: &[&str], undo: &[&str]) -> Hook {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Hook { run: words(run), undo: Some(words(undo)), place: HookPlace::Host, when: When::Start }
    }

    #[test]
    fn hooks_are_shown_refused_without_leave_and_undone_in_reverse_order() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("made").display().to_string();
        let inner = format!("{file}/inner");
        let hooks = [
            hook(&["mkdir", &file], &["rmdir", &file]),
            hook(&["mkdir", &inner], &["rmdir", &inner]),
        ];
        let mut lines = Vec::new();
        let refused =
            Hooks::run(&hooks, false, &Target::None, &mut |line| lines.push(line.to_owned()));
        assert!(refused.expect_err("not allowed").contains("--allow-hooks"));
        assert!(!Path::new(&file).exists());
        assert!(lines.iter().any(|line| line.contains("mkdir")), "{lines:?}");
        let done = Hooks::run(&hooks, true, &Target::None, &mut |_| {}).expect("mkdir is there");
        assert!(Path::new(&inner).exists());
        let journal = done.file.clone();
        assert!(journal.exists());
        drop(done);
        assert!(!Path::new(&file).exists() && !journal.exists());
    }

    #[test]
    fn a_hook_that_fails_undoes_those_before_it() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("made").display().to_string();
        let hooks = [hook(&["mkdir", &file], &["rmdir", &file]), hook(&["false"], &["true"])];
        let failed = Hooks::run(&hooks, true, &Target::None, &mut |_| {}).expect_err("false fails");
        assert!(failed.contains("false ends with 1"), "{failed}");
        assert!(!Path::new(&file).exists());
    }

    #[test]
    fn the_journal_of_a_killed_check_is_undone_by_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("made");
        fs::create_dir(&made).expect("a folder");
        let own = ProcessIdentity::this().expect("/proc");
        let dead = ProcessIdentity { began: own.began + 1, ..own };
        let journal = folder.path().join(format!("{PREFIX}{dead}"));
        let undo = vec![vec!["rmdir".to_owned(), made.display().to_string()]];
        fs::write(&journal, serde_json::to_vec(&Journal { undo }).expect("JSON")).expect("a file");
        undo_leftovers(folder.path(), false, &mut |_| {});
        assert!(made.exists() && journal.exists());
        undo_leftovers(folder.path(), true, &mut |_| {});
        assert!(!made.exists() && !journal.exists());
    }
}
