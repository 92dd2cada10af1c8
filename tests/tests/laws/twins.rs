//! Scenarios that must behave like another one: with all times doubled and rates halved, and with other names.

use crate::text;
use proto::params::{KeyTable, Kind, quantity};
use proto::units::{BitRate, Duration};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Times that are counted in units of a standard.
const COUNTED: [&str; 1] = ["ccti_timer"];

/// The scenario with each time twice as long and each rate half as high; defaults in seconds and bits are written out.
///
/// Rounding is the same in both only where each computed time is a whole number of picoseconds at the higher rate, so
/// the generator takes rates at which an octet lasts one, arrivals without random gaps, and schemes that compute no rates.
pub fn doubled(table: &Table) -> Option<Table> {
    // The technology's default rate is in no table, and random gaps are rounded.
    table.get("fabric")?.get("link")?.get("rate")?;
    let mut items = table.get("traffic")?.as_array()?.iter();
    let is_exact = |item: &Value| {
        let arrivals = item.get("arrivals").and_then(Value::as_str);
        arrivals.is_some_and(|word| ["paced", "backlog"].contains(&word))
    };
    if !items.all(is_exact) {
        return None;
    }
    let mut slow = table.clone();
    stretch(&mut slow, &scenario::KEYS, &mut Vec::new())?;
    Some(slow)
}

/// Stretches what `table` has in force. `words` are those of the tables around.
fn stretch(table: &mut Table, keys: &KeyTable, words: &mut Vec<(String, String)>) -> Option<()> {
    let outside = words.len();
    for key in keys.keys.iter().filter(|key| matches!(key.kind, Kind::Word(_))) {
        let written = table.get(key.name).and_then(Value::as_str);
        let default = key.need.text(|_| None).map(|text| text.trim_matches('"'));
        let word = written.or(default).unwrap_or_default();
        words.push((key.name.to_owned(), word.to_owned()));
    }
    let known = keys.keys_for(|by| {
        let word = words.iter().rev().find(|(name, _)| name == by);
        word.map(|(_, word)| word.clone())
    });
    for key in known {
        let default = key.need.text(|_| Some(0)).map(proto::params::parse_default);
        let Some(mut value) = table.get(key.name).cloned().or(default) else { continue };
        match (&key.kind, &mut value) {
            (Kind::Table(keys), Value::Table(inner)) => stretch(inner, keys, words)?,
            (Kind::Tables(keys), Value::Array(list)) => {
                for element in list.iter_mut().filter_map(Value::as_table_mut) {
                    stretch(element, keys, words)?;
                }
            }
            (Kind::Time | Kind::Span, Value::String(text)) => {
                // A time in frames stretches with the rate.
                if let Ok(time) = text.parse::<Duration>() {
                    *text = format!("{} ps", time.as_ps().checked_mul(2)?);
                }
            }
            (Kind::Rate, Value::String(text)) => {
                let rate = quantity::rate(text).ok().map(BitRate::get);
                *text = format!("{} bps", rate.filter(|rate| rate.is_multiple_of(2))? / 2);
            }
            (_, Value::Integer(number)) if COUNTED.contains(&key.name) => {
                *number = (*number * 2).min(65_534);
            }
            _ => continue,
        }
        table.insert(key.name.to_owned(), value);
    }
    words.truncate(outside);
    Some(())
}

/// The listed scenario with the names of NICs exchanged among each other, and those of switches. The order of the file
/// stays, and so do addresses.
pub fn renamed(table: &Table) -> Option<Table> {
    let fabric = table.get("fabric")?;
    let count = |key: &str| fabric.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let word = |key: &str| fabric.get(key).and_then(Value::as_str);
    let default = if word("technology") == Some("ethernet") { "ecmp" } else { "d-mod-k" };
    let is_hashed = matches!(word("routing").unwrap_or(default), "ecmp" | "random");
    // Its hash is seeded by the switch's name, where a fabric has more than one way.
    if is_hashed && count("links") >= count("nodes") {
        return None;
    }
    let nodes = fabric.get("nodes")?.as_array()?;
    let mut new = BTreeMap::new();
    for kind in ["nic", "switch"] {
        let of_kind =
            nodes.iter().filter(|node| node.get("kind").and_then(Value::as_str) == Some(kind));
        let names: Vec<&str> = of_kind.filter_map(|node| node.get("name")?.as_str()).collect();
        for (index, name) in names.iter().enumerate() {
            // Neither the old order nor its reverse.
            let other = names[(index + names.len() / 2 + 1) % names.len()];
            new.insert((*name).to_owned(), other.to_owned());
        }
    }
    let mut renamed = Value::Table(table.clone());
    rename(&mut renamed, &new);
    renamed.as_table().cloned()
}

/// Renames every string that is a node or one of its ports.
fn rename(value: &mut Value, new: &BTreeMap<String, String>) {
    match value {
        Value::Table(inner) => inner.iter_mut().for_each(|(_, value)| rename(value, new)),
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, new)),
        Value::String(text) => {
            let (name, port) = match text.split_once(':') {
                Some((name, port)) => (name, format!(":{port}")),
                None => (text.as_str(), String::new()),
            };
            if let Some(name) = new.get(name) {
                *text = format!("{name}{port}");
            }
        }
        _ => {}
    }
}

/// The scenario with another seed.
pub fn reseeded(table: &Table) -> Table {
    let mut other = table.clone();
    text::section(&mut other, "run").insert("seed".into(), 999_999_937.into());
    other
}
