//! Chooses cases and runs them.

use super::case::{Case, Failure, Level, Program, Run};
use super::groups::GROUPS;
use std::panic::catch_unwind;

/// How a case came out on one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// As it must be.
    Pass,
    /// Not run, for the reason given.
    Skip,
    /// The run says nothing, however often it was repeated.
    Inconclusive,
    /// Otherwise than it must be.
    Fail,
}

/// A case on one level, and how it came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which case.
    pub case: &'static Case,
    /// On which level.
    pub level: Level,
    /// How.
    pub verdict: Verdict,
    /// What was seen, or why it was not as it must be, or why it was not run.
    pub reason: String,
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Groups and ids; none means all.
    pub names: Vec<String>,
    /// Levels; none means all.
    pub levels: Vec<Level>,
}

impl Selection {
    /// The chosen cases with the chosen of their levels, in the order of the register.
    ///
    /// # Errors
    /// If a name is no group and no id: the name.
    pub fn runs(&self) -> Result<Vec<(&'static Case, Run)>, String> {
        let is_named = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
        let known = |wanted: &&String| {
            GROUPS.iter().any(|group| {
                is_named(group.name, wanted)
                    || group.cases.iter().any(|case| is_named(case.id, wanted))
            })
        };
        if let Some(unknown) = self.names.iter().find(|wanted| !known(wanted)) {
            return Err(unknown.clone());
        }
        let wants = |name: &str| self.names.iter().any(|wanted| is_named(name, wanted));
        let mut chosen = Vec::new();
        for group in GROUPS {
            let whole = self.names.is_empty() || wants(group.name);
            for case in group.cases.iter().filter(|case| whole || wants(case.id)) {
                let runs = case.runs.iter().copied();
                chosen.extend(runs.filter(|run| self.takes(run.level)).map(|run| (case, run)));
            }
        }
        Ok(chosen)
    }

    fn takes(&self, level: Level) -> bool {
        self.levels.is_empty() || self.levels.contains(&level)
    }
}

/// Runs one case on one level. A program that panics has failed; the others go on.
pub fn perform(case: &'static Case, run: Run) -> Outcome {
    let (verdict, reason) = match run.program {
        Program::Missing(reason) => (Verdict::Skip, reason.to_owned()),
        Program::Here(program) => match catch_unwind(program) {
            Ok(Ok(seen)) => (Verdict::Pass, seen),
            Ok(Err(Failure::Failed(reason))) => (Verdict::Fail, reason),
            Ok(Err(Failure::Inconclusive(reason))) => (Verdict::Inconclusive, reason),
            Ok(Err(Failure::Skipped(reason))) => (Verdict::Skip, reason),
            Err(panic) => (Verdict::Fail, format!("panicked: {}", words(panic.as_ref()))),
        },
    };
    Outcome { case, level: run.level, verdict, reason }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
