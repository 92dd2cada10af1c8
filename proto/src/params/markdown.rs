//! Key tables as Markdown, for docs/schemes.md.

use super::{Key, Kind, Need};
use std::fmt::Write as _;

/// The keys as a table in Markdown, one row each.
pub fn markdown(keys: &[&'static [Key]]) -> String {
    let mut text =
        String::from("| key | holds | default | meaning | source |\n|---|---|---|---|---|\n");
    for key in keys.iter().copied().flatten() {
        let Key { name, kind, about, source, .. } = key;
        let (holds, default) = (kind.expected(), key.default_in_words(keys));
        let effect = key.when.map_or_else(String::new, |when| format!(" Needs {when}."));
        let row = format!("`{name}` | {holds} | {default} | {about}{effect} | {source}");
        let _ = writeln!(text, "| {row} |");
    }
    text
}

impl Key {
    /// What holds if the key is missing, in words; `groups` are the keys of its table.
    pub fn default_in_words(&self, groups: &[&'static [Key]]) -> String {
        match &self.need {
            Need::Required => "required".to_owned(),
            Need::Optional => "none".to_owned(),
            Need::Else(words) => (*words).to_owned(),
            Need::Default(text) => text.trim_matches('"').to_owned(),
            Need::By(by, texts) => {
                let key = groups.iter().copied().flatten().find(|key| key.name == *by);
                let words = match key.map(|key| &key.kind) {
                    Some(Kind::Word(words)) => words(),
                    _ => Vec::new(),
                };
                let each = words.iter().zip(*texts).map(|(word, text)| format!("{text} ({word})"));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }
}
