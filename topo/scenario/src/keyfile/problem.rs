//! What is wrong with a file, where, and what to write instead.

use std::fmt;

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
}

impl Place {
    /// The line in the file; 0 for what came from the command line.
    pub fn line(&self) -> usize {
        match self {
            Place::File { line, .. } => *line,
            Place::Override(_) => 0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { line, column } => write!(f, "{line}:{column}"),
            Place::Override(text) => write!(f, "--set {text}"),
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key, as `--set` would name it.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
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

/// What is wrong with a value, before it is known where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Complaint {
    /// A complaint and its remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Complaint {
        Complaint { message: message.into(), hint: hint.into() }
    }
}

/// Every fault found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a fault.
    pub fn report(&mut self, place: &Place, path: impl Into<String>, complaint: Complaint) {
        let Complaint { message, hint } = complaint;
        self.0.push(Problem { place: place.clone(), path: path.into(), message, hint });
    }

    /// No fault was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults in the order of the file, those of the command line last.
    pub fn in_order(mut self) -> Problems {
        self.0.sort();
        self.0.dedup();
        self
    }

    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// The faults as `file:line:column: key: message`, one below the other.
    pub fn in_file(&self, file: &str) -> String {
        self.0
            .iter()
            .map(|problem| match problem.place {
                Place::File { .. } => format!("{file}:{problem}\n"),
                Place::Override(_) => format!("{problem}\n"),
            })
            .collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

/// The one of `known` that was probably meant by `written`, as a hint.
pub fn did_you_mean<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let all = || known.clone().collect::<Vec<_>>().join(", ");
    known
        .clone()
        .map(|name| (strsim::jaro_winkler(written, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(|| format!("one of {}", all()), |(_, name)| format!("did you mean {name:?}?"))
}
