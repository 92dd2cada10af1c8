//! `[[figure]]`: which figure of a paper a report's figure is to be compared with (docs/spec/seeing.md 5).

use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use proto::params::{Key, KeyTable, Kind};
use serde::{Deserialize, Serialize};

/// A figure of a report, by the name that its file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureName {
    /// Where the fabric stands still.
    Fabric,
    /// Everything over time.
    OverTime,
    /// What each port received.
    EveryPort,
    /// How long messages took.
    CompletionTimes,
    /// Which outputs were held most.
    WaitedLongest,
}

const NAMES: [(&str, FigureName); 5] = [
    ("fabric", FigureName::Fabric),
    ("over-time", FigureName::OverTime),
    ("every-port", FigureName::EveryPort),
    ("completion-times", FigureName::CompletionTimes),
    ("waited-longest", FigureName::WaitedLongest),
];

impl FigureName {
    /// As scenarios, files and links write it.
    pub fn word(self) -> &'static str {
        NAMES.iter().find(|(_, name)| *name == self).map_or("", |(word, _)| word)
    }
}

/// What a figure is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Likeness {
    /// The report's figure.
    pub of: FigureName,
    /// The paper's, in words.
    pub like: String,
}

/// The keys of `[[figure]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what a figure of the report is to be compared with",
    &[
        Key::new("of", Kind::Word(|| words(&NAMES)), "over-time", "which figure of the report"),
        Key::required("like", Kind::Text, "which figure of which paper shows the same"),
    ],
);

/// Reads every `[[figure]]`; a figure of the report is like one other.
pub fn read(root: &Fields<'_>, problems: &mut Problems) -> Vec<Likeness> {
    let mut read: Vec<Likeness> = Vec::new();
    for fields in root.tables("figure") {
        let (Some(of), Some(like)) = (fields.word("of", &NAMES), fields.text("like")) else {
            continue;
        };
        if let Some(first) = read.iter().find(|first| first.of == of) {
            let message = format!("{} is already like {:?}", of.word(), first.like);
            let hint = "name both in one `like`, or another figure in `of`";
            fields.report(problems, "of", Complaint::new(message, hint));
        }
        read.push(Likeness { of, like: like.to_owned() });
    }
    read
}
