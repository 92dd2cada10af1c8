//! What is wrong with a file, where, and what to write instead.

use std::fmt;
use std::sync::Arc;

pub use proto::params::Complaint;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file, counted from 1; columns count characters.
    File {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// On the command line: the text after `--set`.
    Override(String),
    /// Nowhere: the value is the key's default.
    Default,
}

impl Place {
    /// The line in the file; 0 for what came from the command line.
    pub fn line(&self) -> usize {
        match self {
            Place::File { line, .. } => *line,
            Place::Override(_) | Place::Default => 0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { line, column } => write!(f, "{line}:{column}"),
            Place::Override(text) => write!(f, "--set {text}"),
            Place::Default => f.write_str("default"),
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, if it is not the one that was asked for but one of its bases.
    pub file: Option<Arc<str>>,
    /// Where.
    pub place: Place,
    /// The key, as `--set` would name it.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    fn new(place: &Place, path: impl Into<String>, complaint: Complaint) -> Problem {
        let Complaint { message, hint } = complaint;
        Problem { file: None, place: place.clone(), path: path.into(), message, hint }
    }

    /// As a warning about this file, on one line.
    pub fn as_warning(&self, file: &std::path::Path) -> String {
        let Problem { place, path, message, hint, .. } = self;
        let file = self.file.as_deref().map_or_else(|| file.display().to_string(), str::to_owned);
        format!("{file}:{place}: warning: {path}: {message} ({hint})")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.path, self.message)?;
        if !self.hint.is_empty() {
            write!(f, "\n    hint: {}", self.hint)?;
        }
        Ok(())
    }
}

/// Every error found so far, and what is legal but probably not meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems {
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Problems {
    /// Adds a fault.
    pub fn report(&mut self, place: &Place, path: impl Into<String>, complaint: Complaint) {
        self.errors.push(Problem::new(place, path, complaint));
    }

    /// Adds a warning.
    pub fn warn(&mut self, place: &Place, path: impl Into<String>, complaint: Complaint) {
        self.warnings.push(Problem::new(place, path, complaint));
    }

    /// Takes the warnings, in the order of the file.
    pub fn take_warnings(&mut self) -> Vec<Problem> {
        self.warnings.sort();
        self.warnings.dedup();
        std::mem::take(&mut self.warnings)
    }

    /// No fault was found.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// With every fault changed by `change`.
    #[must_use]
    pub fn changed(mut self, change: impl FnMut(&mut Problem)) -> Problems {
        self.errors.iter_mut().for_each(change);
        self
    }

    /// The faults in the order of the file, those of the command line last.
    pub fn in_order(mut self) -> Problems {
        self.errors.sort();
        self.errors.dedup();
        self
    }

    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.errors.iter()
    }

    /// The faults as `file:line:column: key: message`, one below the other.
    pub fn in_file(&self, file: &str) -> String {
        self.errors
            .iter()
            .map(|problem| match problem.place {
                Place::File { .. } => {
                    format!("{}:{problem}\n", problem.file.as_deref().unwrap_or(file))
                }
                Place::Override(_) | Place::Default => format!("{problem}\n"),
            })
            .collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.errors.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The one of `known` that was probably meant by `written`, as a hint.
pub fn did_you_mean<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> String {
    proto::params::did_you_mean(written, &known.collect::<Vec<_>>())
}
