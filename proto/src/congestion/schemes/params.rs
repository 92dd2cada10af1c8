//! Parameter tables: which keys a scheme knows, what each may hold, and typed reading of them.

use super::ratio::Ratio;
use crate::congestion::ParamError;
use crate::units::{BitRate, Bytes, Duration};
use std::str::FromStr;
use toml::{Table, Value};

/// One parameter a scheme understands.
#[derive(Clone, Copy)]
pub struct Param {
    /// Its key.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
}

/// What a parameter may hold.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A whole number in this range.
    Integer(i64, i64),
    /// A fraction of one, in (0, 1].
    Fraction,
    /// A gain in (0, 1], exactly: a decimal, or two whole numbers as in `"1/600000"`.
    Gain,
    /// A number of octets with its unit: `"200 KB"`.
    Size,
    /// A length of time above zero with its unit: `"55 us"`.
    Time,
    /// A rate with its unit: `"40 Mbps"`.
    Rate,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a list of whole numbers in a range, at most so many.
    WordOrList(&'static [&'static str], i64, i64, usize),
}

impl Kind {
    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Integer(min, max), Value::Integer(n)) => (min..=max).contains(&n),
            (Kind::Fraction, Value::Float(f)) => *f > 0.0 && *f <= 1.0,
            (Kind::Fraction, Value::Integer(n)) => *n == 1,
            (Kind::Gain, value) => Ratio::parse(value).is_some(),
            (Kind::Size, Value::String(text)) => text.parse::<Bytes>().is_ok(),
            (Kind::Time, Value::String(text)) => {
                text.parse::<Duration>().is_ok_and(|time| time > Duration::ZERO)
            }
            (Kind::Rate, Value::String(text)) => text.parse::<BitRate>().is_ok(),
            (Kind::Word(words), Value::String(word)) => words.contains(&word.as_str()),
            (Kind::WordOrList(words, ..), Value::String(word)) => words.contains(&word.as_str()),
            (Kind::WordOrList(_, min, max, len), Value::Array(list)) => {
                !list.is_empty()
                    && list.len() <= *len
                    && list
                        .iter()
                        .all(|item| item.as_integer().is_some_and(|n| (min..=max).contains(&&n)))
            }
            _ => false,
        }
    }

    fn allowed(&self) -> String {
        match self {
            Kind::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Fraction => "a fraction above 0 and up to 1".to_owned(),
            Kind::Gain => "a gain above 0 and up to 1, such as 0.0025 or \"1/600000\"".to_owned(),
            Kind::Size => "a size with its unit, such as \"200 KB\"".to_owned(),
            Kind::Time => "a time above zero with its unit, such as \"55 us\"".to_owned(),
            Kind::Rate => "a rate with its unit, such as \"40 Mbps\"".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::WordOrList(words, min, max, len) => format!(
                "one of {}, or a list of at most {len} whole numbers from {min} to {max}",
                words.join(", ")
            ),
        }
    }
}

/// Every fault of `table` against the parameters a scheme knows, its roles' lists together.
pub fn check(table: &Table, known: &[&[Param]]) -> Vec<ParamError> {
    let known = known.concat();
    let names: Vec<&str> = known.iter().map(|param| param.name).collect();
    table
        .iter()
        .filter_map(|(key, value)| {
            let allowed = match known.iter().find(|param| param.name == key) {
                Some(param) if param.kind.accepts(value) => return None,
                Some(param) => param.kind.allowed(),
                None if names.is_empty() => "this scheme has no parameters".to_owned(),
                None => format!("unknown; this scheme knows {}", names.join(", ")),
            };
            Some(ParamError { field: key.clone(), value: value.to_string(), allowed })
        })
        .collect()
}

/// The whole number at `key`, or its default.
pub fn integer(table: &Table, key: &str, default: i64) -> i64 {
    table.get(key).and_then(Value::as_integer).unwrap_or(default)
}

/// The word at `key`, or its default.
pub fn word<'a>(table: &'a Table, key: &str, default: &'a str) -> &'a str {
    table.get(key).and_then(Value::as_str).unwrap_or(default)
}

/// The gain at `key`, if it is there.
pub fn gain(table: &Table, key: &str) -> Option<Ratio> {
    Ratio::parse(table.get(key)?)
}

/// The fraction at `key` in millionths, if it is there.
pub fn millionths(table: &Table, key: &str) -> Option<u64> {
    let value = table.get(key)?;
    let fraction = value.as_float().or_else(|| value.as_integer().map(|n| n as f64))?;
    Some((fraction * 1e6).round() as u64)
}

/// The fraction at `key` in units of 2^-`bits`, if it is there; exact if it is a whole number of them.
pub fn binary_fraction(table: &Table, key: &str, bits: u32) -> Option<u64> {
    let value = table.get(key)?;
    let fraction = value.as_float().or_else(|| value.as_integer().map(|n| n as f64))?;
    Some((fraction * (1u64 << bits) as f64).round() as u64)
}

/// The size, time or rate at `key`, if it is there.
pub fn quantity<T: FromStr>(table: &Table, key: &str) -> Option<T> {
    table.get(key)?.as_str()?.parse().ok()
}

/// The list of whole numbers at `key`, if a list is there.
pub fn list(table: &Table, key: &str) -> Option<Vec<i64>> {
    let list = table.get(key)?.as_array()?;
    Some(list.iter().filter_map(Value::as_integer).collect())
}
