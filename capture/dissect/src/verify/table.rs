//! A report as tables for the terminal.

use super::{FAMILIES, Report, Severity, Tally};
use comfy_table::{CellAlignment, Table, presets};
use proto::events::Direction;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The whole report as text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    if !report.findings.is_empty() {
        let _ = writeln!(out, "{}", findings(report));
    }
    let shown = report.findings.len() as u64;
    let all: u64 = report.counts.values().sum();
    for (rule, count) in &report.counts {
        let title = FAMILIES.iter().flat_map(|row| row.rules).find(|row| row.id == *rule);
        let (sign, word) = sign(title.map_or(Severity::Violation, |row| row.severity));
        let (title, source) = title.map_or(("", ""), |row| (row.title, row.source));
        let _ = writeln!(out, "  {sign} {count} × {rule} ({word}): {title} ({source})");
    }
    if shown < all {
        let _ = writeln!(out, "  {} more findings are counted and not listed", all - shown);
    }
    let Tally { checked, noted, not_checked } = &report.tally;
    let _ = writeln!(out, "  checked      {}", list(checked).as_deref().unwrap_or("nothing"));
    for (title, list) in [("noted      ", list(noted)), ("not checked", list(not_checked))] {
        list.map(|list| writeln!(out, "  {title}  {list}"));
    }
    let counts = counts(report);
    let verdict = match report.verdict {
        "pass" if all == 0 => "✓ nothing is wrong with what was checked".to_owned(),
        "pass" => format!("✓ nothing is wrong with what was checked; {counts}"),
        "fail" => format!("✕ {counts}"),
        _ => format!("✕ {counts}, and the file cannot be read on"),
    };
    let _ = writeln!(out, "{}: {} frames: {verdict}", report.file, report.frames);
    if let Some(error) = &report.error {
        let _ = writeln!(out, "  {error}");
    }
    out
}

/// The sign of a severity, and its word.
const fn sign(severity: Severity) -> (char, &'static str) {
    match severity {
        Severity::Violation => ('✕', "violation"),
        Severity::Deviation => ('✕', "deviation"),
        Severity::Note => ('•', "note"),
    }
}

/// How many findings of each severity there are; "0 findings" without any.
fn counts(report: &Report) -> String {
    let all = [Severity::Violation, Severity::Deviation, Severity::Note];
    let counted = all.map(|severity| (report.count(severity), sign(severity).1));
    let words = counted.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = words
        .map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if words.is_empty() { "0 findings".to_owned() } else { words.join(", ") }
}

/// Counts with their subjects; `None` if there are none.
fn list(counts: &BTreeMap<impl Display, u64>) -> Option<String> {
    let items: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    (!items.is_empty()).then(|| items.join(", "))
}

fn findings(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["  frame", "interface", "", "rule", "found", "expected"]);
    for finding in &report.findings {
        let direction = match finding.direction {
            Some(Direction::Tx) => "tx",
            Some(Direction::Rx) => "rx",
            None => "",
        };
        let frame = finding.frame.to_string();
        let words = [&frame, &finding.interface, direction, finding.rule];
        table.add_row(words.into_iter().chain([&*finding.found, &*finding.expected]));
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
