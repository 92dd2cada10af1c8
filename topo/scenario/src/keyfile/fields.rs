//! Reads a resolved table: typed values, places for messages, and the report of faults.

use crate::keyfile::document::{Datum, Table};
use crate::keyfile::problem::{Complaint, Place, Problems};
use crate::keyfile::settle::{element_path, join};
use proto::params::{FromValue, Kind, Params, Reader, Scale, Value};
use proto::units::Duration;
use std::cell::RefCell;

/// A resolved table with its place and name.
///
/// A reader returns `None` where a key is optional and absent, or where it was required and wrong; in
/// the latter case the fault has been reported.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// Its name, as `--set` takes it.
    pub path: String,
    /// Where it stands.
    pub place: &'a Place,
    /// The table itself.
    pub table: &'a Table,
    /// What one `mtu` is.
    pub scale: Scale,
    /// The faults of the whole file.
    pub problems: &'a RefCell<Problems>,
}

/// What [`Texts`] are written as: a string, or several.
pub const TEXTS: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]);

/// One string, or the strings of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

impl FromValue for Texts {
    fn from_value(value: &Value) -> Option<Texts> {
        Vec::from_value(value).or_else(|| Some(vec![String::from_value(value)?])).map(Texts)
    }
}

/// A set of priorities: bit n is priority n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities(pub u8);

impl FromValue for Priorities {
    fn from_value(value: &Value) -> Option<Priorities> {
        let list = Vec::<u8>::from_value(value)?;
        Some(Priorities(list.iter().fold(0, |set, priority| set | 1 << priority)))
    }
}

impl<'a> Fields<'a> {
    fn inner(&self, path: String, place: &'a Place, table: &'a Table) -> Fields<'a> {
        Fields { path, place, table, scale: self.scale, problems: self.problems }
    }

    /// A length of time in frame times, for messages.
    pub fn in_frames(&self, time: Duration) -> String {
        format!("{} mtu", time.as_ps() as f64 / self.scale.tau.as_ps().max(1) as f64)
    }

    /// Where the value of `key` stands; the table's own place if there is none.
    pub fn place_of(&self, key: &str) -> &'a Place {
        let written = self.table.get(key).filter(|datum| datum.place != Place::Default);
        written.map_or(self.place, |datum| &datum.place)
    }

    /// Reports a fault of the value of `key`.
    pub fn report(&self, key: &str, complaint: Complaint) {
        let mut problems = self.problems.borrow_mut();
        problems.report(self.place_of(key), join(&self.path, key), complaint);
    }

    /// Reports a fault of the value of `key`: what is wrong, and what to write instead.
    pub fn error(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.report(key, Complaint::new(message, hint));
    }

    /// Like [`Fields::error`]; always `None`, for the reader to return.
    pub fn refuse<T, M: Into<String>, H: Into<String>>(
        &self,
        key: &str,
        message: M,
        hint: H,
    ) -> Option<T> {
        self.error(key, message, hint);
        None
    }

    /// Reports a fault of the value of `key` if there is one.
    pub fn accept<T>(&self, key: &str, found: Result<T, Complaint>) -> Option<T> {
        found.map_err(|complaint| self.report(key, complaint)).ok()
    }

    /// Whether a fault of `key` has been reported.
    pub fn has_error(&self, key: &str) -> bool {
        let path = join(&self.path, key);
        self.problems.borrow().iter().any(|problem| problem.path == path)
    }

    /// Warns about the value of `key`.
    pub fn warn(&self, key: &str, complaint: Complaint) {
        let mut problems = self.problems.borrow_mut();
        problems.warn(self.place_of(key), join(&self.path, key), complaint);
    }

    /// What the strings of `key` name by `find`. `None` if one of them names nothing: it has been
    /// reported at its own place.
    pub fn gather<T>(
        &self,
        key: &str,
        texts: &Texts,
        mut find: impl FnMut(&str) -> Result<Vec<T>, Complaint>,
    ) -> Option<Vec<T>> {
        let mut all = Some(Vec::new());
        for (index, text) in texts.0.iter().enumerate() {
            match (find(text), &mut all) {
                (Ok(found), Some(all)) => all.extend(found),
                (Ok(_), None) => {}
                (Err(complaint), _) => {
                    let list = self.table.get(key).and_then(Datum::list);
                    let place = match list.filter(|list| list.len() == texts.0.len()) {
                        Some(list) => &list[index].place,
                        None => self.place_of(key),
                    };
                    self.problems.borrow_mut().report(place, join(&self.path, key), complaint);
                    all = None;
                }
            }
        }
        all
    }

    /// A string.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.table.text(key)
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

    /// A table within; `None` only if it is optional and absent.
    pub fn table(&self, key: &str) -> Option<Fields<'a>> {
        let datum = self.table.get(key)?;
        Some(self.inner(join(&self.path, key), &datum.place, datum.table()?))
    }

    /// The tables of an array of tables.
    pub fn tables(&self, key: &str) -> Vec<Fields<'a>> {
        let list = self.table.get(key).and_then(Datum::list).unwrap_or_default();
        let tables = list.iter().enumerate().filter_map(|(index, element)| {
            let table = element.table()?;
            let path = element_path(&join(&self.path, key), index, table);
            Some(self.inner(path, &element.place, table))
        });
        tables.collect()
    }

    /// The array of tables `key`, each with its parameters; those with a missing or wrong one are left out.
    pub fn each<T: Params>(&self, key: &str) -> Vec<(Fields<'a>, T)> {
        let tables = self.tables(key).into_iter();
        tables.filter_map(|fields| fields.params().map(|params| (fields, params))).collect()
    }
}

/// The words of a table that gives each its meaning.
pub fn words<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

/// The meaning that `table` gives to a word.
pub fn meaning<T: Copy>(table: &[(&'static str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning)
}
