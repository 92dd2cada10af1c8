//! `[[phase]]`: named parts of the run, for pictures and events.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::refuse_duplicates;
use proto::params::{Key, KeyTable, Kind};
use proto::units::Instant;

/// A part of the run, up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it starts.
    pub start: Instant,
}

/// The keys of `[[phase]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "a named part of the run",
    &[
        Key::required("name", Kind::Text, "its name"),
        Key::required("start", Kind::Time, "when it starts"),
    ],
);

/// Reads every `[[phase]]`, in order of time.
pub fn read(root: &Fields<'_>, end: Option<Instant>, problems: &mut Problems) -> Vec<Phase> {
    let list = root.tables("phase");
    refuse_duplicates(&list, "phases", problems);
    let mut phases = Vec::new();
    for fields in &list {
        let (Some(name), Some(start)) = (fields.text("name"), fields.instant("start")) else {
            continue;
        };
        if end.is_some_and(|end| start >= end) {
            let complaint = Complaint::new("it starts after the run has ended", "see run.duration");
            fields.report(problems, "start", complaint);
        }
        phases.push(Phase { name: name.to_owned(), start });
    }
    phases.sort_by_key(|phase| phase.start);
    phases
}
