//! The statement of conformance: a table of every case, made from what a check found.

use super::case::Level;
use super::cases::GROUPS;
use super::report::word;
use super::suite::{Outcome, Verdict};
use std::fmt::Write;

/// The document, in Markdown.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "# Statement of conformance\n\n\
         Made by `pausebed check --statement`; do not edit. A column for each level: C on octets, E on the\n\
         virtual clock, L with live daemons. `SKIP` says that a part is not built or was not run.\n\n\
         Not covered: subnet administration, DCBX and LLDP, IPv6 routing, PTP, and what has\n\
         no published standard (receiver-driven control, draft BCN); for those see the\n\
         scenarios.\n",
    );
    for group in GROUPS.iter() {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {}: {}\n\n| case | item | clause or source | supported | C | E | L |\n\
             |---|---|---|---|---|---|---|\n",
            group.name, group.subject
        );
        for case in &group.cases {
            let cell = |level| verdict(outcomes, &case.id, level).map_or("", word);
            let cells = [Level::Codec, Level::Engine, Level::Live].map(cell);
            let supported = if cells.contains(&"PASS") { "yes" } else { "no" };
            let note = if case.note.is_empty() {
                String::new()
            } else {
                format!(" *{}*", escape(&case.note))
            };
            let _ = writeln!(
                text,
                "| {} | {}{note} | {} | {supported} | {} |",
                case.id,
                escape(&case.title),
                escape(&case.source),
                cells.join(" | ")
            );
        }
    }
    text
}

fn verdict(outcomes: &[Outcome], id: &str, level: Level) -> Option<Verdict> {
    let found = outcomes.iter().find(|outcome| outcome.case.id == id && outcome.level == level);
    found.map(|outcome| outcome.verdict)
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}
