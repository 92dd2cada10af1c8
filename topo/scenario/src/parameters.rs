//! The text of docs/schemes.md, made from the key tables: schemes, memory models, routing policies.

use crate::fabric::{nic, switch};
use proto::congestion::schemes::{self, Scheme};
use proto::params::{Key, KeyTable, Kind, markdown};
use std::fmt::Write;
use switchd::memory::models::MODELS;
use switchd::routing::policies::POLICIES;

/// The whole document.
pub fn document() -> String {
    let mut text = String::from(
        "# Schemes and their parameters\n\n\
         This page is made from the key tables in the code; `pausebed schemes` prints it. \
         A default in parentheses belongs to one word of another key. \
         run.json states the values in force in a run.\n\n\
         ## Congestion control: `[scheme]`\n\n",
    );
    schemes::all().iter().for_each(|scheme| text.push_str(&self::scheme(scheme)));
    text.push_str("## Memory models: `[fabric.switch] memory`\n\n");
    for model in MODELS {
        let on = model.technologies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        section(&mut text, model.name, &format!("{} On {on}.", model.about), model.section);
    }
    text.push_str("## Routing policies: `[fabric] routing`\n\n");
    for policy in POLICIES {
        section(&mut text, policy.name, policy.about, policy.section);
    }
    tables(&mut text, "fabric.switch", &switch::KEYS);
    tables(&mut text, "fabric.nic", &nic::KEYS);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// One scheme with its parameters.
pub fn scheme(scheme: &Scheme) -> String {
    let on = scheme.technologies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let Scheme { name, about, source, keys, .. } = scheme;
    let mut text = format!("### {name}\n\n{about} On {on}. Source: {source}.\n\n");
    if !keys.is_empty() {
        let _ = writeln!(text, "{}", markdown(keys));
    }
    text
}

/// The keys of a table, and of all tables in it but those of memory models and routing policies.
fn tables(text: &mut String, path: &str, table: &KeyTable) {
    let keys = table.every_key();
    let groups: Vec<&[Key]> = keys.iter().map(|key| std::slice::from_ref(*key)).collect();
    let KeyTable { about, .. } = table;
    let _ = writeln!(text, "## `[{path}]`: {about}\n\n{}", markdown(&groups));
    let sections =
        MODELS.iter().map(|row| row.section).chain(POLICIES.iter().map(|row| row.section));
    let sections: Vec<&str> = sections.flatten().map(|key| key.name).collect();
    for key in keys.iter().filter(|key| !sections.contains(&key.name)) {
        if let Kind::Table(inner) | Kind::Tables(inner) = key.kind {
            tables(text, &format!("{path}.{}", key.name), inner);
        }
    }
}

fn section(text: &mut String, name: &str, about: &str, section: Option<&'static Key>) {
    let _ = writeln!(text, "### {name}\n\n{about}\n");
    if let Some(Key { name, kind: Kind::Table(KeyTable { keys, .. }), .. }) = section {
        let _ = writeln!(
            text,
            "Its parameters are in `[fabric.switch.{name}]`:\n\n{}",
            markdown(&[*keys])
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// `PAUSEBED_REWRITE_SNAPSHOTS=1 cargo test -p scenario` rewrites the page.
    #[test]
    fn the_page_in_docs_is_made_from_the_key_tables() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemes.md");
        let made = super::document();
        if std::env::var_os("PAUSEBED_REWRITE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &made).expect("the folder can be written");
        }
        let written = std::fs::read_to_string(&file).expect("docs/schemes.md");
        assert_eq!(written, made, "set PAUSEBED_REWRITE_SNAPSHOTS=1 to rewrite it");
    }
}
