//! Checks a document against its declared keys and parses every value once: errors are reported, wrong
//! values are replaced by defaults, and missing ones are filled in. A key without effect is a warning.
//!
//! The word that decides which keys a table has may be in a table around it: the keys of a link depend
//! on the technology of its fabric. A condition may also name a word of a table beside it: headroom
//! depends on `link.pause`.

use crate::keyfile::document::{Data, Datum, Table, parse_value};
use crate::keyfile::problem::{Complaint, Place, Problems, did_you_mean};
use proto::params::{Key, KeyTable, Kind, Need, Scale, Variant};

/// Checks and completes `table`, which stands at `place` and is named `path`.
pub fn settle(
    table: &mut Table,
    keys: &KeyTable,
    place: &Place,
    path: &str,
    scale: &Scale,
    problems: &mut Problems,
) {
    Settling { scale, words: Vec::new(), problems }.table(table, keys, place, path);
}

/// What a table inherits from those around it, and the faults found so far.
struct Settling<'a> {
    scale: &'a Scale,
    /// Words by key, those of inner tables last; `link.pause` is a word of a table beside this one.
    words: Vec<(String, String)>,
    problems: &'a mut Problems,
}

impl Settling<'_> {
    fn table(&mut self, table: &mut Table, keys: &KeyTable, place: &Place, path: &str) {
        let outside = self.words.len();
        self.words.extend(words(table, keys.keys.iter()));
        let known = keys.keys_for(|by| self.word(by));
        self.words.truncate(outside);
        self.words.extend(words(table, known.iter().copied()));
        if !keys.open {
            self.refuse_unknown(table, keys, &known, path);
        }
        for key in &known {
            self.key(table, key, &known, place, &join(path, key.name));
        }
        self.warn_of_idle(table, &known, path);
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
        known: &[&'static Key],
        place: &Place,
        path: &str,
    ) {
        if let Some(datum) = table.get_mut(key.name) {
            if self.value(datum, &key.kind, path) {
                self.remember(key, datum);
                return;
            }
            table.entries.retain(|entry| entry.key != key.name);
        } else if matches!(key.need, Need::Required) {
            let message = format!("{:?} is missing", key.name);
            let about = key.about.trim_end_matches('.');
            let hint = format!("{about}: {}", key.kind.expected());
            self.problems.report(place, path, Complaint::new(message, hint));
        }
        if let Some(text) = key.need.text(|by| self.position(known, by)) {
            let of_table = matches!(key.kind, Kind::Table(_));
            let place = if of_table { place } else { &Place::Default };
            let mut datum = parse_value(text, place);
            self.value(&mut datum, &key.kind, path);
            self.remember(key, &datum);
            table.set(key.name, datum);
        }
    }

    /// Keeps the words of an inner table for the conditions of the tables beside it.
    fn remember(&mut self, key: &Key, datum: &Datum) {
        if let (Kind::Table(keys), Data::Table(table)) = (&key.kind, &datum.data) {
            let words = words(table, keys.every_key().into_iter());
            self.words.extend(words.into_iter().map(|(name, word)| (join(key.name, &name), word)));
        }
    }

    /// The index of the word that the key `by` of the same table has.
    fn position(&self, known: &[&'static Key], by: &str) -> Option<usize> {
        let Kind::Word(words) = known.iter().find(|key| key.name == by)?.kind else { return None };
        let word = self.word(by)?;
        words().iter().position(|known| *known == word)
    }

    /// True if the value may stay; it is parsed then.
    fn value(&mut self, datum: &mut Datum, kind: &Kind, path: &str) -> bool {
        match (kind, &mut datum.data) {
            (Kind::Table(keys), Data::Table(table)) => {
                self.table(table, keys, &datum.place, path);
                true
            }
            (Kind::Tables(keys), Data::List(list)) => {
                for (index, element) in list.iter_mut().enumerate() {
                    self.element(element, keys, path, index);
                }
                list.retain(|element| matches!(element.data, Data::Table(_)));
                true
            }
            (Kind::List(of), Data::List(list)) => {
                let before = self.problems.iter().count();
                for (index, element) in list.iter_mut().enumerate() {
                    self.value(element, of, &join(path, &index.to_string()));
                }
                datum.value = kind.parse(&datum.data.to_toml(), self.scale).ok();
                before == self.problems.iter().count()
            }
            _ => match kind.parse(&datum.data.to_toml(), self.scale) {
                Ok(value) => {
                    datum.value = Some(value);
                    true
                }
                Err(complaint) => {
                    self.problems.report(&datum.place, path, complaint);
                    false
                }
            },
        }
    }

    fn element(&mut self, element: &mut Datum, keys: &KeyTable, path: &str, index: usize) {
        match &mut element.data {
            Data::Table(table) => {
                let path = element_path(path, index, table);
                self.table(table, keys, &element.place, &path);
            }
            other => {
                let message = format!("{} where a table belongs", other.type_name());
                let complaint = Complaint::new(message, keys.about);
                self.problems.report(&element.place, join(path, &index.to_string()), complaint);
            }
        }
    }

    /// Warns of keys that are written but have no effect.
    fn warn_of_idle(&mut self, table: &Table, known: &[&'static Key], path: &str) {
        for entry in table.entries.iter().filter(|entry| entry.value.place != Place::Default) {
            let value = |name: &str| match name.contains('.') {
                true => self.word(name),
                false => table.get(name).map(|datum| datum.data.plain()),
            };
            let key = known.iter().find(|key| key.name == entry.key);
            if let Some(when) = key.and_then(|key| key.when).filter(|when| !when.holds(value)) {
                let complaint = Complaint::new("it has no effect here", format!("it needs {when}"));
                self.problems.warn(&entry.place, join(path, &entry.key), complaint);
            }
        }
    }

    fn refuse_unknown(
        &mut self,
        table: &mut Table,
        keys: &KeyTable,
        known: &[&'static Key],
        path: &str,
    ) {
        let is_known = |name: &str| known.iter().any(|key| key.name == name);
        for entry in table.entries.iter().filter(|entry| !is_known(&entry.key)) {
            let owners = |rows: Vec<Variant>| -> Vec<&str> {
                let has_it = |keys: &[&Key]| keys.iter().any(|key| key.name == entry.key);
                rows.into_iter().filter(|(_, keys)| has_it(keys)).map(|(word, _)| word).collect()
            };
            let mut owned = keys.variants.iter().map(|v| (v.by, owners((v.rows)())));
            let hint = match owned.find(|(_, owners)| !owners.is_empty()) {
                Some((by, owners)) => format!(
                    "it belongs to {by} = {owner:?}, here {by} = {word:?}",
                    owner = owners.join("\" or \""),
                    word = self.word(by).as_deref().unwrap_or("?"),
                ),
                None => did_you_mean(&entry.key, known.iter().map(|key| key.name)),
            };
            let complaint = Complaint::new(format!("unknown key {:?}", entry.key), hint);
            self.problems.report(&entry.place, join(path, &entry.key), complaint);
        }
        table.entries.retain(|entry| is_known(&entry.key));
    }
}

/// The path of `key` in the table `path`.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The path of an element of the list `path`: by its name if it has one, else by its index, as
/// `--set` takes it.
pub fn element_path(path: &str, index: usize, element: &Table) -> String {
    join(path, element.known_as().unwrap_or(&index.to_string()))
}

/// The words of `table`, written or by default.
fn words<'a>(table: &Table, keys: impl Iterator<Item = &'a Key>) -> Vec<(String, String)> {
    let words = keys.filter(|key| matches!(key.kind, Kind::Word(_)));
    let word = |key: &Key| {
        let default = key.need.text(|_| None).map(|text| text.trim_matches('"'));
        Some((key.name.to_owned(), table.text(key.name).or(default)?.to_owned()))
    };
    words.filter_map(word).collect()
}
