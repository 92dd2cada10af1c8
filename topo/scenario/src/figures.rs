//! `[[figure]]`: which figure of a paper a report's figure is to be compared with (docs/spec/seeing.md 5).

use crate::keyfile::fields::Fields;
use proto::params::{KeyTable, Params};
use serde::{Deserialize, Serialize};

/// The keys of `[[figure]]`.
pub static KEYS: KeyTable =
    KeyTable::new("what a figure of the report is to be compared with", Likeness::KEYS);

proto::params! {
    /// The published figure that a figure of the report resembles.
    #[derive(Eq, Serialize, Deserialize)]
    pub struct Likeness {
        /// The figure of the report.
        of: FigureName = FigureName::KIND, Default("over-time");
        /// The figure and the paper that show the same.
        like: String = Text, Required;
    }
}

proto::words! {
    /// A figure of a report, by the name that its file has.
    pub enum FigureName {
        /// The saturated outputs of the fabric.
        Fabric = "fabric",
        /// Everything over time.
        OverTime = "over-time",
        /// What each port received.
        EveryPort = "every-port",
        /// How long messages took.
        CompletionTimes = "completion-times",
        /// Which outputs were held most.
        WaitedLongest = "waited-longest",
    }
}

/// Reads every `[[figure]]`; a figure of the report is like one other.
pub fn read(root: &Fields<'_>) -> Vec<Likeness> {
    let mut read: Vec<Likeness> = Vec::new();
    for (fields, figure) in root.each::<Likeness>("figure") {
        if let Some(first) = read.iter().find(|first| first.of == figure.of) {
            let message = format!("{} is already like {:?}", figure.of.word(), first.like);
            fields.error("of", message, "name both in one `like`, or another figure in `of`");
        }
        read.push(figure);
    }
    read
}
