//! Chooses cases and runs them.

use super::case::{Case, Failure, Finding, Level};
use super::cases::GROUPS;
use std::panic::catch_unwind;

/// A live case whose run is inconclusive is run again, but not more often than this.
/// Source: preface of the conformance cases.
const REPEATS_MAX: u32 = 3;

/// How a case came out on one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// As it must be.
    Pass,
    /// Not run, for the reason given.
    Skip,
    /// The run is inconclusive, however often it was repeated.
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
    /// If a name is not a group and no id: the name.
    pub fn runs(&self) -> Result<Vec<(&'static Case, Level)>, String> {
        let is_named = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
        let known = |wanted: &&String| {
            GROUPS.iter().any(|group| {
                is_named(&group.name, wanted)
                    || group.cases.iter().any(|case| is_named(&case.id, wanted))
            })
        };
        if let Some(unknown) = self.names.iter().find(|wanted| !known(wanted)) {
            return Err(unknown.clone());
        }
        let wants = |name: &str| self.names.iter().any(|wanted| is_named(name, wanted));
        let mut chosen = Vec::new();
        for group in GROUPS.iter() {
            let whole = self.names.is_empty() || wants(&group.name);
            for case in group.cases.iter().filter(|case| whole || wants(&case.id)) {
                let takes = |level: &Level| self.levels.is_empty() || self.levels.contains(level);
                chosen.extend(case.levels.iter().copied().filter(takes).map(|level| (case, level)));
            }
        }
        Ok(chosen)
    }
}

/// Runs one case on one level. A program that panics has failed; the others go on. A live run that
/// is inconclusive is repeated; `again` receives the number of repeats and the reason.
pub fn perform(case: &'static Case, level: Level, again: &mut dyn FnMut(u32, &str)) -> Outcome {
    let repeats_max = if level == Level::Live { REPEATS_MAX } else { 0 };
    let mut repeats = 0;
    let (verdict, reason) = loop {
        let (verdict, reason) = conclude(catch_unwind(|| (case.script)(level)));
        if verdict != Verdict::Inconclusive || repeats == repeats_max {
            break (verdict, reason);
        }
        repeats += 1;
        again(repeats, &reason);
    };
    let reason = match repeats {
        0 => reason,
        1 => format!("{reason} (run twice)"),
        n => format!("{reason} (run {} times)", n + 1),
    };
    Outcome { case, level, verdict, reason }
}

fn conclude(run: std::thread::Result<Finding>) -> (Verdict, String) {
    match run {
        Ok(Ok(seen)) => (Verdict::Pass, seen),
        Ok(Err(Failure::Failed(reason))) => (Verdict::Fail, reason),
        Ok(Err(Failure::Inconclusive(reason))) => (Verdict::Inconclusive, reason),
        Ok(Err(Failure::Skipped(reason))) => (Verdict::Skip, reason),
        Err(panic) => (Verdict::Fail, format!("panicked: {}", words(panic.as_ref()))),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
