//! Reads a settled table by key and type.

use crate::keyfile::document::{Data, Datum, Table};
use crate::keyfile::problem::{Complaint, Place, Problems};
use crate::keyfile::settle::{element_path, join};
use proto::params::{FromValue, Params, Reader, Scale};
use proto::units::{BitRate, Bytes, Duration, Instant};

/// A settled table with its place and name.
///
/// A reader answers `None` only where a key is optional and absent, or was required and wrong; in
/// the latter case the fault has been reported.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// Its name, as `--set` takes it.
    pub path: String,
    /// Where it stands.
    pub place: &'a Place,
    table: &'a Table,
    scale: Scale,
}

impl<'a> Fields<'a> {
    /// The whole file.
    pub fn root(table: &'a Table, place: &'a Place, scale: Scale) -> Fields<'a> {
        Fields { path: String::new(), place, table, scale }
    }

    /// What one `mtu` is.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// A length of time in frame times, for messages.
    pub fn in_frames(&self, time: Duration) -> String {
        format!("{} mtu", time.as_ps() as f64 / self.scale.tau.as_ps().max(1) as f64)
    }

    /// The table itself.
    pub fn table_itself(&self) -> &'a Table {
        self.table
    }

    /// True if `key` has a value, its default included.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of `key` as it stands.
    pub fn datum(&self, key: &str) -> Option<&'a Datum> {
        self.table.get(key)
    }

    /// Where the value of `key` stands; the table's own place if there is none.
    pub fn place_of(&self, key: &str) -> &'a Place {
        let written = self.table.get(key).filter(|datum| datum.place != Place::Default);
        written.map_or(self.place, |datum| &datum.place)
    }

    /// Reports a fault of the value of `key`.
    pub fn report(&self, problems: &mut Problems, key: &str, complaint: Complaint) {
        problems.report(self.place_of(key), join(&self.path, key), complaint);
    }

    /// A string.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.table.text(key)
    }

    /// What a word means by `table`.
    pub fn word<T: Copy>(&self, key: &str, table: &[(&'static str, T)]) -> Option<T> {
        let word = self.text(key)?;
        table.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning)
    }

    /// True or false; false if absent.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.table.get(key), Some(Datum { data: Data::Flag(true), .. }))
    }

    /// An integer that its key's bounds keep within `T`.
    pub fn whole<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        match self.table.get(key)?.data {
            Data::Whole(number) => T::try_from(number).ok(),
            _ => None,
        }
    }

    /// The value of `key`, default included; `None` if it is missing.
    pub fn get<T: FromValue>(&self, key: &str) -> Option<T> {
        T::from_value(self.table.get(key)?.value.as_ref()?)
    }

    /// The whole table as a struct of parameters. `None` if a required one is missing or wrong.
    pub fn params<T: Params>(&self) -> Option<T> {
        T::read(&mut Reader::parsed(&|key| self.table.get(key)?.value.clone()))
    }

    /// The keys that are written, defaults left out, without those of `except`. Units are absolute.
    pub fn written(&self, except: &[&str]) -> toml::Table {
        let written = self.table.entries.iter().filter(|entry| {
            entry.value.place != Place::Default && !except.contains(&entry.key.as_str())
        });
        written.map(|entry| (entry.key.clone(), entry.value.to_absolute())).collect()
    }

    /// Whether `key` is written, not by default.
    pub fn is_written(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|datum| datum.place != Place::Default)
    }

    /// Warns about the value of `key`.
    pub fn warn(&self, problems: &mut Problems, key: &str, complaint: Complaint) {
        problems.warn(self.place_of(key), join(&self.path, key), complaint);
    }

    /// A number.
    pub fn real(&self, key: &str) -> Option<f64> {
        self.get(key)
    }

    /// A length of time.
    pub fn time(&self, key: &str) -> Option<Duration> {
        self.get(key)
    }

    /// A point of time, written as the time since the start of the run.
    pub fn instant(&self, key: &str) -> Option<Instant> {
        self.get(key)
    }

    /// A rate.
    pub fn rate(&self, key: &str) -> Option<BitRate> {
        self.get(key)
    }

    /// A size.
    pub fn size(&self, key: &str) -> Option<Bytes> {
        self.get(key)
    }

    /// The strings of a list, or the one string that stands in its place.
    pub fn texts(&self, key: &str) -> Vec<(&'a str, &'a Place)> {
        match self.table.get(key) {
            Some(Datum { data: Data::Text(text), place, .. }) => vec![(text, place)],
            Some(Datum { data: Data::List(list), .. }) => list
                .iter()
                .filter_map(|item| match &item.data {
                    Data::Text(text) => Some((text.as_str(), &item.place)),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The strings of a list in groups: an inner list is one, and so is a string that stands alone.
    pub fn text_groups(&self, key: &str) -> Option<Vec<Vec<(&'a str, &'a Place)>>> {
        let Datum { data: Data::List(list), .. } = self.table.get(key)? else { return None };
        let text = |item: &'a Datum| match &item.data {
            Data::Text(text) => Some((text.as_str(), &item.place)),
            _ => None,
        };
        let group = |item: &'a Datum| match &item.data {
            Data::List(inner) => inner.iter().filter_map(text).collect(),
            _ => text(item).into_iter().collect(),
        };
        Some(list.iter().map(group).collect())
    }

    /// The integers of a list.
    pub fn wholes<T: TryFrom<i64>>(&self, key: &str) -> Vec<T> {
        match self.table.get(key) {
            Some(Datum { data: Data::List(list), .. }) => {
                list.iter().filter_map(|item| whole(&item.data)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The elements of a list of integers and words: nothing for a word.
    pub fn alternatives<T: TryFrom<i64>>(&self, key: &str) -> Vec<Option<T>> {
        match self.table.get(key) {
            Some(Datum { data: Data::List(list), .. }) => {
                list.iter().map(|item| whole(&item.data)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The pairs of integers of a list of lists of two.
    pub fn pairs<T: TryFrom<i64>>(&self, key: &str) -> Vec<Option<(T, T)>> {
        let Some(Datum { data: Data::List(list), .. }) = self.table.get(key) else {
            return Vec::new();
        };
        list.iter()
            .map(|item| match &item.data {
                Data::List(pair) if pair.len() == 2 => {
                    Some((whole(&pair[0].data)?, whole(&pair[1].data)?))
                }
                _ => None,
            })
            .collect()
    }

    /// A table within; `None` only if it is optional and absent.
    pub fn table(&self, key: &str) -> Option<Fields<'a>> {
        match self.table.get(key)? {
            Datum { data: Data::Table(table), place, .. } => {
                let path = join(&self.path, key);
                Some(Fields { path, place, table, scale: self.scale })
            }
            _ => None,
        }
    }

    /// The tables of an array of tables.
    pub fn tables(&self, key: &str) -> Vec<Fields<'a>> {
        let Some(Datum { data: Data::List(list), .. }) = self.table.get(key) else {
            return Vec::new();
        };
        list.iter()
            .enumerate()
            .filter_map(|(index, element)| match &element.data {
                Data::Table(table) => {
                    let path = element_path(&join(&self.path, key), index, table);
                    Some(Fields { path, place: &element.place, table, scale: self.scale })
                }
                _ => None,
            })
            .collect()
    }
}

fn whole<T: TryFrom<i64>>(data: &Data) -> Option<T> {
    match data {
        Data::Whole(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

/// The words of a table that gives each its meaning.
pub fn words<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}
