//! A TOML document as a plain tree in which each value has its place in the file.

use crate::keyfile::problem::{Complaint, Place, Problems};
use proto::params::Value;
use proto::units::{Bytes, Duration};
use std::str::FromStr;
use toml_edit::{Document, Item, Key, TableLike, Value as Edited};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Where it was written.
    pub place: Place,
    /// What is written.
    pub data: Data,
    /// Its meaning, once it has been checked against its key.
    pub value: Option<Value>,
}

impl Datum {
    /// As a value of the `toml` crate; a size or time in frames becomes absolute.
    pub fn to_absolute(&self) -> toml::Value {
        match (&self.data, &self.value) {
            (Data::Text(text), Some(Value::Size(size))) if !is_absolute::<Bytes>(text) => {
                (*size).into()
            }
            (Data::Text(text), Some(Value::Time(time))) if !is_absolute::<Duration>(text) => {
                (*time).into()
            }
            (data, _) => data.to_toml(),
        }
    }

    /// The table, if it is one.
    pub fn table(&self) -> Option<&Table> {
        match &self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn list(&self) -> Option<&[Datum]> {
        match &self.data {
            Data::List(list) => Some(list),
            _ => None,
        }
    }

    /// A value that has not been checked yet.
    pub fn new(place: Place, data: Data) -> Datum {
        Datum { place, data, value: None }
    }
}

/// TOML's types; a date, which no key takes, is a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A string.
    Text(String),
    /// An integer.
    Whole(i64),
    /// A number with a point.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// An array, inline or of tables.
    List(Vec<Datum>),
    /// A table, inline or with a header.
    Table(Table),
}

/// A table: entries in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub place: Place,
    /// Its value.
    pub value: Datum,
}

fn is_absolute<T: FromStr>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

impl Table {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Datum> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of `key`, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Datum> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
    }

    /// Gives `key` a value, in place of the one it had.
    pub fn set(&mut self, key: &str, value: Datum) {
        match self.get_mut(key) {
            Some(old) => *old = value,
            None => {
                let place = value.place.clone();
                self.entries.push(Entry { key: key.to_owned(), place, value });
            }
        }
    }

    /// The table of `key`, if it is one.
    pub fn table(&self, key: &str) -> Option<&Table> {
        self.get(key)?.table()
    }

    /// The text by which `--set` and variants know this element of an array: its `name`, or that of
    /// its `measure`.
    pub fn known_as(&self) -> Option<&str> {
        self.text("name").or_else(|| self.text("measure"))
    }

    /// The text of `key`, if it is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Data {
    /// The type's name, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Data::Text(_) => "a string",
            Data::Whole(_) => "an integer",
            Data::Real(_) => "a number",
            Data::Flag(_) => "true or false",
            Data::List(_) => "an array",
            Data::Table(_) => "a table",
        }
    }

    /// As written in TOML, but a string without quotes.
    pub fn plain(&self) -> String {
        match self {
            Data::Text(text) => text.clone(),
            other => other.to_toml().to_string(),
        }
    }

    /// The same as a value of the `toml` crate, for callers that read their own tables.
    pub fn to_toml(&self) -> toml::Value {
        match self {
            Data::Text(text) => toml::Value::String(text.clone()),
            Data::Whole(number) => toml::Value::Integer(*number),
            Data::Real(number) => toml::Value::Float(*number),
            Data::Flag(flag) => toml::Value::Boolean(*flag),
            Data::List(list) => {
                toml::Value::Array(list.iter().map(|datum| datum.data.to_toml()).collect())
            }
            Data::Table(table) => toml::Value::Table(table.to_toml()),
        }
    }
}

impl Table {
    /// The same as a table of the `toml` crate.
    pub fn to_toml(&self) -> toml::Table {
        self.entries.iter().map(|e| (e.key.clone(), e.value.data.to_toml())).collect()
    }
}

/// Parses a file. This step reports faults of TOML only.
///
/// # Errors
/// If `text` is not TOML.
pub fn parse(text: &str) -> Result<Table, Problems> {
    let lines = Lines::of(text);
    let document = Document::parse(text).map_err(|error| {
        let mut problems = Problems::default();
        let place = lines.place(error.span());
        let hint = "strings, units included, stand in quotes: rate = \"8 Gbps\"";
        problems.report(&place, "file", Complaint::new(error.message(), hint));
        problems
    })?;
    Ok(lines.table(document.as_table()))
}

/// Parses one value as it would stand after an equals sign, every part of it placed at `place`.
/// What is not a TOML value is a string: a shell has eaten its quotes.
pub fn parse_value(text: &str, place: &Place) -> Datum {
    let data = text.trim().parse::<Edited>().map_or_else(
        |_| Data::Text(text.trim().to_owned()),
        |value| Lines { starts: Vec::new(), text: "", fixed: Some(place) }.value(&value).data,
    );
    Datum::new(place.clone(), data)
}

/// From octet offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    fixed: Option<&'a Place>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Lines<'a> {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(after_breaks).collect(), fixed: None }
    }

    fn place(&self, span: Option<std::ops::Range<usize>>) -> Place {
        if let Some(place) = self.fixed {
            return place.clone();
        }
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let octets = &self.text.as_bytes()[start..offset];
        let letters = octets.iter().filter(|octet| **octet & 0xc0 != 0x80).count();
        Place::File { line, column: letters + 1 }
    }

    fn table(&self, table: &dyn TableLike) -> Table {
        let entries = table
            .iter()
            .filter_map(|(name, item)| {
                let key_place =
                    self.place(table.get_key_value(name).and_then(|(k, _)| Key::span(k)));
                let value = self.item(item, &key_place)?;
                Some(Entry { key: name.to_owned(), place: key_place, value })
            })
            .collect();
        Table { entries }
    }

    /// A table made only by a dotted key or a sub-table's header has no span of its own; it stands
    /// where its key does.
    fn item(&self, item: &Item, key: &Place) -> Option<Datum> {
        match item {
            Item::None => None,
            Item::Value(value) => Some(self.value(value)),
            Item::Table(table) => {
                let place = table.span().map_or_else(|| key.clone(), |span| self.place(Some(span)));
                Some(Datum::new(place, Data::Table(self.table(table))))
            }
            Item::ArrayOfTables(tables) => {
                let table = |table: &toml_edit::Table| {
                    Datum::new(self.place(table.span()), Data::Table(self.table(table)))
                };
                Some(Datum::new(key.clone(), Data::List(tables.iter().map(table).collect())))
            }
        }
    }

    fn value(&self, value: &Edited) -> Datum {
        let data = match value {
            Edited::String(text) => Data::Text(text.value().clone()),
            Edited::Integer(number) => Data::Whole(*number.value()),
            Edited::Float(number) => Data::Real(*number.value()),
            Edited::Boolean(flag) => Data::Flag(*flag.value()),
            Edited::Datetime(date) => Data::Text(date.value().to_string()),
            Edited::Array(list) => Data::List(list.iter().map(|item| self.value(item)).collect()),
            Edited::InlineTable(table) => Data::Table(self.table(table)),
        };
        Datum::new(self.place(value.span()), data)
    }
}
