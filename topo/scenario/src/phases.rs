//! `[[phase]]`: named parts of the run, for pictures and events.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::{Complaint, Problems};
use crate::refuse_duplicates;
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
pub static KEYS: KeyTable = KeyTable {
    about: "a named part of the run",
    keys: &[
        Key { name: "name", kind: Kind::Text, need: Need::Required, about: "its name" },
        Key { name: "start", kind: Kind::Time, need: Need::Required, about: "when it starts" },
    ],
    variants: None,
    open: false,
};

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
