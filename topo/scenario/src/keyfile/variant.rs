//! A file that varies another: `base` names the other one, keys that are written replace its keys, and
//! `without` lists what is left out.
//!
//! Tables are merged key by key, a table of another `kind` is replaced. Elements of `[[...]]` are known by
//! their `name` (an expectation by its `measure`): one that both files have is merged, a further one follows
//! the one that is written before it. An expectation is replaced, because its bounds belong together. Arrays
//! of values, and elements without a name, are replaced as a whole.

use crate::keyfile::document::{self, Data, Table};
use crate::keyfile::problem::{Complaint, Place, Problem, Problems};
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml_edit::DocumentMut;

mod overlay;

/// Files that one chain of `base` may name.
const FILES_MAX: usize = 8;

/// Reads the text of a file.
pub type Open<'a> = &'a mut dyn FnMut(&Path) -> Result<String, String>;

/// A file with everything that it takes from others.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The text of one file that needs no other; comments are kept.
    pub text: String,
    /// The file itself, its base, and so on.
    layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
struct Layer {
    file: PathBuf,
    table: Table,
}

/// The file `file` whose text is `text`, with its bases.
///
/// # Errors
/// If a file is not TOML, a base cannot be read, or `without` names what the base does not have.
pub fn resolve(text: &str, file: &Path, open: Open<'_>) -> Result<Resolved, Problems> {
    let mut layers = Vec::new();
    let document = merged(text, file, open, &mut layers)?;
    let text = document.map_or_else(|| text.to_owned(), |document| document.to_string());
    Ok(Resolved { text, layers })
}

impl Resolved {
    /// Names the file and the line of it that wrote the key of a fault in [`Resolved::text`].
    pub fn locate(&self, problem: &mut Problem) {
        if self.layers.len() == 1 || !matches!(problem.place, Place::File { .. }) {
            return;
        }
        // A key that is missing has the place of the innermost table that is there.
        let longer = |path: &&str| path.rfind('.').map(|end| &problem.path[..end]);
        let found = successors(Some(problem.path.as_str()), longer).find_map(|path| {
            let place = |layer: &Layer| place(&layer.table, path);
            self.layers.iter().enumerate().find_map(|(depth, layer)| Some((depth, place(layer)?)))
        });
        let (depth, place) = found.unwrap_or((0, Place::File { line: 1, column: 1 }));
        problem.place = place;
        problem.file = (depth > 0).then(|| name(&self.layers[depth].file));
    }
}

fn name(file: &Path) -> Arc<str> {
    file.display().to_string().into()
}

/// Where the value of `path` was written.
fn place(table: &Table, path: &str) -> Option<Place> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let entry = table.entries.iter().find(|entry| entry.key == first)?;
    match (&entry.value.data, rest) {
        (_, "") => Some(entry.place.clone()),
        (Data::Table(table), rest) => place(table, rest),
        (Data::List(list), rest) => list.iter().enumerate().find_map(|(index, element)| {
            let table = element.table()?;
            let name = table.known_as().map_or_else(|| index.to_string(), str::to_owned);
            match overlay::below(rest, &name)? {
                "" => Some(element.place.clone()),
                rest => place(table, rest),
            }
        }),
        _ => None,
    }
}

/// The document of `file`; `None` if it has no base.
fn merged(
    text: &str,
    file: &Path,
    open: Open<'_>,
    layers: &mut Vec<Layer>,
) -> Result<Option<DocumentMut>, Problems> {
    let is_base = !layers.is_empty();
    let of_base = |problem: &mut Problem| {
        problem.file = problem.file.take().or_else(|| is_base.then(|| name(file)));
    };
    let table = document::parse(text).map_err(|problems| problems.changed(of_base))?;
    layers.push(Layer { file: file.to_owned(), table: table.clone() });
    let Some(base) = table.get("base") else { return Ok(None) };
    let refuse = |key: &str, complaint| {
        let mut problems = Problems::default();
        problems.report(&table.get(key).unwrap_or(base).place, key, complaint);
        problems.changed(of_base)
    };
    let Data::Text(named) = &base.data else {
        let hint = "base = \"other.toml\", seen from this file's folder";
        return Err(refuse("base", Complaint::new("not the name of a file", hint)));
    };
    let other = beside(file, named);
    if layers.len() == FILES_MAX || layers.iter().any(|layer| layer.file == other) {
        let hint = format!("at most {FILES_MAX} files, each once");
        return Err(refuse("base", Complaint::new("a base of itself, or too many files", hint)));
    }
    let hint = "the name is seen from this file's folder";
    let text_of_base = open(&other).map_err(|error| refuse("base", Complaint::new(error, hint)))?;
    let document = match merged(&text_of_base, &other, open, layers)? {
        Some(document) => document,
        None => text_of_base.parse::<DocumentMut>().expect("it was parsed before"),
    };
    let variant = text.parse::<DocumentMut>().expect("it was parsed before");
    overlay::overlaid(document, variant).map(Some).map_err(|complaint| refuse("without", complaint))
}

/// `named` as seen from the folder of `file`, without `..` where that can be told from the names.
fn beside(file: &Path, named: &str) -> PathBuf {
    let mut path = file.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(named) {
        let is_named = path.file_name().is_some();
        if part != ".." || !is_named || !path.pop() {
            path.push(part);
        }
    }
    path
}

#[cfg(test)]
mod tests;
