//! Settings of a device that a case changes while it runs, by hooks of the DUT file, and that are undone with the case.

use super::file::{DutFile, Hook, When};
use super::verdict::{Check, Fault};
use host::exec::{ExecRequest, exec};
use launch::lab::{LabRecord, client};
use launch::with_sources;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time of one command.
const LIMIT: Duration = Duration::from_secs(30);

/// Where hooks of a device run that the suite has started.
#[derive(Clone, Debug)]
pub enum Target {
    /// Nothing was started.
    None,
    /// In a machine: its folder and name.
    Machine(PathBuf, String),
    /// In a lab.
    Lab(Box<LabRecord>),
}

impl Target {
    /// Runs one command.
    ///
    /// # Errors
    /// Why it failed.
    pub fn run(&self, words: &[String]) -> Result<(), String> {
        match self {
            Target::None => Err("the device was not started by the suite".to_owned()),
            Target::Machine(folder, name) => run_in_machine(folder, name, words),
            Target::Lab(record) => change_lab(record, words),
        }
    }
}

fn run_in_machine(folder: &Path, name: &str, words: &[String]) -> Result<(), String> {
    let request = ExecRequest { argv: words.to_vec(), ..ExecRequest::default() };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let input = std::io::empty();
    let code = exec(folder, name, &request, input, &mut output, &mut errors, Some(LIMIT));
    match code {
        Ok(0) => Ok(()),
        Ok(code) => {
            let text = host::text::escaped(&errors);
            Err(format!("the hook {} ends with {code}: {text}", words.join(" ")))
        }
        Err(error) => Err(with_sources(&error)),
    }
}

/// The first word is a switch or a port, each other one a setting as a line of TOML.
fn change_lab(record: &LabRecord, words: &[String]) -> Result<(), String> {
    let (node, settings) = words.split_first().ok_or("the hook names no switch")?;
    let settings = settings.join("\n").parse::<toml::Table>();
    let settings = settings.map_err(|error| format!("the hook {}: {error}", words.join(" ")))?;
    client::change_settings(record, node, &settings).map_err(|error| with_sources(&error))
}

/// Hooks of a device that cases run.
#[derive(Clone, Debug)]
pub struct Changes {
    hooks: Vec<Hook>,
    target: Target,
}

/// Settings that are changed; they are undone when this is dropped.
#[derive(Debug)]
pub struct Changed {
    undo: Vec<Vec<String>>,
    target: Target,
}

impl Changes {
    /// Those of `file`, for a device at `target`.
    pub fn new(file: &DutFile, target: Target) -> Changes {
        let of_cases = file.hooks.iter().filter(|hook| hook.when != When::Start);
        Changes { hooks: of_cases.cloned().collect(), target }
    }

    /// Runs the hooks of `when`.
    ///
    /// # Errors
    /// If there are none, or one fails; those before it are undone.
    pub fn make(&self, when: When) -> Check<Changed> {
        let mut changed = Changed { undo: Vec::new(), target: self.target.clone() };
        let mut hooks = self.hooks.iter().filter(|hook| hook.when == when).peekable();
        if hooks.peek().is_none() {
            return Err(Fault::absent(format!("the DUT file has no hook of {}", when.word())));
        }
        for hook in hooks {
            self.target.run(&hook.run).map_err(Fault::unclear)?;
            changed.undo.extend(hook.undo.clone());
        }
        Ok(changed)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        for words in self.undo.iter().rev() {
            if let Err(error) = self.target.run(words) {
                eprintln!("  {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_its_hook_is_not_implemented_and_a_hook_needs_a_device_of_the_suite() {
        let text = |hook: &str| {
            format!(
                "[dut]\nname = \"x\"\nkind = \"ethernet-switch\"\n[device]\nreach = \"interfaces\"\n\
                 ports = [\"a\", \"b\", \"c\"]\n{hook}"
            )
        };
        let parse = |hook: &str| DutFile::parse(&text(hook), PathBuf::new());
        let plain = parse("").expect("a file");
        let fault = Changes::new(&plain, Target::None).make(When::Red).expect_err("no hook");
        assert_eq!(fault, Fault::absent("the DUT file has no hook of red"));
        let hook = "[[hook]]\nrun = [\"s1\"]\nplace = \"lab\"\nwhen = \"red\"\n";
        let changes = Changes::new(&parse(hook).expect("a file"), Target::None);
        assert!(changes.make(When::Red).is_err_and(|fault| fault.observed.contains("not started")));
        for (place, when) in [("host", "red"), ("lab", "start")] {
            let wrong = hook
                .replace("\"lab\"", &format!("{place:?}"))
                .replace("\"red\"", &format!("{when:?}"));
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }
}
