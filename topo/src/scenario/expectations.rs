//! `[[expect]]`: bounds on measures.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::{Complaint, Problems, did_you_mean};
use crate::measure::Expectation;

const ANY_NUMBER: Kind = Kind::Real(f64::NEG_INFINITY, f64::INFINITY);

/// The keys of `[[expect]]`.
pub static KEYS: KeyTable = KeyTable {
    about: "a bound on a measure",
    keys: &[
        Key {
            name: "measure",
            kind: Kind::Text,
            need: Need::Required,
            about: "the name of a [[measure]]",
        },
        Key { name: "min", kind: ANY_NUMBER, need: Need::Optional, about: "at least this" },
        Key { name: "max", kind: ANY_NUMBER, need: Need::Optional, about: "at most this" },
        Key {
            name: "why",
            kind: Kind::Text,
            need: Need::Default("\"\""),
            about: "the reason, with its source",
        },
    ],
    variants: None,
    open: false,
};

/// Reads every `[[expect]]`.
pub fn read(root: &Fields<'_>, problems: &mut Problems) -> Vec<Expectation> {
    let measures = root.tables("measure");
    let names = measures.iter().filter_map(|measure| measure.text("name"));
    let mut expectations = Vec::new();
    for fields in root.tables("expect") {
        let Some(measure) = fields.text("measure") else { continue };
        if !names.clone().any(|name| name == measure) {
            let message = format!("no [[measure]] is called {measure:?}");
            let hint = did_you_mean(measure, names.clone());
            fields.report(problems, "measure", Complaint::new(message, hint));
        }
        let (min, max) = (fields.real("min"), fields.real("max"));
        if min.is_none() && max.is_none() && !fields.has("min") && !fields.has("max") {
            let complaint = Complaint::new("nothing is expected", "min = …, max = …, or both");
            fields.report(problems, "measure", complaint);
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let message = format!("min {min} is above max {max}: nothing can meet it");
            fields.report(problems, "min", Complaint::new(message, "exchange them"));
        }
        expectations.push(Expectation {
            measure: measure.to_owned(),
            min,
            max,
            why: fields.text("why").unwrap_or_default().to_owned(),
            line: fields.place.line(),
        });
    }
    expectations
}
