//! Scenarios as text: tables, the paths of their keys, and the quantities in them.

use proto::units::{Bytes, Duration};
use toml::{Table, Value};

/// The file of a scenario.
pub fn print(table: &Table) -> String {
    toml::to_string(table).expect("a table of plain values can be written")
}

/// The inner table `key`, made if it is missing.
pub fn section<'a>(table: &'a mut Table, key: &str) -> &'a mut Table {
    let entry = table.entry(key).or_insert_with(|| Table::new().into());
    entry.as_table_mut().expect("a section is a table")
}

/// The octets of a size as written, without frames; 0 if it is none.
pub fn octets(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).map_or(0, Bytes::get)
}

/// The picoseconds of a time as written, without frames; 0 if it is none.
pub fn picoseconds(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).map_or(0, Duration::as_ps)
}

/// Removes what `path` names, as complaints do: keys, names of elements, numbers of elements. Without such a key the
/// innermost table on the way goes, if it is an element of a list. Returns false if nothing was removed.
pub fn remove(table: &mut Table, path: &str) -> bool {
    let segments: Vec<&str> = path.split('.').collect();
    remove_from_table(table, &segments)
}

fn remove_from_table(table: &mut Table, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match table.get_mut(*first) {
        Some(_) if rest.is_empty() => table.remove(*first).is_some(),
        Some(Value::Table(inner)) => remove_from_table(inner, rest),
        Some(Value::Array(list)) => {
            let gone = remove_from_list(list, rest);
            if gone && list.is_empty() {
                table.remove(*first);
            }
            gone
        }
        Some(_) => table.remove(*first).is_some(),
        None => false,
    }
}

fn remove_from_list(list: &mut Vec<Value>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let named = list.iter().position(|element| {
        element.get("name").and_then(Value::as_str).is_some_and(|name| name == *first)
    });
    let Some(place) = named.or(first.parse().ok()).filter(|place| *place < list.len()) else {
        return false;
    };
    let inside = match &mut list[place] {
        Value::Table(inner) => remove_from_table(inner, rest),
        _ => false,
    };
    if !inside {
        list.remove(place);
    }
    true
}
