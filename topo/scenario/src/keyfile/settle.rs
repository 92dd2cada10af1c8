//! Holds a document against its declared keys: faults are reported, wrong values give way to
//! defaults, and missing ones are filled in. What is left can be read without further checks.
//!
//! The word that decides which keys a table has may stand in a table around it: what a link has
//! depends on the technology of its fabric.

use crate::keyfile::document::{Data, Datum, Table, parse_value};
use crate::keyfile::keys::{Key, KeyTable, Kind, Need};
use crate::keyfile::problem::{Complaint, Place, Problems, did_you_mean};
use crate::keyfile::quantity::Scale;

/// Checks and completes `table`, which stands at `place` and is named `path`.
pub fn settle(
    table: &mut Table,
    keys: &KeyTable,
    place: &Place,
    path: &str,
    scale: &Scale,
    problems: &mut Problems,
) {
    Settling { scale, words: Vec::new() }.table(table, keys, place, path, problems);
}

/// What a table inherits from those around it.
struct Settling<'a> {
    scale: &'a Scale,
    /// Words by key, those of inner tables last.
    words: Vec<(&'static str, String)>,
}

impl Settling<'_> {
    fn table(
        &mut self,
        table: &mut Table,
        keys: &KeyTable,
        place: &Place,
        path: &str,
        problems: &mut Problems,
    ) {
        let outside = self.words.len();
        self.words.extend(words(table, keys));
        let word = keys.variants.as_ref().and_then(|variants| self.word(variants.by));
        let known = keys.keys_for(word.as_deref());
        if !keys.open {
            refuse_unknown(table, keys, &known, word.as_deref(), path, problems);
        }
        for key in known {
            self.key(table, key, place, &join(path, key.name), problems);
        }
        self.words.truncate(outside);
    }

    /// The innermost word of that key.
    fn word(&self, key: &str) -> Option<String> {
        self.words.iter().rev().find(|(name, _)| *name == key).map(|(_, word)| word.clone())
    }

    fn key(
        &mut self,
        table: &mut Table,
        key: &'static Key,
        place: &Place,
        path: &str,
        problems: &mut Problems,
    ) {
        if let Some(datum) = table.get_mut(key.name) {
            if self.value(datum, &key.kind, path, problems) {
                return;
            }
            table.entries.retain(|entry| entry.key != key.name);
        } else if matches!(key.need, Need::Required) {
            let complaint = Complaint::new(
                format!("{:?} is missing", key.name),
                format!("{}: {}", key.about, key.kind.expected()),
            );
            problems.report(place, path, complaint);
        }
        if let Need::Default(text) = key.need {
            let mut datum = parse_value(text, place);
            self.value(&mut datum, &key.kind, path, problems);
            table.set(key.name, datum);
        }
    }

    /// True if the value may stay.
    fn value(
        &mut self,
        datum: &mut Datum,
        kind: &Kind,
        path: &str,
        problems: &mut Problems,
    ) -> bool {
        match (kind, &mut datum.data) {
            (Kind::Table(keys), Data::Table(table)) => {
                self.table(table, keys, &datum.place, path, problems);
                true
            }
            (Kind::Tables(keys), Data::List(list)) => {
                for (index, element) in list.iter_mut().enumerate() {
                    self.element(element, keys, path, index, problems);
                }
                list.retain(|element| matches!(element.data, Data::Table(_)));
                true
            }
            (Kind::List(of), Data::List(list)) => {
                let before = problems.clone();
                for (index, element) in list.iter_mut().enumerate() {
                    let path = join(path, &index.to_string());
                    self.value(element, of, &path, problems);
                }
                before == *problems
            }
            _ => match kind.check(datum, self.scale) {
                Ok(()) => true,
                Err(complaint) => {
                    problems.report(&datum.place, path, complaint);
                    false
                }
            },
        }
    }

    fn element(
        &mut self,
        element: &mut Datum,
        keys: &'static KeyTable,
        path: &str,
        index: usize,
        problems: &mut Problems,
    ) {
        match &mut element.data {
            Data::Table(table) => {
                let path = element_path(path, index, table);
                self.table(table, keys, &element.place, &path, problems);
            }
            other => {
                let message = format!("{} where a table belongs", other.type_name());
                let complaint = Complaint::new(message, keys.about);
                problems.report(&element.place, join(path, &index.to_string()), complaint);
            }
        }
    }
}

/// The path of `key` in the table `path`.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The path of an element of the list `path`: by its name if it has one, else by its index, as
/// `--set` takes it.
pub fn element_path(path: &str, index: usize, element: &Table) -> String {
    join(path, element.text("name").unwrap_or(&index.to_string()))
}

/// The words of `table`, written or by default.
fn words(table: &Table, keys: &KeyTable) -> Vec<(&'static str, String)> {
    let words = keys.keys.iter().filter(|key| matches!(key.kind, Kind::Word(_)));
    let word = |key: &Key| {
        let default = match key.need {
            Need::Default(text) => Some(text.trim_matches('"')),
            _ => None,
        };
        table.text(key.name).or(default).map(str::to_owned)
    };
    words.filter_map(|key| Some((key.name, word(key)?))).collect()
}

fn refuse_unknown(
    table: &mut Table,
    keys: &KeyTable,
    known: &[&'static Key],
    word: Option<&str>,
    path: &str,
    problems: &mut Problems,
) {
    let is_known = |name: &str| known.iter().any(|key| key.name == name);
    for entry in table.entries.iter().filter(|entry| !is_known(&entry.key)) {
        let owners: Vec<_> = keys
            .variants
            .iter()
            .flat_map(|variants| (variants.rows)())
            .filter(|(_, keys)| keys.iter().any(|key| key.name == entry.key))
            .map(|(name, _)| name)
            .collect();
        let hint = match &keys.variants {
            Some(variants) if !owners.is_empty() => format!(
                "it belongs to {by} = {owner:?}, here {by} = {word:?}",
                by = variants.by,
                owner = owners.join("\" or \""),
                word = word.unwrap_or("?"),
            ),
            _ => did_you_mean(&entry.key, known.iter().map(|key| key.name)),
        };
        let complaint = Complaint::new(format!("unknown key {:?}", entry.key), hint);
        problems.report(&entry.place, join(path, &entry.key), complaint);
    }
    table.entries.retain(|entry| is_known(&entry.key));
}
