//! Holds a document against its declared keys: faults are reported, wrong values give way to
//! defaults, and missing ones are filled in. What is left can be read without further checks.

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
    let word = deciding_word(table, keys);
    let known = keys.keys_for(word.as_deref());
    if !keys.open {
        refuse_unknown(table, keys, &known, word.as_deref(), path, problems);
    }
    for key in known {
        settle_key(table, key, place, &join(path, key.name), scale, problems);
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

fn deciding_word(table: &Table, keys: &KeyTable) -> Option<String> {
    let by = keys.variants.as_ref()?.by;
    let written = table.text(by).map(str::to_owned);
    written.or_else(|| match keys.keys.iter().find(|key| key.name == by)?.need {
        Need::Default(text) => Some(text.trim_matches('"').to_owned()),
        _ => None,
    })
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

fn settle_key(
    table: &mut Table,
    key: &'static Key,
    place: &Place,
    path: &str,
    scale: &Scale,
    problems: &mut Problems,
) {
    if let Some(datum) = table.get_mut(key.name) {
        if settle_value(datum, &key.kind, path, scale, problems) {
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
        settle_value(&mut datum, &key.kind, path, scale, problems);
        table.set(key.name, datum);
    }
}

/// True if the value may stay.
fn settle_value(
    datum: &mut Datum,
    kind: &Kind,
    path: &str,
    scale: &Scale,
    problems: &mut Problems,
) -> bool {
    match (kind, &mut datum.data) {
        (Kind::Table(keys), Data::Table(table)) => {
            settle(table, keys, &datum.place, path, scale, problems);
            true
        }
        (Kind::Tables(keys), Data::List(list)) => {
            for (index, element) in list.iter_mut().enumerate() {
                settle_element(element, keys, path, index, scale, problems);
            }
            list.retain(|element| matches!(element.data, Data::Table(_)));
            true
        }
        (Kind::List(of), Data::List(list)) => {
            let before = problems.clone();
            for (index, element) in list.iter_mut().enumerate() {
                let path = join(path, &index.to_string());
                settle_value(element, of, &path, scale, problems);
            }
            before == *problems
        }
        _ => match kind.check(datum, scale) {
            Ok(()) => true,
            Err(complaint) => {
                problems.report(&datum.place, path, complaint);
                false
            }
        },
    }
}

fn settle_element(
    element: &mut Datum,
    keys: &'static KeyTable,
    path: &str,
    index: usize,
    scale: &Scale,
    problems: &mut Problems,
) {
    match &mut element.data {
        Data::Table(table) => {
            let path = element_path(path, index, table);
            settle(table, keys, &element.place, &path, scale, problems);
        }
        other => {
            let message = format!("{} where a table belongs", other.type_name());
            let complaint = Complaint::new(message, keys.about);
            problems.report(&element.place, join(path, &index.to_string()), complaint);
        }
    }
}
