//! `[[phase]]`: named parts of the run, for pictures and events.

use crate::keyfile::fields::Fields;
use crate::refuse_duplicates;
use proto::params::{KeyTable, Params};
use proto::units::Instant;

/// The keys of `[[phase]]`.
pub static KEYS: KeyTable = KeyTable::new("a named part of the run", Phase::KEYS);

proto::params! {
    /// A part of the run, up to the next one.
    #[derive(Eq)]
    pub struct Phase {
        /// Its name.
        name: String = Text, Required;
        /// When it starts.
        start: Instant = Time, Required;
    }
}

/// Reads every `[[phase]]`, in order of time.
pub fn read(root: &Fields<'_>, end: Instant) -> Vec<Phase> {
    refuse_duplicates(&root.tables("phase"), "phases");
    let mut phases = Vec::new();
    for (fields, phase) in root.each::<Phase>("phase") {
        if phase.start >= end {
            fields.error("start", "it starts after the run has ended", "see run.duration");
        }
        phases.push(phase);
    }
    phases.sort_by_key(|phase| phase.start);
    phases
}
