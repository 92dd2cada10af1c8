//! The settings of a scenario, for readers of results: every key of fabric, scheme and run with its
//! value, where that was written, and the comment in the same line of the file.

use crate::keyfile::document::{Datum, Entry, Table};
use crate::keyfile::problem::Place;

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As `--set` would name it.
    pub name: String,
    /// Its value, as it is written in TOML but without quotes.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the file, with the comment in its line.
    File(Option<String>),
    /// From the command line, in place of what the file has, if it has anything.
    Override(Option<String>),
    /// The key's default.
    Default,
}

/// Tables whose every key is listed.
const WHOLE: [&str; 3] = ["scheme", "fabric", "run"];
/// Lists whose elements are a row each.
const LISTS: [&str; 2] = ["traffic", "impairment"];
/// Elements of one list that are shown.
const ELEMENTS_MAX: usize = 24;

/// The settings of a scenario: `file` is its text, `written` its document without overrides, `settled` the
/// document with overrides and defaults, and `in_force` the parameters of the scheme that depend on the fabric.
pub fn list(
    file: &str,
    written: &Table,
    settled: &Table,
    in_force: Vec<(&'static str, String)>,
) -> Vec<Setting> {
    let view = View { lines: file.lines().collect() };
    let mut settings = Vec::new();
    for name in WHOLE {
        view.table(name, written.table(name), settled.table(name), &mut settings);
    }
    for (key, value) in in_force {
        let name = format!("scheme.{key}");
        match settings.iter_mut().find(|setting| setting.name == name) {
            Some(setting) if setting.origin == Origin::Default => setting.value = value,
            Some(_) => {}
            None => settings.push(Setting { name, value, origin: Origin::Default }),
        }
    }
    for name in LISTS {
        let Some(list) = settled.get(name).and_then(Datum::list) else { continue };
        let named = list.iter().enumerate().take(ELEMENTS_MAX).map(|(index, element)| {
            let own = element.table().and_then(|table| table.text("name"));
            let own = own.map_or_else(|| index.to_string(), str::to_owned);
            let origin = match &element.place {
                Place::Override(_) => Origin::Override(None),
                Place::File { .. } | Place::Default => Origin::File(None),
            };
            Setting { name: format!("{name}.{own}"), value: in_words(element), origin }
        });
        settings.extend(named);
        if list.len() > ELEMENTS_MAX {
            let value = format!("{} further ones", list.len() - ELEMENTS_MAX);
            settings
                .push(Setting { name: format!("{name}.…"), value, origin: Origin::File(None) });
        }
    }
    settings
}

struct View<'a> {
    lines: Vec<&'a str>,
}

impl View<'_> {
    fn table(
        &self,
        path: &str,
        written: Option<&Table>,
        settled: Option<&Table>,
        out: &mut Vec<Setting>,
    ) {
        for entry in settled.iter().flat_map(|table| &table.entries) {
            let path = format!("{path}.{}", entry.key);
            let key = entry.key.as_str();
            if let Some(table) = entry.value.table() {
                self.table(&path, written.and_then(|written| written.table(key)), Some(table), out);
                continue;
            }
            // Nodes and links are a picture, not a parameter.
            let list = entry.value.list().unwrap_or_default();
            if list.iter().any(|item| item.table().is_some()) {
                continue;
            }
            let origin = match &entry.value.place {
                Place::Default => Origin::Default,
                Place::Override(_) => {
                    let old = written.and_then(|table| table.get(key));
                    Origin::Override(old.map(|datum| datum.data.plain()))
                }
                Place::File { line, .. } => Origin::File(self.comment(*line)),
            };
            out.push(Setting { name: path, value: entry.value.data.plain(), origin });
        }
    }

    /// What stands behind the `#` of a line, if that is not inside a string.
    fn comment(&self, line: usize) -> Option<String> {
        let line = self.lines.get(line.checked_sub(1)?)?;
        let mut quote = None;
        for (at, letter) in line.char_indices() {
            match (quote, letter) {
                (None, '#') => return Some(line[at + 1..].trim().to_owned()),
                (None, '"' | '\'') => quote = Some(letter),
                (Some(open), letter) if open == letter => quote = None,
                _ => {}
            }
        }
        None
    }
}

/// `from h[0-30], to h31, load 0.07`.
fn in_words(element: &Datum) -> String {
    let Some(table) = element.table() else { return element.data.plain() };
    let is_shown = |entry: &&Entry| entry.key != "name" && entry.value.place != Place::Default;
    let entries = table.entries.iter().filter(is_shown);
    let words = entries.map(|entry| format!("{} {}", entry.key, entry.value.data.plain()));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn a_value_tells_whether_the_file_the_command_line_or_nobody_set_it() {
        let text = "schema = 1\nname = \"x\"\n[run]\nduration = \"10 mtu\"\n\
            [fabric]\nnodes = [{ name = \"h0\", kind = \"nic\" }, { name = \"h1\", kind = \"nic\" }, \
            { name = \"s\", kind = \"switch\" }]\n\
            links = [{ a = \"h0:1\", b = \"s:1\" }, { a = \"h1:1\", b = \"s:2\" }]\n\
            link = { rate = \"8 Gbps\" } # \"section 5\", table 2\n\
            [[traffic]]\nname = \"t\"\nfrom = \"h0\"\nto = \"h1\"\nload = 0.5\nsize = \"2048 B\"\n\
            arrivals = \"poisson\"\n";
        let sets = ["run.duration=20 mtu".to_owned()];
        let scenario = Scenario::parse(text, &sets).expect("a sound scenario");
        let find = |name: &str| {
            let found = scenario.settings.iter().find(|setting| setting.name == name);
            found.unwrap_or_else(|| panic!("{name} is not listed")).clone()
        };
        let rate = find("fabric.link.rate");
        assert_eq!(rate.value, "8 Gbps");
        assert_eq!(rate.origin, Origin::File(Some("\"section 5\", table 2".into())));
        assert_eq!(find("run.duration").origin, Origin::Override(Some("10 mtu".into())));
        assert_eq!(
            (find("run.seed").origin, find("scheme.kind").value),
            (Origin::Default, "none".into())
        );
        assert!(find("traffic.t").value.starts_with("from h0, to h1, load 0.5"));
        assert!(scenario.settings.iter().all(|setting| setting.name != "fabric.nodes"));
    }
}
